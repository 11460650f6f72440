// Remove: what a worker's remove events change, and what readers see of it.

package kvindex

// Remove takes in a remove event: each block was removed from the tier once. It
// returns how many of them were not known to be there, which is usual after
// events were lost.
func (w *Worker) Remove(t Tier, hashes []uint64) (unknown int) {
	x := w.index
	x.mu.Lock()
	defer x.mu.Unlock()
	h := &w.held
	at := cursor{}
	for len(hashes) > 0 {
		some := hashes[:min(ahead, len(hashes))]
		hashes = hashes[len(some):]
		var read uint64
		for _, hash := range some {
			read += h.touch(hash)
		}
		w.touched = read
		for _, hash := range some {
			entry, _ := h.locate(hash)
			if entry == 0 || t >= tiers {
				unknown++
				continue
			}
			s, k := h.block(entry)
			b := &s.blocks[k]
			if b.counts&shared != 0 {
				gone, ok := h.removeAlias(hash, t)
				if !ok {
					unknown++
					continue
				}
				x.blocks -= gone
			}
			if !b.counts.remove(t) {
				unknown++
				continue
			}
			w.move(&at, shareOf(entry))
			s.lower(k)
			if b.counts.held() {
				continue
			}
			b.counts = 0
			if k == len(s.blocks)-1 && s.after == 0 {
				at.share = w.trim(at.share)
			}
		}
	}
	w.settle(at.share)
	h.shrink()
	w.count()
	return unknown
}

// trim drops the last blocks of a share that are not held, while nothing
// follows, and those before the share that were kept for them only. It returns
// the share that it came to.
func (w *Worker) trim(number uint32) uint32 {
	h := &w.held
	for number != 0 {
		s := h.shares.at(number)
		if s.after != 0 {
			return number
		}
		for n := len(s.blocks); n > 0 && !s.blocks[n-1].counts.held(); n-- {
			h.forget(number, s)
			w.index.blocks--
		}
		if len(s.blocks) > 0 {
			w.fit(number)
			return number
		}
		before := s.before
		w.drop(number, s)
		number = before
	}
	return 0
}

// fit gives memory back that a share took for blocks that it does not have.
func (w *Worker) fit(number uint32) {
	if number == 0 {
		return
	}
	if s := w.held.shares.at(number); w.held.fit(s) {
		w.index.held.fit(s.run)
	}
}

// drop drops a share.
func (w *Worker) drop(number uint32, s *share) {
	w.held.unlink(s)
	w.index.held.leave(s.run, s.place)
	w.held.room -= s.room()
	w.held.shares.drop(number)
}

// settle has readers see what a share is now, and brings those that follow it
// up to date.
func (w *Worker) settle(number uint32) {
	if number == 0 {
		return
	}
	h := &w.held
	s := h.shares.at(number)
	s.run.show(s.place, word(w.id, s.ends))
	if s.after == 0 || h.shares.at(s.after).start == s.level() {
		return
	}
	work := append(h.work[:0], number)
	for len(work) > 0 {
		s := h.shares.at(work[len(work)-1])
		work = work[:len(work)-1]
		level := s.level()
		for c := s.after; c != 0; {
			after := h.shares.at(c)
			if after.start == level { // so are those beside it
				break
			}
			after.restart(level)
			after.run.show(after.place, word(w.id, after.ends))
			work = append(work, c)
			c = after.next
		}
	}
	if h.work = work; cap(work) > 1<<12 {
		h.work = nil
	}
}
