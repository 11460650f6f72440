// Store: what a worker's store events change.

package kvindex

import "fmt"

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
// Errors after which nothing is stored: *BlockSizeError, ErrShape, ErrUnknownParent, ErrForgotten.
// Errors after which the blocks before the faulty one are stored: ErrHashReused, ErrFull, and
// ErrShape where a block follows another one than it did before.
func (w *Worker) Store(e Stored) error {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := w.check(&e); err != nil {
		return err
	}
	at, prev := cursor{}, Name(e.Seed)
	if e.Chain {
		entry, _ := w.held.locate(e.Parent)
		if entry == 0 {
			return ErrUnknownParent
		}
		at = cursor{shareOf(entry), depthOf(entry) + 1}
		s, i := w.held.block(entry)
		prev = s.run.view.Load().names[i]
	}
	var space [ahead]Name
	for from := 0; from < len(e.Hashes); from += ahead {
		hashes := e.Hashes[from:min(from+ahead, len(e.Hashes))]
		names := space[:len(hashes)]
		if e.Names != nil {
			names = e.Names[from : from+len(hashes)]
		} else {
			prev = e.name(names, from, prev)
		}
		err := w.store(&at, e.Tier, hashes, names, len(e.Hashes)-from)
		w.count()
		if err != nil {
			w.settle(at.share)
			w.fit(at.share)
			w.count()
			return err
		}
	}
	w.settle(at.share)
	return nil
}

// ahead is how many blocks are looked up in memory before the first of them is
// done: so they wait for memory together. Events of one block each do not.
const ahead = 16

// A cursor is where in a worker's blocks the next one of an event goes: behind
// the first depth blocks of a prompt, the last of which is in share; 0: there
// are none.
type cursor struct {
	share uint32
	depth int32
}

// store stores up to ahead blocks; more are as many and all that follow them in the event.
func (w *Worker) store(at *cursor, t Tier, hashes []uint64, names []Name, more int) error {
	h := &w.held
	h.reserve(len(hashes))
	var read uint64
	for _, hash := range hashes {
		read += h.touch(hash)
	}
	w.touched = read
	for i, hash := range hashes {
		entry, place := h.locate(hash)
		if entry == 0 {
			if err := w.make(at, t, place, hash, names[i:], more-i); err != nil {
				return err
			}
		} else {
			s, k := h.block(entry)
			if s.run.view.Load().names[k] != names[i] {
				return ErrHashReused
			}
			w.move(at, shareOf(entry))
			at.depth = depthOf(entry)
		}
		s := h.shares.at(at.share)
		k := int(at.depth - s.depth)
		b := &s.blocks[k]
		if b.counts.store(t) && b.counts&shared != 0 {
			h.storeAlias(hash, b.hash(), t)
		}
		s.raise(k)
		at.depth++
	}
	return nil
}

// make makes the block at the cursor, which has the first of the names and is
// not known by this hash. The others are those that follow it soon.
func (w *Worker) make(at *cursor, t Tier, place int, hash uint64, names []Name, more int) error {
	if w.index.full() || w.held.blocks >= maxBlocks || at.depth > maxDepth {
		return ErrFull
	}
	if err := w.reach(at, names, more); err != nil {
		return err
	}
	h := &w.held
	s := h.shares.at(at.share)
	switch k := int(at.depth - s.depth); {
	case k == len(s.blocks):
		h.add(at.share, place, hash, more)
	case s.blocks[k].counts.full(t):
		return nil // it is not counted, and would stay when the block goes
	default:
		h.addAlias(&s.blocks[k], hash)
	}
	w.index.blocks++
	return nil
}

// reach has the cursor be in the share in which its block is, or is to be appended.
func (w *Worker) reach(at *cursor, names []Name, more int) error {
	if at.share == 0 {
		return w.follow(at, nil, names, more)
	}
	held := &w.index.held
	s := w.held.shares.at(at.share)
	r := s.run
	v := r.view.Load()
	k := int(at.depth - s.depth)
	if k < v.len() {
		if v.names[k] == names[0] {
			return nil
		}
		w.settle(at.share)
		if r = held.finish(r, k); r == nil {
			return errTwoPlaces
		}
		at.share = r.share(w.id)
	}
	if r.after == 0 && k+len(names) <= maxRun {
		held.extend(r, names, min(more, maxRun-k))
		return nil
	}
	return w.follow(at, r, names, more)
}

var errTwoPlaces = fmt.Errorf("%w: a block follows two different ones", ErrShape)

// follow has the cursor go on in the run behind before that has the names, made if there is none.
func (w *Worker) follow(at *cursor, before *run, names []Name, more int) error {
	held := &w.index.held
	r, ok := held.find(names[0], before)
	if !ok {
		return errTwoPlaces
	}
	if r == nil {
		r = held.create(before, names, more)
	}
	w.settle(at.share) // those that follow it all know the same of it
	number := w.shareIn(r, at.share)
	if number == 0 {
		if number = w.held.shares.add(); number > maxNumbers {
			panic("BUG: there are more shares than blocks")
		}
		s := w.held.shares.at(number)
		*s = share{run: r, depth: at.depth, before: at.share, place: held.join(r, holder{w.id, number})}
		w.held.link(number)
	}
	at.share = number
	return nil
}

// shareIn returns the number of the worker's share in a run, which follows share
// before of it (0: it begins prompts); 0: it has none. It looks where there is
// less to look through.
func (w *Worker) shareIn(r *run, before uint32) uint32 {
	if before == 0 {
		return r.share(w.id)
	}
	h := &w.held
	looked := 0
	for c := h.shares.at(before).after; c != 0; c = h.shares.at(c).next {
		if h.shares.at(c).run == r {
			return c
		}
		if looked++; looked > len(r.holders) {
			return r.share(w.id)
		}
	}
	return 0
}

// move has the cursor be in another share. What readers see of the one it
// leaves is brought up to date.
func (w *Worker) move(at *cursor, number uint32) {
	if at.share != number {
		w.settle(at.share)
		at.share = number
	}
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

// Copy takes in a store event that says no tokens: engines that copy blocks to
// another tier name them only. Each block that is known is held in t once more.
// It returns how many are not known, which stay so.
func (w *Worker) Copy(t Tier, hashes []uint64) (unknown int) {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	h := &w.held
	at := cursor{}
	for _, hash := range hashes {
		entry, _ := h.locate(hash)
		if entry == 0 || t >= tiers {
			unknown++
			continue
		}
		w.move(&at, shareOf(entry))
		s, k := h.block(entry)
		b := &s.blocks[k]
		if b.counts.store(t) && b.counts&shared != 0 {
			h.storeAlias(hash, b.hash(), t)
		}
		s.raise(k)
	}
	w.settle(at.share)
	return unknown
}
