// Keys: those of the objects being read, so that none comes twice.

package openai

import (
	"bytes"
	"hash/maphash"
)

// few is up to how many keys are compared one by one.
const few = 16

// A keyRef is where the inside of a key stands: in the body, or, with both
// offsets complemented, in the scanner's unescaped.
type keyRef struct{ start, end int32 }

func (s *scanner) key(r keyRef) []byte {
	if r.end < 0 {
		return s.unescaped[^r.start:^r.end]
	}
	return s.check.body[r.start:r.end]
}

// keyOffset is where the key's quote stands in the body, or otherwise if that
// was not kept.
func (s *scanner) keyOffset(r keyRef, otherwise int) int {
	if r.end < 0 {
		return otherwise
	}
	return int(r.start) - 1
}

// keyBit is one of 64 bits. The keys of OpenAI's objects mostly differ in it,
// so that hardly any are compared.
func keyBit(key []byte) uint64 {
	n := uint(len(key))
	if n == 0 {
		return 1
	}
	return 1 << ((n*7 + uint(key[0])*3 + uint(key[n-1])*5 + uint(key[n/2])) & 63)
}

// A keySet holds the keys of the objects being read, the innermost last.
type keySet struct {
	list  []keyRef
	table []int32 // of twice: 1 + index into list; reused
}

// keySeed makes it impossible to choose keys that collide in the table.
var keySeed = maphash.MakeSeed()

// twice returns the index of a key from first on that is there a second time,
// or -1. It takes linear time: a small object's keys were compared one by one
// already, those of a large one go through a hash table.
func (k *keySet) twice(s *scanner, first int) int {
	keys := k.list[first:]
	size := 4 * few
	for size < 2*len(keys) {
		size *= 2
	}
	if cap(k.table) < size {
		k.table = make([]int32, size)
	}
	table := k.table[:size]
	clear(table)
	for n, ref := range keys {
		key := s.key(ref)
		at := maphash.Bytes(keySeed, key) & uint64(size-1)
		for ; table[at] != 0; at = (at + 1) & uint64(size-1) {
			if bytes.Equal(s.key(keys[table[at]-1]), key) {
				return first + n
			}
		}
		table[at] = int32(n + 1)
	}
	return -1
}
