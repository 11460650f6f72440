// Worker: one cache of blocks, and the events that tell what is in it.

package kvindex

import (
	"fmt"
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

	// Under the index's mu.
	held  records
	twins map[twin]int // blocks that stand for more than one of the engine's hashes; nil: none
	work  []uint32     // of relevel, kept for the next time

	touched uint64 // a sum of what was read ahead, so that it is read

	placed placements // under the index's placing
}

// A twin is a block that a second record of the same worker names too.
type twin struct {
	name  Name
	level uint32
}

// ID is what Overlap calls the worker. It is given to another one after the
// worker was forgotten; of the free IDs the one that was so for longest.
func (w *Worker) ID() int32 { return w.id }

// BlockSize returns the tokens of one of the engine's blocks; 0: not known yet.
func (w *Worker) BlockSize() int { return int(w.blockSize.Load()) }

// Add makes room for a worker that holds nothing. Error: ErrTooManyWorkers.
func (x *Index) Add(o WorkerOptions) (*Worker, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := &Worker{index: x}
	w.blockSize.Store(int64(o.BlockSize))
	w.placed = placements{keep: o.Keep, capacity: 1 << 16}
	if o.Capacity > 0 {
		w.held.expect = min(o.Capacity, maxIDs)
		w.placed.capacity = min(o.Capacity, maxIDs)
	}
	switch {
	case len(x.workers) < 64 || len(x.free) == 0:
		if len(x.workers) == maxWorkers {
			return nil, ErrTooManyWorkers
		}
		w.id = int32(len(x.workers))
		x.workers = append(x.workers, w)
	default:
		w.id = x.free[0]
		x.free = x.free[1:]
		x.workers[w.id] = w
	}
	x.expect(w.held.expect)
	x.setAlive(w.id, true)
	x.countSize(o.BlockSize, 1)
	return w, nil
}

// expect notes that so many blocks more are likely to come to be held on a
// device, and to be predicted.
func (x *Index) expect(blocks int) {
	x.tables[Device].expect += blocks
	x.placing.Lock()
	x.predicted.expect += blocks
	x.placing.Unlock()
}

// setAlive lets Find see the worker, or no longer.
func (x *Index) setAlive(id int32, yes bool) {
	alive := *x.alive.Load()
	if int(id)>>6 >= len(alive) {
		wider := make([]atomic.Uint64, len(alive)+1)
		for i := range alive {
			wider[i].Store(alive[i].Load())
		}
		x.alive.Store(&wider)
		alive = wider
	}
	word := &alive[id>>6]
	if yes {
		word.Store(word.Load() | 1<<(id&63))
	} else {
		word.Store(word.Load() &^ (1 << (id & 63)))
	}
}

// width is how many words the bits of all workers take.
func (x *Index) width() int { return len(*x.alive.Load()) }

// Stored is an event: the worker holds these blocks, in Tier, from now on.
type Stored struct {
	Tier   Tier
	Seed   Seed // of the first block of a chain; others inherit it
	Parent uint64
	Chain  bool // the blocks follow the one of hash Parent; else they begin a prompt

	// Hashes are what the engine calls the blocks, each the one that follows the
	// one before; Tokens are all of their tokens, BlockSize for each.
	Hashes    []uint64
	Tokens    []uint32
	BlockSize int

	// Names are what AppendNames calls the blocks, where the caller has done so:
	// Seed, Tokens and Extra are not looked at then. nil: not known.
	Names []Name

	// Extra is nil or has for each block what it is told apart by beside its
	// tokens and Seed: hashes of images, sorted; nil for most.
	Extra [][]uint64
}

// Store takes in a store event. Blocks may be stored any number of times; they
// are held until they were removed as often. Nothing of e is kept.
//
// Errors: *BlockSizeError, ErrShape, ErrUnknownParent, with which nothing was
// stored; ErrHashReused and ErrFull, with which the blocks before the one that
// it came to were; ErrForgotten.
func (w *Worker) Store(e Stored) error {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := w.check(&e); err != nil {
		return err
	}
	var parent uint32
	prev := Name(e.Seed)
	if e.Chain {
		if parent = w.held.find(e.Parent); parent == 0 {
			return ErrUnknownParent
		}
		prev = w.held.at(parent).name
	}
	for from := 0; from < len(e.Hashes); from += ahead {
		var err error
		if parent, prev, err = w.store(&e, from, parent, prev); err != nil {
			return err
		}
	}
	return nil
}

// ahead is how many blocks are looked up in memory before the first of them is
// done: so they wait for memory together. Events of one block each do not.
const ahead = 16

// store stores up to ahead blocks of e, from from on, which follow parent.
func (w *Worker) store(e *Stored, from int, parent uint32, prev Name) (uint32, Name, error) {
	hashes := e.Hashes[from:min(from+ahead, len(e.Hashes))]
	var space [ahead]Name
	names := space[:len(hashes)]
	if e.Names != nil {
		names = e.Names[from : from+len(hashes)]
	} else {
		prev = e.name(names, from, prev)
	}
	var read uint64
	for i, hash := range hashes {
		read += uint64(w.held.touch(hash)) + w.index.tables[e.Tier].touch(names[i])
	}
	w.touched = read
	for i, hash := range hashes {
		id, err := w.record(hash, names[i], parent)
		if err != nil {
			return 0, 0, err
		}
		r := w.held.at(id)
		r.store(e.Tier)
		if r.due() != r.level() {
			w.relevel(id)
		}
		parent = id
	}
	return parent, prev, nil
}

// name names the blocks from from on, which follow prev, and returns the last name.
func (e *Stored) name(names []Name, from int, prev Name) Name {
	var stack [1024]byte
	buf := stack[:]
	for i := range names {
		var extra []uint64
		if e.Extra != nil {
			extra = e.Extra[from+i]
		}
		buf = scratch(buf, 4*e.BlockSize+8*len(extra))
		prev = prev.then(localHash(buf, e.Tokens[(from+i)*e.BlockSize:(from+i+1)*e.BlockSize], extra))
		names[i] = prev
	}
	return prev
}

// check returns what is wrong with the event.
func (w *Worker) check(e *Stored) error {
	if w.gone.Load() {
		return ErrForgotten
	}
	if e.Tier >= tiers {
		return fmt.Errorf("%w: tier %d", ErrShape, e.Tier)
	}
	if size := w.BlockSize(); size != 0 && e.BlockSize != size {
		return &BlockSizeError{Want: size, Got: e.BlockSize}
	}
	if e.Names != nil {
		if e.BlockSize <= 0 || len(e.Names) != len(e.Hashes) {
			return fmt.Errorf("%w: %d names for %d blocks of %d", ErrShape, len(e.Names), len(e.Hashes), e.BlockSize)
		}
	} else if e.BlockSize <= 0 || len(e.Tokens)/e.BlockSize != len(e.Hashes) || len(e.Tokens)%e.BlockSize != 0 {
		return fmt.Errorf("%w: %d tokens are not %d blocks of %d", ErrShape, len(e.Tokens), len(e.Hashes), e.BlockSize)
	}
	if e.Names == nil && e.Extra != nil && len(e.Extra) != len(e.Hashes) {
		return fmt.Errorf("%w: extra keys for %d blocks of %d", ErrShape, len(e.Extra), len(e.Hashes))
	}
	if w.BlockSize() == 0 {
		w.blockSize.Store(int64(e.BlockSize))
		w.index.countSize(e.BlockSize, 1)
	}
	return nil
}

// record returns the record of the block, made if there is none.
func (w *Worker) record(hash uint64, name Name, parent uint32) (uint32, error) {
	if id := w.held.find(hash); id != 0 {
		if w.held.at(id).name != name {
			return 0, ErrHashReused
		}
		return id, nil
	}
	if w.index.blocks >= w.index.maxBlocks {
		return 0, ErrFull
	}
	id := w.held.add(hash, name, parent)
	if id == 0 {
		return 0, ErrFull
	}
	w.index.blocks++
	return id, nil
}

// Copy takes in a store event that says no tokens: engines that copy blocks to
// another tier name them only. Each block that is known is held in t once more.
// It returns how many are not known, which stay so.
func (w *Worker) Copy(t Tier, hashes []uint64) (unknown int) {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, hash := range hashes {
		id := w.held.find(hash)
		if id == 0 || t >= tiers {
			unknown++
			continue
		}
		r := w.held.at(id)
		r.store(t)
		if r.due() != r.level() {
			w.relevel(id)
		}
	}
	return unknown
}

// Held returns how many blocks are held for the worker by its events, in any
// tier, with those that have gone before others that follow them.
func (w *Worker) Held() int {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	return w.held.n
}

// Remove takes in a remove event: each block was removed from the tier once. It
// returns how many of them were not known to be there, which is usual after
// events were lost.
func (w *Worker) Remove(t Tier, hashes []uint64) (unknown int) {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(hashes) > 0 {
		n := min(ahead, len(hashes))
		found := w.touch(t, hashes[:n])
		for _, id := range found[:n] {
			if id == 0 || t >= tiers || !w.held.at(id).remove(t) {
				unknown++
				continue
			}
			r := w.held.at(id)
			if r.due() != r.level() {
				w.relevel(id)
			}
			if !r.held() {
				x.blocks -= w.held.drop(id)
			}
		}
		hashes = hashes[n:]
	}
	return unknown
}

// touch reads what the removal of blocks needs, and returns their records, 0
// for none. A record that is dropped on the way is one that holds nothing.
func (w *Worker) touch(t Tier, hashes []uint64) (found [ahead]uint32) {
	var read uint64
	for _, hash := range hashes {
		read += uint64(w.held.touch(hash))
	}
	for i, hash := range hashes {
		found[i] = w.held.find(hash)
	}
	for _, id := range found[:len(hashes)] {
		if id != 0 {
			read += w.index.tables[t%tiers].touch(w.held.at(id).name)
		}
	}
	w.touched = read
	return found
}

// relevel brings the levels of a block and of all that follow it up to date, in
// the records and in the tables.
func (w *Worker) relevel(id uint32) {
	if r := w.held.at(id); r.child == 0 { // most are the end of what is known
		w.change(r)
		return
	}
	work := append(w.work[:0], id)
	for len(work) > 0 {
		r := w.held.at(work[len(work)-1])
		work = work[:len(work)-1]
		if !w.change(r) {
			continue
		}
		for c := r.child; c != 0; {
			child := w.held.at(c)
			child.setBefore(r.level())
			work = append(work, c)
			c = child.next
		}
	}
	if w.work = work; cap(work) > 1<<12 {
		w.work = nil
	}
}

// change brings the level of one block up to date; false: it was.
func (w *Worker) change(r *record) bool {
	old, level := r.level(), r.due()
	if old == level {
		return false
	}
	r.setLevel(level)
	if level != unrooted {
		w.publish(r.name, level)
	}
	if old != unrooted {
		w.withdraw(r.name, old)
	}
	return true
}

func (w *Worker) publish(name Name, level uint32) {
	if w.index.tables[level].add(name, w.id, w.index.width()) {
		return
	}
	if w.twins == nil {
		w.twins = make(map[twin]int)
	}
	w.twins[twin{name, level}]++
}

func (w *Worker) withdraw(name Name, level uint32) {
	if n := w.twins[twin{name, level}]; n > 0 {
		if w.twins[twin{name, level}] = n - 1; n == 1 {
			delete(w.twins, twin{name, level})
		}
		return
	}
	w.index.tables[level].remove(name, w.id, w.index.width())
}

// Clear drops all that events said of the worker, in every tier: its cache was
// emptied, or events were lost for good. Placed blocks stay predicted.
func (w *Worker) Clear() {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	w.clear()
}

func (w *Worker) clear() {
	for _, chunk := range w.held.all {
		for i := range chunk {
			if r := &chunk[i].val; r.name != 0 && r.level() != unrooted {
				w.index.tables[r.level()].remove(r.name, w.id, w.index.width())
			}
		}
	}
	w.index.blocks -= w.held.n
	expect := w.held.expect
	w.held, w.twins, w.work = records{}, nil, nil
	w.held.expect = expect
}

// Forget drops the worker with all that is known of it; Find no longer sees it
// from the first moment on. All that is called on it later does nothing.
func (w *Worker) Forget() {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.gone.Load() {
		return
	}
	x.setAlive(w.id, false)
	w.clear()
	x.placing.Lock()
	w.gone.Store(true)
	w.placed.clear(w)
	x.placing.Unlock()
	x.expect(-w.held.expect)
	x.workers[w.id] = nil
	x.countSize(w.BlockSize(), -1)
	x.free = append(x.free, w.id)
}
