// SentencePiece's table of replacements for characters, as the normalizer Precompiled holds it.

package tokenize

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// charsmap replaces strings by the table that comes with a SentencePiece model, mostly its own form
// of NFKC (nmt_nfkc). Immutable.
//
// Keys are looked up as the reference library does, not as SentencePiece does. Of a grapheme
// cluster of less than six bytes, the shortest key that it begins with is used, and its value
// replaces the whole cluster. Of longer clusters, each character is looked up by itself.
type charsmap struct {
	u      *unicodeTables
	trie   []uint32 // of the keys: a double array as darts-clone builds it
	values []byte   // UTF-8, each ends in NUL
	ascii  [utf8.RuneSelf]int32
	growth int // how many times as long as its key a value may be
}

// In charsmap.ascii: the character has no value of its own.
const asciiStays = -1

// longCluster is the size in bytes from which clusters are no longer looked up as a whole.
const longCluster = 6

// readCharsmap reads precompiled_charsmap: base64 of a uint32, the bytes of the trie, then the trie
// in units of 32 bits, then the values; little-endian.
func readCharsmap(u *unicodeTables, encoded string) (*charsmap, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap: %w", err)
	}
	if len(data) < 4 {
		return nil, errors.New("precompiled_charsmap: no table")
	}
	size := int64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size = size / 4 * 4; size < 4 || size > int64(len(data)) {
		return nil, fmt.Errorf("precompiled_charsmap: a trie of %d bytes, and %d are there", size, len(data))
	}
	m := &charsmap{u: u, trie: make([]uint32, size/4), values: data[size:]}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.Valid(m.values) {
		return nil, errors.New("precompiled_charsmap: values that are no UTF-8")
	}
	if err := m.measure(); err != nil {
		return nil, err
	}
	for c := range m.ascii {
		m.ascii[c] = asciiStays
		if at, ok := m.find([]byte{byte(c)}); ok {
			m.ascii[c] = int32(at)
		}
	}
	return m, nil
}

// A unit has the node's label in its lowest eight bits, a bit that says whether a key ends there, a
// bit that says whether the offset is shifted by another eight, and the offset. The highest bit
// marks the unit of a value.
const (
	dartsEnds  = 1 << 8
	dartsFar   = 1 << 9
	dartsValue = 1 << 31
	dartsLabel = dartsValue | 0xff
)

func dartsOffset(unit uint32) uint32 { return unit >> 10 << (unit & dartsFar >> 6) }

// step follows byte c from a place of the trie; false where that leads nowhere.
func (m *charsmap) step(at uint32, c byte) (to uint32, ends, ok bool) {
	at ^= uint32(c)
	if c == 0 || int64(at) >= int64(len(m.trie)) || m.trie[at]&dartsLabel != uint32(c) {
		return 0, false, false
	}
	unit := m.trie[at]
	return at ^ dartsOffset(unit), unit&dartsEnds != 0, true
}

// value is the place of the value of the key that ends at a place of the trie; false where it has
// none.
func (m *charsmap) value(at uint32) (int, bool) {
	if int64(at) >= int64(len(m.trie)) {
		return 0, false
	}
	v := m.trie[at] &^ dartsValue
	return int(v), int64(v) <= int64(len(m.values)) && (int(v) == len(m.values) || utf8.RuneStart(m.values[v]))
}

// text is the value at a place.
func (m *charsmap) text(at int) []byte {
	end := bytes.IndexByte(m.values[at:], 0)
	if end < 0 {
		return m.values[at:]
	}
	return m.values[at : at+end]
}

// find is the value of the shortest key that s begins with.
func (m *charsmap) find(s []byte) (at int, ok bool) {
	node := dartsOffset(m.trie[0])
	for _, c := range s {
		next, ends, ok := m.step(node, c)
		if !ok {
			return 0, false
		}
		if node = next; ends {
			return m.value(node)
		}
	}
	return 0, false
}

// measure visits each node once, by the shortest way. It finds out whether all keys have values,
// and how many times as long a text may become.
func (m *charsmap) measure() error {
	seen := make([]bool, len(m.trie))
	level := []uint32{dartsOffset(m.trie[0])}
	for depth := 1; len(level) > 0; depth++ {
		var below []uint32
		for _, at := range level {
			for c := 1; c < 256; c++ {
				to, ends, ok := m.step(at, byte(c))
				if !ok || seen[at^uint32(c)] {
					continue
				}
				seen[at^uint32(c)] = true
				if !ends { // a key that begins with another key is never found
					below = append(below, to)
					continue
				}
				v, ok := m.value(to)
				if !ok {
					return errors.New("precompiled_charsmap: a key without a value")
				}
				m.growth = max(m.growth, (len(m.text(v))+depth-1)/depth)
			}
		}
		level = below
	}
	return nil
}

func (m *charsmap) keeps(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || m.ascii[c] != asciiStays {
			return false
		}
	}
	return true
}

func (m *charsmap) append(dst, text []byte, _ *scratch) []byte {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf && c != '\r') {
			if v := m.ascii[c]; v != asciiStays {
				dst = append(dst, m.text(int(v))...)
			} else {
				dst = append(dst, c)
			}
			i++
			continue
		}
		end := m.u.cluster(text, i)
		if end-i < longCluster {
			if v, ok := m.find(text[i:end]); ok {
				dst = append(dst, m.text(v)...)
				i = end
				continue
			}
		}
		for i < end {
			size := runeSize(text[i])
			if v, ok := m.find(text[i : i+size]); ok {
				dst = append(dst, m.text(v)...)
			} else {
				dst = append(dst, text[i:i+size]...)
			}
			i += size
		}
	}
	return dst
}
