// Rooms: the two legs of SGLang's hand-over find each other at the prefill worker's bootstrap
// server.

package sim

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
)

// meeting is a room that at least one leg is in.
type meeting struct {
	here, there bool          // the prefill leg is in; the decode leg is in; guarded by rooms.mu, as is gone
	gone        bool          // left is closed
	joined      chan struct{} // closed when the decode leg came
	left        chan struct{} // closed when the decode leg left before it had its blocks
	ready       chan struct{} // closed when the blocks are there
	answer      []byte        // where the blocks are; set before ready is closed
}

// rooms are the meetings of a prefill worker. The zero value is ready.
type rooms struct {
	mu  sync.Mutex // guards the map and who is in a meeting
	met map[int64]*meeting
}

// errRoomTaken: a room used twice at the same time crashes both of SGLang's schedulers (its issue
// 40125).
var errRoomTaken = errors.New("room is taken")

// enter occupies one side of a room.
func (r *rooms) enter(id int64, side func(*meeting) *bool) (*meeting, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.met[id]
	if m == nil {
		m = &meeting{joined: make(chan struct{}), left: make(chan struct{}), ready: make(chan struct{})}
		if r.met == nil {
			r.met = map[int64]*meeting{}
		}
		r.met[id] = m
	}
	taken := side(m)
	if *taken {
		return nil, errRoomTaken
	}
	*taken = true
	if m.there && taken == &m.there {
		close(m.joined)
	}
	return m, nil
}

// leave gives up one side; the last one to leave removes the room.
func (r *rooms) leave(id int64, m *meeting, side func(*meeting) *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*side(m) = false
	if !m.here && !m.there && r.met[id] == m {
		delete(r.met, id)
	}
}

// abandon records that the decode leg of a room no longer wants its blocks.
func (r *rooms) abandon(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.met[id]; m != nil && !m.gone {
		m.gone = true
		close(m.left)
	}
}

func hereIn(m *meeting) *bool  { return &m.here }
func thereIn(m *meeting) *bool { return &m.there }

// hosts reports whether this worker hosts rooms.
func (s *Server) hosts() bool { return s.options.Engine == "sglang" && s.options.Role == "prefill" }

// serveJoin serves a decode leg that joins: it replies when the blocks are ready. The decode leg
// leaves by closing the connection.
func (s *Server) serveJoin(ctx context.Context, w http.ResponseWriter, a ask) {
	id, err := strconv.ParseInt(a.Request, 10, 64)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m, err := s.rooms.enter(id, thereIn)
	if err != nil {
		s.die()
		abort()
	}
	defer s.rooms.leave(id, m, thereIn)
	select {
	case <-m.ready:
		_, _ = w.Write(m.answer)
	case <-s.dead:
		abort()
	case <-ctx.Done():
		s.rooms.abandon(id)
		abort()
	}
}

// serveLeave serves a decode leg that leaves when the reply to its join may already have been
// sent.
func (s *Server) serveLeave(w http.ResponseWriter, a ask) {
	id, err := strconv.ParseInt(a.Request, 10, 64)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.rooms.abandon(id)
	w.WriteHeader(http.StatusNoContent)
}
