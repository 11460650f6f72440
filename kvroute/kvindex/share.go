// Share: what one worker holds of one run.

package kvindex

import "slices"

// A share is the leading blocks of a run that a worker is known to hold, and
// those that are held no more while blocks behind them are. The last one is
// held, or shares follow.
type share struct {
	run   *run
	depth int32 // of the run
	place int32 // in the run

	// The block's level is the slowest tier on the way from the first block of the
	// prompt to it, where each counts by the fastest tier that holds it; tiers if
	// one is held nowhere. ends[t] is where the blocks of level t and faster ones
	// end, start the level of the block before the run.
	ends  [tiers]uint16
	start uint8

	before     uint32 // the share in the run that this one follows; 0: it begins prompts
	after      uint32 // one of those that follow
	next, prev uint32 // of those that follow the same one; prev 0: the first

	blocks []block
	lost   int32 // blocks in front of them in the same memory: of the share that they were cut from
}

// room is how many blocks there is memory for.
func (s *share) room() int { return cap(s.blocks) + int(s.lost) }

// level is that of the run's last block.
func (s *share) level() uint8 {
	n := s.run.view.Load().len()
	if len(s.blocks) < n {
		return tiers
	}
	for t, end := range s.ends {
		if int(end) == n {
			return uint8(t)
		}
	}
	return tiers
}

// raise brings the ends up to date when block i was stored.
func (s *share) raise(i int) {
	tier := s.blocks[i].counts.tier()
	for t := max(s.start, tier); t < tiers; t++ {
		if int(s.ends[t]) == i {
			s.reach(t)
		}
	}
}

// reach moves the end of level t on.
func (s *share) reach(t uint8) {
	i := int(s.ends[t])
	for i < len(s.blocks) && s.blocks[i].counts.tier() <= t {
		i++
	}
	s.ends[t] = uint16(i)
}

// lower brings the ends up to date when block i was removed from a tier.
func (s *share) lower(i int) {
	for t := range s.ends[:s.blocks[i].counts.tier()] {
		s.ends[t] = min(s.ends[t], uint16(i))
	}
}

// restart brings the ends up to date when the level before the run is another one.
func (s *share) restart(start uint8) {
	s.start = start
	s.ends = [tiers]uint16{}
	for t := start; t < tiers; t++ {
		if t > start {
			s.ends[t] = s.ends[t-1]
		}
		s.reach(t)
	}
}

// link has share number follow the one that it names as before.
func (h *holding) link(number uint32) {
	s := h.shares.at(number)
	if s.before == 0 {
		return
	}
	before := h.shares.at(s.before)
	if s.next = before.after; s.next != 0 {
		h.shares.at(s.next).prev = number
	}
	before.after = number
	s.start = before.level()
}

// unlink is the contrary of link.
func (h *holding) unlink(s *share) {
	if s.next != 0 {
		h.shares.at(s.next).prev = s.prev
	}
	switch {
	case s.prev != 0:
		h.shares.at(s.prev).next = s.next
	case s.before != 0:
		h.shares.at(s.before).after = s.next
	}
}

// keepHeld is the keeper of shares.
func (x *Index) keepHeld() keeper {
	return keeper{
		length: func(h holder) int { return len(x.workers[h.worker].held.shares.at(h.share).blocks) },
		move:   func(h holder, place int32) { x.workers[h.worker].held.shares.at(h.share).place = place },
		cut: func(h holder, head *run, place int32, k int) (front, back piece) {
			w := x.workers[h.worker]
			defer w.count()
			return w.cut(h.share, head, place, k)
		},
	}
}

// cut cuts a share for the keeper. The smaller half gets new memory and a new
// number, of which the table is to be told: what is cut off a long run piece by
// piece costs what the pieces do.
func (w *Worker) cut(number uint32, head *run, place int32, k int) (front, back piece) {
	h := &w.held
	s := h.shares.at(number)
	if len(s.blocks) <= k {
		s.run, s.place = head, place
		return piece{number, word(w.id, s.ends)}, piece{}
	}
	fresh := h.shares.add()
	old := *s
	first, second := old, old
	first.run, first.place = head, place
	for t, end := range old.ends {
		first.ends[t], second.ends[t] = min(end, uint16(k)), end-min(end, uint16(k))
	}
	second.depth += int32(k)
	first.after, second.next, second.prev = 0, 0, 0
	f, b := number, fresh
	if k < len(old.blocks)-k {
		f, b = fresh, number
		first.blocks, first.lost = slices.Clone(old.blocks[:k]), 0
		second.blocks, second.lost = old.blocks[k:], old.lost+int32(k)
	} else {
		first.blocks = old.blocks[:k]
		second.blocks, second.lost = slices.Clone(old.blocks[k:]), 0
	}
	h.room += first.room() + second.room() - old.room()
	first.after, second.before = b, f
	*h.shares.at(f), *h.shares.at(b) = first, second
	second.start = h.shares.at(f).level()
	h.shares.at(b).start = second.start
	if f == fresh {
		h.renamed(f)
	} else {
		for c := second.after; c != 0; c = h.shares.at(c).next {
			h.shares.at(c).before = b
		}
	}
	h.moved(number, fresh)
	h.fit(h.shares.at(number))
	return piece{f, word(w.id, first.ends)}, piece{b, word(w.id, second.ends)}
}

// renamed has those beside and before a share know it by its new number.
func (h *holding) renamed(number uint32) {
	s := h.shares.at(number)
	if s.next != 0 {
		h.shares.at(s.next).prev = number
	}
	switch {
	case s.prev != 0:
		h.shares.at(s.prev).next = number
	case s.before != 0:
		h.shares.at(s.before).after = number
	}
}
