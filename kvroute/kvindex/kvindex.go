// Package kvindex knows which KV blocks which worker holds, and says of a
// prompt how many of its leading blocks each worker has.
//
// It is exact for workers whose engines publish KV events, and keeps beside
// that what own placements will leave behind (see Worker.Place):
//
//	x := kvindex.New(kvindex.Options{})
//	w, err := x.Add(kvindex.WorkerOptions{BlockSize: 16, Keep: 5 * time.Second})
//	...
//	err = w.Store(kvindex.Stored{Seed: seed, Hashes: hashes, Tokens: tokens, BlockSize: 16}) // an engine's event
//
//	names := kvindex.AppendNames(nil, seed, prompt, 16)
//	overlaps = x.Find(overlaps[:0], names)
//
// A worker here is one cache: an engine of several data-parallel ranks is as
// many workers. All methods of an Index and its Workers may be called at the
// same time. Find takes no lock and never waits; the others take turns.
//
// Time comes in as an argument.
package kvindex

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// A Tier is where a worker holds a block, the fastest first.
type Tier uint8

// The tiers.
const (
	Device Tier = iota
	Host
	Disk

	tiers = 3
)

func (t Tier) String() string {
	if t >= tiers {
		return fmt.Sprintf("Tier(%d)", uint8(t))
	}
	return [tiers]string{"device", "host", "disk"}[t]
}

// An Overlap says how many leading blocks of a prompt a worker has, in blocks
// of its own size. Device, Host and Disk are runs one after the other: Device
// leading blocks are held on the device; with the Host ones after them, every
// block is held on the device or the host; with the Disk ones after those,
// every block is held somewhere. What follows a block held nowhere does not
// count.
type Overlap struct {
	Worker int32 // ID of the worker
	Device int32
	Host   int32
	Disk   int32

	// Predicted leading blocks were sent to the worker with requests that are
	// unfinished or not long finished. They begin at the first block like
	// Device: the worker has the greater of the two, or will have.
	Predicted int32
}

// Blocks returns how many leading blocks the worker holds in any tier, or is
// predicted to.
func (o Overlap) Blocks() int32 { return max(o.Device+o.Host+o.Disk, o.Predicted) }

// Why an event or a worker was not taken. Compare with errors.Is; a wrong
// block size is a *BlockSizeError.
var (
	// ErrUnknownParent: the blocks follow one that the worker is not known to
	// hold, so they cannot be named. Events were lost, or the chain began
	// before they were listened to.
	ErrUnknownParent = errors.New("the stored blocks follow a block that is not known")

	// ErrShape: the number of tokens is not that of the blocks, the tier is none
	// of the three, or a block follows another one than it did before.
	ErrShape = errors.New("a store event contradicts itself")

	// ErrHashReused: a block hash that stands for one block was stored again for
	// another one. What is known of the worker is not to be trusted: Clear it.
	ErrHashReused = errors.New("an engine's block hash now stands for other tokens")

	// ErrFull: the index, or the worker's part of it, holds as many blocks as it may.
	ErrFull = errors.New("the index holds as many blocks as it may")

	// ErrTooManyWorkers: 32,767 workers are held.
	ErrTooManyWorkers = errors.New("the index holds as many workers as it can")

	// ErrForgotten: the worker was forgotten.
	ErrForgotten = errors.New("the worker was forgotten")
)

// A BlockSizeError is an event whose blocks are of another size than the
// worker's blocks are taken to be. None of them was stored: prompts cut into
// blocks of Want tokens would never meet them.
type BlockSizeError struct{ Want, Got int } // tokens of a block

func (e *BlockSizeError) Error() string {
	return fmt.Sprintf("the engine's blocks are of %d tokens, not %d", e.Got, e.Want)
}

// Options are the bounds of an Index.
type Options struct {
	// MaxBlocks bounds how many blocks are held for all workers together, and how
	// many are predicted; one that two workers have counts twice. Each of the two
	// takes BytesPerBlock times as much memory at most: where prompts are many
	// short runs of blocks, there is room for fewer. 0: 16,777,216 blocks, 1 GiB
	// for those that events tell of.
	MaxBlocks int
}

// BytesPerBlock is what a block that one worker holds may cost on average, in
// bytes, with its share in the run of blocks that it belongs to.
const BytesPerBlock = 64

// maxBlocks is how many blocks one worker holds at most.
const maxBlocks = 1<<24 - 1

// An Index says which worker holds which blocks: two trees of runs, of what is
// held by the workers' events and of what is predicted, and each worker's
// shares in them.
type Index struct {
	maxBlocks int
	ids       atomic.Int32          // that were ever given: 0 to one less
	sizes     atomic.Pointer[[]int] // of blocks, each once; replaced, never changed
	finders   sync.Pool

	mu     sync.Mutex // above what follows, and for writing ids and sizes
	held   tree
	blocks int         // held by all workers
	shares int         // bytes of the workers' shares in them
	free   []int32     // IDs to give again, the one that was forgotten first in front
	bySize map[int]int // workers by block size

	// placing is taken after mu where both are. Requests that are placed do not
	// wait for events that way.
	placing   sync.Mutex // above what follows
	predicted tree
	expected  int       // predicted blocks of all workers
	placed    int       // bytes of the placements that they are in
	workers   []*Worker // by ID; nil: free; written with mu as well
}

// most is how many bytes what is held, and what is predicted, may take; a small
// index has room for its tables.
func (x *Index) most() int { return BytesPerBlock * (x.maxBlocks + 1<<10) }

// full says that the index may hold no more blocks.
func (x *Index) full() bool {
	return x.blocks >= x.maxBlocks || x.held.bytes()+x.shares > x.most()
}

// unpredicted is how many blocks more may be predicted.
func (x *Index) unpredicted() int {
	if x.predicted.bytes()+x.placed > x.most() {
		return 0
	}
	return x.maxBlocks - x.expected
}

// New returns an empty index.
func New(o Options) *Index {
	if o.MaxBlocks <= 0 {
		o.MaxBlocks = 1 << 24
	}
	x := &Index{maxBlocks: o.MaxBlocks, bySize: map[int]int{}}
	x.held.keeper, x.predicted.keeper = x.keepHeld(), x.keepPlaced()
	x.sizes.Store(new([]int))
	return x
}

// Stats is what an Index holds.
type Stats struct {
	Workers   int
	Blocks    int // of events, summed over the workers
	Predicted int // of own placements, summed over the workers
	Bytes     int // of memory for all of it
}

// Stats counts what the index holds. It looks at every worker, and events and
// placements wait for it.
func (x *Index) Stats() Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.placing.Lock()
	defer x.placing.Unlock()
	s := Stats{Blocks: x.blocks, Predicted: x.expected}
	s.Bytes = x.held.bytes() + x.predicted.bytes()
	for _, w := range x.workers {
		if w == nil {
			continue
		}
		s.Workers++
		s.Bytes += w.held.bytes() + w.placed.bytes()
	}
	return s
}

// BlockSizes returns the block sizes of the workers, in tokens, each once: a
// prompt is named, and looked for, once for each of them. Workers whose block
// size is not known yet are left out. In rising order; not to be changed.
func (x *Index) BlockSizes() []int { return *x.sizes.Load() }

// countSize notes that more or fewer workers have blocks of size tokens; 0,
// not known, is not counted.
func (x *Index) countSize(size, more int) {
	if size == 0 {
		return
	}
	before := x.bySize[size]
	x.bySize[size] += more
	if before != 0 && x.bySize[size] != 0 {
		return
	}
	sizes := []int{}
	for size, n := range x.bySize {
		if n != 0 {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	x.sizes.Store(&sizes)
	if x.bySize[size] == 0 {
		delete(x.bySize, size)
	}
}
