// Engine: what a worker's engine says of itself, and the blocks that it holds.

package kvroute

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/cost"
	"kvasir/kvroute/kvindex"
)

// EngineFacts are what an engine says of itself; 0 is not known.
type EngineFacts struct {
	BlockSize        int // tokens of a block of KV cache
	Blocks           int // of the cache on the device, of each rank
	MaxBatchedTokens int // of one pass
	MaxSeqs          int // requests of one pass
	Ranks            int // data-parallel ranks, each with a cache of its own; 0: one

	// Events: what it holds is heard from itself (Worker.Cache), not guessed from
	// what was sent there. Say so before the first event.
	Events bool
}

// How long own placements are predicted to be held after their end: until the
// engine's events tell of them, or where it sends none, as Dynamo does.
const (
	keepWithEvents = 250 * time.Millisecond
	keepAlone      = 120 * time.Second
)

// engine is what placement knows of the worker's engine.
//
// Invariants:
//  1. ranks is nil, or an immutable slice of max(facts.Ranks, 1) elements.
//  2. A rank that was replaced has no blocks in the index any more. What is
//     under way there goes on in its tracker, which the next rank has as well
//     unless the engine began anew.
type engine struct {
	ranks atomic.Pointer[[]*rank] // nil: nobody asked yet

	mu    sync.Mutex // guards below, and for writing ranks
	facts EngineFacts
	left  bool // no configuration names the worker any more: nothing is noted
}

// A rank is one data-parallel rank of a worker: one scheduler with one cache.
type rank struct {
	worker *Worker
	id     int // -1: the only one
	track  *tracker
	cache  *kvindex.Worker // in blocks of tokens; nil: none
	events bool            // the engine says itself what cache holds
	left   bool            // as engine.left

	text atomic.Pointer[kvindex.Worker] // blocks of text of own placements; nil: none yet
}

// A tracker follows what is under way at one rank.
type tracker struct {
	mu     sync.Mutex // guards below; nothing else is locked with it held
	mirror *cost.Mirror

	// limited: the engine can be shut. Either it is known how many tokens a pass
	// takes, or at least the size of the cache, which is all that vLLM tells: its
	// pass is taken to be cost.Engine's. An engine that tells neither is always open.
	limited bool
	counted bool // how many requests a pass takes is known

	// shut: the engine was not open when a request should have gone there. Whoever
	// opens it wakes those in line.
	shut bool
}

// SetEngine says what is known of the worker's engine, in place of what was
// known, and reports whether that is news. Facts may come late and in parts: as
// long as the block size is not known, nothing is known to be held. Another
// block size or number of ranks, and the beginning of events, forget what was
// held.
func (w *Worker) SetEngine(f EngineFacts) bool {
	if !w.engine.set(w, f) {
		return false
	}
	w.wake() // perhaps it is open by what is known now
	return true
}

func (e *engine) set(w *Worker, f EngineFacts) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.facts
	if old == f {
		return false
	}
	e.facts = f
	ranks := e.ranks.Load()
	if ranks == nil {
		return true
	}
	for _, r := range *ranks {
		r.track.setEngine(f)
	}
	// The block size may be known from the first event already; to hear it again is no news.
	known := (*ranks)[0].blockSize()
	if known != f.BlockSize && f.BlockSize != 0 || max(old.Ranks, 1) != max(f.Ranks, 1) || old.Events != f.Events {
		e.renew(w, true)
	}
	return true
}

// slow says how many times longer passes take from now on than by what the engine
// can do. It is called with mu held.
func (e *engine) slow(w *Worker, times float64) {
	if ranks := e.ranks.Load(); ranks != nil {
		now := w.line.Load().now()
		for _, r := range *ranks {
			r.track.mu.Lock()
			r.track.mirror.SetSlow(now, times)
			r.track.mu.Unlock()
		}
	}
}

// Engine returns what is known of the worker's engine.
func (w *Worker) Engine() EngineFacts {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	return w.engine.facts
}

// Cache returns what a rank of the worker holds, in the index of its pools, for
// who listens to its events. It is cheap, and to be asked for anew for each
// batch of events: it is another one after Restarted or SetEngine. It is nil
// before the worker's first pool, for a rank that the worker does not have
// (SetEngine), when no configuration names the worker any more, and where the
// index has no room for one more worker.
func (w *Worker) Cache(rank int) *kvindex.Worker {
	ranks := w.ranks()
	if rank < 0 || rank >= len(ranks) {
		return nil
	}
	return ranks[rank].cache
}

// Pace is how many times longer the worker's passes take, as far as it is learned from its answers, than those of the
// engine that package sim simulates; false: it is not known yet.
func (w *Worker) Pace() (float64, bool) {
	for _, r := range w.ranks() {
		r.track.mu.Lock()
		timing, known := r.track.mirror.Timing()
		r.track.mu.Unlock()
		if known {
			return timing.Pace(), true
		}
	}
	return 0, false
}

// Learned tells f what was learned here of how long the passes of each rank take; rank -1: the worker has
// but one.
func (w *Worker) Learned(f func(rank int, t cost.Timing)) {
	for _, r := range w.ranks() {
		r.track.mu.Lock()
		timing, known := r.track.mirror.Learned()
		r.track.mu.Unlock()
		if known {
			f(r.id, timing)
		}
	}
}

// Believe takes what another router has learned of a rank, until enough is learned here. A rank that the
// worker is not known to have is left out, and so is what no engine can be.
func (w *Worker) Believe(rank int, t cost.Timing) {
	if r := w.rankOf(&Away{Rank: rank}); r != nil {
		r.track.mu.Lock()
		defer r.track.mu.Unlock()
		r.track.mirror.Believe(t)
	}
}

// Restarted notes that the engine began anew: it holds nothing, nothing is
// under way there, and how fast it is will be learned again.
func (w *Worker) Restarted() {
	e := &w.engine
	e.mu.Lock()
	e.renew(w, false)
	e.mu.Unlock()
	w.wake()
}

// ranks returns the ranks of the worker, made if nobody asked before; none
// before its first pool.
func (w *Worker) ranks() []*rank {
	if r := w.engine.ranks.Load(); r != nil {
		return *r
	}
	if w.line.Load() == nil {
		return nil
	}
	e := &w.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ranks.Load() == nil {
		e.make(w, nil)
	}
	return *e.ranks.Load()
}

// renew forgets what the ranks hold, and begins anew if there were any. keep:
// what is under way there still is. It is called with mu held.
func (e *engine) renew(w *Worker, keep bool) {
	old := e.ranks.Load()
	if old == nil {
		return
	}
	for _, r := range *old {
		if r.cache != nil {
			r.cache.Forget()
		}
		if text := r.text.Load(); text != nil {
			text.Forget()
		}
	}
	if !keep {
		old = new([]*rank)
	}
	e.make(w, *old)
}

// make makes the ranks, with the trackers of old ones as far as they go.
func (e *engine) make(w *Worker, old []*rank) {
	ranks := make([]*rank, max(e.facts.Ranks, 1))
	for i := range ranks {
		r := &rank{worker: w, id: i, left: e.left, events: e.facts.Events}
		if e.facts.Ranks <= 1 {
			r.id = -1
		}
		if i < len(old) {
			r.track = old[i].track
		} else {
			r.track = newTracker(e.facts)
			r.track.mirror.SetSlow(time.Time{}, w.slow())
		}
		if !e.left {
			keep := keepAlone
			if e.facts.Events {
				keep = keepWithEvents
			}
			r.cache = r.add(e.facts.BlockSize, e.facts.Blocks, keep)
		}
		ranks[i] = r
	}
	e.ranks.Store(&ranks)
}

// add makes room in the index; nil: there is none, and nothing is known to be held.
func (r *rank) add(blockSize, capacity int, keep time.Duration) *kvindex.Worker {
	w, err := r.worker.line.Load().index.Add(kvindex.WorkerOptions{BlockSize: blockSize, Capacity: capacity, Keep: keep})
	if err != nil {
		return nil
	}
	return w
}

// setLeft notes that the configuration names the worker no longer, or again.
func (w *Worker) setLeft(left bool) {
	e := &w.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left != left {
		e.left = left
		e.renew(w, true)
	}
}

// blockSize returns the tokens of a block; 0: not known.
func (r *rank) blockSize() int {
	if r.cache == nil {
		return 0
	}
	return r.cache.BlockSize()
}

// texts returns where blocks of text of own placements are noted, made for the
// first; nil: nowhere. It is called with the placer's mu held.
func (r *rank) texts() *kvindex.Worker {
	text := r.text.Load()
	if text == nil && !r.left {
		e := &r.worker.engine
		e.mu.Lock()
		defer e.mu.Unlock()
		if now := e.ranks.Load(); now == nil || !slices.Contains(*now, r) {
			return nil // it was replaced meanwhile
		}
		if text = r.add(r.blockSize(), e.facts.Blocks, keepAlone); text != nil {
			r.text.Store(text)
		}
	}
	return text
}

func newTracker(f EngineFacts) *tracker {
	t := &tracker{mirror: cost.NewMirror(cost.Engine{})}
	t.setEngine(f)
	return t
}

func (t *tracker) setEngine(f EngineFacts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limited = f.MaxBatchedTokens > 0 || f.Blocks > 0
	t.counted = f.MaxSeqs > 0
	t.mirror.SetEngine(cost.Engine{
		BlockSize: f.BlockSize, Blocks: f.Blocks, Budget: f.MaxBatchedTokens, MaxSeqs: f.MaxSeqs,
	})
}

// look fills in what is under way, and how many leading blocks of names others
// use; it says whether the engine is open for the leg of one more.
func (t *tracker) look(now time.Time, leg cost.Leg, names []kvindex.Name, c *cost.Candidate) (open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Load = t.mirror.Load(now)
	if names != nil {
		c.Active = t.mirror.Active(names)
		c.Users = t.mirror.Users(names, c.Active)
	}
	return t.open(c.Load, leg)
}

// open says whether an engine with that load has room in its next pass.
func (t *tracker) open(l cost.Load, leg cost.Leg) bool {
	if !t.counted {
		l.Engine.MaxSeqs = math.MaxInt // cost.Engine's default is for prices, it keeps nobody waiting
	}
	return !t.limited || l.Open(leg)
}

// close says whether the engine is shut for the leg, and marks it if it is for
// any: who opens it is to wake those in line.
func (t *tracker) close(now time.Time, leg cost.Leg) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	load := t.mirror.Load(now)
	t.shut = !t.open(load, cost.Whole)
	return !t.open(load, leg)
}

// opened says whether an engine that was shut is open again. It is called with mu held.
func (t *tracker) opened(now time.Time) bool {
	if !t.shut {
		return false
	}
	t.shut = !t.open(t.mirror.Load(now), cost.Whole)
	return !t.shut
}
