// Place: the blocks that own placements will leave on a worker.

package kvindex

import (
	"math/bits"
	"time"
)

// A run is blocks of requests that were sent to a worker, each the one that
// follows the one before, which have been in the same requests so far.
type run struct {
	names []Name
	open  uint32 // requests with it that are not done
	prev  uint32 // neighbours in the list of those that no request needs, used
	next  uint32 // longest ago first; both 0 while one does
	done  int64  // when the last request with it was done; Unix nanoseconds
}

// placements imitate a cache: blocks of unfinished requests stay; the others
// stay for a while, and make room for new ones in the order of their last use,
// the end of a prompt before its beginning. So a block is never dropped before
// one that follows it.
//
// They are kept as runs, by the name of the first block of each: a prompt is
// some of them one after the other. A request that leaves a run in its middle
// cuts it in two there. So a prompt costs a step for each run, and one for each
// block that is new. There are never more runs than blocks, and so numbers for
// all of them.
type placements struct {
	keep     time.Duration
	capacity int // blocks
	blocks   int
	runs     ids[run]
	path     []uint32 // of walk, kept for the next time
	oldest   uint32
	newest   uint32

	touched uint64 // a sum of what was read ahead, so that it is read
}

// Place notes that a request with these blocks was sent to the worker: they are
// predicted to be there (Overlap.Predicted) until Done, and for
// WorkerOptions.Keep after it. It returns how many of the leading blocks are
// noted, fewer than all where unfinished requests fill the worker's Capacity or
// the predictions of all workers the index.
// Each Place needs one Done with names[:noted].
//
// It bridges the time until the worker's events tell of the blocks; for a
// worker that publishes no events it is all that is known.
func (w *Worker) Place(names []Name, now time.Time) (noted int) {
	x := w.index
	x.placing.Lock()
	defer x.placing.Unlock()
	if w.gone.Load() {
		return 0
	}
	p := &w.placed
	p.expire(w, now)
	known := p.walk(names, x)
	for _, id := range p.path {
		r := p.runs.at(id)
		if r.open == 0 {
			p.unlink(id)
		}
		r.open++
	}
	fresh := names[known:]
	fresh = fresh[:p.room(w, len(fresh))]
	if len(fresh) == 0 {
		return known
	}
	*p.runs.at(p.runs.add(uint64(fresh[0]))) = run{names: x.spare.copy(fresh), open: 1}
	p.blocks += len(fresh)
	x.expected += len(fresh)
	for i, name := range fresh {
		if i%ahead == 0 {
			p.touch(x, fresh[i:min(i+ahead, len(fresh))])
		}
		x.predicted.add(name, w.id, x.width())
	}
	return known + len(fresh)
}

// walk sets path to the runs that the names are, cut where the names end or go
// another way, and returns how many of the names they are.
func (p *placements) walk(names []Name, x *Index) (known int) {
	p.path = p.path[:0]
	for known < len(names) {
		id := p.runs.find(uint64(names[known]))
		if id == 0 {
			break
		}
		r := p.runs.at(id)
		n := common(r.names, names[known:])
		if n < len(r.names) {
			p.cut(id, n, x)
		}
		p.path = append(p.path, id)
		known += n
	}
	return known
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

// cut makes two runs of one, the first of n blocks, under its number.
func (p *placements) cut(id uint32, n int, x *Index) {
	r := p.runs.at(id)
	behind := p.runs.add(uint64(r.names[n]))
	b := p.runs.at(behind)
	*b = run{names: x.spare.copy(r.names[n:]), open: r.open, done: r.done}
	r.names = x.spare.fit(r.names[:n])
	if r.open == 0 { // its end is older than its beginning
		b.prev, b.next = r.prev, id
		if r.prev != 0 {
			p.runs.at(r.prev).next = behind
		} else {
			p.oldest = behind
		}
		r.prev = behind
	}
}

// room makes room for up to n more blocks, and returns for how many there is.
func (p *placements) room(w *Worker, n int) int {
	for {
		free := min(p.capacity-p.blocks, w.index.maxBlocks-w.index.expected)
		if free >= n || p.oldest == 0 {
			return max(min(free, n), 0)
		}
		p.drop(w, p.oldest, n-free)
	}
}

// Done notes that a request is over, however it ended.
func (w *Worker) Done(names []Name, now time.Time) {
	x := w.index
	x.placing.Lock()
	defer x.placing.Unlock()
	p := &w.placed
	p.walk(names, x)
	for i := len(p.path) - 1; i >= 0; i-- {
		r := p.runs.at(p.path[i])
		if r.open == 0 {
			continue
		}
		if r.open--; r.open == 0 {
			r.done = now.UnixNano()
			p.link(p.path[i])
		}
	}
	p.expire(w, now)
}

// touch reads where the search for each of the names begins, so that they wait
// for memory together.
func (p *placements) touch(x *Index, names []Name) {
	var read uint64
	for _, name := range names {
		read += x.predicted.touch(name)
	}
	p.touched = read
}

// Expire drops what is predicted no longer, for all workers. Place and Done do
// so for their worker; this is for those that get no requests, every second
// or so.
func (x *Index) Expire(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.placing.Lock()
	defer x.placing.Unlock()
	for _, w := range x.workers {
		if w != nil {
			w.placed.expire(w, now)
		}
	}
}

func (p *placements) expire(w *Worker, now time.Time) {
	until := now.Add(-p.keep).UnixNano()
	for p.oldest != 0 && p.runs.at(p.oldest).done <= until {
		p.drop(w, p.oldest, len(p.runs.at(p.oldest).names))
	}
}

// drop drops up to n blocks from the end of a run that no request needs.
func (p *placements) drop(w *Worker, id uint32, n int) {
	r := p.runs.at(id)
	n = min(n, len(r.names))
	gone := r.names[len(r.names)-n:]
	r.names = r.names[:len(r.names)-n]
	p.withdraw(w, gone)
	p.blocks -= n
	if len(r.names) == 0 {
		p.unlink(id)
		w.index.spare.give(r.names)
		p.runs.drop(id)
		return
	}
	r.names = w.index.spare.fit(r.names)
}

// withdraw takes blocks out of what Find sees.
func (p *placements) withdraw(w *Worker, names []Name) {
	x := w.index
	for i, name := range names {
		if i%ahead == 0 {
			p.touch(x, names[i:min(i+ahead, len(names))])
		}
		x.predicted.remove(name, w.id, x.width())
	}
	x.expected -= len(names)
}

// link appends a run to the list.
func (p *placements) link(id uint32) {
	r := p.runs.at(id)
	r.prev, r.next = p.newest, 0
	if p.newest != 0 {
		p.runs.at(p.newest).next = id
	} else {
		p.oldest = id
	}
	p.newest = id
}

func (p *placements) unlink(id uint32) {
	r := p.runs.at(id)
	if r.prev != 0 {
		p.runs.at(r.prev).next = r.next
	} else {
		p.oldest = r.next
	}
	if r.next != 0 {
		p.runs.at(r.next).prev = r.prev
	} else {
		p.newest = r.prev
	}
	r.prev, r.next = 0, 0
}

func (p *placements) clear(w *Worker) {
	p.runs.each(func(r *run) {
		p.withdraw(w, r.names)
		w.index.spare.give(r.names)
	})
	*p = placements{keep: p.keep, capacity: p.capacity}
}

// bytes is what the placements cost beside the table that Find looks at.
func (p *placements) bytes() int {
	n := p.runs.bytes()
	p.runs.each(func(r *run) { n += 8 * cap(r.names) })
	return n
}

// A spare keeps the memory of runs that were dropped for those to come, by the
// power of two that it has room for.
type spare struct {
	lists  [33][][]Name
	blocks int // in all of them
}

// mostSpare is how many blocks are kept room for: 2 MiB.
const mostSpare = 1 << 18

func (s *spare) copy(names []Name) []Name {
	size := bits.Len(uint(len(names) - 1))
	list := &s.lists[size]
	var room []Name
	if k := len(*list); k > 0 {
		room, *list = (*list)[k-1], (*list)[:k-1]
		s.blocks -= cap(room)
	} else {
		room = make([]Name, 0, 1<<size)
	}
	return append(room[:0], names...)
}

// fit returns names, in a smaller place if they use less than a quarter of theirs.
func (s *spare) fit(names []Name) []Name {
	if 4*len(names) >= cap(names) {
		return names
	}
	fresh := s.copy(names)
	s.give(names)
	return fresh
}

func (s *spare) give(room []Name) {
	if s.blocks+cap(room) > mostSpare {
		return
	}
	s.blocks += cap(room)
	size := bits.Len(uint(cap(room) - 1))
	s.lists[size] = append(s.lists[size], room)
}
