// Holding: all that a worker is known to hold, and how it is found by the engine's hashes.

package kvindex

import (
	"math/bits"
	"slices"
	"unsafe"
)

// holding is all shares of a worker, and where each hash is in them.
//
// places is a hash table; it has for each block the number of its share (24 bits), its depth in
// the prompt (24) and a part of its hash (16). A place that a block left stays
// in the way of those behind it until the one after it is empty.
type holding struct {
	shares numbered[share]
	places []uint64
	blocks int
	used   int // places of the table that are not empty
	expect int // blocks that are likely to come to be held
	room   int // blocks that there is memory for, for bytes
	tally  int // bytes as they were counted last

	aliases map[uint64]alias // by hash; nil: none
	others  int              // hashes in aliases that are not their block's own

	work []uint32 // of settle, kept for the next time
}

const (
	left     = 1 // a place that was left
	maxDepth = 1<<24 - 1
)

// spread spreads hashes that are none.
func spread(hash uint64) uint64 {
	hash ^= hash >> 32
	hash *= 0x9E3779B97F4A7C15
	return hash ^ hash>>29
}

func (h *holding) home(spread uint64) int {
	hi, _ := bits.Mul64(spread, uint64(len(h.places)))
	return int(hi)
}

func entryOf(share uint32, depth int32, hash uint64) uint64 {
	return uint64(share)<<40 | uint64(depth)<<16 | spread(hash)&0xffff
}

func shareOf(entry uint64) uint32 { return uint32(entry >> 40) }
func depthOf(entry uint64) int32  { return int32(entry >> 16 & maxDepth) }

// block returns what an entry of the table stands for.
func (h *holding) block(entry uint64) (s *share, i int) {
	s = h.shares.at(shareOf(entry))
	return s, int(depthOf(entry) - s.depth)
}

// find returns the entry of a hash, and its place; 0 and where it would go if
// there is none. There is a free place (reserve).
func (h *holding) find(hash uint64) (entry uint64, place int) {
	if len(h.places) == 0 {
		return 0, -1
	}
	p := spread(hash)
	tag := p & 0xffff
	place = -1
	for i := h.home(p); ; i = next(i, len(h.places)) {
		e := h.places[i]
		switch {
		case e == 0:
			if place < 0 {
				place = i
			}
			return 0, place
		case e == left:
			if place < 0 {
				place = i
			}
		case e&0xffff == tag:
			if s, k := h.block(e); s.blocks[k].hash() == hash {
				return e, i
			}
		}
	}
}

// locate is find that knows a block by all of its hashes.
func (h *holding) locate(hash uint64) (entry uint64, place int) {
	entry, place = h.find(hash)
	if entry == 0 && h.aliases != nil {
		if t, ok := h.aliases[hash]; ok {
			entry, _ = h.find(t.own)
		}
	}
	return entry, place
}

// touch reads where the search for a hash begins, so that several wait for
// memory together.
func (h *holding) touch(hash uint64) uint64 {
	if len(h.places) == 0 {
		return 0
	}
	return h.places[h.home(spread(hash))]
}

// reserve makes room in the table for n more blocks: at most 3/4 of its places
// are used, and half or less after a new layout.
func (h *holding) reserve(n int) {
	if 4*(h.used+n) > 3*len(h.places) {
		h.layOut(n)
	}
}

// shrink gives memory of the table back where hardly any of it is in use.
func (h *holding) shrink() {
	if len(h.places) > 1<<10 && 16*h.blocks < len(h.places) {
		h.layOut(0)
	}
}

// layOut makes the table anew, with room for n more blocks.
func (h *holding) layOut(n int) {
	h.places = make([]uint64, max(16, 2*max(h.blocks+n, min(h.expect, 2*h.blocks))))
	h.used = h.blocks
	h.shares.each(func(number uint32, s *share) {
		for i := range s.blocks {
			hash := s.blocks[i].hash()
			k := h.home(spread(hash))
			for h.places[k] != 0 {
				k = next(k, len(h.places))
			}
			h.places[k] = entryOf(number, s.depth+int32(i), hash)
		}
	})
}

// add appends a block to a share, and has place, which find returned, say so.
func (h *holding) add(number uint32, place int, hash uint64, more int) {
	s := h.shares.at(number)
	if len(s.blocks) == cap(s.blocks) {
		h.room -= s.room()
		s.blocks, s.lost = slices.Grow(s.blocks, min(more, maxRun-len(s.blocks))), 0
		h.room += s.room()
	}
	if h.places[place] == 0 {
		h.used++
	}
	h.places[place] = entryOf(number, s.depth+int32(len(s.blocks)), hash)
	s.blocks = append(s.blocks, block{low: uint32(hash), high: uint32(hash >> 32)})
	h.blocks++
}

// forget takes the last block of a share out of the table.
func (h *holding) forget(number uint32, s *share) {
	n := len(s.blocks) - 1
	hash := s.blocks[n].hash()
	entry := entryOf(number, s.depth+int32(n), hash)
	s.blocks = s.blocks[:n]
	h.blocks--
	i := h.home(spread(hash))
	for h.places[i] != entry {
		i = next(i, len(h.places))
	}
	h.places[i] = left
	if h.places[next(i, len(h.places))] != 0 {
		return
	}
	for h.places[i] == left {
		h.places[i] = 0
		h.used--
		if i--; i < 0 {
			i = len(h.places) - 1
		}
	}
}

// moved has the table say that blocks are in another share than before.
func (h *holding) moved(from, to uint32) {
	s := h.shares.at(to)
	for i := range s.blocks {
		hash := s.blocks[i].hash()
		depth := s.depth + int32(i)
		k := h.home(spread(hash))
		for entry := entryOf(from, depth, hash); h.places[k] != entry; {
			k = next(k, len(h.places))
		}
		h.places[k] = entryOf(to, depth, hash)
	}
}

// fit gives memory back where less than half is in use; false: more is.
func (h *holding) fit(s *share) bool {
	if 2*len(s.blocks)+8 >= s.room() {
		return false
	}
	h.room -= s.room()
	s.blocks, s.lost = slices.Clone(s.blocks), 0
	h.room += s.room()
	return true
}

// count has the index know how much memory the worker takes.
func (w *Worker) count() {
	now := w.held.bytes()
	w.index.shares += now - w.held.tally
	w.held.tally = now
}

func (h *holding) bytes() int {
	const (
		aBlock  = int(unsafe.Sizeof(block{}))
		anAlias = 48 // of a map
	)
	return h.shares.bytes(int(unsafe.Sizeof(share{}))) + 8*len(h.places) + aBlock*h.room + anAlias*len(h.aliases)
}
