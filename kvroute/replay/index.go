// The index of a replay: fed by what the engines say, as it is by their events in the proxy.

package replay

import (
	"fmt"
	"time"

	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// keep is how long own placements stay predicted after their end: as long as kvroute keeps them for workers with
// events (keepWithEvents).
const keep = 250 * time.Millisecond

// index is a kvindex.Index of all workers.
type index struct {
	index    *kvindex.Index
	workers  []*kvindex.Worker
	size     int   // tokens of a block
	number   []int // of a worker, by its ID in the index
	refused  int   // blocks that the index did not take: they follow one that is not known
	found    []kvindex.Overlap
	overlaps []kvindex.Overlap // by worker
	hashes   []uint64
	names    []kvindex.Name
}

func newIndex(o *Options) (*index, error) {
	x := &index{
		// Blocks that went while those behind them stay count as held, so there may be more than the pools have.
		index: kvindex.New(kvindex.Options{MaxBlocks: 4 * o.workers() * o.Blocks}),
		size:  o.BlockSize, overlaps: make([]kvindex.Overlap, o.workers()),
	}
	for n := range o.workers() {
		w, err := x.index.Add(kvindex.WorkerOptions{BlockSize: o.BlockSize, Keep: keep, Capacity: o.Blocks})
		if err != nil {
			return nil, fmt.Errorf("cannot index worker %d: %w", n, err)
		}
		for int(w.ID()) >= len(x.number) {
			x.number = append(x.number, -1)
		}
		x.workers, x.number[w.ID()] = append(x.workers, w), n
	}
	return x, nil
}

// find returns the overlap of each worker, valid until the next call.
func (x *index) find(names []kvindex.Name) []kvindex.Overlap {
	x.found = x.index.Find(x.found[:0], names)
	clear(x.overlaps)
	for w := range x.overlaps {
		x.overlaps[w].Worker = x.workers[w].ID()
	}
	for _, o := range x.found {
		x.overlaps[x.number[o.Worker]] = o
	}
	return x.overlaps
}

// place predicts the blocks of j for its worker.
func (x *index) place(j *Job, now time.Time) { j.noted = x.workers[j.computes()].Place(j.Names, now) }

// done ends the prediction of j.
func (x *index) done(j *Job, now time.Time) { x.workers[j.computes()].Done(j.Names[:j.noted], now) }

// feed takes in what a pass of a worker removed and stored: one event for a run of a sequence's blocks, as engines
// publish them.
func (x *index) feed(worker int, p *sim.Pass) {
	w := x.workers[worker]
	if len(p.Removed) > 0 {
		w.Remove(kvindex.Device, p.Removed)
	}
	for run := p.Stored; len(run) > 0; {
		n := 1
		for n < len(run) && run[n].Sequence == run[0].Sequence && run[n].Index == run[0].Index+n {
			n++
		}
		x.store(w, run[0].Sequence, run[0].Index, n)
		run = run[n:]
	}
}

func (x *index) store(w *kvindex.Worker, s *sim.Sequence, first, n int) {
	j := s.Owner.(*Job)
	x.hashes, x.names = x.hashes[:0], x.names[:0]
	for i := first; i < first+n; i++ {
		hash := s.Hash(i)
		x.hashes = append(x.hashes, hash)
		if i < len(j.Names) {
			x.names = append(x.names, j.Names[i])
		} else {
			// No trace says what the tokens of answers were, and no prompt repeats them.
			x.names = append(x.names, kvindex.Name(max(1, hash)))
		}
	}
	e := kvindex.Stored{Hashes: x.hashes, Names: x.names, BlockSize: x.size}
	if first > 0 {
		e.Chain, e.Parent = true, s.Hash(first-1)
	}
	// A second copy of a block has no name; the block behind it follows one that may have been evicted elsewhere.
	if w.Store(e) != nil {
		x.refused += n
	}
}
