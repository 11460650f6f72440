// What is heard of a worker's KV cache, as others may read it at any time.

package upstream

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvindex"
)

// How long a trouble that is over stays a reason in /readyz, and how long one that
// may pass is none yet.
const (
	reasonStays = 5 * time.Minute
	reasonWaits = 10 * time.Second
)

// heard is what was learnt from one worker's engine. The watch over the worker, and
// the listeners that it starts, write it.
type heard struct {
	listener  atomic.Pointer[holdings.Listener] // nil before the first time
	blockSize atomic.Int64                      // as the engine's own events have it; 0: they agree with what it says
	restarts  atomic.Uint64                     // of the engine
	late      counterWatch                      // answers that may be wrong
	expired   counterWatch                      // prompts that were computed for nothing
	problem   atomic.Pointer[string]            // with the addresses of events; nil: none
	elsewhere atomic.Bool                       // the worker told an address that is not on its own host
}

// Counts are what was counted of a worker's engine.
type Counts struct {
	Restarts uint64 // times that it was found started anew
	Late     uint64 // KV blocks fetched from it after it had given them up, as it counts
	Expired  uint64 // prompts whose KV blocks nobody fetched from it in time, as it counts
}

// Counts are what was counted of the worker's engine until now.
func (w *Worker) Counts() Counts {
	return Counts{Restarts: w.heard.restarts.Load(), Late: w.heard.late.last.Load(), Expired: w.heard.expired.last.Load()}
}

// Events are what is known of the worker's KV events, one element for each rank that
// is listened to.
func (w *Worker) Events() []holdings.Status {
	if l := w.heard.listener.Load(); l != nil {
		return l.Status()
	}
	return nil
}

// EventReasons say what about the worker's events is not as it should be.
func (w *Worker) EventReasons(now time.Time) (why []string) {
	h := &w.heard
	add := func(format string, of ...any) {
		why = append(why, fmt.Sprintf("worker %q: ", w.Name())+fmt.Sprintf(format, of...))
	}
	if text := h.problem.Load(); text != nil {
		add("cannot listen to its KV events: %s", *text)
	}
	if h.elsewhere.Load() {
		add("it names an address of KV events on another host than that of its url, which is not asked; if it is right, set workers[].kv_events and kv_replay")
	}
	if h.late.recently(now) {
		add("KV blocks were fetched from it after it had given them up: answers may have wrong text")
	}
	for _, f := range w.Events() {
		if down := now.Sub(f.Since); !f.Since.IsZero() && down > reasonWaits {
			problem := errors.New("no answer yet")
			if f.Problem != nil {
				problem = f.Problem
			}
			add("its KV events of rank %d are not heard for %v: %v", f.Rank, down.Round(time.Second), problem)
		}
		if f.Engine != 0 {
			add("its KV blocks have %d tokens, %d were assumed", f.Engine, f.Assumed)
		}
		if !f.LostAt.IsZero() && now.Sub(f.LostAt) < reasonStays {
			add("KV events of rank %d were lost and could not be had again; what it holds is learnt anew", f.Rank)
		}
		if !f.FullAt.IsZero() && now.Sub(f.FullAt) < reasonStays {
			add("%v", kvindex.ErrFull)
		}
	}
	return why
}

// A counterWatch follows a counter of the engine's that should stay 0.
type counterWatch struct {
	last  atomic.Uint64
	known atomic.Bool
	grown atomic.Int64 // when it last grew, Unix nanoseconds; 0: never
}

// saw takes a reading and returns by how much the counter grew.
func (c *counterWatch) saw(n uint64, now time.Time) uint64 {
	last, known := c.last.Swap(n), c.known.Swap(true)
	if !known || n <= last { // or the engine began anew
		return 0
	}
	c.grown.Store(now.UnixNano())
	return n - last
}

// recently says whether the counter grew a short while ago.
func (c *counterWatch) recently(now time.Time) bool {
	at := c.grown.Load()
	return at != 0 && now.Sub(time.Unix(0, at)) < reasonStays
}

// A Hush lets a few lines of the log through in a minute, and counts those that it
// holds back. The zero value is ready.
type Hush struct {
	mu     sync.Mutex // guards all below
	since  time.Time  // when the minute began
	told   int        // lines in it
	untold uint64     // lines held back since the last one that was told
}

const (
	hushFor   = time.Minute
	hushLines = 10
)

// Tell sends e with the text, or not. The first line after a while without says how
// many were held back.
func (h *Hush) Tell(e *zerolog.Event, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); now.Sub(h.since) >= hushFor {
		h.since, h.told = now, 0
	}
	if h.told == hushLines {
		h.untold++
		e.Discard()
		return
	}
	h.told++
	if h.untold > 0 {
		e.Uint64("untold", h.untold)
		h.untold = 0
	}
	e.Msg(text)
}
