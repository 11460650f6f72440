// Alias: blocks of a worker that have several of the engine's hashes.

package kvindex

// An alias is one of several hashes that stand for the same block of a worker.
// All of them, the block's own too, have their own counts here; the block has
// the sum, and what it does not count none of them does.
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

// removeAlias counts one less for one of the hashes of a block. gone is how many
// of them are known no more, but for its own; false: there was none.
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
