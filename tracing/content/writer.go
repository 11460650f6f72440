// Writing: strings and values cut to what there is room for.

package content

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"kvasir/openai"
)

// A writer makes JSON, as long as there is room. Bytes of strings are those that stand between the
// quotes, escapes and all: they are copied, never read.
type writer struct {
	dst  []byte
	left int  // bytes that may still come
	cut  bool // parts are missing
}

// partCost is what a part takes of the room besides its strings: so there are not too many.
const partCost = 40

// nameBytes bounds names, ids and roles.
const nameBytes = 256

// open begins a part, behind others, and says whether there is room for one. Where the room ends it
// writes a part that says so, once.
func (w *writer) open(kind string) bool {
	if w.cut {
		return false
	}
	if n := len(w.dst); n > 0 && w.dst[n-1] != '[' {
		w.dst = append(w.dst, ',')
	}
	if w.left -= partCost; w.left < 0 {
		w.cut = true
		w.dst = append(append(append(w.dst, `{"type":"text","content":"`...), mark("more parts")...), `"}`...)
		return false
	}
	w.dst = append(append(append(w.dst, `{"type":"`...), kind...), '"')
	return true
}

// member begins a member behind others.
func (w *writer) member(name string) {
	w.dst = append(append(append(w.dst, `,"`...), name...), `":`...)
}

func (w *writer) close() { w.dst = append(w.dst, '}') }

// str writes a string of which inside is the beginning, and says how much of all is missing.
func (w *writer) str(inside []byte, all int) {
	n := clip(inside, max(w.left, 0))
	w.dst = append(append(w.dst, '"'), inside[:n]...)
	if n < all {
		w.dst = append(w.dst, ' ')
		w.dst = append(w.dst, mark(strconv.Itoa(n)+" of "+strconv.Itoa(all)+" bytes")...)
	}
	w.dst = append(w.dst, '"')
	w.left -= n
}

// name writes a short string.
func (w *writer) name(inside []byte) {
	n := clip(inside, nameBytes)
	w.dst = append(append(append(w.dst, '"'), inside[:n]...), '"')
	w.left -= n
}

// arguments writes what a model calls a tool with, a string: as the value that is written in it, if
// that is whole.
func (w *writer) arguments(inside []byte, all int) {
	if len(inside) == all && all <= w.left {
		if v := openai.AppendUnescaped(nil, inside); len(v) > 0 && v[0] == '{' && utf8.Valid(v) && json.Valid(v) {
			w.dst = append(w.dst, v...)
			w.left -= all
			return
		}
	}
	w.str(inside, all)
}

// value writes JSON of which v is the beginning: as it is if it is whole, else as a string.
func (w *writer) value(v []byte, all int) {
	if len(v) <= w.left && len(v) >= all {
		w.dst = append(w.dst, v...)
		w.left -= len(v)
		return
	}
	inside := quoted(v[:min(len(v), max(w.left, 0))])
	w.str(inside, all+len(inside)-min(len(v), max(w.left, 0)))
}

// quoted is a text as it stands between the quotes of a JSON string.
func quoted[T string | []byte](s T) []byte {
	q := openai.AppendString(nil, s)
	return q[1 : len(q)-1]
}

// mark says that something is missing.
func mark(what string) string { return "[cut by Kvasir: " + what + "]" }

// clip is how many bytes of the inside of a JSON string make a string themselves: at most most, on a
// border of characters and of escapes.
func clip(inside []byte, most int) int {
	if len(inside) <= most {
		return len(inside)
	}
	i := 0
	for {
		next := i + 1
		switch c := inside[i]; {
		case c == '\\' && i+1 < len(inside) && inside[i+1] == 'u':
			if next = i + 6; isHigh(inside[i:]) {
				next = i + 12 // the other half belongs to it
			}
		case c == '\\':
			next = i + 2
		case c >= utf8.RuneSelf:
			for next < len(inside) && !utf8.RuneStart(inside[next]) {
				next++
			}
		}
		if next > most {
			return i
		}
		i = next
	}
}

// isHigh says whether b begins with the escape of the first half of a surrogate pair, and the second
// follows.
func isHigh(b []byte) bool {
	return len(b) >= 8 && openai.HexUnit(b[2:])>>10 == 0xD800>>10 && b[6] == '\\' && b[7] == 'u'
}
