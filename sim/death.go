// The death of an engine, and the last answers of its server.

package sim

import (
	"context"
	"net/http"
	"time"
)

// engineDead is the error for every request under way, and for those that arrive before the
// server is gone.
var engineDead = &failure{http.StatusInternalServerError, "InternalServerError",
	"EngineCore encountered an issue. See stack trace (above) for the root cause.", ""}

// transferFailed is the error that a decode worker returns when the KV did not arrive.
var transferFailed = &failure{http.StatusInternalServerError, "InternalServerError", "Internal server error", ""}

// die simulates the death of the engine's process: requests under way fail, no more connections
// are accepted, Serve returns nil, and all sockets are closed. The caller must still call Close.
func (s *Server) die() {
	s.dying.Do(func() {
		s.kill()
		s.goroutines.Go(func() { // a request is under way, so Close is not past its wait
			ctx, cancel := context.WithTimeout(s.closed, time.Second)
			defer cancel()
			_ = s.http.Shutdown(ctx)
			_ = s.http.Close()
			_ = s.side.Close()
			if s.driver.publisher != nil {
				s.driver.publisher.Close()
			}
		})
	})
}

// isDead reports whether the engine died.
func (s *Server) isDead() bool { return s.alive.Err() != nil }
