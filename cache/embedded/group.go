// Groups: the entries of one scope that have a vector, and the search among them.

package embedded

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"kvasir/cache"
)

// A chunk has at most chunkSlots slots. One with fewer than sketchedSlots has no sketches: so few
// dot products cost less than the memory of the sketches.
const (
	chunkSlots    = 1024
	sketchedSlots = lanes
)

// A group is searched without a lock while one writer changes it:
//
//  1. Slots below n are written before n is raised, and never change afterwards,
//     except that the item of a removed entry becomes nil.
//  2. A list of chunks never changes; a new list replaces it. An entry that moves is in its new
//     chunk before its old chunk leaves the list, so that a search may see it twice but cannot
//     miss it.
//  3. In each chunk except the last, at least three quarters of the slots are alive.
type group struct {
	chunks atomic.Pointer[[]*chunk]
	items  int // entries of the scope, with or without a vector
}

// A chunk is a run of entries that are scanned together.
type chunk struct {
	n       atomic.Int32 // slots in use
	removed int          // removed slots among them; used by the writer only
	heads   []byte       // of the sketches, see kernel.go; nil in a small chunk
	tails   []tail
	items   []atomic.Pointer[item]
}

func newChunk(slots int) *chunk {
	c := &chunk{items: make([]atomic.Pointer[item], slots)}
	if slots >= sketchedSlots {
		c.heads, c.tails = make([]byte, slots*headBytes), make([]tail, slots)
	}
	return c
}

func (g *group) list() []*chunk {
	if p := g.chunks.Load(); p != nil {
		return *p
	}
	return nil
}

// add adds an item with a vector.
func (g *group) add(it *item) {
	list := withRoom(g.list())
	list[len(list)-1].add(it)
	g.publish(list)
}

// publish makes the list visible to searches.
func (g *group) publish(list []*chunk) {
	if p := g.chunks.Load(); p == nil || len(*p) == 0 || &(*p)[0] != &list[0] {
		g.chunks.Store(&list)
	}
}

// withRoom returns the list if its last chunk has room. Otherwise it returns a new list: the last
// chunk has twice the slots, or there is one more chunk.
func withRoom(list []*chunk) []*chunk {
	if len(list) == 0 {
		return []*chunk{newChunk(1)}
	}
	before, last := list[:len(list)-1], list[len(list)-1]
	switch slots := len(last.items); {
	case int(last.n.Load()) < slots:
		return list
	case slots == chunkSlots:
		return append(slices.Clone(list), newChunk(chunkSlots))
	default:
		return append(slices.Clone(before), last.moved(newChunk(2*slots)))
	}
}

// moved copies the live entries of c to a chunk that has room for them.
func (c *chunk) moved(to *chunk) *chunk {
	for i := range c.n.Load() {
		if it := c.items[i].Load(); it != nil {
			to.add(it)
		}
	}
	return to
}

func (c *chunk) add(it *item) {
	slot := c.n.Load()
	if c.heads != nil {
		s := it.vector.sketch()
		c.tails[slot] = tail(s[headWords:])
		block, lane := c.heads[int(slot)/lanes*blockBytes:], int(slot)%lanes
		for i := range headBytes {
			block[i*lanes+lane] = byte(s[i/8] >> (i % 8 * 8))
		}
	}
	it.chunk, it.slot = c, slot
	c.items[slot].Store(it)
	c.n.Store(slot + 1)
}

// remove removes an item that was added before.
func (g *group) remove(it *item) {
	c := it.chunk
	c.items[it.slot].Store(nil)
	it.chunk = nil
	if c.removed++; 4*c.removed > len(c.items) {
		g.dissolve(c)
	}
}

// dissolve moves the live entries of a chunk to the end of the group, and drops the chunk.
func (g *group) dissolve(c *chunk) {
	list := make([]*chunk, 0, len(g.list()))
	for _, other := range g.list() {
		if other != c {
			list = append(list, other)
		}
	}
	if len(list) == 0 { // as few slots as are needed, at last none
		if alive := int(c.n.Load()) - c.removed; alive > 0 {
			list = append(list, c.moved(newChunk(1<<bits.Len(uint(alive-1)))))
		}
	} else {
		for i := range c.n.Load() {
			if it := c.items[i].Load(); it != nil {
				list = withRoom(list)
				list[len(list)-1].add(it)
			}
		}
	}
	g.chunks.Store(&list)
}

// A nearest collects the most similar entries, the best first.
type nearest struct {
	dst    []cache.Candidate
	from   int // where its results start in dst
	k      int
	lowest int32 // lowest dot product of a result
	now    int64
	best   *item

	coming  [8]*item // items whose memory is being prefetched
	waiting int      // how many items coming holds
}

// floorOf returns the lowest dot product of vectors with this similarity.
func floorOf(similarity float64) int32 {
	return int32(math.Ceil(max(-1, min(similarity, 1)) * square))
}

// search offers to found all entries of the group that may be near enough.
func (g *group) search(found *nearest, query *vector, until time.Time) error {
	var e estimate
	e.of(query)
	var s scanned
	head, whole, lowest := 0, 0, int32(math.MinInt32)
	for _, c := range g.list() {
		if !until.IsZero() && time.Now().After(until) {
			return cache.ErrTimeout
		}
		n := int(c.n.Load())
		if c.heads == nil {
			for slot := range n {
				found.offer(c.items[slot].Load(), query)
			}
			continue
		}
		if lowest != found.lowest {
			lowest = found.lowest
			head, whole = e.bounds(float64(lowest) / square)
		}
		hits := s.scan(c, n, &e, head)
		s.refine(hits, c, &e, whole)
		for i, word := range hits {
			for ; word != 0; word &= word - 1 {
				found.await(c.items[i*lanes+bits.TrailingZeros64(word)].Load(), query)
			}
		}
	}
	found.settle(query)
	return nil
}

// await offers an item a little later, when its memory has arrived in the processor's cache.
// Without that, a search spent a quarter of its time waiting for memory.
func (f *nearest) await(it *item, query *vector) {
	if it != nil {
		prefetch(it)
	}
	at := &f.coming[f.waiting%len(f.coming)]
	f.waiting++
	f.offer(*at, query)
	*at = it
}

// settle offers the items that still wait.
func (f *nearest) settle(query *vector) {
	for range f.coming {
		f.await(nil, query)
	}
}

// offer keeps an item if it is alive and among the k nearest.
func (f *nearest) offer(it *item, query *vector) {
	if it == nil {
		return
	}
	d := dot(query, it.vector)
	if d < f.lowest || !it.alive(f.now) { // in this order, because most fail the first test
		return
	}
	similarity := min(1, float64(d)/square)
	at := len(f.dst)
	for i := f.from; i < len(f.dst); i++ {
		if f.dst[i].Entry == it.entry {
			return // the same item, which has just moved to another chunk
		}
		if at == len(f.dst) && similarity > f.dst[i].Similarity {
			at = i
		}
	}
	if at == f.from {
		f.best = it
	}
	if len(f.dst) < f.from+f.k {
		f.dst = append(f.dst, cache.Candidate{})
	}
	copy(f.dst[at+1:], f.dst[at:])
	f.dst[at] = cache.Candidate{Entry: it.entry, Similarity: similarity}
	if len(f.dst) == f.from+f.k {
		f.lowest = max(f.lowest, int32(math.Round(f.dst[len(f.dst)-1].Similarity*square))+1)
	}
}
