// Services: one server on its listener, from start to end.

package edge

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/valyala/fasthttp"
)

// A Service is one server on its listener. It may be shut before it was started.
type Service struct {
	mu     sync.Mutex // guards all of it
	server *fasthttp.Server
	ln     net.Listener
	shut   bool
}

// Serve accepts clients from ln until Shutdown, after which it returns nil.
func (s *Service) Serve(server *fasthttp.Server, ln net.Listener) error {
	s.mu.Lock()
	if s.shut {
		s.mu.Unlock()
		return ln.Close()
	}
	s.server, s.ln = server, ln
	s.mu.Unlock()
	if err := server.Serve(ln); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, closes idle connections and waits for the others
// until ctx ends.
func (s *Service) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	server, ln := s.server, s.ln
	s.shut = true
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	_ = ln.Close() // in case Serve has not started to accept yet
	err := server.ShutdownWithContext(ctx)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
