// The paged KV pool: full blocks are named by their hash, shared by reference counting, and
// cached when unused until they are evicted.

package sim

// pool holds the engine's KV blocks. Invariants:
//  1. active + idle + free is the size of the pool.
//  2. An active block is used by at least one sequence; an idle one is cached, in the LRU list
//     and used by none.
//  3. A hash names at most one cached block. If another sequence has stored the same block
//     meanwhile, a sequence keeps its own copy as a block without a name, which is freed with the
//     sequence.
//  4. A block keeps its number, from 1 on. Never used blocks are taken first, then free ones in
//     the order in which they became free; a block keeps its content until it is taken again.
type pool struct {
	size, active, idle, free int

	cached names
	blocks []block // blocks used at least once; blocks[0] is the head of the LRU ring: blocks[0].next is evicted first
	hits   []int32 // numbers of the blocks that the last match found

	touched uint64 // a sum of the values read ahead, so that the compiler keeps the reads

	freeFirst, freeLast int32 // the queue of free blocks that were used before; 0: empty
}

// block is one block of the pool that was used at least once.
type block struct {
	hash       uint64 // its name in the cache, if named
	content    uint64 // what a hand-over reads from it; 0: it holds nothing for a hand-over
	users      int32
	prev, next int32 // links in the LRU ring while idle; next also links the queue of free blocks
	named      bool  // false: not full yet, a second copy, or free
}

func newPool(size int) pool {
	return pool{size: size, free: size, cached: newNames(), blocks: make([]block, 1)}
}

// find returns the number of the cached block with that hash; 0: none.
func (p *pool) find(hash uint64) int32 { return p.cached.find(hash, p.blocks) }

// match returns how many leading blocks of s are cached, at most limit, and how many of those are
// active. It remembers them for the next take.
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

// take gives s blocks until it has `want` of them; the first `hits` come from the last match.
// When none is free it evicts idle blocks and appends their hashes to removed. If even that is
// not enough, it changes nothing.
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

// takeFree takes a free block; there must be one.
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

// giveFree puts an unused block without a name at the end of the queue of free blocks.
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

// touch reads the table slots where the searches for some blocks of s will begin, and touchIdle
// those of the blocks that are evicted next, so that their cache misses overlap.
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

// seal names the i-th block of s, which is now full, and reports whether it is new to the cache.
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

// release takes all blocks from s, the last one first, so that the end of a prompt is evicted
// before its beginning.
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

// use adds a user to a cached block, and takes it off the LRU ring if it was idle.
func (p *pool) use(at int32) {
	b := &p.blocks[at]
	if b.users == 0 {
		p.unlink(b)
		p.idle--
		p.active++
	}
	b.users++
}

// evict drops the block that has been idle longest and returns its hash.
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
