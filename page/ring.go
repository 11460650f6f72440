// The ring: the last requests that have ended, bounded in number and in bytes.

package page

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"kvasir/proxy/record"
)

const (
	mostKept       = 1000
	mostKeptBytes  = 8 << 20
	mostCandidates = 16 // of a placement: the chosen ones come first, then the cheapest
)

// A ring keeps the last requests. Whoever adds one takes the next number, and so a slot of its own:
// nobody waits for another request, nor for those who look. The memory of a slot is used again.
//
// Invariants:
//  1. seq of a slot is 0, or the highest number of its that was added and not let go.
//  2. bytes is the size of the slots and the sum of their bytes, once nobody adds.
type ring struct {
	next  atomic.Uint64 // numbers given; they begin at 1
	bytes atomic.Int64
	most  int64
	slots [mostKept]slot

	shedding sync.Mutex // guards gone; taken before a slot's
	gone     uint64     // all up to this number were let go, but for those that are just being added
}

// A slot is one request.
type slot struct {
	mu    sync.Mutex // guards all below
	seq   uint64     // 0: nothing is here
	bytes int64      // beyond the slot itself
	is    record.Record
	legs  []record.Leg // what steps of is point to
}

func (k *ring) init() {
	k.most = mostKeptBytes
	k.bytes.Store(int64(unsafe.Sizeof(k.slots)))
}

// add keeps a request in place of the oldest one.
func (k *ring) add(r *record.Record) {
	seq := k.next.Add(1)
	s := &k.slots[seq%mostKept]
	s.mu.Lock()
	if s.seq > seq { // a thousand others have come since the line above
		s.mu.Unlock()
		return
	}
	before := s.bytes
	s.take(r)
	s.seq, s.bytes = seq, s.size()
	more := s.bytes - before
	s.mu.Unlock()
	if k.bytes.Add(more) > k.most {
		k.shed()
	}
}

// shed lets go of the oldest requests until the rest is within the bound.
func (k *ring) shed() {
	k.shedding.Lock()
	defer k.shedding.Unlock()
	for k.bytes.Load() > k.most {
		newest := k.next.Load()
		k.gone++
		if newest > mostKept { // the ring has come round: what is older is gone already
			k.gone = max(k.gone, newest-mostKept+1)
		}
		if k.gone > newest {
			k.gone = newest
			return
		}
		s := &k.slots[k.gone%mostKept]
		s.mu.Lock()
		if s.seq == k.gone {
			k.bytes.Add(-s.bytes)
			s.seq, s.bytes, s.is, s.legs = 0, 0, record.Record{}, nil
		}
		s.mu.Unlock()
	}
}

// take copies a record into the slot.
func (s *slot) take(r *record.Record) {
	old := &s.is
	steps, candidates, matched := old.Steps[:0], old.Placement.Candidates[:0], old.Judgement.Matched[:0]
	types, denied := old.Judgement.Types[:0], old.Judgement.Denied[:0]
	s.is = *r
	s.is.WorkerID = nil // the next request's memory
	s.is.Content = nil  // is for traces alone
	s.is.Steps = append(steps, r.Steps...)
	s.takeLegs()
	few := r.Placement.Candidates[:min(len(r.Placement.Candidates), mostCandidates)]
	s.is.Placement.LeftOut += len(r.Placement.Candidates) - len(few)
	s.is.Placement.Candidates = append(candidates, few...)
	s.is.Judgement.Matched = append(matched, r.Judgement.Matched...)
	s.is.Judgement.Types = append(types, r.Judgement.Types...)
	s.is.Judgement.Denied = append(denied, r.Judgement.Denied...)
}

// takeLegs copies the legs of the steps, which are the request's.
func (s *slot) takeLegs() {
	n := 0
	for i := range s.is.Steps {
		if s.is.Steps[i].Leg != nil {
			n++
		}
	}
	if n > cap(s.legs) {
		clear(s.is.Steps[len(s.is.Steps):cap(s.is.Steps)]) // else older steps behind them held the old legs, which no size counts
		s.legs = make([]record.Leg, 0, n)
	}
	s.legs = s.legs[:0] // it has room for all: none moves
	for i := range s.is.Steps {
		if l := s.is.Steps[i].Leg; l != nil {
			s.legs = append(s.legs, *l)
			s.is.Steps[i].Leg = &s.legs[len(s.legs)-1]
		}
	}
}

// size is how much memory a slot takes beyond itself. Strings that all requests share, such as
// names of workers, count as each one's own.
func (s *slot) size() int64 {
	r := &s.is
	bytes := cap(r.Steps)*int(unsafe.Sizeof(record.Step{})) + cap(s.legs)*int(unsafe.Sizeof(record.Leg{})) + cap(r.Placement.Candidates)*int(unsafe.Sizeof(record.Candidate{})) +
		cap(r.Judgement.Matched)*int(unsafe.Sizeof(record.Match{})) + (cap(r.Judgement.Types)+cap(r.Judgement.Denied))*int(unsafe.Sizeof(""))
	for _, text := range [...]string{r.ID, r.Asked, r.Model, r.Key, r.Tenant, r.Worker, r.Prefill, r.Cache.Entry} {
		bytes += len(text)
	}
	return int64(bytes)
}

// last is the number of the newest request.
func (k *ring) last() uint64 { return k.next.Load() }

// each calls look for the requests with numbers below before, the newest first, until it wants no
// more. The record is valid while look is called. A request that is just being added
// may be left out.
func (k *ring) each(before uint64, look func(seq uint64, r *record.Record) (more bool)) {
	newest := k.next.Load()
	for seq := min(newest+1, before); seq > 1 && seq-1+mostKept > newest; {
		seq--
		if !k.look(seq, look) {
			return
		}
	}
}

// look calls look for one request, if it is there.
func (k *ring) look(seq uint64, look func(seq uint64, r *record.Record) (more bool)) (more bool) {
	s := &k.slots[seq%mostKept]
	s.mu.Lock()
	defer s.mu.Unlock()
	return seq == 0 || s.seq != seq || look(seq, &s.is)
}

// count is how many requests are kept, and how many were let go.
func (k *ring) count() (kept, dropped int) {
	all := k.next.Load()
	k.each(all+1, func(uint64, *record.Record) bool { kept++; return true })
	return kept, int(all) - kept
}
