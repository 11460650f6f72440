// JSON: one strict pass over a request body, without a copy and without an allocation.
package openai

// maxDepth is how deep arrays and objects may nest, the outermost included.
const maxDepth = 64

// A Span is the half-open byte range [start, end) of a body. The zero span
// means absent: no value begins at offset 0, the top-level object does.
type Span struct{ Start, End int32 }

// Given tells whether the span's value is in the body.
func (s Span) Given() bool { return s.End != 0 }

// Of returns the span's bytes: a sub-slice of body, nil if absent.
func (s Span) Of(body []byte) []byte {
	if !s.Given() {
		return nil
	}
	return body[s.Start:s.End:s.End]
}

// A Scanner goes once over a body and stops at its first fault. It accepts
// what RFC 8259 does and refuses what readers disagree about: invalid UTF-8,
// lone surrogates, deep nesting and, in objects read with members, a key that
// comes twice.
//
// The methods that take and return an offset (value, str, ...) return -1 after
// a fault; those that move pos leave it where it was.
type Scanner struct {
	Body  []byte
	pos   int // the next byte
	depth int // arrays and objects open at pos
	fault fault
	keys  keySet

	unescaped []byte // keys and names that had to be decoded
}

// failed tells whether there was a fault; from then on nothing moves.
func (s *Scanner) failed() bool { return s.fault.kind != 0 }

// stop notes the first fault of the body.
func (s *Scanner) stop(kind faultKind, at int, what string) int {
	if s.fault.kind == 0 {
		s.fault = fault{kind: kind, at: at, what: what}
	}
	return -1
}

// broken stops at bytes that are no JSON.
func (s *Scanner) broken(at int, what string) int { return s.stop(faultSyntax, at, what) }

// space returns the offset of the first byte from i on that is no white space.
func (s *Scanner) space(i int) int {
	b := s.Body
	for ; i < len(b) && b[i] <= ' '; i++ {
		if c := b[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
	}
	return i
}

// Value validates the value that begins at i, depth levels deep, and returns
// the offset behind it. It recurses at most maxDepth deep.
func (s *Scanner) Value(i, depth int) int {
	if i >= len(s.Body) {
		return s.broken(i, cutOff)
	}
	switch c := s.Body[i]; c {
	case '"':
		end, _ := s.Str(i)
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

func (s *Scanner) objectValue(i, depth int) int {
	if depth > maxDepth {
		return s.broken(i, tooDeep)
	}
	b := s.Body
	if i = s.space(i + 1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return s.noKey(i)
		}
		if i, _ = s.Str(i); i < 0 {
			return -1
		}
		if i = s.colon(i); i < 0 {
			return -1
		}
		if i = s.Value(i, depth); i < 0 {
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

func (s *Scanner) arrayValue(i, depth int) int {
	if depth > maxDepth {
		return s.broken(i, tooDeep)
	}
	b := s.Body
	if i = s.space(i + 1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.Value(i, depth); i < 0 {
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
func (s *Scanner) colon(i int) int {
	if i < len(s.Body) && s.Body[i] != ':' {
		i = s.space(i)
	}
	if i >= len(s.Body) {
		return s.broken(i, cutOff)
	}
	if s.Body[i] != ':' {
		return s.broken(i, "expected ':' after a key")
	}
	return s.space(i + 1)
}

func (s *Scanner) literal(i int, word string) int {
	for k := range len(word) {
		if i+k >= len(s.Body) {
			return s.broken(i+k, cutOff)
		}
		if s.Body[i+k] != word[k] {
			return s.noValue(i)
		}
	}
	return i + len(word)
}

// number validates the number at i: -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)?
func (s *Scanner) number(i int) int {
	b := s.Body
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

func (s *Scanner) digits(i int, none string) int {
	b, start := s.Body, i
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
