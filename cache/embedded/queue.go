// The queue of entries by age, and which one leaves when there is no room.

package embedded

// A queue drops by SIEVE (Zhang et al., NSDI 2024): a hand goes from the oldest
// entry to the newest, passes over those that were asked for since it came by
// last, and drops the first that was not. What is asked for again and again
// stays, as with LRU, but a hit sets a bit and takes no lock.
type queue struct {
	newest, oldest *item
	hand           *item // that is looked at next; nil: the oldest
	sweep          *item // likewise, for expired entries
	len            int
}

func (q *queue) push(it *item) {
	it.older, it.newer = q.newest, nil
	if q.newest == nil {
		q.oldest = it
	} else {
		q.newest.newer = it
	}
	q.newest = it
	q.len++
}

func (q *queue) remove(it *item) {
	if q.hand == it {
		q.hand = it.newer
	}
	if q.sweep == it {
		q.sweep = it.newer
	}
	if it.older == nil {
		q.oldest = it.newer
	} else {
		it.older.newer = it.newer
	}
	if it.newer == nil {
		q.newest = it.older
	} else {
		it.newer.older = it.older
	}
	it.older, it.newer = nil, nil
	q.len--
}

// victim returns the entry to drop, never the one that is spared, nil if there
// is no other. It looks at each entry twice at most, at few on average.
func (q *queue) victim(spared *item, now int64) *item {
	for range 2*q.len + 1 {
		it := q.hand
		if it == nil {
			it = q.oldest
		}
		if it == nil {
			return nil
		}
		q.hand = it.newer
		if it != spared && (it.deadline <= now || !it.asked.Swap(false)) {
			return it
		}
	}
	if q.oldest == spared {
		return spared.newer
	}
	return q.oldest
}

// expired returns one of the next n entries whose time is over, and how many of
// the n it left; nil when there is none among them.
func (q *queue) expired(n int, now int64) (*item, int) {
	for ; n > 0; n-- {
		it := q.sweep
		if it == nil {
			it = q.oldest
		}
		if it == nil {
			return nil, 0
		}
		q.sweep = it.newer
		if it.deadline <= now {
			return it, n - 1
		}
	}
	return nil, 0
}
