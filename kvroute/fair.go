// Fair: a slot that is freed is for the request that has waited longest, of all routers before the worker.

package kvroute

import (
	"slices"
	"time"
)

const (
	// leaveFor is how long a freed slot is left to another router: it has to hear of the slot, and
	// to say that it has taken it.
	leaveFor = 50 * time.Millisecond

	// distrustFor is how long no slot of a worker is left to others after one that nobody took: they
	// are too far away, or what waits there cannot go to the worker. Each that follows has it be
	// twice as long, up to mostDistrust, until one is taken: who waits for ever and takes nothing
	// costs less than 2 % of the time of the slots then, else it would be 9 %.
	distrustFor  = 10 * leaveFor
	mostDistrust = 16 * distrustFor
)

// A leftSlot is a free slot that another router should take. It counts as used until it does, but no
// longer than until.
type leftSlot struct {
	worker *Worker
	until  time.Time
}

// SetOthersWait says since when the request has waited, of those at other routers that the worker could
// take, that has waited longest; zero: none waits. Slots of a worker with a limit go to whoever has
// waited longer: else a router with a queue would keep each slot that it frees, while those of others
// wait for ever. Nobody waits for an answer: a slot that is left to another router and that it does not
// take is used here after a moment.
func (w *Worker) SetOthersWait(since time.Time) {
	nanos := int64(0)
	if !since.IsZero() {
		nanos = since.UnixNano()
	}
	if w.othersWait.Swap(nanos) == nanos || w.left.Load() == 0 {
		return
	}
	if l := w.line.Load(); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.takeBack(w, int(w.left.Load())-l.mayLeave(w, int(w.left.Load())))
		l.settle()
	}
}

// contested says whether others wait for a slot of the worker.
func (w *Worker) contested() bool { return w.othersWait.Load() != 0 && w.max.Load() > 0 }

// leaveToOthers leaves what others should have of the n slots of w that were freed. Where more are free
// others wait for something else. It is called with mu held.
func (l *line) leaveToOthers(w *Worker, n int) {
	now := l.now()
	room := w.max.Load() - w.active.Load() - w.elsewhere()
	if !w.contested() || now.Before(w.distrusted) || room > int64(n) {
		return
	}
	for range min(l.mayLeave(w, n), int(max(room, 0))) {
		w.left.Add(1)
		l.left = append(l.left, leftSlot{w, now.Add(leaveFor)})
	}
}

// mayLeave is how many of n slots are for others: those that no request here has waited longer for.
func (l *line) mayLeave(w *Worker, n int) int {
	if !w.contested() {
		return 0
	}
	since := time.Unix(0, w.othersWait.Load())
	models, _ := w.Models()
	for i := range models {
		in := l.queues[models[i].Name]
		if in == nil {
			continue
		}
		for c := range in.classes {
			for one := in.classes[c].head; one != nil && n > 0 && class(c) != picky && !one.since.After(since); one = one.next {
				n--
			}
		}
	}
	return n
}

// takeBack has n slots of w that were left to others be free, those first that were left first.
func (l *line) takeBack(w *Worker, n int) {
	l.left = slices.DeleteFunc(l.left, func(s leftSlot) bool {
		if n <= 0 || s.worker != w {
			return false
		}
		n--
		w.left.Add(-1)
		return true
	})
}

// lapse takes back the slots that nobody took.
func (l *line) lapse(now time.Time) {
	for len(l.left) > 0 && !now.Before(l.left[0].until) {
		w := l.left[0].worker
		if !now.Before(w.distrusted) { // of those that were left at once the first one counts
			if now.Sub(w.distrusted) > mostDistrust {
				w.distrust = 0 // that was about others, long ago
			}
			w.distrust = min(max(2*w.distrust, distrustFor), mostDistrust)
			w.distrusted = now.Add(w.distrust)
		}
		l.takeBack(w, 1)
	}
}

// SetAway says how many requests other routers have under way there, as far as this one
// knows. They count for limits and for policies that go by load; prices go by Follow.
func (w *Worker) SetAway(n int) {
	before := int(w.away.Swap(int64(n)))
	l := w.line.Load()
	if n == before || l == nil {
		return
	}
	if n > before && w.left.Load() > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.takeBack(w, n-before) // they are taken
		w.distrust = 0
		l.setAlarm(l.now())
		return
	}
	if n < before && w.contested() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leaveToOthers(w, before-n)
		l.settle()
		return
	}
	if n < before {
		l.wake()
	}
}

// tellWaits tells other routers since when those wait here that have waited longest, where that is
// another request than was told. It is called with mu held.
func (l *line) tellWaits() {
	if l.news == nil {
		return
	}
	for model := range l.toldWaits {
		if l.queues[model] == nil {
			delete(l.toldWaits, model)
			l.news(News{Kind: LineWaits, Model: model})
		}
	}
	for model, in := range l.queues {
		var since time.Time
		for c := range in.classes {
			if head := in.classes[c].head; head != nil && class(c) != picky && (since.IsZero() || head.since.Before(since)) {
				since = head.since
			}
		}
		if since.Equal(l.toldWaits[model]) || !slices.ContainsFunc(l.pool.options.Workers, func(w *Worker) bool { return w.max.Load() > 0 }) {
			continue
		}
		if l.toldWaits == nil {
			l.toldWaits = map[string]time.Time{}
		}
		l.toldWaits[model] = since
		l.news(News{Kind: LineWaits, Model: model, Since: since})
	}
}
