// The paged KV pool: full blocks named by their hash, shared by count of users, kept when unused until evicted.

package sim

// pool holds the engine's KV blocks. Invariants:
//  1. active + idle + free is the size of the pool.
//  2. An active block is used by at least one sequence; an idle one is cached, in the LRU list and used by none.
//  3. A hash names at most one cached block. A sequence that computed a block that another one had stored meanwhile
//     keeps its own copy as a block without a name, which is freed with the sequence.
//  4. A block has its number for good, from 1 on. Free ones are used again in the order in which they became free,
//     those that were never used first; what a block holds is there until then.
type pool struct {
	size, active, idle, free int

	cached names
	blocks []block // those ever used; blocks[0] is the head of the LRU ring: blocks[0].next is evicted first
	hits   []int32 // what the last match found

	touched uint64 // a sum of what was read ahead, so that it is read

	freeFirst, freeLast int32 // the queue of free blocks that were used before; 0: none
}

// block is one block that was used at least once.
type block struct {
	hash       uint64 // its name in the cache, while named
	content    uint64 // what a hand-over reads from it; 0: nothing that was meant for one
	users      int32
	prev, next int32 // in the LRU ring while idle; next also in the queue of free ones
	named      bool  // not: not full yet, a second copy, or free
}

func newPool(size int) pool {
	return pool{size: size, free: size, cached: newNames(), blocks: make([]block, 1)}
}

// find returns the number of the cached block of that name; 0: there is none.
func (p *pool) find(hash uint64) int32 { return p.cached.find(hash, p.blocks) }

// match finds the longest run of leading blocks of s that are cached, at most limit, and says how many of them are
// active. The run is remembered for the take that follows.
func (p *pool) match(s *Sequence, limit int) (run, active int) {
	p.hits = p.hits[:0]
	for i := range limit {
		at := p.find(s.hash(i))
		if at == 0 {
			break
		}
		if p.blocks[at].users > 0 {
			active++
		}
		p.hits = append(p.hits, at)
	}
	return len(p.hits), active
}

// take gives s blocks until it has want of them, the first hits of them from the last match. It evicts idle blocks
// where none is free, appends their hashes to removed, and changes nothing if even that is not enough.
func (p *pool) take(s *Sequence, want, hits int, removed []uint64) ([]uint64, bool) {
	fresh := max(want-len(s.blocks)-hits, 0)
	if fresh == 0 && hits == 0 {
		return removed, true
	}
	wakes := 0
	for _, at := range p.hits[:hits] {
		if p.blocks[at].users == 0 {
			wakes++
		}
	}
	evict := max(fresh-p.free, 0)
	if evict > p.idle-wakes {
		return removed, false
	}
	for _, at := range p.hits[:hits] {
		p.use(at)
		s.blocks = append(s.blocks, at)
	}
	if evict > 1 {
		p.touchIdle(evict)
	}
	for range evict {
		removed = append(removed, p.evict())
	}
	for range fresh {
		s.blocks = append(s.blocks, p.takeFree())
	}
	return removed, true
}

// takeFree takes a block that is free; there must be one.
func (p *pool) takeFree() int32 {
	p.free--
	p.active++
	if len(p.blocks) <= p.size {
		p.blocks = append(p.blocks, block{users: 1})
		return int32(len(p.blocks) - 1)
	}
	at := p.freeFirst
	if p.freeFirst = p.blocks[at].next; p.freeFirst == 0 {
		p.freeLast = 0
	}
	p.blocks[at] = block{users: 1}
	return at
}

// giveFree puts a block that nobody uses and that has no name at the end of the queue.
func (p *pool) giveFree(at int32) {
	p.free++
	p.blocks[at].users, p.blocks[at].next = 0, 0
	if p.freeLast == 0 {
		p.freeFirst = at
	} else {
		p.blocks[p.freeLast].next = at
	}
	p.freeLast = at
}

// touch reads where the searches for the names of some blocks of s begin, and touchIdle for those of the blocks that
// are evicted next, so that they wait for memory together.
func (p *pool) touch(s *Sequence, from, to int) {
	var read uint64
	for i := from; i < to; i++ {
		read += p.cached.touch(s.hash(i))
	}
	p.touched = read
}

func (p *pool) touchIdle(n int) {
	var read uint64
	for at := p.blocks[0].next; n > 0; n-- {
		read += p.cached.touch(p.blocks[at].hash)
		at = p.blocks[at].next
	}
	p.touched = read
}

// seal gives the i-th block of s, now full, its name, and reports whether the cache did not know it yet.
func (p *pool) seal(s *Sequence, i int) bool {
	hash := s.hash(i)
	if p.find(hash) != 0 {
		return false
	}
	at := s.blocks[i]
	b := &p.blocks[at]
	b.hash, b.named = hash, true
	p.cached.add(hash, at)
	return true
}

// release takes all blocks from s, the last first, so that the end of a prompt is evicted before its beginning.
func (p *pool) release(s *Sequence) {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		at := s.blocks[i]
		b := &p.blocks[at]
		if !b.named {
			p.active--
			p.giveFree(at)
			continue
		}
		if b.users--; b.users > 0 {
			continue
		}
		p.active--
		p.idle++
		b.prev, b.next = p.blocks[0].prev, 0
		p.blocks[b.prev].next = at
		p.blocks[0].prev = at
	}
	s.blocks = s.blocks[:0]
	s.sealed = 0
}

// use adds a user to a cached block, waking it if it was idle.
func (p *pool) use(at int32) {
	b := &p.blocks[at]
	if b.users == 0 {
		p.unlink(b)
		p.idle--
		p.active++
	}
	b.users++
}

// evict forgets the block that has been idle longest and returns its hash.
func (p *pool) evict() uint64 {
	at := p.blocks[0].next
	b := &p.blocks[at]
	p.unlink(b)
	p.cached.drop(b.hash, at)
	b.named = false
	p.idle--
	p.giveFree(at)
	return b.hash
}

func (p *pool) unlink(b *block) {
	p.blocks[b.prev].next = b.next
	p.blocks[b.next].prev = b.prev
}
