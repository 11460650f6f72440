// The engine's core: sequences, passes and the scheduler, on the caller's clock.

package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrTooLong is wrapped by the error of Submit for a prompt that the pool cannot hold.
var ErrTooLong = errors.New("more tokens than the KV pool holds")

// Request is one request to an engine.
type Request struct {
	// Hashes name the full blocks from the start of the prompt, each chained to the one before:
	// equal hash, equal tokens up to there. len(Hashes) is at least PromptTokens/BlockSize;
	// entries beyond name the blocks of the answer where the caller knows it already, so that a
	// later prompt can find it cached. The engine keeps the slice.
	Hashes       []uint64
	PromptTokens int // at least 1
	MaxTokens    int // tokens to generate, at least 1
	Owner        any // for the caller; the engine does not use it

	// The hand-over of a prompt between engines. Hold is the prefill side: after its last token
	// the sequence keeps its blocks until Free. They hold Contents, one number for each block of
	// the prompt, including a last block that is not full. The decode side is Prefilled or Load.
	// Prefilled: the KV of the prompt is there at admission, so the engine does not compute it,
	// except after a preemption. Load: admission takes the blocks, and then the sequence waits
	// for Loaded.
	Hold, Prefilled, Load bool
	Contents              []uint64
}

// Sequence is one request in an engine. The engine writes its fields; the caller may read them
// between calls.
type Sequence struct {
	Request
	Arrived, FirstToken, LastToken time.Duration
	Generated                      int  // tokens visible so far
	Cached                         int  // prompt tokens found in the prefix cache at the first admission
	Preempted                      int  // how often it was preempted
	Done                           bool // it has generated all its tokens, or was cancelled

	id        uint64
	computed  int // tokens whose KV has been computed
	blocks    []int32
	sealed    int // leading blocks that are full
	running   bool
	admitted  bool
	held      bool // done, but its blocks are kept
	elsewhere bool // its prompt's KV comes from another engine
	loading   bool
	now       share
}

// share is a sequence's part of one pass.
type share struct {
	pass   uint64
	tokens int // tokens computed in the pass
	prompt int // prompt tokens among them
	start  int // prompt position before it
}

// Pass is the result of one pass, visible at its end. It is valid until the next call of Advance.
type Pass struct {
	Start, End time.Duration
	Tokens     []*Sequence   // sequences that each generated one token; Done: it was the last
	Preempted  int           // sequences preempted in the pass
	Removed    []uint64      // hashes evicted; this happened before Stored
	Stored     []StoredBlock // blocks new to the cache; KV events are made from these and Removed
}

// StoredBlock is a block that a pass put into the prefix cache: Sequence.Hash(Index), after
// Sequence.Hash(Index-1).
type StoredBlock struct {
	Sequence *Sequence
	Index    int
}

// Stats are an engine's gauges and counters.
type Stats struct {
	Running, Waiting         int // Waiting counts Loading, too
	Loading, Held            int // sequences that wait for their KV; finished ones that keep their blocks
	ActiveBlocks, Blocks     int
	QueriedTokens, HitTokens int // prompt tokens looked up and found in the prefix cache
	Preemptions              int
}

// Engine is a simulated engine. It does no I/O, reads no clock and is not safe for concurrent use.
type Engine struct {
	options Options
	pool    pool

	running   []*Sequence // in order of admission
	preempted []*Sequence // wait ahead of all others; the last one preempted is first
	waiting   []*Sequence // in order of arrival
	loading   []*Sequence // sequences that have their blocks and wait for their KV
	loads     []*Sequence // those of loading that Loads has not returned yet
	held      int         // finished sequences that keep their blocks
	slow      float64     // see Slow
	stuck     bool        // nothing runs, and the head of the queue waits for blocks of loading or held sequences
	woken     bool        // the caller gave work to an engine without a pass: the next pass starts at now

	now    time.Duration // end of the last pass
	under  bool          // a pass is under way
	passes uint64
	pass   Pass // the pass under way, or the one last returned
	nextID uint64
	stats  Stats
}

// New makes an engine. Zero fields of o mean their defaults; all others must be valid.
func New(o Options) *Engine {
	o = o.withDefaults()
	return &Engine{options: o, pool: newPool(o.Blocks), slow: 1}
}

// Slow multiplies the length of all passes that begin from now on by times, which is above 0, on
// top of Options.Speedup. It simulates a GPU that is throttled or shared. 1 means normal speed.
func (e *Engine) Slow(times float64) { e.slow = times }

// Submit adds a request at now, which must not decrease between calls. The request waits for the
// end of the pass under way; call Advance after Submit. If a request arrives exactly at the end
// of a pass, call Submit before Advance, so that it is in the next pass. An answer that does not
// fit into the pool is cut.
func (e *Engine) Submit(now time.Duration, r Request) (*Sequence, error) {
	room := e.options.Blocks * e.options.BlockSize
	if r.PromptTokens > room {
		return nil, fmt.Errorf("cannot take a prompt of %d tokens: %w (%d)", r.PromptTokens, ErrTooLong, room)
	}
	if r.PromptTokens < 1 || r.MaxTokens < 1 || len(r.Hashes) < r.PromptTokens/e.options.BlockSize ||
		len(r.Contents) > blocksOf(r.PromptTokens, e.options.BlockSize) {
		return nil, fmt.Errorf("cannot take a request of %d prompt tokens, %d hashes, %d tokens to generate",
			r.PromptTokens, len(r.Hashes), r.MaxTokens)
	}
	r.MaxTokens = min(r.MaxTokens, room-r.PromptTokens+1)
	e.nextID++
	s := &Sequence{Request: r, Arrived: now, id: e.nextID, elsewhere: r.Prefilled || r.Load}
	e.waiting = append(e.waiting, s)
	return s, nil
}

// Cancel ends a sequence at once: its blocks are freed (computed blocks stay cached) and it is in
// no later Pass. The pass under way keeps its length, as in a real engine.
func (e *Engine) Cancel(s *Sequence) {
	if s.Done {
		return
	}
	s.Done, e.stuck = true, false
	switch {
	case s.running:
		e.pool.release(s)
		s.running = false
		e.running = remove(e.running, s)
	case s.loading:
		e.pool.release(s)
		s.loading = false
		e.loading, e.loads = remove(e.loading, s), remove(e.loads, s)
	default:
		e.waiting = remove(e.waiting, s)
		e.preempted = remove(e.preempted, s)
	}
}

// Loads appends to dst the sequences that got blocks since the last call and now wait for Loaded.
// Sequence.Cached is the number of prompt tokens that the engine has cached itself.
func (e *Engine) Loads(dst []*Sequence) []*Sequence {
	dst = append(dst, e.loads...)
	e.loads = e.loads[:0]
	return dst
}

// Loaded reports that the KV of a sequence's prompt has arrived: the sequence runs from the next
// pass on, and that pass stores its blocks. hashes and maxTokens replace those of its Request.
// After the prompt the hashes may be different ones, because the KV that arrived decides the
// answer. For a cancelled sequence it does nothing.
func (e *Engine) Loaded(s *Sequence, hashes []uint64, maxTokens int) {
	if !s.loading {
		return
	}
	e.loading, e.loads = remove(e.loading, s), remove(e.loads, s)
	s.Hashes, s.MaxTokens = hashes, min(maxTokens, e.options.Blocks*e.options.BlockSize-s.PromptTokens+1)
	s.loading, s.running, e.stuck = false, true, false
	e.woken = e.woken || !e.under
	s.computed = s.PromptTokens
	e.running = append(e.running, s)
}

// Free releases the blocks of a finished sequence that holds them. For others it does nothing.
func (e *Engine) Free(s *Sequence) {
	if s.held {
		e.woken = e.woken || e.stuck
		s.held, e.stuck = false, false
		e.held--
		e.pool.release(s)
	}
}

// BlockIDs returns the numbers of the blocks that a finished sequence holds; valid until Free.
func (s *Sequence) BlockIDs() []int32 { return s.blocks }

// Content returns what a held sequence left in a block. It remains readable after Free until the
// block is used again; from then on it is 0. It is also 0 for numbers that no block has.
func (e *Engine) Content(id int) uint64 {
	if id < 1 || id >= len(e.pool.blocks) {
		return 0
	}
	return e.pool.blocks[id].content
}

// Next returns when Advance has something to do next: at the end of the pass under way, or when a
// waiting request can start.
func (e *Engine) Next() (at time.Duration, busy bool) {
	if e.under {
		return e.pass.End, true
	}
	return e.nextStart()
}

// Advance completes the first pass that has ended by now and returns it. Call it until it returns
// false: then the pass under way, if any, ends after now.
func (e *Engine) Advance(now time.Duration) (*Pass, bool) {
	if !e.under {
		start, ok := e.nextStart()
		if !ok || start > now {
			return nil, false
		}
		if e.woken {
			start, e.woken = now, false
		}
		e.begin(start)
	}
	if e.pass.End > now {
		return nil, false
	}
	e.end()
	return &e.pass, true
}

// Stats returns the engine's gauges and counters as of the last call.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting = len(e.running), len(e.waiting)+len(e.preempted)+len(e.loading)
	s.Loading, s.Held = len(e.loading), e.held
	s.ActiveBlocks, s.Blocks = e.pool.active, e.pool.size
	return s
}

// Admitted reports whether the sequence was given blocks at least once.
func (s *Sequence) Admitted() bool { return s.admitted }

// Hash names the i-th block of the sequence, counted from 0; i is below the number of its full
// blocks.
func (s *Sequence) Hash(i int) uint64 { return s.hash(i) }

// nextStart returns when the next pass can start: at once if anything is admitted, else when the
// first request arrives. A stuck engine waits for its caller.
func (e *Engine) nextStart() (time.Duration, bool) {
	if e.stuck {
		return 0, false
	}
	if len(e.running) > 0 || len(e.preempted) > 0 {
		return e.now, true
	}
	if len(e.waiting) > 0 {
		return max(e.now, e.waiting[0].Arrived), true
	}
	return 0, false
}

// end makes the result of the pass under way visible: one token for each sequence that was ready
// in it and was not cancelled.
func (e *Engine) end() {
	e.under = false
	e.now = e.pass.End
	kept := e.pass.Tokens[:0]
	finished := false
	for _, s := range e.pass.Tokens {
		if !s.running {
			continue // cancelled meanwhile
		}
		if s.Generated++; s.Generated == 1 {
			s.FirstToken = e.now
		}
		s.LastToken = e.now
		if s.Generated >= s.MaxTokens {
			e.finish(s)
			finished = true
		}
		kept = append(kept, s)
	}
	e.pass.Tokens = kept
	if finished {
		e.running = slices.DeleteFunc(e.running, func(s *Sequence) bool { return s.Done })
	}
}

// finish ends a sequence that has all its tokens; the caller takes it out of running.
func (e *Engine) finish(s *Sequence) {
	s.running, s.Done = false, true
	if !s.Hold {
		e.pool.release(s)
		return
	}
	s.held = true
	e.held++
	for i, content := range s.Contents {
		e.pool.blocks[s.blocks[i]].content = content
	}
}

func (s *Sequence) tokens() int { return s.PromptTokens + s.Generated }

// hash returns the name of block i. A block for which the caller gave no name gets one that no
// other sequence has.
func (s *Sequence) hash(i int) uint64 {
	if i < len(s.Hashes) {
		return s.Hashes[i]
	}
	return mix(mix(unnamed, s.id), uint64(i))
}

func remove(list []*Sequence, s *Sequence) []*Sequence {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
