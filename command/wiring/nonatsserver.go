// No NATS server inside, where it is not built in.

//go:build !nats_server

package wiring

import (
	"github.com/rs/zerolog"

	"kvasir/config"
	"kvasir/peers"
)

const hasServer = false

func startServer(zerolog.Logger, string, *config.Peers, *config.PeersSecrets) (peers.Server, error) {
	return nil, errNoServer
}
