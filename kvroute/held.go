// Held: what a placement holds beside its slots, and how it is given back.

package kvroute

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// held is what a placement holds beside the slot of its worker. It is used again
// by another placement after Release.
type held struct {
	turn atomic.Uint32 // counts its placements: an old one is told by it
	main leg
	pre  leg // where a prefill worker computes the prompt

	list *shown
}

// A leg is what one of the two workers has of the request.
type leg struct {
	worker  *Worker  // whose slot ends with the leg; nil: the placement's own worker
	track   *tracker // nil: not followed
	request *cost.Request

	cache *kvindex.Worker // where names are noted; nil: nowhere
	names []kvindex.Name  // of the prompt

	over atomic.Bool

	news func(News) bool // who was told of it
	told uint64          // its News.ID; 0: nobody was
	seen int             // tokens of it; guarded by track.mu
}

// shown is memory for Placement.Candidates.
type shown struct{ all []Candidate }

var (
	heldPool  = sync.Pool{New: func() any { return new(held) }}
	shownPool = sync.Pool{New: func() any { return new(shown) }}
)

// hold gives the placement a held of its own.
func (at *Placement) hold() *held {
	h := heldPool.Get().(*held)
	at.held, at.turn = h, h.turn.Load()
	return h
}

// mine returns what the placement holds; nil: nothing, or no longer.
func (at *Placement) mine() *held {
	if h := at.held; h != nil && h.turn.Load() == at.turn {
		return h
	}
	return nil
}

// send notes that the request goes to the rank.
func (l *leg) send(now time.Time, r *rank, s cost.Sent) {
	l.track = r.track
	l.track.mu.Lock()
	defer l.track.mu.Unlock()
	l.request = l.track.mirror.Send(now, s)
}

// note notes which blocks it leaves there, for the placements after it.
func (l *leg) note(cache *kvindex.Worker, names []kvindex.Name, now time.Time) {
	if cache != nil {
		l.cache, l.names = cache, names[:cache.Place(names, now)]
	}
}

// tokens notes tokens seen. It reports whether others may go there by that.
func (l *leg) tokens(now time.Time, n int) (opened bool) {
	t := l.track
	t.mu.Lock()
	if l.over.Load() {
		t.mu.Unlock()
		return false
	}
	t.mirror.Tokens(l.request, now, n)
	opened = t.opened(now)
	l.seen += n
	seen := l.seen
	t.mu.Unlock()
	if l.told != 0 && tellsTokens(seen-n, seen) {
		l.tellTokens(seen)
	}
	return opened
}

// end ends the leg, the first time that it is called.
func (l *leg) end(now time.Time) (first bool) {
	if l.over.Swap(true) {
		return false
	}
	if l.track != nil {
		l.track.mu.Lock()
		l.track.mirror.End(l.request, now)
		l.track.shut = false // the slot that is given back next wakes those in line
		l.track.mu.Unlock()
	}
	if l.cache != nil {
		l.cache.Done(l.names, now)
	}
	if l.told != 0 {
		l.tellEnded()
	}
	return true
}

// clear forgets what the leg was, for the next placement.
func (l *leg) clear() {
	l.worker, l.track, l.request, l.cache, l.names, l.news = nil, nil, nil, nil, nil, nil
	l.told, l.seen = 0, 0
	l.over.Store(false)
}

// Tokens notes that n more tokens of the answer were seen. The first end the
// prefill. It is cheap enough for every event of a stream.
func (at *Placement) Tokens(now time.Time, n int) {
	h := at.mine()
	if h == nil || h.main.track == nil {
		return
	}
	if h.main.tokens(now, n) {
		at.Worker.wake()
	}
}

// Prefilled notes that the prefill worker is done: its slot is free for others.
// computed: the prompt is, by now; else it failed, or was done at a time that
// nobody knows. Without a prefill worker it does nothing, and the second time.
func (at *Placement) Prefilled(now time.Time, computed bool) {
	h := at.mine()
	if h == nil || h.pre.worker == nil {
		return
	}
	if computed && h.pre.track != nil {
		h.pre.tokens(now, 1) // its only token, whether it says it or not
	}
	if h.pre.end(now) {
		h.pre.worker.release()
	}
}

// Answered notes that the answer of a Query that is Quiet is here, with so many
// tokens. Release follows.
func (at *Placement) Answered(now time.Time, tokens int) {
	h := at.mine()
	if h == nil || h.main.track == nil {
		return
	}
	l := &h.main
	l.track.mu.Lock()
	defer l.track.mu.Unlock()
	if !l.over.Load() {
		l.track.mirror.Answer(l.request, now, tokens)
	}
}

// Cached notes how many tokens of the prompt the engine that computes it says
// it had cached.
func (at *Placement) Cached(tokens int) {
	h := at.mine()
	if h == nil {
		return
	}
	l := &h.main
	if h.pre.worker != nil {
		l = &h.pre
	}
	if l.track == nil {
		return
	}
	l.track.mu.Lock()
	defer l.track.mu.Unlock()
	if !l.over.Load() {
		l.track.mirror.Usage(l.request, tokens)
	}
}

// DropCandidates gives back the memory of Candidates before Release does: long
// streams need not keep it.
func (at *Placement) DropCandidates() {
	if h := at.mine(); h != nil {
		h.dropCandidates()
	}
	at.Candidates = nil
}

func (h *held) dropCandidates() {
	if h.list != nil {
		h.list.all = h.list.all[:0]
		shownPool.Put(h.list)
		h.list = nil
	}
}

// Release gives back all that the placement holds, of both workers. It must be
// called exactly once, after all other methods have returned; Candidates are not
// to be looked at after it.
func (at *Placement) Release() {
	if h := at.held; h != nil {
		if !h.turn.CompareAndSwap(at.turn, at.turn+1) {
			panic(fmt.Sprintf("BUG: a placement on worker %q was released twice", at.Worker.name))
		}
		now := at.Worker.line.Load().now()
		if h.pre.worker != nil && h.pre.end(now) {
			h.pre.worker.release()
		}
		h.main.end(now)
		h.dropCandidates()
		h.main.clear()
		h.pre.clear()
		heldPool.Put(h)
	}
	at.Worker.release()
}
