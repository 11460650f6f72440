// Table: block names -> sets of workers, written by one, read by all without waiting.

package kvindex

import "sync/atomic"

// A table is a hash table in shards, so that to lay one out anew is short.
//
//  1. A slot is looked for from its name's place on, up to the first slot whose
//     name is 0. A block that stays held never changes its slot, but for a new
//     layout, which readers meet as a whole.
//  2. A slot whose set is 0 is free for any name, but still in the way of
//     those behind it; it becomes empty (name 0) only before an empty one.
//  3. When a slot gets a new name, the name is written before the set. So a
//     reader that finds the same name before and after it read the set has
//     read that block's set.
type table struct {
	shards [shards]shard
	sets   sets
	live   int         // slots with a set; for the writer
	any    atomic.Bool // there are some
	expect int         // blocks that are likely to come to be held; for the writer
}

const shards = 64

type shard struct {
	slots atomic.Pointer[[]slot]
	used  int // slots with a name
	live  int // slots with a set
}

// A slot is written, and read by readers, atomically; but while no reader knows
// of it yet, and where the writer reads, plainly. (Atomic writes to new tables
// were a fifth of all events' time.)
type slot struct {
	name uint64
	set  uint64 // a set word, see set.go
}

// home returns where the search for name begins among n slots.
func home(name Name, n int) int { return int(uint64(uint32(name>>24)) * uint64(n) >> 32) }

// meet sets out to the workers that hold the block and are in mask, and says
// whether there are any; out is undefined if there are none. Both are bits, of
// one length.
func (t *table) meet(name Name, out, mask []uint64) bool {
	s := &t.shards[name>>58]
	for {
		p := s.slots.Load()
		if p == nil {
			return false
		}
		slots := *p
		i := home(name, len(slots))
		for {
			n := atomic.LoadUint64(&slots[i].name)
			if n == uint64(name) {
				break
			}
			if n == 0 {
				return false
			}
			if i++; i == len(slots) {
				i = 0
			}
		}
		found, ok := t.read(&slots[i], name, out, mask)
		if ok {
			return found
		}
		// The block was dropped meanwhile, or its set laid out anew; each time round
		// the writer has got on.
	}
}

// read is meet for the slot that had the name; false: it has to be looked for again.
func (t *table) read(at *slot, name Name, out, mask []uint64) (found, ok bool) {
	v := atomic.LoadUint64(&at.set)
	if v&bigBit == 0 {
		if atomic.LoadUint64(&at.name) != uint64(name) {
			return false, false
		}
		if v == 0 {
			return false, true
		}
		clear(out)
		return meetLanes(v, out, mask) != 0, true
	}
	b := t.sets.at(uint32(v)).Load()
	if b == nil || b.name != name {
		return false, false
	}
	return b.meet(out, mask), true
}

// touch reads where the search for name begins and goes on, so that what is
// done with several blocks soon waits for memory once.
func (t *table) touch(name Name) uint64 {
	p := t.shards[name>>58].slots.Load()
	if p == nil {
		return 0
	}
	slots := *p
	i := home(name, len(slots))
	return slots[i].name + slots[min(i+slotsAhead, len(slots)-1)].name
}

// slotsAhead is how many slots a line of memory has: a search for a place in a
// full table goes through nine on average.
const slotsAhead = 4

// add puts the worker into the set of the block; false: it is there already.
func (t *table) add(name Name, id int32, width int) bool {
	s := &t.shards[name>>58]
	s.grow(t.expect / shards)
	slots := *s.slots.Load()
	free := -1
	i := home(name, len(slots))
	for ; slots[i].name != uint64(name); i = next(i, len(slots)) {
		if slots[i].name == 0 {
			if free < 0 {
				s.used++
				free = i
			}
			i = free
			atomic.StoreUint64(&slots[i].name, uint64(name))
			break
		}
		if free < 0 && slots[i].set == 0 {
			free = i
		}
	}
	old := slots[i].set
	v, added := t.sets.add(old, name, id, width)
	if v != old {
		atomic.StoreUint64(&slots[i].set, v)
	}
	if old == 0 {
		s.live++
		if t.live++; t.live == 1 {
			t.any.Store(true)
		}
	}
	return added
}

// remove takes the worker out of the set of the block; false: it was not there.
func (t *table) remove(name Name, id int32, width int) bool {
	s := &t.shards[name>>58]
	if s.slots.Load() == nil {
		return false
	}
	slots := *s.slots.Load()
	i := home(name, len(slots))
	for ; slots[i].name != uint64(name); i = next(i, len(slots)) {
		if slots[i].name == 0 {
			return false
		}
	}
	old := slots[i].set
	v, removed := t.sets.remove(old, name, id, width)
	if v == old {
		return removed
	}
	atomic.StoreUint64(&slots[i].set, v)
	if old&bigBit != 0 {
		t.sets.drop(uint32(old))
	}
	if v == 0 {
		s.live--
		if t.live--; t.live == 0 {
			t.any.Store(false)
		}
		s.empty(slots, i)
	}
	return true
}

// empty empties slot i and the free ones before it if the one after it is empty.
func (s *shard) empty(slots []slot, i int) {
	if slots[next(i, len(slots))].name != 0 {
		return
	}
	for slots[i].name != 0 && slots[i].set == 0 {
		atomic.StoreUint64(&slots[i].name, 0)
		s.used--
		if i--; i < 0 {
			i = len(slots) - 1
		}
	}
}

// grow makes room for one more name: at most 17/20 of the slots have one, and
// 2/3 are held after a new layout. So a held block costs 19 to 24 bytes while
// their number does not fall. Up to that many for expect blocks the slots are
// doubled instead: growing by a quarter was a third of all events' time.
func (s *shard) grow(expect int) {
	p := s.slots.Load()
	if p != nil && 20*(s.used+1) <= 17*len(*p) {
		return
	}
	n := max(s.live+1, min(expect, 2*s.live))
	fresh := make([]slot, max(8, n*3/2))
	s.used = s.live
	if p != nil {
		for i := range *p {
			old := &(*p)[i]
			v := old.set
			if v == 0 {
				continue
			}
			name := old.name
			k := home(Name(name), len(fresh))
			for fresh[k].name != 0 {
				k = next(k, len(fresh))
			}
			fresh[k].name = name
			fresh[k].set = v
		}
	}
	s.slots.Store(&fresh)
}

func next(i, n int) int {
	if i++; i == n {
		return 0
	}
	return i
}

func (t *table) bytes() int {
	n := t.sets.bytes()
	for i := range t.shards {
		if p := t.shards[i].slots.Load(); p != nil {
			n += 16 * len(*p)
		}
	}
	return n
}
