// Values: the single values of a body, judged by their type.

package openai

// peek is the first byte of the value at pos, 0 at the end of the body.
func (s *scanner) peek() byte {
	if s.pos < len(s.check.body) {
		return s.check.body[s.pos]
	}
	return 0
}

// skip checks the value at pos and returns where it stands.
func (s *scanner) skip() Span {
	end := s.check.value(s.pos, s.depth)
	if end < 0 {
		return Span{}
	}
	at := Span{int32(s.pos), int32(end)}
	s.pos = end
	return at
}

// null skips the value at pos if it is null, and tells whether it was.
func (s *scanner) null() bool { return s.peek() == 'n' && s.skip().Given() }

// boolean reads true or false, or null for false.
func (s *scanner) boolean() (v bool, at Span) {
	switch s.peek() {
	case 't', 'f', 'n':
		v = s.check.body[s.pos] == 't'
		return v, s.skip()
	}
	s.unlike("true or false")
	return false, Span{}
}

// name reads a string that means something to us and returns it decoded. It
// is valid as long as the body and until the scanner begins another.
func (s *scanner) name() (name []byte, at Span) {
	if s.peek() != '"' {
		s.unlike("a string")
		return nil, Span{}
	}
	end, escaped := s.check.str(s.pos)
	if end < 0 {
		return nil, Span{}
	}
	at = Span{int32(s.pos), int32(end)}
	s.pos = end
	name = s.check.body[at.Start+1 : at.End-1 : at.End-1]
	if escaped {
		from := len(s.unescaped)
		s.unescaped = AppendUnescaped(s.unescaped, name)
		name = s.unescaped[from:len(s.unescaped):len(s.unescaped)]
	}
	return name, at
}

// nameIfString reads a string as name does and skips anything else.
func (s *scanner) nameIfString() []byte {
	if s.peek() == '"' {
		name, _ := s.name()
		return name
	}
	s.skip()
	return nil
}

// unlike stops at a value of a type that it may not have. A value that is no
// JSON is told as that instead.
func (s *scanner) unlike(want string) {
	if s.check.value(s.pos, s.depth) >= 0 {
		s.stop(faultType, s.pos, want)
	}
}

// optional takes any value; null counts as absent.
func (s *scanner) optional() Span {
	if s.null() {
		return Span{}
	}
	return s.skip()
}

// real takes a number, or null for absent.
func (s *scanner) real() Span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("a number")
		return Span{}
	}
	return s.optional()
}

// integer takes a number without fraction and exponent, or null for absent.
// 16.0 passes: a fraction of zeros is none.
func (s *scanner) integer() Span {
	if c := s.peek(); c != '-' && c-'0' > 9 && c != 'n' {
		s.unlike("an integer")
		return Span{}
	}
	at := s.optional()
	fraction := false
	for _, c := range at.Of(s.check.body) {
		if c == '.' {
			fraction = true
		} else if c|0x20 == 'e' || fraction && c != '0' {
			s.stop(faultType, int(at.Start), "an integer")
			break
		}
	}
	return at
}

// located returns where the value stands that read reads; null counts as absent
// and is not handed to read.
func (s *scanner) located(read func()) Span {
	start := s.pos
	if s.null() {
		return Span{}
	}
	read()
	if s.failed() {
		return Span{}
	}
	return s.since(start)
}

// orNull returns where null stands, or else what read returns.
func (s *scanner) orNull(read func() Span) Span {
	if s.peek() == 'n' {
		return s.skip()
	}
	return read()
}

// locatedOrNull is located where the place of null counts, too.
func (s *scanner) locatedOrNull(read func()) Span {
	if s.peek() == 'n' {
		return s.skip()
	}
	return s.located(read)
}
