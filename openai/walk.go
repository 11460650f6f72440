// Walking: a one-pass reader of the few JSON fields that a worker's replies are judged by.

package openai

import "bytes"

// maxWalkDepth bounds the nesting of a reply that is looked into.
const maxWalkDepth = 64

// A Walker steps through one JSON value without building anything:
//
//	w := openai.Walk(body)
//	if w.Enter('{') {
//		for w.Key() {
//			switch string(w.Name) {
//			case "id":
//				id, _ = w.Text()
//			default:
//				w.Skip()
//			}
//		}
//	}
//	if w.Bad { ... }
//
// It checks the structure that it steps over (brackets, commas, strings' ends),
// not the contents of strings and numbers. Keys are compared as they are written:
// an escaped key is an unknown key.
type Walker struct {
	B     []byte // what is walked through
	I     int    // offset in B of what comes next
	Bad   bool   // not JSON, or too deep: nothing read after this counts
	Name  []byte // of the member that Key stopped at, as written: a sub-slice of B
	Names *Names // set before the first step: notices members that come twice
	Event bool   // it began with WalkEvent

	fresh bool // directly behind an opening bracket
}

// Walk begins at the front of b.
func Walk(b []byte) Walker { return Walker{B: b} }

// WalkEvent begins in the first data line of a server-sent event, as EventFields
// returns it, and goes on in the next: the standard joins data lines with LF,
// which in JSON is blank space between two values, so that nothing has to be
// joined.
func WalkEvent(data []byte) Walker { return Walker{B: data, Event: true} }

// Peek skips blank space and returns the next byte, 0 at the end.
func (w *Walker) Peek() byte {
	for w.I < len(w.B) {
		switch c := w.B[w.I]; c {
		case ' ', '\t':
			w.I++
		case '\n', '\r':
			if w.Event {
				w.seam()
			} else {
				w.I++
			}
		default:
			return c
		}
	}
	return 0
}

// seam goes from the end of one line to the value of the next data line, or
// to the end of the event.
func (w *Walker) seam() {
	for {
		rest := w.B[w.I:]
		line := rest[eolLen(rest):]
		w.I = len(w.B) - len(line)
		if n := IndexEOL(line); n > 0 {
			line = line[:n]
		} else if n == 0 || len(line) == 0 {
			w.I = len(w.B)
			return
		}
		if value, ok := fieldValue(line, "data"); ok {
			w.I += len(line) - len(value)
			return
		}
		w.I += len(line)
		if w.I == len(w.B) {
			return
		}
	}
}

// Enter steps behind an opening bracket. A value of another sort is left.
func (w *Walker) Enter(open byte) bool {
	if w.Bad || w.Peek() != open {
		return false
	}
	w.I++
	w.fresh = true
	if open == '{' && w.Names != nil {
		w.Names.enter()
	}
	return true
}

// Key steps to the value of the next member and sets Name; false behind the
// closing brace.
func (w *Walker) Key() bool {
	if !w.more('}') {
		if w.Names != nil {
			w.Names.leave()
		}
		return false
	}
	if w.Peek() != '"' {
		w.Bad = true
		return false
	}
	w.Name = w.String()
	if w.Bad || w.Peek() != ':' {
		w.Bad = true
		return false
	}
	w.I++
	if w.Names != nil {
		w.Names.add(w.Name)
	}
	return true
}

// Element steps to the next element; false behind the closing bracket.
func (w *Walker) Element() bool { return w.more(']') }

func (w *Walker) more(closing byte) bool {
	if w.Bad {
		return false
	}
	c := w.Peek()
	if c == closing {
		w.I++
		w.fresh = false
		return false
	}
	if w.fresh {
		w.fresh = false
		return true
	}
	if c != ',' {
		w.Bad = true
		return false
	}
	w.I++
	return true
}

// String steps over the string that begins here and returns what stands
// between its quotes, escapes as written.
func (w *Walker) String() []byte {
	start := w.I + 1
	for i := start; ; i++ {
		n := bytes.IndexByte(w.B[i:], '"')
		if n < 0 {
			w.I, w.Bad = len(w.B), true
			return nil
		}
		i += n
		escapes := 0
		for w.B[i-1-escapes] == '\\' { // stops at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			w.I = i + 1
			return w.B[start:i]
		}
	}
}

// Text steps over the next value and returns it if it is a string.
func (w *Walker) Text() ([]byte, bool) {
	if w.Bad || w.Peek() != '"' {
		w.Skip()
		return nil, false
	}
	s := w.String()
	return s, !w.Bad
}

// Empty steps over the next value: is it null, "", [] or {}?
func (w *Walker) Empty() bool {
	switch w.Peek() {
	case '"':
		return len(w.String()) == 0
	case 'n':
		return string(w.word()) == "null"
	case '[', '{':
		open := w.B[w.I]
		w.I++
		c := w.Peek()
		w.skipRest(open)
		return c == open+2 // ASCII: ] is [+2, } is {+2
	}
	w.Skip()
	return false
}

// Null steps over the next value: is it null?
func (w *Walker) Null() bool {
	if w.Peek() == 'n' {
		return string(w.word()) == "null"
	}
	w.Skip()
	return false
}

// Count steps over the next value and returns it if it is a whole number of
// 0 to 15 digits, else -1.
func (w *Walker) Count() int {
	c := w.Peek()
	if c < '0' || c > '9' {
		w.Skip()
		return -1
	}
	digits := w.word()
	if len(digits) > 15 {
		return -1
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// Skip steps over the next value.
func (w *Walker) Skip() {
	if w.Bad {
		return
	}
	switch c := w.Peek(); c {
	case '"':
		w.String()
	case '[', '{':
		w.I++
		w.skipRest(c)
	default:
		w.word()
	}
}

// word steps over a number, true, false or null.
func (w *Walker) word() []byte {
	start := w.I
	for w.I < len(w.B) && jsonClass[w.B[w.I]]&classWord != 0 {
		w.I++
	}
	w.Bad = w.Bad || w.I == start
	return w.B[start:w.I]
}

// skipRest steps over what is left of an array or object that was opened. It
// keeps one bit for each open bracket.
func (w *Walker) skipRest(open byte) {
	braces, depth := uint64(0), 1
	if open == '{' {
		braces = 1
	}
	for w.I < len(w.B) {
		c := w.B[w.I]
		if jsonClass[c]&classInert != 0 {
			w.I++
			continue
		}
		switch c {
		case '"':
			w.String()
			continue
		case '\n', '\r':
			w.Peek()
			continue
		case '{', '[':
			if depth == maxWalkDepth {
				w.Bad = true
				return
			}
			depth++
			braces <<= 1
			if c == '{' {
				braces |= 1
			}
		case '}', ']':
			if (c == '}') != (braces&1 == 1) {
				w.Bad = true
				return
			}
			braces >>= 1
			if depth--; depth == 0 {
				w.I++
				w.fresh = false
				return
			}
		}
		w.I++
	}
	w.Bad = true
}

// End says whether the whole text was one good value, nothing behind it.
func (w *Walker) End() bool { return !w.Bad && w.Peek() == 0 && w.I == len(w.B) }

// Span steps over the next value and returns where it stands.
func (w *Walker) Span() Span {
	w.Peek()
	start := w.I
	w.Skip()
	return Span{int32(start), int32(w.I)}
}

// Value steps over the next value and returns it as it stands.
func (w *Walker) Value() []byte {
	w.Peek()
	start := w.I
	w.Skip()
	return w.B[start:w.I]
}

// What bytes of JSON are: classWord makes up numbers and literals, classInert changes
// nothing between two brackets.
const (
	classWord = 1 << iota
	classInert
)

var jsonClass = func() (t [256]byte) {
	for c := range 256 {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'E' || c == '+' || c == '-' || c == '.' {
			t[c] |= classWord
		}
		if bytes.IndexByte([]byte("\"[]{}\r\n"), byte(c)) < 0 {
			t[c] |= classInert
		}
	}
	return t
}()
