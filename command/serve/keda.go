// KEDA: the listener on which the planner answers it.

package serve

import (
	"crypto/tls"
	"fmt"
	"net"

	"kvasir/command/listener"
	"kvasir/planner/keda"
)

// openKEDA answers KEDA where the configuration asks for it.
func (s *server) openKEDA() error {
	address := s.started.Planner.KEDA.Listen
	if address == "" {
		return nil
	}
	l, err := listener.Open(address)
	if err != nil {
		return fmt.Errorf("planner.keda.listen: %w", err)
	}
	var conf *tls.Config
	if s.current.KEDA != nil {
		s.kedaTLS = &listenerTLS{}
		s.kedaTLS.now.Store(s.current.KEDA)
		conf = s.kedaTLS.config("h2")
	}
	s.keda = keda.New(conf)
	s.log.Info().Str("listen", l.Addr().String()).Bool("tls", conf != nil).Msg("answering KEDA")
	s.serving.Add(1)
	go s.serveKEDA(l)
	return nil
}

func (s *server) serveKEDA(l net.Listener) {
	defer s.serving.Done()
	if err := s.keda.Serve(l); err != nil {
		s.fail(fmt.Errorf("cannot serve on %q: %w", l.Addr(), err))
	}
}
