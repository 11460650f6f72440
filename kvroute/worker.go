// Worker: one engine replica as placement sees it: its slots, its models, its health.

package kvroute

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Worker is one engine replica. It outlives configuration generations: what
// was learnt of it stays when the configuration is loaded anew. All its
// methods may be called at the same time.
//
// Invariants:
//  1. active never exceeds max by an acquire; it does only after SetMaxRequests lowered max.
//  2. sick is nil, or an immutable copy of health that was true when it was stored.
//  3. Whoever makes the worker usable for more requests calls wake after it,
//     and never with mu held.
type Worker struct {
	// What Place reads of every worker lies together, in one cache line.
	active       atomic.Int64           // requests under way
	away         atomic.Int64           // requests that other routers have under way there: SetAway
	max          atomic.Int64           // at most so many; 0: no limit
	sick         atomic.Pointer[health] // nil: a success has nothing to change
	models       atomic.Pointer[[]Model]
	needsPrefill atomic.Bool              // it computes no prompts: a prefill worker must
	left         atomic.Int32             // free slots that are left to other routers; written with line.mu held
	line         atomic.Pointer[line]     // who waits for it; nil before its first pool
	hard         atomic.Pointer[Hardware] // immutable; nil: nothing is known; written with engine.mu held

	// Peer is the caller's own handle of this worker (its connections), so that
	// a placement leads there without a look-up. Set it before the worker
	// joins a pool; kvroute never looks at it.
	Peer any

	name string
	role Role

	draining atomic.Bool // SetDraining; placement learns it from the catalog

	othersWait atomic.Int64  // SetOthersWait, in ns since 1970; 0: none waits
	distrusted time.Time     // until when no slot is left to others; guarded by line.mu
	distrust   time.Duration // how long that was the last time; 0: the last slot was taken; guarded by line.mu

	mu     sync.Mutex // guards health
	health health

	engine engine
}

// NewWorker returns a worker that nothing is known of yet. At most maxRequests
// requests are placed on it at once; 0 means no limit.
func NewWorker(name string, role Role, maxRequests int) *Worker {
	w := &Worker{name: name, role: role}
	w.max.Store(int64(maxRequests))
	w.publish(time.Time{})
	return w
}

// Name is the worker's name in the configuration, in headers, metrics and logs.
func (w *Worker) Name() string { return w.name }

// Role is fixed for a worker's life: one whose role changes is another worker.
func (w *Worker) Role() Role { return w.role }

// Active returns how many requests are under way.
func (w *Worker) Active() int { return int(w.active.Load()) }

// Away returns how many requests other routers have under way there (SetAway).
func (w *Worker) Away() int { return int(w.away.Load()) }

// MaxRequests returns the limit of requests under way, those of other routers among them;
// 0: none.
func (w *Worker) MaxRequests() int { return int(w.max.Load()) }

// SetNeedsPrefill says whether the engine computes no prompts of its own, as SGLang's
// does not that is started for decode: requests go there with a prefill worker or
// not at all, whatever PoolOptions.Disaggregate says. It concerns workers of role
// Decode.
func (w *Worker) SetNeedsPrefill(needs bool) {
	if w.needsPrefill.Swap(needs) != needs {
		w.wake()
	}
}

// NeedsPrefill says whether prompts for the worker are always computed by a prefill worker.
func (w *Worker) NeedsPrefill() bool { return w.role == Decode && w.needsPrefill.Load() }

// SetMaxRequests changes the limit of a worker whose configuration changed.
// Requests under way beyond a lower limit are not disturbed.
func (w *Worker) SetMaxRequests(n int) {
	w.max.Store(int64(n))
	w.wake()
}

// SetModels says what the worker serves, as configured or as it answered, in
// place of what was known. It reports whether that is news.
func (w *Worker) SetModels(models []Model) bool {
	old, known := w.Models()
	if known && slices.Equal(old, models) {
		return false
	}
	models = slices.Clone(models)
	w.models.Store(&models)
	if l := w.line.Load(); l != nil {
		l.version.Add(1)
		l.wake()
	}
	return true
}

// Models returns what the worker serves; known is false as long as nobody said.
// The slice is shared and must not be changed.
func (w *Worker) Models() (models []Model, known bool) {
	m := w.models.Load()
	if m == nil {
		return nil, false
	}
	return *m, true
}

// takesRequests says whether requests are placed on the worker at all.
// A prefill worker only ever computes prompts for others.
func (w *Worker) takesRequests() bool { return w.role != Prefill }

// free says whether the worker is below its limit.
func (w *Worker) free() bool {
	limit := w.max.Load()
	return limit <= 0 || w.active.Load()+w.elsewhere() < limit
}

// elsewhere is how many slots are not for this router.
func (w *Worker) elsewhere() int64 { return w.away.Load() + int64(w.left.Load()) }

// acquire takes a slot, if one is free.
func (w *Worker) acquire() bool {
	for {
		n, limit := w.active.Load(), w.max.Load()
		if limit > 0 && n+w.elsewhere() >= limit {
			return false
		}
		if w.active.CompareAndSwap(n, n+1) {
			w.tellSlots()
			return true
		}
	}
}

// release gives a slot back, to a request that waits for it if there is one.
func (w *Worker) release() {
	if !w.line.Load().release(w) {
		panic(fmt.Sprintf("BUG: a placement on worker %q was released twice", w.name))
	}
}

// wake lets the requests that wait look at the worker again.
func (w *Worker) wake() {
	if l := w.line.Load(); l != nil {
		l.wake()
	}
}

// usable says whether nothing speaks against the worker at now.
func (w *Worker) usable(now time.Time) bool {
	h := w.sick.Load()
	return h == nil || h.state(now) <= Up
}

// Succeeded notes that a request ended well: the failures in a row are
// forgotten, and an ejected or down worker is up again, unless it failed since. It
// reports whether the state changed. On a healthy worker it costs one atomic load.
func (w *Worker) Succeeded(now time.Time) bool {
	if w.sick.Load() == nil {
		return false
	}
	return w.change(now, func(h *health) { h.succeeded(now) })
}

// Failed notes that a request failed by the worker's fault: connect failure,
// reset, cut reply, timeout, a 5xx other than 503. Five in a row eject it for a
// while. It reports whether the state changed.
func (w *Worker) Failed(now time.Time, why string) bool {
	return w.change(now, func(h *health) { h.failed(now, why) })
}

// Busy notes a 429 or 503: load, not death. Others are preferred for
// retryAfter (100 ms to 10 s; 0: the worker did not say, 1 s), and the worker is
// never ejected for it. It reports whether the state changed.
func (w *Worker) Busy(now time.Time, retryAfter time.Duration) bool {
	return w.change(now, func(h *health) { h.busy(now, retryAfter) })
}

// ProbeOK notes a good answer to an active probe: the worker is up, and no
// longer ejected. It reports whether the state changed.
func (w *Worker) ProbeOK(now time.Time) bool {
	if w.sick.Load() == nil {
		return false
	}
	return w.change(now, func(h *health) { h.probeOK(now) })
}

// ProbeFailed notes a bad or missing answer to an active probe. Two in a row,
// or one refused connection, mean that the worker is down. It reports
// whether the state changed.
func (w *Worker) ProbeFailed(now time.Time, why string, refused bool) bool {
	return w.change(now, func(h *health) { h.probeFailed(now, why, refused) })
}

// Status returns the worker's state at now, for logs and /readyz.
func (w *Worker) Status(now time.Time) Status {
	w.mu.Lock()
	st := w.health.status(now)
	w.mu.Unlock()
	if w.Draining() {
		return st.drained()
	}
	return st
}

// change applies one piece of news and wakes who waits when the state is another one.
func (w *Worker) change(now time.Time, news func(*health)) bool {
	w.mu.Lock()
	before := w.health.state(now)
	news(&w.health)
	changed := w.health.state(now) != before
	w.publish(now)
	lost := changed && w.health.state(now) > Busy
	w.mu.Unlock()
	if lost {
		w.tellSick()
	}
	if changed {
		// Worse news wake as well: when the last worker is ejected, one of the
		// ejected is used nevertheless.
		w.wake()
	}
	return changed
}

// publish stores what Place reads of the health.
func (w *Worker) publish(now time.Time) {
	if w.health.calm(now) {
		w.sick.Store(nil)
		return
	}
	h := w.health
	w.sick.Store(&h)
}
