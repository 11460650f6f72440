// Expire: which predictions go, for time or for room.

package kvindex

import (
	"time"
	"unsafe"
)

// room makes room for up to n more blocks, and returns for how many there is.
func (p *placements) room(w *Worker, n int) int {
	for {
		free := min(p.capacity-p.blocks, w.index.unpredicted())
		if free >= n || p.oldest == 0 {
			return max(min(free, n), 0)
		}
		p.drop(w, p.oldest, n-free)
	}
}

// Expire drops what is predicted no longer, for all workers. Place and Done do
// so for their worker; this is for those that get no requests, every second
// or so.
func (x *Index) Expire(now time.Time) {
	x.placing.Lock()
	defer x.placing.Unlock()
	for _, w := range x.workers {
		if w != nil {
			w.placed.expire(w, now)
			w.placed.count(x)
		}
	}
}

func (p *placements) expire(w *Worker, now time.Time) {
	until := now.Add(-p.keep).UnixNano()
	for p.oldest != 0 && p.all.at(p.oldest).done <= until {
		p.drop(w, p.oldest, int(p.all.at(p.oldest).blocks))
	}
}

// drop drops up to n blocks from the end of a placement that no request needs.
func (p *placements) drop(w *Worker, number uint32, n int) {
	s := p.all.at(number)
	n = min(n, int(s.blocks))
	s.blocks -= int32(n)
	p.blocks -= n
	w.index.expected -= n
	if s.blocks > 0 {
		w.show(s)
		w.index.predicted.fit(s.run)
		return
	}
	p.unlink(number)
	w.index.predicted.leave(s.run, s.place)
	p.all.drop(number)
}

// link appends a placement to the list.
func (p *placements) link(number uint32) {
	s := p.all.at(number)
	s.prev, s.next = p.newest, 0
	if p.newest != 0 {
		p.all.at(p.newest).next = number
	} else {
		p.oldest = number
	}
	p.newest = number
}

func (p *placements) unlink(number uint32) {
	s := p.all.at(number)
	if s.prev != 0 {
		p.all.at(s.prev).next = s.next
	} else {
		p.oldest = s.next
	}
	if s.next != 0 {
		p.all.at(s.next).prev = s.prev
	} else {
		p.newest = s.prev
	}
	s.prev, s.next = 0, 0
}

func (p *placements) clear(w *Worker) {
	p.all.each(func(_ uint32, s *placement) {
		if s.run != nil {
			w.index.predicted.leave(s.run, s.place)
		}
	})
	w.index.expected -= p.blocks
	w.index.placed -= p.tally
	*p = placements{keep: p.keep, capacity: p.capacity}
}

// count has the index know how much memory they take.
func (p *placements) count(x *Index) {
	now := p.bytes()
	x.placed += now - p.tally
	p.tally = now
}

func (p *placements) bytes() int { return p.all.bytes(int(unsafe.Sizeof(placement{}))) }
