// Sets of workers: one word up to four workers, beyond that lanes or bits on the heap.

package kvindex

import (
	"math/bits"
	"sync/atomic"
)

// A set word stands for the workers that hold a block. 0 is none. Without
// bigBit it has four lanes of 15 bits, each a worker's ID + 1 or 0; with it, the
// lower 32 bits are where the workers stand in sets.
const (
	bigBit   = 1 << 63
	lanes    = 4
	laneBits = 15
	laneMask = 1<<laneBits - 1

	maxWorkers = laneMask // IDs 0..32766
)

// A bigSet is a set of more workers than a word takes: words of lanes, or one
// bit for each worker. Words change in place, but a worker that stays never
// moves within them, so that a reader sees it at any time; a set that has to
// be laid out anew is a new bigSet.
type bigSet struct {
	name  Name // whose it is; never changes
	n     int  // workers; for the writer
	bits  bool
	words []atomic.Uint64
}

// sets holds bigSets by number. A number is given again, a bigSet is not.
type sets struct {
	chunks atomic.Pointer[[]*setChunk] // replaced when it grows
	free   []uint32
	n      uint32
	words  int // of all sets, for bytes
	count  int
}

type setChunk [256]atomic.Pointer[bigSet]

func (s *sets) at(number uint32) *atomic.Pointer[bigSet] {
	return &(*s.chunks.Load())[number>>8][number&255]
}

// put keeps b under a new number.
func (s *sets) put(b *bigSet) uint32 {
	s.count++
	s.words += len(b.words)
	var number uint32
	if k := len(s.free); k > 0 {
		number, s.free = s.free[k-1], s.free[:k-1]
	} else {
		number = s.n
		s.n++
		var chunks []*setChunk
		if p := s.chunks.Load(); p != nil {
			chunks = *p
		}
		if int(number>>8) == len(chunks) {
			chunks = append(chunks[:len(chunks):len(chunks)], new(setChunk))
			s.chunks.Store(&chunks)
		}
	}
	s.at(number).Store(b)
	return number
}

func (s *sets) drop(number uint32) {
	p := s.at(number)
	s.count--
	s.words -= len(p.Load().words)
	p.Store(nil)
	s.free = append(s.free, number)
}

func (s *sets) bytes() int {
	const each = 8 + 48 // a number, and a bigSet without its words
	return each*s.count + 8*s.words + 8*int(s.n-uint32(s.count))
}

// add returns the word v of the block name with worker id in it; false: it is
// there already. width is how many words the bits of all workers take.
func (s *sets) add(v uint64, name Name, id int32, width int) (uint64, bool) {
	lane := uint64(id) + 1
	if v&bigBit == 0 {
		if laneOf(v, lane) >= 0 {
			return v, false
		}
		if i := laneOf(v, 0); i >= 0 {
			return v | lane<<(i*laneBits), true
		}
		all := append(members(v, make([]int32, 0, lanes+1)), id)
		return bigBit | uint64(s.put(newBigSet(name, all, width))), true
	}
	p := s.at(uint32(v))
	b := p.Load()
	if b.has(id) {
		return v, false
	}
	if !b.add(id) {
		fresh := newBigSet(name, append(b.members(nil), id), width)
		s.words += len(fresh.words) - len(b.words)
		p.Store(fresh)
	}
	return v, true
}

// remove returns the word without the worker; false: it was not there. Where
// the word stops being that of a bigSet, the caller drops its number once
// readers can no longer come by it.
func (s *sets) remove(v uint64, name Name, id int32, width int) (uint64, bool) {
	if v&bigBit == 0 {
		i := laneOf(v, uint64(id)+1)
		if i < 0 {
			return v, false
		}
		return v &^ (laneMask << (i * laneBits)), true
	}
	p := s.at(uint32(v))
	b := p.Load()
	if !b.remove(id) {
		return v, false
	}
	if b.n < lanes {
		v = 0
		for i, id := range b.members(nil) {
			v |= (uint64(id) + 1) << (i * laneBits)
		}
		return v, true
	}
	if b.roomy() {
		fresh := newBigSet(name, b.members(nil), width)
		s.words += len(fresh.words) - len(b.words)
		p.Store(fresh)
	}
	return v, true
}

// newBigSet lays out a set of the workers: in lanes with room for as many
// again at most, or in bits where those are shorter.
func newBigSet(name Name, ids []int32, width int) *bigSet {
	b := &bigSet{name: name}
	n := 2
	for n*lanes < len(ids) {
		n *= 2
	}
	if n >= width {
		b.bits = true
		n = width
	}
	b.words = make([]atomic.Uint64, n)
	for _, id := range ids {
		b.add(id)
	}
	return b
}

// add puts in a worker that is not there; false: there is no room.
func (b *bigSet) add(id int32) bool {
	if b.bits {
		if int(id)>>6 >= len(b.words) {
			return false
		}
		w := &b.words[id>>6]
		w.Store(w.Load() | 1<<(id&63))
		b.n++
		return true
	}
	for i := range b.words {
		v := b.words[i].Load()
		if l := laneOf(v, 0); l >= 0 {
			b.words[i].Store(v | (uint64(id)+1)<<(l*laneBits))
			b.n++
			return true
		}
	}
	return false
}

func (b *bigSet) remove(id int32) bool {
	if !b.has(id) {
		return false
	}
	b.n--
	if b.bits {
		w := &b.words[id>>6]
		w.Store(w.Load() &^ (1 << (id & 63)))
		return true
	}
	for i := range b.words {
		v := b.words[i].Load()
		if l := laneOf(v, uint64(id)+1); l >= 0 {
			b.words[i].Store(v &^ (laneMask << (l * laneBits)))
			return true
		}
	}
	panic("BUG: a worker is in a set and is not")
}

func (b *bigSet) has(id int32) bool {
	if b.bits {
		return int(id)>>6 < len(b.words) && b.words[id>>6].Load()>>(id&63)&1 != 0
	}
	for i := range b.words {
		if laneOf(b.words[i].Load(), uint64(id)+1) >= 0 {
			return true
		}
	}
	return false
}

// roomy says that so few workers are left that the set is worth laying out
// anew; far enough from full not to do so again and again.
func (b *bigSet) roomy() bool {
	if b.bits {
		return len(b.words) > 2 && b.n <= len(b.words)/2
	}
	return len(b.words) > 2 && b.n <= len(b.words)*lanes/4
}

// members appends the workers to dst.
func (b *bigSet) members(dst []int32) []int32 {
	for i := range b.words {
		v := b.words[i].Load()
		if !b.bits {
			dst = members(v, dst)
			continue
		}
		for ; v != 0; v &= v - 1 {
			dst = append(dst, int32(i<<6+bits.TrailingZeros64(v)))
		}
	}
	return dst
}

// meet sets out to the workers of the set that are in mask as well, and says
// whether there are any. out and mask are bits, of one length.
func (b *bigSet) meet(out, mask []uint64) bool {
	var met uint64
	if !b.bits {
		clear(out)
		for i := range b.words {
			met |= meetLanes(b.words[i].Load(), out, mask)
		}
		return met != 0
	}
	n := min(len(out), len(b.words))
	clear(out[n:])
	for i := range n {
		out[i] = b.words[i].Load() & mask[i]
		met |= out[i]
	}
	return met != 0
}

// meetLanes adds to out the workers of the lanes of v that are in mask; not 0:
// there are any.
func meetLanes(v uint64, out, mask []uint64) (met uint64) {
	for ; v != 0; v >>= laneBits {
		lane := v & laneMask
		if lane == 0 {
			continue
		}
		i, bit := (lane-1)>>6, uint64(1)<<((lane-1)&63)
		if i < uint64(len(out)) && i < uint64(len(mask)) {
			out[i] |= bit & mask[i]
			met |= bit & mask[i]
		}
	}
	return met
}

// laneOf returns which of the lanes of v holds lane, -1: none.
func laneOf(v, lane uint64) int {
	for i := range lanes {
		if v>>(i*laneBits)&laneMask == lane {
			return i
		}
	}
	return -1
}

// members appends the workers of the lanes of v to dst.
func members(v uint64, dst []int32) []int32 {
	for ; v != 0; v >>= laneBits {
		if lane := v & laneMask; lane != 0 {
			dst = append(dst, int32(lane-1))
		}
	}
	return dst
}
