// Members: the objects and arrays of a body that are read and not only validated.
package openai

import (
	"bytes"
	"hash/maphash"
)

// maxMembers is how many members an object may have that is read: far beyond
// any use, and a bound on what is kept of a body.
const maxMembers = 1 << 17

// members is the place of a walk over one object. Made by object, moved by member.
type members struct {
	key   []byte // the key of the member at hand, decoded; valid until the next
	start int    // where that member begins, at its key's quote
	begun bool
	first int    // the object's first key in the keySet
	seen  uint64 // a bit for every key so far, by keyBit
}

// object begins a walk over the object at pos:
//
//	m := s.object()
//	for s.member(&m) {
//		... read the value at pos ...
//	}
//
// The loop also ends after a fault, with m.key the member that has it.
func (s *Scanner) object() members {
	m := members{first: len(s.keys.list)}
	if s.enter() {
		s.pos++
	}
	return m
}

func (s *Scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		s.broken(s.pos, tooDeep)
		return false
	}
	return true
}

// member goes to the value of the object's next member. A key that the object
// has had before is a fault; keys are compared decoded.
func (s *Scanner) member(m *members) bool {
	if s.failed() {
		return false
	}
	b, i := s.Body, s.space(s.pos)
	if i >= len(b) {
		s.broken(i, cutOff)
		return false
	}
	if b[i] == '}' {
		return s.leaveObject(m, i)
	}
	if m.begun {
		if b[i] != ',' {
			s.broken(i, "expected ',' or '}' after the value of a member")
			return false
		}
		i = s.space(i + 1)
	}
	m.begun = true
	if i >= len(b) || b[i] != '"' {
		s.noKey(i)
		return false
	}
	m.start = i
	end, escaped := s.Str(i)
	if end < 0 {
		return false
	}
	if s.pos = s.colon(end); s.pos < 0 {
		s.pos = i
		return false
	}
	m.key = b[i+1 : end-1]
	ref := keyRef{int32(i + 1), int32(end - 1)}
	if escaped {
		at := len(s.unescaped)
		s.unescaped = AppendUnescaped(s.unescaped, m.key)
		m.key = s.unescaped[at:]
		ref = keyRef{^int32(at), ^int32(len(s.unescaped))}
	}
	return s.fresh(m, ref)
}

// leaveObject ends the walk at the brace at i.
func (s *Scanner) leaveObject(m *members, i int) bool {
	if len(s.keys.list)-m.first > few {
		if twice := s.keys.twice(s, m.first); twice >= 0 {
			ref := s.keys.list[twice]
			m.key = s.key(ref)
			s.stop(faultDuplicate, s.keyOffset(ref, i), "")
			return false
		}
	}
	s.keys.list = s.keys.list[:m.first]
	s.depth--
	s.pos = i + 1
	return false
}

// fresh notes the key and tells whether the object has not had it before. In
// an object of more than few keys that is only known at its end.
func (s *Scanner) fresh(m *members, ref keyRef) bool {
	k := &s.keys
	n := len(k.list) - m.first
	if bit := keyBit(m.key); m.seen&bit == 0 {
		m.seen |= bit
	} else if n < few {
		for _, other := range k.list[m.first:] {
			if bytes.Equal(s.key(other), m.key) {
				s.stop(faultDuplicate, m.start, "")
				return false
			}
		}
	}
	if n == maxMembers {
		s.stop(faultOther, m.start, "An object has more than 131072 members")
		return false
	}
	k.list = append(k.list, ref)
	return true
}

// few is up to how many keys are compared one by one.
const few = 16

// A keyRef is where a key stands: in the body, or complemented in unescaped.
type keyRef struct{ start, end int32 }

func (s *Scanner) key(r keyRef) []byte {
	if r.end < 0 {
		return s.unescaped[^r.start:^r.end]
	}
	return s.Body[r.start:r.end]
}

// keyOffset is where the key stands in the body, or else if that was not kept.
func (s *Scanner) keyOffset(r keyRef, otherwise int) int {
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

// keySeed makes the table's collisions nobody's to choose.
var keySeed = maphash.MakeSeed()

// twice returns the index of a key from first on that is there a second time,
// or -1. Linear: few keys were compared already, more go through a hash table.
func (k *keySet) twice(s *Scanner, first int) int {
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

// elements is the place of a walk over one array. Made by array, moved by element.
type elements struct {
	index int // of the element at hand; -1 before the first
}

// array begins a walk over the array at pos, as object does.
func (s *Scanner) array() elements {
	if s.enter() {
		s.pos++
	}
	return elements{index: -1}
}

// element goes to the array's next element.
func (s *Scanner) element(e *elements) bool {
	if s.failed() {
		return false
	}
	b, i := s.Body, s.space(s.pos)
	if i >= len(b) {
		s.broken(i, cutOff)
		return false
	}
	if b[i] == ']' {
		s.depth--
		s.pos = i + 1
		return false
	}
	if e.index >= 0 {
		if b[i] != ',' {
			s.broken(i, "expected ',' or ']' after an element")
			return false
		}
		i = s.space(i + 1)
	}
	if i < len(b) && b[i] == ']' {
		s.noValue(i)
		return false
	}
	e.index++
	s.pos = i
	return true
}
