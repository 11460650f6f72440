// The queue of entries by age, and the choice of the entry to evict.

package embedded

// A queue evicts by SIEVE (Zhang et al., NSDI 2024): a hand moves from the oldest entry to the
// newest, skips entries that were used since it last passed, and evicts the first that was not.
// Popular entries stay, as with LRU, but a hit only sets a bit and takes no lock.
type queue struct {
	newest, oldest *item
	hand           *item // the next entry to check; nil: the oldest
	sweep          *item // the same, for the sweep of expired entries
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

// victim returns the entry to evict, never spared; nil: there is no other. It checks each entry
// at most twice, and few on average.
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

// expired returns the first expired entry among the next n, and how many of the n remain to be
// checked; nil: none of them is expired.
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
