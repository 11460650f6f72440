// Eligible: the workers that a policy without prices picks from.

package kvroute

import (
	"slices"
	"sync/atomic"
	"time"
)

// eligible is the set of workers that a policy picks from: those that were not tried, are well and have a free slot.
// It changes with every request that comes and goes, so whoever picks looks at each worker when it gets there. It
// goes by value: behind a func value a pointer would move each one to the heap.
type eligible struct {
	workers []*Worker // all that serve the model
	tried   []*Worker
	now     time.Time
	turn    *atomic.Uint64 // of the model, for policies that go by turns
	random  func() uint64
	wide    bool // those that are aside are eligible, too
	narrow  bool // they never are
}

// eligible returns what a policy picks from for a leg of the request. A policy that needs to know more of the request
// than this takes it from the Query here.
func (p *Pool) eligible(q *Query, workers, tried []*Worker, turn *atomic.Uint64) eligible {
	return eligible{workers: workers, tried: tried, now: q.Now, turn: turn, random: p.options.Random}
}

// has says whether w is eligible.
func (e *eligible) has(w *Worker) bool {
	return (e.wide || !w.aside()) && available(w, e.tried, e.now)
}

// widen makes those that are aside eligible, after nobody else was found. It
// reports whether there are any.
func (e *eligible) widen() bool {
	if e.wide || e.narrow || !slices.ContainsFunc(e.workers, (*Worker).aside) {
		return false
	}
	e.wide = true
	return true
}

// count returns how many are eligible.
func (e *eligible) count() int {
	n := 0
	for _, w := range e.workers {
		if e.has(w) {
			n++
		}
	}
	return n
}

// nth returns eligible worker k, counted from 0, or the last one if there are fewer by now.
func (e *eligible) nth(k uint64) *Worker {
	var last *Worker
	for _, w := range e.workers {
		if !e.has(w) {
			continue
		}
		if last = w; k == 0 {
			break
		}
		k--
	}
	return last
}

// below returns a random number in [0, n), n > 0. The bias is below n / 2^32.
func (e *eligible) below(n int) uint64 { return e.random() >> 32 * uint64(n) >> 32 }

// available says whether w is well, has a free slot and was not tried.
func available(w *Worker, tried []*Worker, now time.Time) bool {
	return w.free() && w.usable(now) && (len(tried) == 0 || !slices.Contains(tried, w))
}
