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
	for i, name := range names {
		if i%ahead == 0 {
			p.touch(x, names[i:min(i+ahead, len(names))])
		}
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
	for end := len(names); end > 0; end -= ahead {
		from := max(end-ahead, 0)
		found := p.look(names[from:end])
		for i := end - 1; i >= from; i-- {
			id := found[i-from]
			if id == 0 || p.at(id).open == 0 {
				continue
			}
			b := p.at(id)
			if b.open--; b.open == 0 {
				b.done = now.UnixNano()
				p.link(id)
			}
		}
	}
	p.expire(w, now)
}

// touch reads where the search for each of the names begins, so that they wait
// for memory together.
func (p *placements) touch(x *Index, names []Name) {
	var read uint64
	for _, name := range names {
		read += uint64(p.ids.touch(uint64(name))) + x.predicted.touch(name)
	}
	p.touched = read
}

// look returns the numbers of up to ahead names, 0 for none, and reads what is kept under them.
func (p *placements) look(names []Name) (found [ahead]uint32) {
	var read uint64
	for _, name := range names {
		read += uint64(p.ids.touch(uint64(name)))
	}
	for i, name := range names {
		if found[i] = p.find(uint64(name)); found[i] != 0 {
			read += uint64(p.at(found[i]).open)
		}
	}
	p.touched = read
	return found
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
	for p.oldest != 0 {
		var over [ahead]uint32
		var names [ahead]Name
		n := 0
		for id := p.oldest; n < ahead && id != 0 && p.at(id).done <= until; id = p.at(id).next {
			over[n], names[n] = id, Name(p.key(id))
			n++
		}
		if n == 0 {
			return
		}
		p.touch(w.index, names[:n])
		for _, id := range over[:n] {
			p.drop(w, id)
		}
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
	expect := p.expect
	*p = placements{keep: p.keep, capacity: p.capacity}
	p.expect = expect
}
