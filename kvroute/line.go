// Line: the requests, of all models, that wait in this process until a worker can take them.

package kvroute

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// A line holds the requests that wait, over all pools of a chain.
//
// Invariants:
//  1. Whoever makes something usable (a slot, a worker, a model) does so first and
//     reads waiting after; whoever waits adds to waiting first and looks for a
//     slot after. One of the two sees the other: no wake-up is lost.
//  2. After settle no request in line could be placed, but for what has
//     become usable since; that sets stale and settles again.
//  3. Slots are offered in the order of arrival, over all models, so that two
//     models that share a worker share it fairly. Only a request that can use no
//     free slot is passed over. With a central queue the order within a model is
//     that of cost.Queue, and a free slot of an engine that is busy with prompts
//     is none; who wants or shuns some workers stays in the order of arrival.
//  4. Locks are taken in the order line.mu, Pool.mu; line.mu, placer.mu, engine.mu,
//     tracker.mu. Worker.mu is never held here.
type line struct {
	waiting atomic.Int64  // requests in line; Place and Release read it without mu
	version atomic.Uint64 // of what the workers serve; see Pool.catalog
	stale   atomic.Bool   // something has become usable since the last settle

	now    func() time.Time
	news   func(News) bool    // PoolOptions.News; nil: nobody listens
	legs   atomic.Uint64      // that were told of: News.ID
	tell   func(at time.Time) // PoolOptions.Alarm; nil: the alarm is a timer
	index  *kvindex.Index
	placer placer // of pools with prices

	mu       sync.Mutex // guards below
	pool     *Pool      // places those who wait: the newest one started
	queues   map[string]*queue
	arrivals uint64
	alarm    *time.Timer // for the next ejection or busy spell that ends by time; nil: never set, or tell has it
	alarmAt  time.Time   // zero: not set
	left     []leftSlot  // in the order of until

	toldWaits map[string]time.Time // by model, as tellWaits said last
}

func newLine(p *Pool, o *PoolOptions) *line {
	l := &line{pool: p, now: o.Now, news: o.News, tell: o.Alarm, index: o.Index, queues: make(map[string]*queue)}
	if l.now == nil {
		l.now = time.Now
	}
	if l.index == nil {
		l.index = kvindex.New(kvindex.Options{})
	}
	return l
}

// Start makes p the pool that waiting requests are placed by, from now on:
// those in line keep their place, also those that came with an older
// pool. One whose model is gone gets ErrUnknownModel at once. The caller
// swaps its own pointer to the pool first, then calls Start; the first pool of a
// chain need not be started. What workers hold that it does not name is forgotten.
func (p *Pool) Start() {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.pool.options.Workers {
		if !slices.Contains(p.options.Workers, w) {
			w.setLeft(true)
		}
	}
	for _, w := range p.options.Workers {
		w.setLeft(false)
	}
	l.pool = p
	l.settle()
}

// Index returns what the index of the workers' blocks holds, without what is
// predicted no longer: while nothing is placed nobody else drops that.
func (p *Pool) Index() kvindex.Stats {
	p.line.index.Expire(p.line.now())
	return p.line.index.Stats()
}

// QueueLen returns how many requests wait for the model.
func (p *Pool) QueueLen(model string) int {
	l := p.line
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[model].len()
}

// Wait places the request like Place, and waits for that behind all who wait
// for the model already, as long as limit at most. It blocks, without a goroutine
// of its own. It is for a request that got ErrFull.
//
// The newest pool places it, whichever pool it came with: after a reload the
// worker may be one that only the new configuration names.
//
// Errors: those of Place except ErrFull, when they come to be true while it
// waits; ErrQueueFull at once; ErrQueueTimeout after limit; ErrGone when gone is
// closed (nil: never). With any error no slot is held.
func (p *Pool) Wait(q Query, gone <-chan struct{}, limit time.Duration) (Placement, error) {
	l := p.line
	w, at, err := l.enter(q, nil)
	if w == nil {
		return at, err
	}
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-w.ready:
		return w.at, w.err
	case <-gone:
		if l.leave(w) || w.err != nil {
			return Placement{}, ErrGone
		}
		w.at.Release() // it came in the same moment; the next in line has it
		return Placement{}, ErrGone
	case <-patience.C:
		if l.leave(w) {
			return Placement{}, ErrQueueTimeout
		}
		return w.at, w.err
	}
}

// Enter is Wait for a caller that must not block, as one whose time is not the
// real one: the request waits without a limit. placed is told once what Wait
// would return, before Enter returns or by the call that lets the request go:
// Release, Tokens, SetHardware, Ring and what else makes a worker usable. It must
// call neither the pool nor a placement.
func (p *Pool) Enter(q Query, placed func(Placement, error)) {
	if w, at, err := p.line.enter(q, placed); w == nil {
		placed(at, err)
	}
}

// Ring lets those who wait look at the workers again, after time has made one
// usable. It is for PoolOptions.Alarm; without that a timer calls it.
func (p *Pool) Ring() { p.line.ring() }

// enter places the request or puts it in line; a nil waiter means that it is
// not in line. placed: nil: it hears by waiter.ready.
func (l *line) enter(q Query, placed func(Placement, error)) (*waiter, Placement, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.Now = l.now()
	at, err := l.placeLocked(l.pool, &q)
	if !errors.Is(err, ErrFull) {
		return nil, at, err
	}
	if l.pool.options.CentralQueue {
		l.pool.measure(&q)
	}
	in := l.queues[q.Model]
	if in.len() >= l.pool.options.MaxQueued {
		return nil, Placement{}, ErrQueueFull
	}
	if in == nil {
		in = new(queue)
		l.queues[q.Model] = in
	}
	l.arrivals++
	w := &waiter{query: q, seq: l.arrivals, since: q.Now, placed: placed}
	if placed == nil {
		w.ready = make(chan struct{})
	}
	in.of(w).push(w)
	if l.waiting.Add(1) == 1 || l.pool.options.CentralQueue {
		// Invariant 1: a slot that became free before waiting was seen. And in the
		// central queue the newcomer may be the first.
		l.settle()
	} else {
		l.tellWaits()
	}
	return w, Placement{}, nil
}

// leave takes w out of the line and reports whether it was still in it. If not,
// w.at and w.err say what it got.
func (l *line) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.done {
		return false
	}
	l.remove(w)
	l.tellWaits()
	l.setAlarm(l.now())
	return true
}

// place is Pool.Place for a request that finds others in line.
func (l *line) place(p *Pool, q *Query) (Placement, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.placeLocked(p, q)
}

// placeLocked places q unless somebody is in line for the very slots that q would take.
func (l *line) placeLocked(p *Pool, q *Query) (Placement, error) {
	if l.stale.Load() {
		l.settle()
	}
	if c := q.class(); c != picky {
		if in := l.queues[q.Model]; in != nil && in.classes[c].head != nil {
			return Placement{}, ErrFull
		}
	}
	return p.place(q)
}

// release gives a slot of w back. While somebody waits that is done with mu held,
// so that nobody who comes along takes the slot before those in line were
// asked. It reports false if there was no slot to give back.
func (l *line) release(w *Worker) bool {
	if l.waiting.Load() == 0 && !w.contested() {
		left := w.active.Add(-1)
		w.tellSlots()
		l.wake() // invariant 1
		return left >= 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := w.active.Add(-1)
	w.tellSlots()
	l.leaveToOthers(w, 1)
	l.settle()
	return left >= 0
}

// wake offers what has become usable to those in line. It is called after the fact.
func (l *line) wake() {
	if l.waiting.Load() == 0 {
		return
	}
	l.stale.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale.Load() { // else whoever had the lock before did it for us
		l.settle()
	}
}

// settle places all in line who can be placed now.
func (l *line) settle() {
	now := l.now()
	l.lapse(now)
	l.stale.Store(true)
	for l.stale.Swap(false) { // again if a slot was taken and let go in between
		if l.pool.options.CentralQueue {
			l.settleCentral(now)
		} else {
			l.settleInOrder(now)
		}
	}
	l.tellWaits()
	l.setAlarm(now)
}

// settleInOrder places them in the order of arrival.
func (l *line) settleInOrder(now time.Time) {
	fifos := make([]*fifo, 0, 16)
	for _, in := range l.queues {
		for c := range in.classes {
			in.classes[c].at = in.classes[c].head
			fifos = append(fifos, &in.classes[c])
		}
	}
	for f := earliest(fifos); f != nil; f = earliest(fifos) {
		w := f.at
		f.at = w.next
		if l.try(w, now) {
			l.dismiss(w)
		} else if w.query.class() != picky {
			f.at = nil // nor can those behind it
		}
	}
}

// settleCentral places them in the order of the central queue, model by model.
func (l *line) settleCentral(now time.Time) {
	queues := slices.SortedFunc(maps.Values(l.queues), func(a, b *queue) int { return cmp.Compare(a.first(), b.first()) })
	for _, in := range queues {
		for w := in.classes[picky].head; w != nil; {
			next := w.next
			if l.try(w, now) {
				l.dismiss(w)
			}
			w = next
		}
		in.order()
		room := func(t *cost.Waiting[*waiter]) (bool, time.Duration) {
			return l.try(t.Value, now), t.Value.query.prefill
		}
		for t := in.central.Next(room); t != nil; t = in.central.Next(room) {
			l.dismiss(t.Value)
		}
	}
}

// try places a request in line. It is false if that has to wait on.
func (l *line) try(w *waiter, now time.Time) bool {
	w.query.Now, w.query.ahead = now, l.queues[w.query.Model].central.Work()
	at, err := l.pool.place(&w.query)
	if errors.Is(err, ErrFull) {
		return false
	}
	w.at, w.err = at, err
	return true
}

// work is how long the prompts take of those who wait for the model in the central queue.
func (l *line) work(model string) time.Duration {
	if l.waiting.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if in := l.queues[model]; in != nil {
		return in.central.Work()
	}
	return 0
}

// dismiss lets a request go that has what it waited for, or an error.
func (l *line) dismiss(w *waiter) {
	l.remove(w)
	if w.placed != nil {
		w.placed(w.at, w.err)
		return
	}
	close(w.ready)
}

// earliest returns the queue whose next one to look at came first.
func earliest(fifos []*fifo) *fifo {
	var first *fifo
	for _, f := range fifos {
		if f.at != nil && (first == nil || f.at.seq < first.at.seq) {
			first = f
		}
	}
	return first
}

func (l *line) remove(w *waiter) {
	in := l.queues[w.query.Model]
	in.remove(w)
	if in.len() == 0 {
		delete(l.queues, w.query.Model) // names come from clients: nothing of them stays
	}
	l.waiting.Add(-1)
}

// centralPulse is how often a central queue looks at the engines, which may have
// ended a pass that no answer tells of; about the length of a short pass.
const centralPulse = 20 * time.Millisecond

// setAlarm sees to it that the line is settled when a worker becomes usable by
// time alone.
func (l *line) setAlarm(now time.Time) {
	var next time.Time
	if l.waiting.Load() > 0 {
		next = l.pool.nextChange(now)
		if pulse := now.Add(centralPulse); l.pool.options.CentralQueue && (next.IsZero() || pulse.Before(next)) {
			next = pulse
		}
	}
	if len(l.left) > 0 && (next.IsZero() || l.left[0].until.Before(next)) {
		next = l.left[0].until
	}
	if next.Equal(l.alarmAt) {
		return
	}
	l.alarmAt = next
	switch {
	case l.tell != nil:
		l.tell(next)
	case next.IsZero():
		l.alarm.Stop()
	case l.alarm == nil:
		l.alarm = time.AfterFunc(next.Sub(now), l.ring)
	default:
		l.alarm.Reset(next.Sub(now))
	}
}

func (l *line) ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarmAt = time.Time{} // should it ring early, it is set again
	l.settle()
}

// nextChange returns when the next worker's state changes by time alone; zero: none does.
func (p *Pool) nextChange(now time.Time) time.Time {
	var next time.Time
	for _, w := range p.options.Workers {
		if h := w.sick.Load(); h != nil {
			if t := h.ends(now); !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}
