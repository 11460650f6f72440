// Place: the blocks that own placements will leave on a worker.

package kvindex

import "time"

// A placement is a worker's share in a run that was sent to it: blocks that have
// been in the same requests so far.
type placement struct {
	run    *run
	place  int32 // in the run
	blocks int32
	open   uint32 // requests with it that are not done
	prev   uint32 // neighbours in the list of those that no request needs, used
	next   uint32 // longest ago first; both 0 while one does
	done   int64  // when the last request with it was done; Unix nanoseconds
}

// placements imitate a cache: blocks of unfinished requests stay; the others
// stay for a while, and make room for new ones in the order of their last use,
// the end of a prompt before its beginning. So a block is never dropped before
// one that follows it.
//
// A request that ends or parts in the middle of a run splits it. So a prompt
// costs a step for each run, and a copy of the names that are new.
type placements struct {
	keep     time.Duration
	capacity int // blocks
	blocks   int
	all      numbered[placement]
	path     []uint32 // of walk, kept for the next time
	oldest   uint32
	newest   uint32
	tally    int // bytes as they were counted last
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
	known := w.walk(names)
	for _, number := range p.path {
		s := p.all.at(number)
		if s.open == 0 {
			p.unlink(number)
		}
		s.open++
	}
	fresh := names[known:]
	fresh = fresh[:p.room(w, len(fresh))]
	var last uint32
	if k := len(p.path); k > 0 {
		last = p.path[k-1]
	}
	left := len(fresh)
	for left > 0 {
		n := w.placeSome(&last, fresh[len(fresh)-left:])
		if n == 0 {
			break
		}
		left -= n
	}
	p.count(x)
	return known + len(fresh) - left
}

// walk sets the path to the placements that the names are, cut where the names
// end or go another way, and returns how many of the names they are.
func (w *Worker) walk(names []Name) (known int) {
	p, t := &w.placed, &w.index.predicted
	p.path = p.path[:0]
	var before *run
	for known < len(names) {
		r, ok := t.find(names[known], before)
		if r == nil || !ok {
			break
		}
		number := r.share(w.id)
		if number == 0 {
			break
		}
		v := r.view.Load()
		s := p.all.at(number)
		n := common(v.names[:s.blocks], names[known:])
		if n < int(s.blocks) {
			if r = t.finish(r, n); r == nil {
				break
			}
		}
		p.path = append(p.path, number)
		known += n
		if known < r.end() {
			break
		}
		before = r
	}
	return known
}

// placeSome adds the first n names behind the placement last (0: at the beginning),
// sets last to the new placement, and returns n; 0: nothing fits.
func (w *Worker) placeSome(last *uint32, names []Name) (n int) {
	p, t := &w.placed, &w.index.predicted
	var before *run
	if *last != 0 {
		s := p.all.at(*last)
		v := s.run.view.Load()
		k := int(s.blocks)
		if s.open == 1 && k < v.len() { // it grows, as far as the run goes with the names
			if n = common(v.names[k:v.len()], names); n > 0 {
				w.grow(s, n)
				return n
			}
		}
		if k < v.len() {
			if t.finish(s.run, k) == nil {
				return 0
			}
		}
		if n = min(len(names), maxRun-k); s.open == 1 && s.run.after == 0 && n > 0 {
			t.extend(s.run, names[:n], n)
			w.grow(s, n)
			return n
		}
		before = s.run
	}
	r, ok := t.find(names[0], before)
	switch {
	case !ok || r != nil && r.share(w.id) != 0:
		return 0 // the name is that of two blocks
	case r == nil:
		n = min(len(names), maxRun)
		r = t.create(before, names[:n], n)
	default:
		v := r.view.Load()
		n = common(v.names[:v.len()], names)
	}
	number := p.all.add()
	s := p.all.at(number)
	*s = placement{run: r, place: t.join(r, holder{w.id, number}), open: 1}
	w.grow(s, n)
	*last = number
	return n
}

// grow adds n blocks to a placement.
func (w *Worker) grow(s *placement, n int) {
	s.blocks += int32(n)
	w.placed.blocks += n
	w.index.expected += n
	w.show(s)
}

func (w *Worker) show(s *placement) { s.run.show(s.place, placedWord(w.id, s.blocks)) }

func placedWord(worker, blocks int32) uint64 {
	return word(worker, [tiers]uint16{uint16(blocks), uint16(blocks), uint16(blocks)})
}

// Done notes that a request is over, however it ended.
func (w *Worker) Done(names []Name, now time.Time) {
	x := w.index
	x.placing.Lock()
	defer x.placing.Unlock()
	if w.gone.Load() {
		return // its ID may be another one's
	}
	p := &w.placed
	w.walk(names)
	for i := len(p.path) - 1; i >= 0; i-- {
		s := p.all.at(p.path[i])
		if s.open == 0 {
			continue
		}
		if s.open--; s.open == 0 {
			s.done = now.UnixNano()
			p.link(p.path[i])
		}
	}
	p.expire(w, now)
	p.count(x)
}

// keepPlaced is the keeper of placements.
func (x *Index) keepPlaced() keeper {
	return keeper{
		length: func(h holder) int { return int(x.workers[h.worker].placed.all.at(h.share).blocks) },
		move:   func(h holder, place int32) { x.workers[h.worker].placed.all.at(h.share).place = place },
		cut: func(h holder, head *run, place int32, k int) (front, back piece) {
			defer x.workers[h.worker].placed.count(x)
			return x.cutPlaced(h, head, place, k)
		},
	}
}

// cutPlaced cuts a placement; the second half gets a new number.
func (x *Index) cutPlaced(h holder, head *run, place int32, k int) (front, back piece) {
	p := &x.workers[h.worker].placed
	s := p.all.at(h.share)
	second := *s
	s.run, s.place = head, place
	if int(s.blocks) <= k {
		return piece{h.share, placedWord(h.worker, s.blocks)}, piece{}
	}
	s.blocks = int32(k)
	second.blocks -= int32(k)
	number := p.all.add()
	if s.open == 0 { // the end is older than the beginning
		second.prev, second.next = s.prev, h.share
		if s.prev != 0 {
			p.all.at(s.prev).next = number
		} else {
			p.oldest = number
		}
		s.prev = number
	}
	*p.all.at(number) = second
	return piece{h.share, placedWord(h.worker, s.blocks)}, piece{number, placedWord(h.worker, second.blocks)}
}
