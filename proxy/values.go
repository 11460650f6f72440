// Values: the single values of a body, judged by their type.
package proxy

// peek is the first byte of the value at pos, 0 at the end of the body.
func (s *jsonScanner) peek() byte {
	if s.pos < len(s.body) {
		return s.body[s.pos]
	}
	return 0
}

// skip validates the value at pos and returns where it stands.
func (s *jsonScanner) skip() span {
	end := s.value(s.pos, s.depth)
	if end < 0 {
		return span{}
	}
	at := span{int32(s.pos), int32(end)}
	s.pos = end
	return at
}

// null skips the value at pos if it is null.
func (s *jsonScanner) null() bool { return s.peek() == 'n' && s.skip().given() }

// boolean reads true or false, or null for false.
func (s *jsonScanner) boolean() (v bool, at span) {
	switch s.peek() {
	case 't', 'f', 'n':
		v = s.body[s.pos] == 't'
		return v, s.skip()
	}
	s.unlike("true or false")
	return false, span{}
}

// name reads a string that means something to us and returns it decoded. It
// is valid as long as the body and until the next request is parsed.
func (s *jsonScanner) name() (name []byte, at span) {
	if s.peek() != '"' {
		s.unlike("a string")
		return nil, span{}
	}
	end, escaped := s.str(s.pos)
	if end < 0 {
		return nil, span{}
	}
	at = span{int32(s.pos), int32(end)}
	s.pos = end
	name = s.body[at.start+1 : at.end-1 : at.end-1]
	if escaped {
		from := len(s.unescaped)
		s.unescaped = appendUnescaped(s.unescaped, name)
		name = s.unescaped[from:len(s.unescaped):len(s.unescaped)]
	}
	return name, at
}

// unlike stops at a value of a type that it may not have; a value that is no
// JSON is told as that.
func (s *jsonScanner) unlike(want string) {
	if s.value(s.pos, s.depth) >= 0 {
		s.stop(faultType, s.pos, want)
	}
}

// optional takes any value; null counts as absent.
func (s *jsonScanner) optional() span {
	if s.null() {
		return span{}
	}
	return s.skip()
}

// real takes a number, or null for absent.
func (s *jsonScanner) real() span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("a number")
		return span{}
	}
	return s.optional()
}

// integer takes a number without fraction and exponent, or null for absent.
// A fraction of zeros, as in 16.0, is none.
func (s *jsonScanner) integer() span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("an integer")
		return span{}
	}
	at := s.optional()
	fraction := false
	for _, c := range at.of(s.body) {
		if c == '.' {
			fraction = true
		} else if c|0x20 == 'e' || fraction && c != '0' {
			s.stop(faultType, int(at.start), "an integer")
			break
		}
	}
	return at
}
