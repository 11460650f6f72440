// Place: the blocks that own placements will leave on a worker.

package kvindex

import "time"

// A placed is one block of requests that were sent to a worker.
type placed struct {
	open uint32 // requests with it that are not done
	prev uint32 // neighbours in the list of those that no request needs, used
	next uint32 // longest ago first; both 0 while one does
	done int64  // when the last request with it was done; Unix nanoseconds
}

// placements imitate a cache: blocks of unfinished requests stay; the others
// stay for a while, and make room for new ones in the order of their last use,
// the end of a prompt before its beginning. So a block is never dropped before
// one that follows it.
type placements struct {
	keep        time.Duration
	capacity    int // blocks
	ids[placed]     // by name
	oldest      uint32
	newest      uint32
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
	for i, name := range names {
		id := p.find(uint64(name))
		if id == 0 {
			if p.full(x) && p.oldest != 0 {
				p.drop(w, p.oldest)
			}
			if p.full(x) {
				return i
			}
			if id = p.add(uint64(name)); id == 0 {
				return i
			}
			x.expected++
			x.predicted.add(name, w.id, x.width())
		} else if p.at(id).open == 0 {
			p.unlink(id)
		}
		p.at(id).open++
	}
	return len(names)
}

func (p *placements) full(x *Index) bool {
	return p.n >= p.capacity || x.expected >= x.maxBlocks
}

// Done notes that a request is over, however it ended.
func (w *Worker) Done(names []Name, now time.Time) {
	x := w.index
	x.placing.Lock()
	defer x.placing.Unlock()
	p := &w.placed
	for i := len(names) - 1; i >= 0; i-- {
		id := p.find(uint64(names[i]))
		if id == 0 || p.at(id).open == 0 {
			continue
		}
		b := p.at(id)
		if b.open--; b.open == 0 {
			b.done = now.UnixNano()
			p.link(id)
		}
	}
	p.expire(w, now)
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
	for p.oldest != 0 && p.at(p.oldest).done <= until {
		p.drop(w, p.oldest)
	}
}

// drop drops a block that no request needs.
func (p *placements) drop(w *Worker, id uint32) {
	p.unlink(id)
	w.index.predicted.remove(Name(p.key(id)), w.id, w.index.width())
	w.index.expected--
	p.ids.drop(id)
}

// link appends a block to the list.
func (p *placements) link(id uint32) {
	b := p.at(id)
	b.prev, b.next = p.newest, 0
	if p.newest != 0 {
		p.at(p.newest).next = id
	} else {
		p.oldest = id
	}
	p.newest = id
}

func (p *placements) unlink(id uint32) {
	b := p.at(id)
	if b.prev != 0 {
		p.at(b.prev).next = b.next
	} else {
		p.oldest = b.next
	}
	if b.next != 0 {
		p.at(b.next).prev = b.prev
	} else {
		p.newest = b.prev
	}
	b.prev, b.next = 0, 0
}

func (p *placements) clear(w *Worker) {
	for _, e := range p.table {
		if e&maxIDs != 0 {
			w.index.predicted.remove(Name(p.key(e&maxIDs)), w.id, w.index.width())
		}
	}
	w.index.expected -= p.n
	*p = placements{keep: p.keep, capacity: p.capacity}
}
