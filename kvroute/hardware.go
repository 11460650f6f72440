// Hardware: what telemetry says of the GPUs that a worker computes on.

package kvroute

import "math"

// Hardware is what telemetry says of a worker's GPUs. The zero Hardware says nothing.
type Hardware struct {
	// Slow is how many times longer the engine's passes take than by what it can
	// do: 2 at half the clock. 0, and all below 1, is 1; at most 1,000.
	Slow float64

	// Aside: nothing is to be placed there as long as another worker that is well
	// has a free slot. Where all are aside it changes nothing, nor for a request
	// that names the worker.
	Aside bool

	Why string // for people; empty where there is nothing to say
}

// mostSlow bounds Hardware.Slow: prices must stay numbers.
const mostSlow = 1000

// sameSlow is how far apart two factors may be that are taken for one: a clock
// never stands still, and passes that span a change teach nothing of the engine.
const sameSlow = 0.02

// SetHardware says what telemetry has found, in place of what it said before. It
// reports whether placement goes by something else from now on: by another Slow
// (2 % or more, or none) or another Aside. A new Why alone is noted, and is no change.
func (w *Worker) SetHardware(h Hardware) (changed bool) {
	h.Slow = min(max(h.Slow, 1), mostSlow)
	if math.IsNaN(h.Slow) {
		h.Slow = 1
	}
	e := &w.engine
	e.mu.Lock()
	old := w.Hardware()
	if h.Slow != 1 && math.Abs(h.Slow/old.Slow-1) < sameSlow {
		h.Slow = old.Slow
	}
	changed = h.Slow != old.Slow || h.Aside != old.Aside
	if h == (Hardware{Slow: 1}) {
		w.hard.Store(nil)
	} else if h != old {
		w.hard.Store(&h)
	}
	if h.Slow != old.Slow {
		e.slow(w, h.Slow)
	}
	e.mu.Unlock()
	if changed {
		// Worse news wake as well: in a central queue others may be the cheapest now.
		w.wake()
	}
	return changed
}

// Hardware returns what was said last; Slow is 1 where nothing is slow.
func (w *Worker) Hardware() Hardware {
	if h := w.hard.Load(); h != nil {
		return *h
	}
	return Hardware{Slow: 1}
}

// aside says whether others are to be preferred.
func (w *Worker) aside() bool {
	h := w.hard.Load()
	return h != nil && h.Aside
}

// slow returns how many times longer passes take than by what the engine can do.
func (w *Worker) slow() float64 {
	if h := w.hard.Load(); h != nil {
		return h.Slow
	}
	return 1
}
