// A NATS server in this process, that others are clustered with.

// Package natsserver runs a NATS server inside Kvasir, for those who have none. It takes no
// clients but this process, which alone knows the token for it, and no connections but those of
// other Kvasirs' servers.
//
// It adds 9 MB to the program, so that it is built in only with the tag nats_server (see
// command/wiring/natsserver.go).
package natsserver

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

// Options say where it listens, and whom it is clustered with.
type Options struct {
	Log    zerolog.Logger
	Name   string
	Group  string      // of the cluster
	Listen string      // host:port for the servers of others
	Routes []string    // nats://host:port of theirs; its own among them does no harm
	Token  string      // that all have; "": none
	TLS    *tls.Config // between servers, with a certificate of its own; nil: none
}

// A Server is a running one.
type Server struct {
	nats   *server.Server
	routes int
	token  string // of clients
}

// Start starts it, and waits until it listens.
func Start(o Options) (*Server, error) {
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", o.Listen, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", o.Listen, err)
	}
	if number == 0 {
		number = -1 // any
	}
	options := &server.Options{
		// Servers of one name take each other for themselves and do not cluster.
		ServerName: o.Name + "-" + rand.Text(), NoSigs: true, MaxPayload: 1 << 20,
		Host: "127.0.0.1", Port: -1, Authorization: rand.Text(), // without clients' port it does not begin to cluster
		Cluster: server.ClusterOpts{
			Name: "kvasir-" + o.Group, Host: host, Port: number, ConnectRetries: 1 << 30, NoAdvertise: true,
			PingInterval: 2 * time.Second, MaxPingsOut: 2,
		},
	}
	if o.Token != "" {
		options.Cluster.Username, options.Cluster.Password = "kvasir", o.Token
	}
	if o.TLS != nil {
		options.Cluster.TLSConfig, options.Cluster.TLSTimeout = serverTLS(o.TLS), 2
	}
	s := &Server{routes: len(o.Routes), token: options.Authorization}
	for _, route := range o.Routes {
		u, err := url.Parse(route)
		if err != nil {
			return nil, fmt.Errorf("cannot reach %q: %w", route, err)
		}
		if o.Token != "" {
			u.User = url.UserPassword("kvasir", o.Token)
		}
		options.Routes = append(options.Routes, u)
	}
	if s.nats, err = server.NewServer(options); err != nil {
		return nil, fmt.Errorf("cannot start a NATS server: %w", err)
	}
	failed := make(chan string, 1)
	s.nats.SetLogger(logger{o.Log, failed}, false, false)
	s.nats.Start()
	if s.nats.ReadyForConnections(startPatience) {
		return s, nil
	}
	s.Close()
	select {
	case why := <-failed:
		return nil, errors.New("cannot start a NATS server: " + why)
	default:
		return nil, fmt.Errorf("cannot start a NATS server on %s: it does not listen after %v", o.Listen, startPatience)
	}
}

const startPatience = 2 * time.Second

// serverTLS has servers show certificates of one authority to each other, both ways.
func serverTLS(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, c.RootCAs
	return c
}

// InProcessConn is a connection of a client in this process.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// Token is what a client shows.
func (s *Server) Token() string { return s.token }

// Address is where servers of others reach it.
func (s *Server) Address() string { return s.nats.ClusterAddr().String() }

// Problem says why it reaches nobody; "": it does, or is to reach nobody.
func (s *Server) Problem() string {
	if s.routes > 0 && s.nats.NumRoutes() == 0 {
		return "no other Kvasir's NATS server is connected with the one inside (peers.embed.routes)"
	}
	return ""
}

// Close stops it, and waits for it.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// logger has the log what is wrong; what is well nobody wants to know.
type logger struct {
	log    zerolog.Logger
	failed chan<- string
}

func (logger) Noticef(string, ...any) {}
func (logger) Debugf(string, ...any)  {}
func (logger) Tracef(string, ...any)  {}

// routeErrors are told by the server for each try to connect; /readyz says it once.
const routeErrors = "Error trying to connect to route"

func (l logger) Warnf(format string, args ...any) { l.tell(zerolog.DebugLevel, format, args) }

func (l logger) Errorf(format string, args ...any) {
	if strings.HasPrefix(format, routeErrors) {
		l.tell(zerolog.DebugLevel, format, args)
		return
	}
	l.tell(zerolog.WarnLevel, format, args)
}

func (l logger) Fatalf(format string, args ...any) {
	select {
	case l.failed <- fmt.Sprintf(format, args...):
	default:
	}
}

func (l logger) tell(level zerolog.Level, format string, args []any) {
	l.log.WithLevel(level).Str("problem", fmt.Sprintf(format, args...)).Msg("the NATS server inside tells of a problem")
}
