// The word cache: a fixed table of words and their tokens, shared by all goroutines without a lock.

package tokenize

import (
	"math/bits"
	"sync/atomic"
)

const (
	maxKey   = 24 // bytes of a word that is kept
	maxIDs   = 8  // tokens of a word that is kept
	isPart   = 64 // in a key's size: not a word, but part of one
	slotBits = 16
)

// slot is one word, in one cache line. meta is `sequence<<16 | tokens<<8 | bytes`, and the sequence is
// odd while somebody writes: a reader that finds it odd, or changed when done, has found nothing.
type slot struct {
	meta atomic.Uint64
	key  [maxKey / 8]atomic.Uint64
	ids  [maxIDs / 2]atomic.Uint64
}

// wordCache never grows: 4 MiB. A word has two slots it may lie in.
type wordCache struct{ slots [1 << slotBits]slot }

// wordKey is a word's bytes as numbers, with its length, and its hash.
type wordKey struct {
	part [maxKey / 8]uint64
	size uint64
	hash uint64
}

// keyOf needs 1 to maxKey bytes. Words of one length have equal parts only if they are equal.
func keyOf(w []byte) (k wordKey) {
	k.size = uint64(len(w))
	switch n := len(w); {
	case n > 16:
		k.part = [3]uint64{load64(w), load64(w[8:]), load64(w[n-8:])}
	case n > 8:
		k.part = [3]uint64{load64(w), load64(w[n-8:])}
	case n == 8:
		k.part[0] = load64(w)
	case n >= 4:
		k.part[0] = uint64(load32(w)) | uint64(load32(w[n-4:]))<<32
	default:
		k.part[0] = uint64(w[0]) | uint64(w[n/2])<<8 | uint64(w[n-1])<<16
	}
	high, low := bits.Mul64(k.part[0]^0x9e3779b97f4a7c15, k.part[1]^k.size^0xe7037ed1a0b428db)
	high2, low2 := bits.Mul64(k.part[2]^high^0x8ebc6af09c88c6e3, low^0x589965cc75374cc3)
	k.hash = high2 ^ low2
	return k
}

func load64(b []byte) uint64 {
	_ = b[7]
	return uint64(load32(b)) | uint64(load32(b[4:]))<<32
}

func load32(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

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
		for i := 0; i < n; i += 2 {
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

// put keeps a word, in place of another; or not, where somebody else writes there.
func (c *wordCache) put(k *wordKey, ids []uint32) {
	if len(ids) > maxIDs {
		return
	}
	s := c.slotOf(k, 0)
	if s.meta.Load() != 0 {
		// The older of two goes by the toss of the hash and of how often the first was written.
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
