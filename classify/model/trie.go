// Double-array tries that are used in place: the pieces of the tokenizer and its normalisation.

package model

import "encoding/binary"

// trie is a double array over bytes as darts-clone builds it, 32-bit little-endian units:
// the node's label (bits 0-7), bit 8 set if a key ends here, bit 9 set if the offset is shifted
// left by 8, offset (bits 10-30). The child by byte c of the node at i lies at i ^ offset ^ c, if
// its label is c. A key's value is the unit at i ^ offset, bit 31 set.
//
// A walk never leaves the array whatever its bytes say: a place beyond the end is no child.
type trie []byte

const (
	trieEnds  = 1 << 8
	trieValue = 1 << 31
	trieLabel = trieValue | 0xff
)

// unit returns the unit at i; beyond the end one that no label matches.
func (t trie) unit(i uint32) uint32 {
	if at := uint64(i) * 4; at+4 <= uint64(len(t)) {
		return binary.LittleEndian.Uint32(t[at:])
	}
	return trieValue
}

// trieOffset returns the offset that a unit holds.
func trieOffset(unit uint32) uint32 { return (unit &^ trieValue) >> 10 << ((unit & (1 << 9)) >> 6) }

// root returns where the walk of a key begins.
func (t trie) root() uint32 { return trieOffset(t.unit(0)) }

// step follows byte c from the children at base. ends is set if a key ends there, whose value is
// t.value(next).
func (t trie) step(base uint32, c byte) (next uint32, ends, ok bool) {
	place := base ^ uint32(c)
	unit := t.unit(place)
	if unit&trieLabel != uint32(c) || c == 0 {
		return 0, false, false
	}
	return place ^ trieOffset(unit), unit&trieEnds != 0, true
}

// value returns the value of the key that ended with children at base.
func (t trie) value(base uint32) uint32 { return t.unit(base) &^ trieValue }

// longest returns the value and length of the longest key that text begins with; length 0 if none.
func (t trie) longest(text []byte) (value uint32, length int) {
	base := t.root()
	for i, c := range text {
		next, ends, ok := t.step(base, c)
		if !ok {
			break
		}
		base = next
		if ends {
			value, length = t.value(base), i+1
		}
	}
	return value, length
}
