// Scanning: the objects and arrays of a body that are read and not only validated.

package openai

// maxMembers is how many members an object may have that is read: far beyond
// any use, and a bound on what is kept of a body.
const maxMembers = 1 << 17

// A scanner goes once over a body and stops at its first fault. It knows JSON
// and nothing of what a body says. On top of what its validator refuses, it
// refuses a key that comes twice in one of the objects that it walks over.
//
// Its methods read what stands at pos and move pos behind it; after a fault
// they leave it where it was.
type scanner struct {
	check validator
	pos   int // the next byte
	depth int // arrays and objects open at pos
	keys  keySet

	unescaped []byte // keys and names that had to be decoded; they are sub-slices of it
}

// reset forgets the body and keeps the memory, unless it is far more than bodies
// use.
func (s *scanner) reset() {
	s.check = validator{}
	s.pos, s.depth = 0, 0
	s.keys.list = emptied(s.keys.list, 4096)
	if cap(s.keys.table) > 16384 {
		s.keys.table = nil
	}
	s.unescaped = emptied(s.unescaped, 16384)
}

// emptied is list without its elements, and without its memory if that is for
// more than most of them.
func emptied[E any](list []E, most int) []E {
	if cap(list) > most {
		return nil
	}
	return list[:0]
}

func (s *scanner) body() []byte { return s.check.body }

func (s *scanner) failed() bool { return s.check.failed() }

// stop notes a fault, if it is the first of the body.
func (s *scanner) stop(kind faultKind, at int, what string) { s.check.stop(kind, at, what) }

// missing stops at an object that lacks a member.
func (s *scanner) missing(object int, name string) {
	s.stop(faultMissing, object, "")
	s.check.fault.param = name
}

// since is what was read from start on.
func (s *scanner) since(start int) Span { return Span{int32(start), int32(s.pos)} }

// members is the place of a walk over one object. Made by object, moved by member.
type members struct {
	key   []byte // the key of the member at hand, decoded; valid until the next
	at    Span   // that key in the body, quotes included
	begun bool
	first int    // the object's first key in the keySet
	seen  uint64 // a bit for every key so far, by keyBit
}

// start is where the member at hand begins, at its key's quote.
func (m *members) start() int { return int(m.at.Start) }

// object begins a walk over the object at pos:
//
//	m := s.object()
//	for s.member(&m) {
//		... read the value at pos ...
//	}
//
// The loop also ends after a fault. A fault within a member is told with the
// member's key before its place, and so on outwards: messages[2].content.
func (s *scanner) object() members {
	m := members{first: len(s.keys.list)}
	if s.enter() {
		s.pos++
	}
	return m
}

func (s *scanner) enter() bool {
	if s.depth++; s.depth > maxDepth {
		s.check.broken(s.pos, tooDeep)
		return false
	}
	return true
}

// member goes to the value of the object's next member. A key that the object
// has had before is a fault; keys are compared decoded.
func (s *scanner) member(m *members) bool {
	if s.failed() {
		s.check.fault.in(m.key)
		return false
	}
	b, i := s.check.body, s.check.space(s.pos)
	if i >= len(b) {
		s.check.broken(i, cutOff)
		return false
	}
	if b[i] == '}' {
		s.leaveObject(m, i)
		return false
	}
	if m.begun {
		if b[i] != ',' {
			s.check.broken(i, "expected ',' or '}' after the value of a member")
			return false
		}
		i = s.check.space(i + 1)
	}
	m.begun = true
	if i >= len(b) || b[i] != '"' {
		s.check.noKey(i)
		return false
	}
	end, escaped := s.check.str(i)
	if end < 0 {
		return false
	}
	m.at = Span{int32(i), int32(end)}
	if s.pos = s.check.colon(end); s.pos < 0 {
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
func (s *scanner) leaveObject(m *members, i int) {
	if len(s.keys.list)-m.first > few {
		if twice := s.keys.twice(s, m.first); twice >= 0 {
			ref := s.keys.list[twice]
			s.stop(faultDuplicate, s.keyOffset(ref, i), "")
			s.check.fault.in(s.key(ref))
			return
		}
	}
	s.keys.list = s.keys.list[:m.first]
	s.depth--
	s.pos = i + 1
}

// fresh notes the key and tells whether the object has not had it before. In
// an object of more than few keys that is only known at its end.
func (s *scanner) fresh(m *members, ref keyRef) bool {
	k := &s.keys
	n := len(k.list) - m.first
	if bit := keyBit(m.key); m.seen&bit == 0 {
		m.seen |= bit
	} else if n < few {
		for _, other := range k.list[m.first:] {
			if string(s.key(other)) == string(m.key) {
				s.stop(faultDuplicate, m.start(), "")
				s.check.fault.in(m.key)
				return false
			}
		}
	}
	if n == maxMembers {
		s.stop(faultOther, m.start(), "An object has more than 131072 members")
		s.check.fault.in(m.key)
		return false
	}
	k.list = append(k.list, ref)
	return true
}

// elements is the place of a walk over one array. Made by array, moved by element.
type elements struct {
	index int // of the element at hand; -1 before the first
}

// array begins a walk over the array at pos, as object does.
func (s *scanner) array() elements {
	if s.enter() {
		s.pos++
	}
	return elements{index: -1}
}

// element goes to the array's next element.
func (s *scanner) element(e *elements) bool {
	if s.failed() {
		s.check.fault.inElement(e.index)
		return false
	}
	b, i := s.check.body, s.check.space(s.pos)
	if i >= len(b) {
		s.check.broken(i, cutOff)
		return false
	}
	if b[i] == ']' {
		s.depth--
		s.pos = i + 1
		return false
	}
	if e.index >= 0 {
		if b[i] != ',' {
			s.check.broken(i, "expected ',' or ']' after an element")
			return false
		}
		i = s.check.space(i + 1)
	}
	if i < len(b) && b[i] == ']' {
		s.check.noValue(i)
		return false
	}
	e.index++
	s.pos = i
	return true
}
