// Health: what successes, failures and probes say of one worker; pure, `now` comes in.

package kvroute

import "time"

// The shape is Envoy's outlier detection (consecutive_5xx 5, a growing
// ejection time up to 300 s, a good active probe un-ejects), with 429 and 503
// taken out of it: they tell of load.
const (
	ejectAfter  = 5                // failures in a row
	ejectFirst  = 10 * time.Second // doubled by each ejection in a row
	ejectMost   = 300 * time.Second
	ejectForget = 30 * time.Second // after a success, without ejection, take one doubling back
	downAfter   = 2                // failed probes in a row

	busyLeast   = 100 * time.Millisecond
	busyMost    = 10 * time.Second
	busyDefault = time.Second
)

// A State is what is thought of a worker. Up to Up it is used like any other.
type State uint8

// The states, from the best to the worst but for Unknown.
const (
	Unknown State = iota // nothing was heard of it yet
	Up
	Busy     // it said 429 or 503 lately: others are preferred
	Ejected  // its requests failed in a row
	Down     // its probes fail
	Draining // an operator has taken it out, though it is well
)

var stateNames = [...]string{"unknown", "up", "busy", "ejected", "down", "draining"}

func (s State) String() string { return stateNames[s] }

// TakesRequests says whether requests are sent to a worker in this state.
func (s State) TakesRequests() bool { return s <= Busy }

// A Status is a worker's state at one moment.
type Status struct {
	State State
	Since time.Time // zero: from the start
	Why   string    // the last failure behind Ejected and Down, or who drains it; empty otherwise
	Until time.Time // when Busy and Ejected end by themselves; zero otherwise
}

// health is the memory behind a worker's state. Its zero value is Unknown.
type health struct {
	heard     bool // the worker answered, if only to say that it is busy
	isDown    bool
	fails     int // failed requests in a row
	misses    int // failed probes in a row
	doublings int // of the next ejection

	upSince      time.Time
	downSince    time.Time
	ejectedSince time.Time
	ejectedUntil time.Time
	goodSince    time.Time // the first success after the last ejection; zero: none yet
	busySince    time.Time
	busyUntil    time.Time
	lastBusy     time.Time // it said so; busySince is when the spell began
	lastFailure  time.Time // of a request or a probe
	why          string    // of lastFailure
}

func (h *health) state(now time.Time) State {
	switch {
	case h.isDown:
		return Down
	case h.ejectedUntil.After(now):
		return Ejected
	case h.busyUntil.After(now):
		return Busy
	case h.heard:
		return Up
	}
	return Unknown
}

// calm says that a success would change nothing.
func (h *health) calm(now time.Time) bool {
	return h.state(now) == Up && h.fails == 0 && h.misses == 0
}

// ends returns when the state changes by time alone; zero: it does not.
func (h *health) ends(now time.Time) time.Time {
	switch h.state(now) {
	case Ejected:
		return h.ejectedUntil
	case Busy:
		return h.busyUntil
	}
	return time.Time{}
}

func (h *health) status(now time.Time) Status {
	s := Status{State: h.state(now), Until: h.ends(now)}
	switch s.State {
	case Down:
		s.Since, s.Why = h.downSince, h.why
	case Ejected:
		s.Since, s.Why = h.ejectedSince, h.why
	case Busy:
		s.Since = h.busySince
	case Up:
		s.Since = latest(h.upSince, h.ejectedUntil, h.busyUntil)
	}
	return s
}

// succeeded takes in a success of that time. One from before the last failure says
// nothing of the worker as it is: it may be dead since.
func (h *health) succeeded(now time.Time) {
	if now.Before(h.lastFailure) {
		return
	}
	h.fails = 0
	h.alive(now)
}

// probeOK leaves the failures of a worker in use counted: a server whose
// /health is well while its requests fail would else never be ejected.
func (h *health) probeOK(now time.Time) {
	if s := h.state(now); s == Down || s == Ejected {
		h.fails = 0
	}
	h.alive(now)
}

// alive ends what the worker has just disproved. Busy stays: it answers, but
// asked to be left alone.
func (h *health) alive(now time.Time) {
	if h.isDown || !h.heard {
		h.upSince = now
	}
	h.heard, h.isDown, h.misses = true, false, 0
	if h.ejectedUntil.After(now) {
		h.ejectedUntil = now
	}
	if h.goodSince.IsZero() {
		h.goodSince = now
	}
}

// failed counts on after an ejection has ended by time: the row is broken only
// by a success, so one more failure ejects again, for longer. Failures while
// ejected (streams that were under way) do not make the ejection longer.
func (h *health) failed(now time.Time, why string) {
	h.lastFailure, h.why = now, why
	h.fails = min(h.fails+1, ejectAfter)
	if h.fails < ejectAfter || h.ejectedUntil.After(now) {
		return
	}
	if !h.goodSince.IsZero() {
		h.doublings = max(h.doublings-int(now.Sub(h.goodSince)/ejectForget), 0)
	}
	spell := min(ejectFirst<<h.doublings, ejectMost)
	if spell < ejectMost {
		h.doublings++
	}
	h.ejectedSince, h.ejectedUntil, h.goodSince = now, now.Add(spell), time.Time{}
}

// suspect leaves one failure to the ejection.
func (h *health) suspect() {
	if h.heard && !h.isDown {
		h.fails = max(h.fails, ejectAfter-1)
	}
}

func (h *health) busy(now time.Time, retryAfter time.Duration) {
	if !h.heard {
		h.heard, h.upSince = true, now
	}
	if retryAfter <= 0 {
		retryAfter = busyDefault
	}
	if !h.busyUntil.After(now) {
		h.busySince = now
	}
	h.lastBusy = now
	until := now.Add(min(max(retryAfter, busyLeast), busyMost))
	h.busyUntil = latest(h.busyUntil, until)
}

func (h *health) probeFailed(now time.Time, why string, refused bool) {
	h.lastFailure, h.why = now, why
	h.misses = min(h.misses+1, downAfter)
	if refused {
		h.misses = downAfter
	}
	if h.misses == downAfter && !h.isDown {
		h.isDown, h.downSince = true, now
	}
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// sooner says that of two that are down or ejected this one is likelier to be
// back: an ejection that ends before the other's; then, both down, the one that
// failed longer ago, so that each is tried in turn.
func (h *health) sooner(other *health, now time.Time) bool {
	switch down, otherDown := h.state(now) == Down, other.state(now) == Down; {
	case down != otherDown:
		return otherDown
	case down:
		return h.lastFailure.Before(other.lastFailure)
	}
	return h.ejectedUntil.Before(other.ejectedUntil)
}
