// JSON: one strict pass over a request body, without a copy and without an allocation.
package proxy

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str validates the string whose opening quote is at i and returns the offset
// behind its closing quote, and whether it holds an escape.
//
// Eight bytes are looked at together: in w^2 the quote and the control
// characters lie below 0x21, so one subtraction finds both; a borrow can only
// mark a byte above the first right one. 3 to 4 times the speed of a byte loop
// over prose.
func (s *jsonScanner) str(i int) (end int, escaped bool) {
	b := s.body
	i++
	for {
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			odd := (((w ^ 2*ones) - 0x21*ones) | ((w ^ '\\'*ones) - ones) | w) & highs
			if odd == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(odd) >> 3
		} else if i >= len(b) {
			return s.broken(i, cutOff), false
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i+1 < len(b) && plainEscape[b[i+1]] != 0 {
				i += 2
				continue
			}
			i = s.escapes(i)
		case c >= 0x80:
			i = s.wide(i)
		case c >= ' ':
			i++ // one of the last bytes of the body
		default:
			return s.broken(i, "a control character in a string, to be written as an escape"), false
		}
		if i < 0 {
			return -1, false
		}
	}
}

// escapes validates the run of escapes at i and returns the offset behind it.
func (s *jsonScanner) escapes(i int) int {
	b := s.body
	for i < len(b) && b[i] == '\\' {
		if i+1 >= len(b) {
			return s.broken(i+1, cutOff)
		}
		switch c := b[i+1]; {
		case plainEscape[c] != 0:
			i += 2
		case c == 'u':
			if i = s.unicodeEscape(i); i < 0 {
				return -1
			}
		default:
			return s.broken(i, "an escape in a string that JSON does not have")
		}
	}
	return i
}

// unicodeEscape validates the \uXXXX at i, or the two of a surrogate pair.
func (s *jsonScanner) unicodeEscape(i int) int {
	r := s.hex(i)
	if r < 0 {
		return -1
	}
	next := i + 6
	if r>>11 != 0xD800>>11 {
		return next
	}
	if b := s.body; r >= 0xDC00 || next+1 >= len(b) || b[next] != '\\' || b[next+1] != 'u' {
		return s.broken(i, loneSurrogate)
	}
	if r = s.hex(next); r < 0 {
		return -1
	}
	if r>>10 != 0xDC00>>10 {
		return s.broken(i, loneSurrogate)
	}
	return next + 6
}

// hex returns the code unit of the escape \uXXXX at i.
func (s *jsonScanner) hex(i int) rune {
	if i+6 > len(s.body) {
		return rune(s.broken(len(s.body), cutOff))
	}
	r := hexUnit(s.body[i+2 : i+6])
	if r < 0 {
		return rune(s.broken(i, `\u without four hex digits in a string`))
	}
	return r
}

// hexUnit is the value of four hex digits, negative if one of them is none.
func hexUnit(b []byte) rune {
	_ = b[3]
	return hexDigit[b[0]]<<12 | hexDigit[b[1]]<<8 | hexDigit[b[2]]<<4 | hexDigit[b[3]]
}

var hexDigit = func() (t [256]rune) {
	for c := range t {
		switch c := rune(c); {
		case c >= '0' && c <= '9':
			t[c] = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			t[c] = c | 0x20 - 'a' + 10
		default:
			t[c] = -1
		}
	}
	return t
}()

// wide validates the run of characters beyond ASCII at i: UTF-8 in its
// shortest form, no surrogates, nothing above U+10FFFF (RFC 3629).
func (s *jsonScanner) wide(i int) int {
	b := s.body
	for i < len(b) && b[i] >= 0x80 {
		c := b[i]
		if c < 0xE0 {
			if c < 0xC2 || i+1 >= len(b) || b[i+1]&0xC0 != 0x80 {
				return s.broken(i, badUTF8)
			}
			i += 2
			continue
		}
		if c < 0xF0 && i+8 <= len(b) && twoThrees(binary.LittleEndian.Uint64(b[i:])) {
			i += 6
			continue
		}
		n := wideLength(b[i:])
		if n == 0 {
			return s.broken(i, badUTF8)
		}
		i += n
	}
	return i
}

// twoThrees tells whether w begins with two well-formed characters of three
// bytes each, as most of Asia's do: about 1.8 times the speed of one by one.
func twoThrees(w uint64) bool {
	if w&0xC0C0F0C0C0F0 != 0x8080E08080E0 {
		return false
	}
	// E0 needs bit 5 of the next byte set (else overlong), ED needs it clear
	// (else a surrogate); the other lead bytes take both.
	first, second := w&0x200F, w>>24&0x200F
	return first != 0 && second != 0 && first != 0x200D && second != 0x200D
}

// wideLength is the length of the well-formed character of three or four bytes
// that b begins with, 0 if there is none.
func wideLength(b []byte) int {
	if len(b) < 3 || b[1]&0xC0 != 0x80 || b[2]&0xC0 != 0x80 {
		return 0
	}
	switch c := b[0]; {
	case c < 0xF0:
		if c == 0xE0 && b[1] < 0xA0 || c == 0xED && b[1] >= 0xA0 {
			return 0
		}
		return 3
	case c > 0xF4 || len(b) < 4 || b[3]&0xC0 != 0x80,
		c == 0xF0 && b[1] < 0x90, c == 0xF4 && b[1] >= 0x90:
		return 0
	}
	return 4
}

// appendUnescaped appends what the inside of a valid JSON string stands for.
func appendUnescaped(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst, raw = append(dst, raw[:i]...), raw[i:]
		if raw[1] != 'u' {
			dst, raw = append(dst, plainEscape[raw[1]]), raw[2:]
			continue
		}
		r := hexUnit(raw[2:])
		raw = raw[6:]
		if r>>10 == 0xD800>>10 {
			r = 0x10000 + (r-0xD800)<<10 + (hexUnit(raw[2:]) - 0xDC00)
			raw = raw[6:]
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// plainEscape is what a backslash and this byte stand for; 0: no such escape.
var plainEscape = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}
