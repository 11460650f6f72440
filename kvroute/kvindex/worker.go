// Worker: one cache of blocks, and the events that tell what is in it.

package kvindex

import (
	"sync/atomic"
	"time"
)

// WorkerOptions is what is known of a worker.
type WorkerOptions struct {
	// BlockSize is how many tokens a block of the engine has. 0: not known yet;
	// the first event says it.
	BlockSize int

	// Keep is how long placed blocks are predicted after their request is done:
	// a moment with an engine that publishes events, until they have come; longer
	// would hide what it evicts meanwhile. Minutes (Dynamo: two) with one that does not.
	Keep time.Duration

	// Capacity is how many blocks the engine's cache has on the device; 0: not
	// known. As many are predicted at most (not known: 65,536): those of
	// unfinished requests first, then those used last. Memory is taken in larger
	// steps up to so many.
	Capacity int
}

// A Worker is one worker in an Index.
type Worker struct {
	index     *Index
	id        int32
	blockSize atomic.Int64 // tokens; 0: not known
	gone      atomic.Bool  // changed under mu and placing

	held    holding    // under the index's mu
	touched uint64     // a sum of what was read ahead, so that it is read; as held
	placed  placements // under the index's placing
}

// ID is what Overlap calls the worker. Once the worker is forgotten another one may get it: the ID
// that has been free for longest is given first.
func (w *Worker) ID() int32 { return w.id }

// BlockSize returns the tokens of one of the engine's blocks; 0: not known yet.
func (w *Worker) BlockSize() int { return int(w.blockSize.Load()) }

// maxWorkers is how many there may be: IDs 0..32766.
const maxWorkers = 1<<15 - 1

// Add makes room for a worker that holds nothing. Error: ErrTooManyWorkers.
func (x *Index) Add(o WorkerOptions) (*Worker, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := &Worker{index: x}
	w.blockSize.Store(int64(o.BlockSize))
	w.placed = placements{keep: o.Keep, capacity: 1 << 16}
	if o.Capacity > 0 {
		w.held.expect = min(o.Capacity, maxBlocks)
		w.placed.capacity = min(o.Capacity, maxBlocks)
	}
	x.placing.Lock() // which reads workers as well
	defer x.placing.Unlock()
	switch {
	case len(x.workers) < 64 || len(x.free) == 0:
		if len(x.workers) == maxWorkers {
			return nil, ErrTooManyWorkers
		}
		w.id = int32(len(x.workers))
		x.workers = append(x.workers, w)
		x.ids.Store(int32(len(x.workers)))
	default:
		w.id = x.free[0]
		x.free = x.free[1:]
		x.workers[w.id] = w
	}
	x.countSize(o.BlockSize, 1)
	return w, nil
}

// Held returns how many blocks are held for the worker by its events, in any
// tier, with those that have gone before others that follow them.
func (w *Worker) Held() int {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	return w.held.blocks + w.held.others
}

// Placed returns how many blocks are predicted to be there by Place.
func (w *Worker) Placed() int {
	w.index.placing.Lock()
	defer w.index.placing.Unlock()
	return w.placed.blocks
}

// Clear drops all that events said of the worker, in every tier: its cache was
// emptied, or events were lost for good. Placed blocks stay predicted.
func (w *Worker) Clear() {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	w.clear()
}

func (w *Worker) clear() {
	x := w.index
	w.held.shares.each(func(_ uint32, s *share) {
		if s.run != nil {
			x.held.leave(s.run, s.place)
		}
	})
	x.blocks -= w.held.blocks + w.held.others
	x.shares -= w.held.tally
	w.held = holding{expect: w.held.expect}
}

// Forget drops the worker with all that is known of it. All that is called on it later does nothing.
func (w *Worker) Forget() {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.gone.Load() {
		return
	}
	w.clear()
	x.placing.Lock()
	w.gone.Store(true)
	w.placed.clear(w)
	x.workers[w.id] = nil
	x.placing.Unlock()
	x.countSize(w.BlockSize(), -1)
	x.free = append(x.free, w.id)
}
