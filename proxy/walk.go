// Walking: a one-pass reader of the few JSON fields that a worker's replies are judged by.
package proxy

import "bytes"

// maxWalkDepth bounds the nesting of a reply that is looked into.
const maxWalkDepth = 64

// A replyWalker steps through one JSON value without building anything. It checks
// the structure that it steps over (brackets, commas, strings' ends), not the
// contents of strings and numbers. Keys are compared as they are written: an
// escaped key is an unknown key.
//
// Over a server-sent event (sse) it starts in the first data line and goes on
// in the next: the standard joins data lines with LF, which in JSON is blank
// space between two values, so that nothing has to be joined.
type replyWalker struct {
	b     []byte
	i     int
	sse   bool
	bad   bool        // not JSON, or too deep: nothing read after this counts
	fresh bool        // directly behind an opening bracket
	name  []byte      // of the member that key stopped at, as written
	names *replyNames // where given: members that come twice are noticed
}

// peek skips blank space and returns the next byte, 0 at the end.
func (w *replyWalker) peek() byte {
	for w.i < len(w.b) {
		switch c := w.b[w.i]; c {
		case ' ', '\t':
			w.i++
		case '\n', '\r':
			if w.sse {
				w.seam()
			} else {
				w.i++
			}
		default:
			return c
		}
	}
	return 0
}

// seam goes from the end of one line to the value of the next data line, or
// to the end of the event.
func (w *replyWalker) seam() {
	for {
		rest := w.b[w.i:]
		line := rest[eolLen(rest):]
		w.i = len(w.b) - len(line)
		if n := indexEOL(line); n > 0 {
			line = line[:n]
		} else if n == 0 || len(line) == 0 {
			w.i = len(w.b)
			return
		}
		if value, ok := fieldValue(line, "data"); ok {
			w.i += len(line) - len(value)
			return
		}
		w.i += len(line)
		if w.i == len(w.b) {
			return
		}
	}
}

// enter steps behind an opening bracket. A value of another sort is left.
func (w *replyWalker) enter(open byte) bool {
	if w.bad || w.peek() != open {
		return false
	}
	w.i++
	w.fresh = true
	if open == '{' && w.names != nil {
		w.names.enter()
	}
	return true
}

// key steps to the value of the next member and sets name; false behind the
// closing brace.
func (w *replyWalker) key() bool {
	if !w.more('}') {
		if w.names != nil {
			w.names.leave()
		}
		return false
	}
	if w.peek() != '"' {
		w.bad = true
		return false
	}
	w.name = w.string()
	if w.bad || w.peek() != ':' {
		w.bad = true
		return false
	}
	w.i++
	if w.names != nil {
		w.names.add(w.name)
	}
	return true
}

// element steps to the next element; false behind the closing bracket.
func (w *replyWalker) element() bool { return w.more(']') }

func (w *replyWalker) more(closing byte) bool {
	if w.bad {
		return false
	}
	c := w.peek()
	if c == closing {
		w.i++
		w.fresh = false
		return false
	}
	if w.fresh {
		w.fresh = false
		return true
	}
	if c != ',' {
		w.bad = true
		return false
	}
	w.i++
	return true
}

// string steps over the string that begins here and returns what stands
// between its quotes, escapes as written.
func (w *replyWalker) string() []byte {
	start := w.i + 1
	for i := start; ; i++ {
		n := bytes.IndexByte(w.b[i:], '"')
		if n < 0 {
			w.i, w.bad = len(w.b), true
			return nil
		}
		i += n
		escapes := 0
		for w.b[i-1-escapes] == '\\' { // stops at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			w.i = i + 1
			return w.b[start:i]
		}
	}
}

// text steps over the next value and returns it if it is a string.
func (w *replyWalker) text() ([]byte, bool) {
	if w.bad || w.peek() != '"' {
		w.skip()
		return nil, false
	}
	s := w.string()
	return s, !w.bad
}

// empty steps over the next value: is it null, "", [] or {}?
func (w *replyWalker) empty() bool {
	switch w.peek() {
	case '"':
		return len(w.string()) == 0
	case 'n':
		return string(w.word()) == "null"
	case '[', '{':
		open := w.b[w.i]
		w.i++
		c := w.peek()
		w.skipRest(open)
		return c == open+2 // ASCII: ] is [+2, } is {+2
	}
	w.skip()
	return false
}

// null steps over the next value: is it null?
func (w *replyWalker) null() bool {
	if w.peek() == 'n' {
		return string(w.word()) == "null"
	}
	w.skip()
	return false
}

// count steps over the next value and returns it if it is a whole number of
// 0 to 15 digits, else -1.
func (w *replyWalker) count() int {
	c := w.peek()
	if c < '0' || c > '9' {
		w.skip()
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

// skip steps over the next value.
func (w *replyWalker) skip() {
	if w.bad {
		return
	}
	switch c := w.peek(); c {
	case '"':
		w.string()
	case '[', '{':
		w.i++
		w.skipRest(c)
	default:
		w.word()
	}
}

// word steps over a number, true, false or null.
func (w *replyWalker) word() []byte {
	start := w.i
	for w.i < len(w.b) && jsonClass[w.b[w.i]]&classWord != 0 {
		w.i++
	}
	w.bad = w.bad || w.i == start
	return w.b[start:w.i]
}

// skipRest steps over what is left of an array or object that was opened. It
// keeps one bit for each open bracket.
func (w *replyWalker) skipRest(open byte) {
	braces, depth := uint64(0), 1
	if open == '{' {
		braces = 1
	}
	for w.i < len(w.b) {
		c := w.b[w.i]
		if jsonClass[c]&classInert != 0 {
			w.i++
			continue
		}
		switch c {
		case '"':
			w.string()
			continue
		case '\n', '\r':
			w.peek()
			continue
		case '{', '[':
			if depth == maxWalkDepth {
				w.bad = true
				return
			}
			depth++
			braces <<= 1
			if c == '{' {
				braces |= 1
			}
		case '}', ']':
			if (c == '}') != (braces&1 == 1) {
				w.bad = true
				return
			}
			braces >>= 1
			if depth--; depth == 0 {
				w.i++
				w.fresh = false
				return
			}
		}
		w.i++
	}
	w.bad = true
}

// end says whether the whole text was one good value, nothing behind it.
func (w *replyWalker) end() bool { return !w.bad && w.peek() == 0 && w.i == len(w.b) }

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
