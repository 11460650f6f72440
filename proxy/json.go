// JSON: one strict pass over a request body, without a copy and without an allocation.
package proxy

// maxDepth is how deep arrays and objects may nest, the outermost included.
const maxDepth = 64

// A span is the half-open byte range [start, end) of a body. The zero span
// means absent: no value begins at offset 0, the top-level object does.
type span struct{ start, end int32 }

// given tells whether the span's value is in the body.
func (s span) given() bool { return s.end != 0 }

// of returns the span's bytes: a sub-slice of body, nil if absent.
func (s span) of(body []byte) []byte {
	if !s.given() {
		return nil
	}
	return body[s.start:s.end:s.end]
}

// A jsonScanner goes once over a body and stops at its first fault. It accepts
// what RFC 8259 does and refuses what readers disagree about: invalid UTF-8,
// lone surrogates, deep nesting and, in objects read with members, a key that
// comes twice.
//
// The methods that take and return an offset (value, str, ...) return -1 after
// a fault; those that move pos leave it where it was.
type jsonScanner struct {
	body  []byte
	pos   int // the next byte
	depth int // arrays and objects open at pos
	fault fault
	keys  keySet

	unescaped []byte // keys and names that had to be decoded
}

// failed tells whether there was a fault; from then on nothing moves.
func (s *jsonScanner) failed() bool { return s.fault.kind != 0 }

// stop notes the first fault of the body.
func (s *jsonScanner) stop(kind faultKind, at int, what string) int {
	if s.fault.kind == 0 {
		s.fault = fault{kind: kind, at: at, what: what}
	}
	return -1
}

// broken stops at bytes that are no JSON.
func (s *jsonScanner) broken(at int, what string) int { return s.stop(faultSyntax, at, what) }

// space returns the offset of the first byte from i on that is no white space.
func (s *jsonScanner) space(i int) int {
	b := s.body
	for ; i < len(b) && b[i] <= ' '; i++ {
		if c := b[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
	}
	return i
}

// value validates the value that begins at i, depth levels deep, and returns
// the offset behind it. It recurses at most maxDepth deep.
func (s *jsonScanner) value(i, depth int) int {
	if i >= len(s.body) {
		return s.broken(i, cutOff)
	}
	switch c := s.body[i]; c {
	case '"':
		end, _ := s.str(i)
		return end
	case '{':
		return s.objectValue(i, depth+1)
	case '[':
		return s.arrayValue(i, depth+1)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return s.number(i)
		}
		return s.noValue(i)
	}
}

func (s *jsonScanner) objectValue(i, depth int) int {
	if depth > maxDepth {
		return s.broken(i, tooDeep)
	}
	b := s.body
	if i = s.space(i + 1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return s.noKey(i)
		}
		if i, _ = s.str(i); i < 0 {
			return -1
		}
		if i = s.colon(i); i < 0 {
			return -1
		}
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		if i = s.space(i); i >= len(b) {
			return s.broken(i, cutOff)
		}
		switch b[i] {
		case ',':
			i = s.space(i + 1)
		case '}':
			return i + 1
		default:
			return s.broken(i, "expected ',' or '}' after the value of a member")
		}
	}
}

func (s *jsonScanner) arrayValue(i, depth int) int {
	if depth > maxDepth {
		return s.broken(i, tooDeep)
	}
	b := s.body
	if i = s.space(i + 1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 {
			return -1
		}
		if i = s.space(i); i >= len(b) {
			return s.broken(i, cutOff)
		}
		switch b[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.broken(i, "expected ',' or ']' after an element")
		}
	}
}

// colon returns the offset of the value behind a key that ended before i.
func (s *jsonScanner) colon(i int) int {
	if i < len(s.body) && s.body[i] != ':' {
		i = s.space(i)
	}
	if i >= len(s.body) {
		return s.broken(i, cutOff)
	}
	if s.body[i] != ':' {
		return s.broken(i, "expected ':' after a key")
	}
	return s.space(i + 1)
}

func (s *jsonScanner) literal(i int, word string) int {
	for k := range len(word) {
		if i+k >= len(s.body) {
			return s.broken(i+k, cutOff)
		}
		if s.body[i+k] != word[k] {
			return s.noValue(i)
		}
	}
	return i + len(word)
}

// number validates the number at i: -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)?
func (s *jsonScanner) number(i int) int {
	b := s.body
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		if i++; i < len(b) && b[i]-'0' <= 9 {
			return s.broken(i-1, "a number may not begin with a 0 before other digits")
		}
	default:
		none := "a number needs a digit after '-'"
		if i < len(b) && b[i] == 'I' {
			none = noNumber
		}
		if i = s.digits(i, none); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = s.digits(i+1, "a number needs a digit after '.'"); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return s.digits(i, "a number needs a digit in its exponent")
	}
	return i
}

func (s *jsonScanner) digits(i int, none string) int {
	b, start := s.body, i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		if i >= len(b) {
			none = cutOff
		}
		return s.broken(i, none)
	}
	return i
}
