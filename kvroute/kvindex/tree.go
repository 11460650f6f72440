// Tree: runs of blocks that follow one another, and the workers that share
// them; written by one, read by all without waiting.

package kvindex

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// A tree is runs of blocks.
//
//  1. A run begins prompts, or follows the last block of another one. Runs that
//     follow the same block (or none) begin with different names; where prompts
//     come to part in the middle of a run, it is split in two.
//  2. A worker has a share in a run: some of its blocks, from the first on. Who
//     shares a run shares all blocks of those before it.
//  3. A run ends behind the blocks that are shared, or goes on with names that
//     nobody holds any more. Nothing follows those.
//  4. Runs are found by their first name (table). A reader may meet a run as it
//     was before it was split, and be sent to the second half meanwhile; as
//     views say where they lie in a prompt, both are right.
type tree struct {
	table table
	keeper
	runs  int // for bytes
	names int // room for them
	words int
}

// A keeper is what the tree asks, and tells, of the workers' shares.
type keeper struct {
	length func(h holder) int          // its share's blocks
	move   func(h holder, place int32) // its share is at another place of the run

	// cut cuts a share in a run in two, at block k: the front one is in head at
	// place there, the back one stays where it is. A share that does not reach
	// beyond k goes to head as a whole, and back is 0.
	cut func(h holder, head *run, place int32, k int) (front, back piece)
}

// maxRun is how many blocks a run has at most: an end of a share takes 16 bits.
const maxRun = 1 << 15

// A run is blocks that follow one another.
type run struct {
	view    atomic.Pointer[view]
	before  *run     // the run that it follows; nil: it begins prompts
	holders []holder // by place in the view's words
	shares  int32    // holders that are not free
	after   int32    // runs that follow it

	// Of a run that has one holder; they take no memory of their own.
	holder [1]holder
	word   [1]atomic.Uint64
}

// A holder is a worker, and the number of its share; 0: free.
type holder struct {
	worker int32
	share  uint32
}

// A view is what readers see of a run. n rises, after the names were written,
// and words change, each by itself; all else makes a new view.
type view struct {
	depth int32 // blocks before the run in its prompts
	n     atomic.Uint32
	names []Name          // room for them; n are written
	words []atomic.Uint64 // of the holders; 0: free
}

func (v *view) len() int { return int(v.n.Load()) }

// A word is a worker's ID + 1 and where, in blocks of the run, its blocks of
// level 0, of levels 0 and 1, and of any level end.
func word(worker int32, ends [tiers]uint16) uint64 {
	return uint64(worker+1)<<48 | uint64(ends[Disk])<<32 | uint64(ends[Host])<<16 | uint64(ends[Device])
}

// at returns the view of the run in which block depth of a prompt has this
// name, nil: none. It is what readers come in by.
func (t *tree) at(name Name, depth int) *view {
	var last *view
	for {
		r := t.table.find(name)
		if r == nil {
			return nil
		}
		v := r.view.Load()
		if i := depth - int(v.depth); i >= 0 && i < v.len() && v.names[i] == name {
			return v
		}
		if v == last {
			return nil // the name is that of a block at another depth
		}
		last = v // the run was split, or the slot given away: each time round the writer has got on
	}
}

// find returns the run that begins with name, nil: none; for the writer. false:
// it is there, but does not follow before, or name is 0, with which none begins.
func (t *tree) find(name Name, before *run) (r *run, ok bool) {
	r = t.table.find(name)
	return r, name != 0 && (r == nil || r.before == before)
}

// end is how many blocks of a prompt end with the run.
func (r *run) end() int {
	if r == nil {
		return 0
	}
	v := r.view.Load()
	return int(v.depth) + v.len()
}

// create makes a run of these names, with room for more, behind another one (nil: of none).
func (t *tree) create(before *run, names []Name, room int) *run {
	r := &run{before: before}
	r.holders = r.holder[:0]
	r.view.Store(newView(before.end(), names, room, r.word[:]))
	t.count(r, 1)
	if before != nil {
		before.after++
	}
	t.table.put(names[0], r)
	return r
}

// newView copies the names into memory that has room for so many.
func newView(depth int, names []Name, room int, words []atomic.Uint64) *view {
	fresh := slices.Grow([]Name(nil), max(len(names), min(room, maxRun)))
	v := &view{depth: int32(depth), names: fresh[:cap(fresh)], words: words}
	v.n.Store(uint32(copy(v.names, names)))
	return v
}

// count adds the memory of a run to that of the tree, or (-1) takes it away.
func (t *tree) count(r *run, times int) {
	v := r.view.Load()
	t.runs += times
	t.names += times * len(v.names)
	if len(v.words) > len(r.word) {
		t.words += times * len(v.words)
	}
}

// look has readers see the run by another view.
func (t *tree) look(r *run, v *view) {
	t.count(r, -1)
	r.view.Store(v)
	t.count(r, 1)
}

// extend appends names to a run that nothing follows.
func (t *tree) extend(r *run, names []Name, room int) {
	v := r.view.Load()
	n := v.len()
	if n+len(names) <= len(v.names) {
		copy(v.names[n:], names)
		v.n.Store(uint32(n + len(names)))
		return
	}
	fresh := newView(int(v.depth), v.names[:n], n+max(len(names), room, n/4+4), v.words)
	copy(fresh.names[n:], names)
	fresh.n.Store(uint32(n + len(names)))
	t.look(r, fresh)
}

// truncate drops the names from k on, which nobody holds. Words are copied: a
// worker that later holds other names here must not appear as a holder of the old ones.
func (t *tree) truncate(r *run, k int) {
	v := r.view.Load()
	words := make([]atomic.Uint64, len(v.words))
	for i := range words {
		words[i].Store(v.words[i].Load())
	}
	t.look(r, newView(int(v.depth), v.names[:k], k, words))
}

// fit gives the memory of names back that nobody holds any more, where they are
// more than half.
func (t *tree) fit(r *run) {
	reach, room := 0, len(r.view.Load().names)
	for _, h := range r.holders {
		if h.share == 0 {
			continue
		}
		if reach = max(reach, t.length(h)); 2*reach+8 >= room {
			return
		}
	}
	t.truncate(r, reach)
}

// finish has a run end with k blocks, and returns the one that does; nil: it
// cannot, as the name behind it is that of two blocks.
func (t *tree) finish(r *run, k int) *run {
	for _, h := range r.holders {
		if h.share != 0 && t.length(h) > k {
			if r, ok := t.find(r.view.Load().names[k], nil); r != nil || !ok {
				return nil
			}
			return t.split(r, k)
		}
	}
	t.truncate(r, k)
	return r
}

// A piece is a share and its word.
type piece struct {
	share uint32
	word  uint64
}

// split makes two runs of one, the first of k blocks, which it returns; r is
// the second.
func (t *tree) split(r *run, k int) *run {
	v := r.view.Load()
	head := &run{before: r.before, after: 1}
	words := head.word[:]
	if head.holders = head.holder[:0]; r.shares > 1 {
		words, head.holders = make([]atomic.Uint64, r.shares), make([]holder, 0, r.shares)
	}
	head.view.Store(newView(int(v.depth), v.names[:k], k, words))
	back := newView(int(v.depth)+k, v.names[k:v.len()], 0, make([]atomic.Uint64, len(v.words)))
	first := v.names[0]
	r.before = head
	for place, h := range r.holders {
		if h.share == 0 {
			continue
		}
		front, behind := t.cut(h, head, int32(len(head.holders)), k)
		words[len(head.holders)].Store(front.word)
		head.holders = append(head.holders, holder{h.worker, front.share})
		head.shares++
		back.words[place].Store(behind.word)
		if r.holders[place].share = behind.share; behind.share == 0 {
			r.shares--
		}
	}
	t.count(head, 1)
	t.table.put(back.names[0], r)
	t.table.put(first, head)
	t.look(r, back)
	t.narrow(r)
	return head
}

// share returns the number of the worker's share in the run, 0: it has none.
func (r *run) share(worker int32) uint32 {
	for _, h := range r.holders {
		if h.worker == worker && h.share != 0 {
			return h.share
		}
	}
	return 0
}

// join gives a worker a place in the run, of word 0 at first.
func (t *tree) join(r *run, h holder) (place int32) {
	if r.shares++; int(r.shares) <= len(r.holders) {
		place := slices.IndexFunc(r.holders, func(h holder) bool { return h.share == 0 })
		r.holders[place] = h
		return int32(place)
	}
	r.holders = append(r.holders, h)
	if v := r.view.Load(); len(r.holders) > len(v.words) {
		wider := &view{depth: v.depth, names: v.names, words: make([]atomic.Uint64, cap(r.holders))}
		wider.n.Store(v.n.Load())
		for i := range v.words {
			wider.words[i].Store(v.words[i].Load())
		}
		t.look(r, wider)
	}
	return int32(len(r.holders) - 1)
}

// narrow gives the room for holders back where three quarters of it are free.
func (t *tree) narrow(r *run) {
	v := r.view.Load()
	if 4*int(r.shares) >= len(v.words) {
		return
	}
	narrower := &view{depth: v.depth, names: v.names, words: make([]atomic.Uint64, r.shares)}
	narrower.n.Store(v.n.Load())
	holders := make([]holder, 0, r.shares)
	for place, h := range r.holders {
		if h.share != 0 {
			narrower.words[len(holders)].Store(v.words[place].Load())
			t.move(h, int32(len(holders)))
			holders = append(holders, h)
		}
	}
	r.holders = holders
	t.look(r, narrower)
}

// show has readers see what a holder's share is now.
func (r *run) show(place int32, word uint64) { r.view.Load().words[place].Store(word) }

// leave takes a worker out of the run. A run that nobody shares is dropped.
func (t *tree) leave(r *run, place int32) {
	r.show(place, 0)
	r.holders[place] = holder{}
	if r.shares--; r.shares > 0 {
		t.narrow(r)
		t.fit(r)
		return
	}
	t.table.remove(r.view.Load().names[0])
	t.count(r, -1)
	if r.before != nil {
		r.before.after--
	}
}

func (t *tree) bytes() int {
	const aRun = (unsafe.Sizeof(run{}) + unsafe.Sizeof(view{}) + 15) &^ 15 // as memory is given
	return t.table.bytes() + int(aRun)*t.runs + 8*t.names + 16*t.words
}

// common returns how many leading names are the same. As each stands for all
// before it as well, it is found by halves.
func common(a, b []Name) int {
	low, high := 0, min(len(a), len(b))
	if high > 0 && a[high-1] == b[high-1] {
		return high
	}
	for low < high {
		if mid := int(uint(low+high) / 2); a[mid] == b[mid] {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}
