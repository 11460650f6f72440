// Table: the first name of each run -> the run, written by one, read by all without waiting.

package kvindex

import "sync/atomic"

// A table is a hash table in shards, so that to lay one out anew is short.
//
//  1. A slot is looked for from its name's place on, up to the first slot whose
//     name is 0. A name that stays never changes its slot, but for a new layout,
//     which readers meet as a whole; its run does when one is split.
//  2. A slot without a run is free for any name, but still in the way of those
//     behind it; it becomes empty (name 0) only before an empty one.
//  3. When a slot gets a new name, the name is written before the run. A reader
//     that comes between sees by the run's own names that it is another one.
type table struct {
	shards [shards]shard
	live   int         // slots with a run; for the writer
	slots  int         // in all shards
	any    atomic.Bool // there are some
}

const shards = 64

type shard struct {
	slots atomic.Pointer[[]slot]
	used  int // slots with a name
	live  int // slots with a run
}

type slot struct {
	name uint64 // written, and read by readers, atomically
	run  atomic.Pointer[run]
}

// home returns where the search for name begins among n slots.
func home(name Name, n int) int { return int(uint64(uint32(name>>24)) * uint64(n) >> 32) }

func next(i, n int) int {
	if i++; i == n {
		return 0
	}
	return i
}

// find returns the run that begins with name, nil: there is none.
func (t *table) find(name Name) *run {
	p := t.shards[name>>58].slots.Load()
	if p == nil {
		return nil
	}
	slots := *p
	for i := home(name, len(slots)); ; i = next(i, len(slots)) {
		switch atomic.LoadUint64(&slots[i].name) {
		case uint64(name):
			return slots[i].run.Load()
		case 0:
			return nil
		}
	}
}

// put has find return r for name from now on.
func (t *table) put(name Name, r *run) {
	s := &t.shards[name>>58]
	t.slots += s.grow()
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
		if free < 0 && slots[i].run.Load() == nil {
			free = i
		}
	}
	if slots[i].run.Swap(r) != nil {
		return
	}
	s.live++
	if t.live++; t.live == 1 {
		t.any.Store(true)
	}
}

// remove has find return nothing for name, which is there.
func (t *table) remove(name Name) {
	s := &t.shards[name>>58]
	slots := *s.slots.Load()
	i := home(name, len(slots))
	for slots[i].name != uint64(name) {
		i = next(i, len(slots))
	}
	slots[i].run.Store(nil)
	s.live--
	if t.live--; t.live == 0 {
		t.any.Store(false)
	}
	s.empty(slots, i)
}

// empty empties slot i and the free ones before it if the one after it is empty.
func (s *shard) empty(slots []slot, i int) {
	if slots[next(i, len(slots))].name != 0 {
		return
	}
	for slots[i].name != 0 && slots[i].run.Load() == nil {
		atomic.StoreUint64(&slots[i].name, 0)
		s.used--
		if i--; i < 0 {
			i = len(slots) - 1
		}
	}
}

// grow makes room for one more name: at most 3/4 of the slots have one, and
// half have one after a new layout. It returns how many slots more there are.
func (s *shard) grow() (more int) {
	p := s.slots.Load()
	if p != nil && 4*(s.used+1) <= 3*len(*p) {
		return 0
	}
	fresh := make([]slot, max(4, 2*(s.live+1)))
	s.used = s.live
	more = len(fresh)
	if p != nil {
		more -= len(*p)
		for i := range *p {
			old := &(*p)[i]
			r := old.run.Load()
			if r == nil {
				continue
			}
			k := home(Name(old.name), len(fresh))
			for fresh[k].name != 0 {
				k = next(k, len(fresh))
			}
			fresh[k].name = old.name
			fresh[k].run.Store(r)
		}
	}
	s.slots.Store(&fresh)
	return more
}

func (t *table) bytes() int { return 16 * t.slots }
