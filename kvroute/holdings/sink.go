// The sink: one rank's events into the index.

package holdings

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
)

// HashReused is why blocks are forgotten beside kvevents.Reason: a block's hash came to stand for another block.
const HashReused = "hash reused"

// agreeing is how many events in a row must say the same other block size before it is believed.
const agreeing = 4

// A sink takes the events of one rank. It is a kvevents.BatchSink, of the goroutine that listens.
type sink struct {
	options Options
	rank    int
	anew    func() // listens anew; events until then are dropped

	cache   *kvindex.Worker
	spoilt  bool // listening begins anew
	plain   kvindex.Seed
	extra   [][]uint64
	pending []uint64     // blocks removed, not yet told to the index
	tier    kvindex.Tier // of pending
	agreed  int          // events in a row that said notes.engine
	full    bool         // the index was full when last asked

	kinds [Kinds]atomic.Uint64
	mu    sync.Mutex // guards notes
	notes notes
}

// notes are what a sink tells besides counters.
type notes struct {
	cleared         map[string]int
	assumed, engine int // tokens of a block, where they differ
	lostAt, fullAt  time.Time
	restarted       bool // events told of a restart since somebody asked for that
}

func newSink(o Options, rank int, anew func()) *sink {
	return &sink{options: o, rank: rank, anew: anew, plain: o.Seed("", ""), notes: notes{cleared: map[string]int{}}}
}

// begin makes the sink ready for a subscriber that knows nothing yet; false: there is no place for blocks.
func (s *sink) begin() bool {
	s.pending = s.pending[:0]
	s.agreed = 0
	s.spoilt = false
	if !s.refresh() {
		return false
	}
	s.cache.Clear()
	return true
}

// refresh asks where blocks are kept now. Where that is nowhere, listening begins anew, until it is somewhere.
func (s *sink) refresh() bool {
	if cache := s.options.Cache(s.rank); cache != nil {
		s.cache = cache
		return true
	}
	s.again()
	return false
}

func (s *sink) count(k Kind, n int) { s.kinds[k].Add(uint64(n)) }

func (s *sink) note(change func(*notes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.notes)
}

// again has all learnt anew.
func (s *sink) again() {
	s.spoilt = true
	s.anew()
}

// tierOf is where the index has blocks of a tier; false: nowhere, for a store that engines share says nothing of one.
func tierOf(t kvevents.Tier) (kvindex.Tier, bool) {
	switch t {
	case kvevents.Device:
		return kvindex.Device, true
	case kvevents.Host:
		return kvindex.Host, true
	case kvevents.Disk:
		return kvindex.Disk, true
	}
	return 0, false
}

// Stored takes a store event.
func (s *sink) Stored(e *kvevents.Stored) {
	s.flush()
	n := len(e.Handles)
	tier, ok := tierOf(e.Tier)
	switch {
	case s.spoilt:
		s.count(Dropped, 1)
		return
	case !ok:
		s.count(Shared, n)
		return
	case len(e.Tokens) == 0:
		unknown := s.cache.Copy(tier, e.Handles)
		s.count(Moved, n-unknown)
		s.count(MoveUnknown, unknown)
		return
	}
	event := kvindex.Stored{Tier: tier, Parent: e.Parent, Chain: e.HasParent, Hashes: e.Handles, Tokens: e.Tokens,
		BlockSize: e.BlockSize, Extra: s.extras(e.Extra)}
	if !e.HasParent {
		event.Seed = s.seed(e)
	}
	first := s.cache.BlockSize() == 0
	s.stored(n, &event)
	if first && s.options.BlockSize != nil && s.cache.BlockSize() != 0 {
		s.firstSize()
	}
}

// firstSize tells the block size that the first event had. Where that moves the blocks' place, all begins anew.
func (s *sink) firstSize() {
	before := s.cache
	s.options.BlockSize(before.BlockSize())
	if s.refresh() && s.cache != before {
		s.again()
	}
}

// stored stores, and sees to what is wrong with the event.
func (s *sink) stored(n int, event *kvindex.Stored) {
	err := s.cache.Store(*event)
	if errors.Is(err, kvindex.ErrHashReused) {
		// What is known is not to be trusted; this event stands at the beginning of what is.
		s.count(Reused, 1)
		s.options.Report(s.rank, fmt.Errorf("what this worker holds is learnt anew: %w", err))
		s.forget(HashReused)
		err = s.cache.Store(*event)
	}
	if err != nil {
		s.trouble(n, err)
		return
	}
	s.count(Stored, n)
	s.full = false
	if s.agreed > 0 {
		s.agreed = 0
		s.note(func(n *notes) { n.engine = 0 })
	}
}

// trouble sees to an event of n blocks that was not stored.
func (s *sink) trouble(n int, err error) {
	var size *kvindex.BlockSizeError
	switch {
	case errors.Is(err, kvindex.ErrUnknownParent):
		s.count(Orphan, n)
	case errors.As(err, &size):
		s.count(WrongSize, n)
		s.wrongSize(size)
	case errors.Is(err, kvindex.ErrFull):
		s.count(Full, 1)
		s.note(func(n *notes) { n.fullAt = time.Now() })
		if !s.full {
			s.full = true
			s.options.Report(s.rank, err)
		}
	case errors.Is(err, kvindex.ErrForgotten):
		s.again()
	default:
		s.count(Contradicting, 1)
		s.options.Report(s.rank, err)
	}
}

// wrongSize notes a block size that was not expected, and believes it once the engine has said it often enough.
func (s *sink) wrongSize(e *kvindex.BlockSizeError) {
	s.mu.Lock()
	before := s.notes.engine
	s.notes.assumed, s.notes.engine = e.Want, e.Got
	s.mu.Unlock()
	if s.agreed++; e.Got != before {
		s.agreed = 1
		s.options.Report(s.rank, e)
	}
	if s.agreed < agreeing || s.options.BlockSize == nil {
		return
	}
	s.options.BlockSize(e.Got)
	if s.refresh() && (s.cache.BlockSize() == e.Got || s.cache.BlockSize() == 0) {
		s.note(func(n *notes) { n.engine = 0 })
		s.again()
	}
	s.agreed = 0
}

// seed is the seed of a prompt's first block.
func (s *sink) seed(e *kvevents.Stored) kvindex.Seed {
	switch {
	case len(e.LoRA) > 0:
		return s.options.Seed(string(e.LoRA), string(e.Salt))
	case e.LoRAID > 0: // engines count adapters from 1
		s.count(NamelessLoRA, len(e.Handles))
		return s.options.Seed("\x00"+strconv.Itoa(e.LoRAID), string(e.Salt))
	case len(e.Salt) > 0:
		return s.options.Seed("", string(e.Salt))
	}
	return s.plain
}

// extras is a block's digest as the list that the index takes; valid until the next call.
func (s *sink) extras(digests []uint64) [][]uint64 {
	if len(digests) == 0 {
		return nil
	}
	s.extra = s.extra[:0]
	for i, d := range digests {
		if d == 0 {
			s.extra = append(s.extra, nil)
		} else {
			s.extra = append(s.extra, digests[i:i+1])
		}
	}
	return s.extra
}

// Removed takes a remove event. vLLM sends one for each block; those of a message that follow each other become one
// call, which waits for the memory of all of them together.
func (s *sink) Removed(e *kvevents.Removed) {
	tier, ok := tierOf(e.Tier)
	switch {
	case s.spoilt:
		s.count(Dropped, 1)
		return
	case !ok:
		s.count(Shared, len(e.Handles))
		return
	}
	if tier != s.tier {
		s.flush()
		s.tier = tier
	}
	s.pending = append(s.pending, e.Handles...)
	if len(s.pending) >= 1<<12 {
		s.flush()
	}
}

// flush removes what is pending.
func (s *sink) flush() {
	if len(s.pending) == 0 {
		return
	}
	unknown := s.cache.Remove(s.tier, s.pending)
	s.count(Removed, len(s.pending)-unknown)
	s.count(RemoveUnknown, unknown)
	s.pending = s.pending[:0]
}

// BatchEnd takes the end of a message.
func (s *sink) BatchEnd() { s.flush() }

// Cleared forgets the rank's blocks.
func (s *sink) Cleared(c kvevents.Cleared) {
	s.pending = s.pending[:0]
	s.forget(c.Reason.String())
	switch c.Reason {
	case kvevents.Gap, kvevents.Damaged:
		s.note(func(n *notes) { n.lostAt = time.Now() })
	case kvevents.Restarted:
		s.note(func(n *notes) { n.restarted, n.engine = true, 0 })
		s.options.Restarted(s.rank)
		s.refresh()
	}
}

func (s *sink) forget(why string) {
	if s.cache != nil {
		s.cache.Clear()
	}
	s.note(func(n *notes) { n.cleared[why]++ })
}
