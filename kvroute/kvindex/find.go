// Find: how many leading blocks of a prompt each worker has.

package kvindex

import (
	"math/bits"
	"slices"
)

// Find appends to dst the overlap of each worker that has the first block of
// the prompt in any tier, or is predicted to; in no order. names are those of
// AppendNames, for workers of that block size: BlockSizes says which there are.
// dst may be used again for the next one; nothing is allocated beside it.
//
// What a worker's events change meanwhile is seen or not; a worker that nothing
// changes for is always seen as it is.
//
// It looks at positions by halves (rule 2 of Index): a few for each place where
// workers drop out, instead of every block.
func (x *Index) Find(dst []Overlap, names []Name) []Overlap {
	if len(names) == 0 {
		return dst
	}
	f, _ := x.finders.Get().(*finder)
	if f == nil {
		f = new(finder)
	}
	f.index, f.names, f.dst, f.from = x, names, dst, len(dst)
	f.run()
	dst = f.dst
	f.index, f.names, f.dst = nil, nil, nil
	x.finders.Put(f)
	return dst
}

// A finder is one Find under way. Sets of workers are bits, in slices of
// stack that are given back last first.
type finder struct {
	index *Index
	names []Name
	dst   []Overlap
	from  int // where this Find's overlaps begin in dst

	width int
	stack []uint64
	top   int
	seen  []uint64 // workers in dst
	at    []int32  // of those: where, from f.from on; if there are predictions

	predicted bool // there are predictions
}

func (f *finder) run() {
	x := f.index
	alive := *x.alive.Load()
	f.width = len(alive)
	// Two sets for each halving and level at most, and four here.
	need := f.width * (2*(tiers+1)*(bits.Len(uint(len(f.names)))+2) + 4)
	if len(f.stack) < need {
		f.stack = make([]uint64, need)
	}
	f.top = 0
	if n := 64 * f.width; len(f.at) < n {
		f.at = make([]int32, n)
	}
	f.predicted = x.predicted.any.Load()
	mask, holders := f.take(), f.take()
	f.seen = f.take()
	clear(f.seen)
	for i := range alive {
		mask[i] = alive[i].Load()
	}
	for level := range x.tables {
		if !x.tables[level].any.Load() || !x.tables[level].meet(f.names[0], holders, mask) {
			continue
		}
		subtract(mask, holders)
		f.search(level, 0, holders, [tiers]int32{})
	}
	if f.predicted {
		for i := range alive {
			mask[i] = alive[i].Load()
		}
		if x.predicted.meet(f.names[0], holders, mask) {
			f.search(tiers, 0, holders, [tiers]int32{})
		}
	}
}

func (f *finder) take() []uint64 {
	s := f.stack[f.top : f.top+f.width : f.top+f.width]
	f.top += f.width
	return s
}

func (f *finder) table(level int) *table {
	if level == tiers {
		return &f.index.predicted
	}
	return &f.index.tables[level]
}

// search finds where the runs at this level end of workers that have block lo
// at it, and goes on from there. ends are where the runs of the levels before
// ended. It changes workers.
func (f *finder) search(level, lo int, workers []uint64, ends [tiers]int32) {
	f.halve(level, lo, len(f.names), workers, ends)
}

// halve is search where it is known that the runs end at hi or before.
func (f *finder) halve(level, lo, hi int, workers []uint64, ends [tiers]int32) {
	top := f.top
	further := f.take()
	for hi-lo > 1 {
		mid := int(uint(lo+hi) / 2)
		if !f.table(level).meet(f.names[mid], further, workers) {
			hi = mid
			continue
		}
		if subtract(workers, further) {
			f.halve(level, lo, mid, workers, ends)
		}
		copy(workers, further)
		lo = mid
	}
	f.end(level, lo+1, workers, ends)
	f.top = top
}

// end notes that the runs of the workers at this level end at end, and goes on
// with those that have the next block at a slower level.
func (f *finder) end(level, end int, workers []uint64, ends [tiers]int32) {
	if level == tiers {
		f.emitPredicted(int32(end), workers)
		return
	}
	for l := level; l < tiers; l++ {
		ends[l] = int32(end)
	}
	for l := level + 1; l < tiers && end < len(f.names); l++ {
		if !f.index.tables[l].any.Load() {
			continue
		}
		top := f.top
		slower := f.take()
		if f.index.tables[l].meet(f.names[end], slower, workers) {
			left := subtract(workers, slower)
			f.search(l, end, slower, ends)
			if !left {
				f.top = top
				return
			}
		}
		f.top = top
	}
	f.emit(workers, ends)
}

func (f *finder) emit(workers []uint64, ends [tiers]int32) {
	n := 0
	for _, v := range workers {
		n += bits.OnesCount64(v)
	}
	// Grown once: where a thousand workers share a first block, to write this down
	// is most of the work.
	k := len(f.dst)
	f.dst = slices.Grow(f.dst, n)[:k+n]
	o := Overlap{Device: ends[0], Host: ends[1] - ends[0], Disk: ends[2] - ends[1]}
	dst := f.dst[k:]
	for i, v := range workers {
		f.seen[i] |= v
		for ; v != 0 && len(dst) > 0; v &= v - 1 {
			o.Worker = int32(i<<6 + bits.TrailingZeros64(v))
			dst[0] = o
			dst = dst[1:]
		}
	}
	if f.predicted {
		for i, o := range f.dst[k:] {
			f.at[o.Worker] = int32(k - f.from + i)
		}
	}
}

func (f *finder) emitPredicted(end int32, workers []uint64) {
	for i, v := range workers {
		for ; v != 0; v &= v - 1 {
			id := int32(i<<6 + bits.TrailingZeros64(v))
			if f.seen[i]&(v&-v) != 0 {
				f.dst[f.from+int(f.at[id])].Predicted = end
			} else {
				f.dst = append(f.dst, Overlap{Worker: id, Predicted: end})
			}
		}
	}
}

// subtract takes the workers of b out of a, and says whether any are left.
func subtract(a, b []uint64) bool {
	var left uint64
	for i := range a {
		a[i] &^= b[i]
		left |= a[i]
	}
	return left != 0
}
