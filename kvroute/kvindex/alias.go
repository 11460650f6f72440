// Alias: blocks of a worker that have several of the engine's hashes.

package kvindex

// An alias is one of several hashes that stand for the same block of a worker. All of them, the
// block's own included, have counts of their own here. The block has the sums: where a sum is 0, so
// is each count.
type alias struct {
	own    uint64 // the block's own hash
	counts counts
}

// addAlias notes that a hash stands for a block that has another one.
func (h *holding) addAlias(b *block, hash uint64) {
	if h.aliases == nil {
		h.aliases = make(map[uint64]alias)
	}
	if own := b.hash(); b.counts&shared == 0 {
		if b.counts != 0 {
			h.aliases[own] = alias{own, b.counts}
		}
		b.counts |= shared
	}
	h.aliases[hash] = alias{own: b.hash()}
	h.others++
}

// storeAlias counts one more for one of the hashes of a block.
func (h *holding) storeAlias(hash, own uint64, t Tier) {
	c := h.aliases[hash].counts
	c.store(t)
	h.aliases[hash] = alias{own, c}
}

// removeAlias counts one less for one of the hashes of a block. gone is how many of the hashes are
// no longer known, the block's own not counted; false: there was none to take away.
func (h *holding) removeAlias(hash uint64, t Tier) (gone int, ok bool) {
	w := h.aliases[hash]
	if !w.counts.remove(t) {
		return 0, false
	}
	if w.counts != 0 {
		h.aliases[hash] = w
		return 0, true
	}
	delete(h.aliases, hash)
	if w.own == hash {
		return 0, true
	}
	h.others--
	return 1, true
}
