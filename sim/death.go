// The death of an engine, and what its server says about it before it goes.

package sim

import (
	"context"
	"net/http"
	"time"
)

// engineDead is what every request under way gets, and those that come before the server is gone.
var engineDead = &failure{http.StatusInternalServerError, "InternalServerError",
	"EngineCore encountered an issue. See stack trace (above) for the root cause.", ""}

// transferFailed is what the client of a decode worker gets whose KV did not come.
var transferFailed = &failure{http.StatusInternalServerError, "InternalServerError", "Internal server error", ""}

// die is what happens when the engine's process ends by itself: requests under way fail, no connection is taken any
// more, Serve returns nil, and all sockets are closed. Close is still the caller's to call.
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
