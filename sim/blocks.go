// The paged KV pool: full blocks named by their hash, shared by count of users, kept when unused until evicted.

package sim

// pool holds the engine's KV blocks. Invariants:
//  1. active + idle + free is the size of the pool.
//  2. An active block is used by at least one sequence; an idle one is cached, in the LRU list and used by none.
//  3. A hash names at most one cached block. A sequence that computed a block that another one had stored meanwhile
//     keeps its own copy as a private block, which is freed with the sequence.
type pool struct {
	size, active, idle, free int

	cached map[uint64]int32 // hash -> index in blocks
	blocks []block          // blocks[0] is the head of the LRU ring: blocks[0].next is evicted first
	unused []int32          // indices in blocks to use again
	hits   []int32          // what the last match found
}

// block is one cached block.
type block struct {
	hash       uint64
	users      int32
	prev, next int32 // in the LRU ring while users is 0
}

// private marks a block of a sequence that has no name in the cache: not full yet, or a second copy.
const private int32 = -1

func newPool(size int) pool {
	return pool{size: size, free: size, cached: make(map[uint64]int32), blocks: make([]block, 1)}
}

// match finds the longest run of leading blocks of s that are cached, at most limit, and says how many of them are
// active. The run is remembered for the take that follows.
func (p *pool) match(s *Sequence, limit int) (run, active int) {
	p.hits = p.hits[:0]
	for i := range limit {
		at, ok := p.cached[s.hash(i)]
		if !ok {
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
	for range evict {
		removed = append(removed, p.evict())
	}
	p.free -= fresh
	p.active += fresh
	for range fresh {
		s.blocks = append(s.blocks, private)
	}
	return removed, true
}

// seal gives the i-th block of s, now full, its name, and reports whether the cache did not know it yet.
func (p *pool) seal(s *Sequence, i int) bool {
	hash := s.hash(i)
	if _, ok := p.cached[hash]; ok {
		return false
	}
	var at int32
	if n := len(p.unused); n > 0 {
		at, p.unused = p.unused[n-1], p.unused[:n-1]
	} else {
		at = int32(len(p.blocks))
		p.blocks = append(p.blocks, block{})
	}
	p.blocks[at] = block{hash: hash, users: 1}
	p.cached[hash] = at
	s.blocks[i] = at
	return true
}

// release takes all blocks from s, the last first, so that the end of a prompt is evicted before its beginning.
func (p *pool) release(s *Sequence) {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		at := s.blocks[i]
		if at == private {
			p.active--
			p.free++
			continue
		}
		b := &p.blocks[at]
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
	delete(p.cached, b.hash)
	p.unused = append(p.unused, at)
	p.idle--
	p.free++
	return b.hash
}

func (p *pool) unlink(b *block) {
	p.blocks[b.prev].next = b.next
	p.blocks[b.next].prev = b.prev
}
