// A NATS server inside, where it is built in.

//go:build nats_server

package wiring

import (
	"github.com/rs/zerolog"

	"kvasir/config"
	"kvasir/peers"
	"kvasir/peers/natsserver"
)

const hasServer = true

func startServer(log zerolog.Logger, name string, c *config.Peers, s *config.PeersSecrets) (peers.Server, error) {
	return natsserver.Start(natsserver.Options{
		Log: log, Name: name, Group: c.Group, Listen: c.Embed.Listen, Routes: c.Embed.Routes, Token: s.Token, TLS: s.TLS,
	})
}
