// Peers: how this Kvasir knows of the others before the same workers.

package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"kvasir/config"
	"kvasir/peers"
)

// StartPeers begins to know of the others that a configuration asks for; nil: it asks for none.
func StartPeers(log zerolog.Logger, g *config.Generation) (*peers.Peers, error) {
	c := &g.Config.Peers
	if !c.On() {
		return nil, nil
	}
	o := peerOptions(log, g)
	if c.Embed.Listen != "" {
		s, err := startServer(log, o.Name, c, &g.Peers)
		if err != nil {
			return nil, fmt.Errorf("peers.embed: %w", err)
		}
		o.Server = s
	}
	p, err := peers.Start(o)
	if err != nil {
		if o.Server != nil {
			o.Server.Close()
		}
		return nil, fmt.Errorf("peers: %w", err)
	}
	return p, nil
}

func peerOptions(log zerolog.Logger, g *config.Generation) peers.Options {
	c := &g.Config.Peers
	o := peers.Options{
		Log: log, Name: c.Name, Group: c.Group, Servers: c.Servers,
		Token: g.Peers.Token, Creds: g.Peers.Creds, Seed: g.Peers.Seed, TLS: g.Peers.TLS,
	}
	if o.Name == "" {
		o.Name, _ = os.Hostname() // it is for people
	}
	return o
}

// CheckPeers asks NATS once, and says what there is; "": nothing is asked for.
func CheckPeers(ctx context.Context, g *config.Generation) (what string, err error) {
	c := &g.Config.Peers
	switch {
	case !c.On():
		return "", nil
	case c.Embed.Listen != "":
		if !hasServer {
			return "", errNoServer
		}
		return "a NATS server inside, at " + c.Embed.Listen, nil
	}
	took, err := peers.Check(ctx, peerOptions(zerolog.Nop(), g))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("NATS at %s, %v", strings.Join(c.Servers, ", "), took.Round(10*time.Microsecond)), nil
}

// errNoServer is peers.embed's where the server is not built in.
var errNoServer = errors.New("this build has no NATS server inside (it takes 9 MB): run nats-server and name it under peers.servers, " +
	"or build Kvasir with -tags nats_server")
