// Values: the single values of a body, judged by their type.
package openai

// peek is the first byte of the value at pos, 0 at the end of the body.
func (s *Scanner) peek() byte {
	if s.pos < len(s.Body) {
		return s.Body[s.pos]
	}
	return 0
}

// skip validates the value at pos and returns where it stands.
func (s *Scanner) skip() Span {
	end := s.Value(s.pos, s.depth)
	if end < 0 {
		return Span{}
	}
	at := Span{int32(s.pos), int32(end)}
	s.pos = end
	return at
}

// null skips the value at pos if it is null.
func (s *Scanner) null() bool { return s.peek() == 'n' && s.skip().Given() }

// boolean reads true or false, or null for false.
func (s *Scanner) boolean() (v bool, at Span) {
	switch s.peek() {
	case 't', 'f', 'n':
		v = s.Body[s.pos] == 't'
		return v, s.skip()
	}
	s.unlike("true or false")
	return false, Span{}
}

// name reads a string that means something to us and returns it decoded. It
// is valid as long as the body and until the next request is parsed.
func (s *Scanner) name() (name []byte, at Span) {
	if s.peek() != '"' {
		s.unlike("a string")
		return nil, Span{}
	}
	end, escaped := s.Str(s.pos)
	if end < 0 {
		return nil, Span{}
	}
	at = Span{int32(s.pos), int32(end)}
	s.pos = end
	name = s.Body[at.Start+1 : at.End-1 : at.End-1]
	if escaped {
		from := len(s.unescaped)
		s.unescaped = AppendUnescaped(s.unescaped, name)
		name = s.unescaped[from:len(s.unescaped):len(s.unescaped)]
	}
	return name, at
}

// unlike stops at a value of a type that it may not have; a value that is no
// JSON is told as that.
func (s *Scanner) unlike(want string) {
	if s.Value(s.pos, s.depth) >= 0 {
		s.stop(faultType, s.pos, want)
	}
}

// optional takes any value; null counts as absent.
func (s *Scanner) optional() Span {
	if s.null() {
		return Span{}
	}
	return s.skip()
}

// real takes a number, or null for absent.
func (s *Scanner) real() Span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("a number")
		return Span{}
	}
	return s.optional()
}

// integer takes a number without fraction and exponent, or null for absent.
// A fraction of zeros, as in 16.0, is none.
func (s *Scanner) integer() Span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("an integer")
		return Span{}
	}
	at := s.optional()
	fraction := false
	for _, c := range at.Of(s.Body) {
		if c == '.' {
			fraction = true
		} else if c|0x20 == 'e' || fraction && c != '0' {
			s.stop(faultType, int(at.Start), "an integer")
			break
		}
	}
	return at
}
