// The order of the central queue: which of the requests that wait for one model goes next, by what its prompt costs.

package cost

import (
	"slices"
	"time"
)

// A Queue holds the requests that wait for a place. The lowest of (prefill - waited / 10) goes first, where prefill is
// how long the prompt takes on the worker that holds most of it: short prompts go first, and nobody waits forever. It
// is unbounded; its user bounds it. Not safe for concurrent use.
//
// A request goes to the worker that is cheapest for it, when that one has room in its next pass, and waits otherwise:
// taking the second best there loses what the cache is worth, which is worse than waiting (docs/routing.md). Where it
// is to be decided whether a prefill worker computes the prompt, those who wait count (Predict.Handed).
type Queue[T any] struct {
	waiting []*Waiting[T]
	order   uint64
	epoch   time.Time
	work    time.Duration // the prefills of all waiting
}

// Waiting is one request in a Queue.
type Waiting[T any] struct {
	Value T
	Since time.Time

	key     float64
	order   uint64
	prefill time.Duration // as it was given last
}

// Ageing is how much of its prefill time a waiting request is let off for each millisecond that it has waited.
const Ageing = 0.1

// Looks is how many of the first requests are priced before the others are left for the next time.
const Looks = 8

// Shortest is how long a prompt takes to compute on the candidate that holds most of it, of those just priced: what
// Push and Next order by. It goes by the engine's rate, not by the length of one pass: what was learned of passes
// says nothing of one with more tokens than a pass can have. 0: there is no candidate.
func Shortest(tokens int, groups ...[]Candidate) time.Duration {
	var best *Candidate
	for _, c := range groups {
		for i := range c {
			if !c[i].Aside && (best == nil || c[i].Hit > best.Hit) {
				best = &c[i]
			}
		}
	}
	if best == nil {
		return 0
	}
	token := unknownToken
	if l := &best.Load; l.Timing.known() {
		token = l.Timing.token(float64(l.Engine.Budget))
	}
	return duration(best.Load.slow() * token * float64(max(tokens-best.Hit, 1)))
}

// Push adds a request that arrived at now. prefill is how long the prompt takes on the worker that holds most of it.
func (q *Queue[T]) Push(now time.Time, prefill time.Duration, value T) *Waiting[T] {
	if len(q.waiting) == 0 && q.epoch.IsZero() {
		q.epoch = now
	}
	q.order++
	w := &Waiting[T]{Value: value, Since: now, order: q.order}
	q.insert(w, prefill)
	return w
}

// Remove takes a request out that waits no longer for its own reasons. It does nothing if it has left already.
func (q *Queue[T]) Remove(w *Waiting[T]) {
	if i, ok := q.find(w); ok {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.work -= w.prefill
	}
}

// Len is how many wait.
func (q *Queue[T]) Len() int { return len(q.waiting) }

// Work is how long the prefills of all who wait take, each on the worker that holds most of it, one after the other.
func (q *Queue[T]) Work() time.Duration { return q.work }

// Next takes out the first request that can go and returns it, nil if none can. place prices one over all workers and
// says whether the cheapest has room now, and how long the prefill is on the worker that holds most of the prompt by
// now. Call it on every arrival, and whenever a pass ended or a request left, until it returns nil.
func (q *Queue[T]) Next(place func(*Waiting[T]) (room bool, prefill time.Duration)) *Waiting[T] {
	var looked [Looks]*Waiting[T]
	n := copy(looked[:], q.waiting)
	for _, w := range looked[:n] {
		room, prefill := place(w)
		q.Remove(w)
		if room {
			return w
		}
		q.insert(w, prefill)
	}
	return nil
}

func (q *Queue[T]) insert(w *Waiting[T], prefill time.Duration) {
	w.prefill = prefill
	q.work += prefill
	// All waiting requests age alike, so that their order is that of prefill + Ageing * arrival.
	w.key = millis(prefill) + Ageing*millis(w.Since.Sub(q.epoch))
	i, _ := q.find(w)
	q.waiting = slices.Insert(q.waiting, i, w)
}

func (q *Queue[T]) find(w *Waiting[T]) (int, bool) {
	return slices.BinarySearchFunc(q.waiting, w, func(a, b *Waiting[T]) int {
		switch {
		case a.key < b.key || a.key == b.key && a.order < b.order:
			return -1
		case a.order == b.order:
			return 0
		}
		return 1
	})
}
