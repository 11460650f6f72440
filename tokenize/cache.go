// The word cache: a fixed table of words and their tokens, shared by all goroutines without a lock.

package tokenize

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

const (
	maxKey   = 24 // bytes of a word that is kept
	maxIDs   = 8  // tokens of a word that is kept
	isPart   = 64 // in a key's size: not a word, but part of one
	slotBits = 16
)

// slot is one word, in one cache line. meta is `sequence<<16 | tokens<<8 | bytes`, and the sequence
// is odd while somebody writes: a reader that finds it odd, or changed when done, has found
// nothing.
type slot struct {
	meta atomic.Uint64
	key  [maxKey / 8]atomic.Uint64
	ids  [maxIDs / 2]atomic.Uint64
}

// wordCache has a fixed size, 4 MiB. A word lies in one of two slots.
type wordCache struct{ slots [1 << slotBits]slot }

// wordKey is a word's bytes as numbers, with its length, and its hash.
type wordKey struct {
	part [maxKey / 8]uint64
	size uint64
	hash uint64
}

// set makes k the key of a word of 1 to maxKey bytes. It reads past the end of w, as far as w's
// capacity allows, and masks the excess, so that most words need no branch on their length: the
// processor predicts such a branch badly. It fills k in place, because returning a key copied it
// in pieces of other sizes than those in which it was written, and the processor stalled on that.
func (k *wordKey) set(w []byte) {
	n := len(w)
	switch {
	case n <= 8 && cap(w) >= 8:
		k.part[0], k.part[1], k.part[2] = load64(w[:8])&firstBytes(n), 0, 0
	case n > 8 && cap(w) >= maxKey:
		w = w[:maxKey]
		k.part[0], k.part[1], k.part[2] = load64(w), load64(w[8:])&firstBytes(n-8), load64(w[16:])&firstBytes(max(n-16, 0))
	default:
		var room [maxKey]byte
		copy(room[:], w)
		k.part[0], k.part[1], k.part[2] = load64(room[:]), load64(room[8:]), load64(room[16:])
	}
	k.size = uint64(n)
	k.hash = hashOf(k.part[0], k.part[1], k.size)
	if n > 16 {
		k.hash = hashOf(k.part[2], k.hash, k.size)
	}
}

func hashOf(a, b, size uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^size^0xe7037ed1a0b428db)
	return high ^ low
}

// firstBytes is a mask of the first n of eight bytes; n above eight means all.
func firstBytes(n int) uint64 { return 1<<(8*uint(n)) - 1 }

func load64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// slotOf is the first or second slot of a word; the two are neighbours.
func (c *wordCache) slotOf(k *wordKey, way uint64) *slot {
	return &c.slots[(k.hash^way)&(1<<slotBits-1)]
}

// append appends the tokens of a word that is known.
func (c *wordCache) append(dst []uint32, k *wordKey) ([]uint32, bool) {
	for way := range uint64(2) {
		s := c.slotOf(k, way)
		meta := s.meta.Load()
		if meta&0xff != k.size || meta>>16&1 != 0 || s.key[0].Load() != k.part[0] ||
			k.size&^isPart > 8 && (s.key[1].Load() != k.part[1] || s.key[2].Load() != k.part[2]) {
			continue
		}
		n, start := int(meta>>8&0xff), len(dst)
		if n == 1 { // as most
			dst = append(dst, uint32(s.ids[0].Load()))
		}
		for i := 0; i < n && n > 1; i += 2 {
			two := s.ids[i/2].Load()
			dst = append(dst, uint32(two))
			if i+1 < n {
				dst = append(dst, uint32(two>>32))
			}
		}
		if s.meta.Load() == meta {
			return dst, true
		}
		dst = dst[:start]
	}
	return dst, false
}

// put keeps a word in place of another. It does nothing if another goroutine is writing there.
func (c *wordCache) put(k *wordKey, ids []uint32) {
	if len(ids) > maxIDs {
		return
	}
	s := c.slotOf(k, 0)
	if s.meta.Load() != 0 {
		// Which of the two is replaced is chosen as if by chance: by the hash, and by how often
		// the first was written.
		s = c.slotOf(k, (k.hash>>40^s.meta.Load()>>17)&1)
	}
	meta := s.meta.Load()
	if meta>>16&1 != 0 || !s.meta.CompareAndSwap(meta, meta|1<<16) {
		return
	}
	for i, part := range k.part {
		s.key[i].Store(part)
	}
	for i := 0; i < len(ids); i += 2 {
		two := uint64(ids[i])
		if i+1 < len(ids) {
			two |= uint64(ids[i+1]) << 32
		}
		s.ids[i/2].Store(two)
	}
	s.meta.Store((meta>>16+2)<<16 | uint64(len(ids))<<8 | k.size)
}
