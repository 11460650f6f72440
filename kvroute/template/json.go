// JSON: read into values in the order of its keys.

package template

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON is wrapped by errors of Parse for bytes that are no JSON, also for Python.
var ErrJSON = errors.New("no JSON")

// How deep JSON may nest, how many values it may have, and how many of them objects and lists: without
// a bound 4 MB of {} become 400 MB here.
const (
	maxDepth   = 128
	maxValues  = 1 << 20
	maxHolders = 1 << 17
)

// Parse reads one JSON value, as Python's json.loads: of two equal keys the last counts. What Python
// reads beyond JSON (NaN, lone surrogates), what is nested too deep, and more than 2^20 values or 2^17
// objects and lists is ErrUnsupported.
//
// The values' text lies in data, which must not change as long as they are used, and in one buffer of at
// most its size.
func Parse(data []byte) (v any, err error) { return new(Reader).Parse(data) }

// A Reader is Parse with memory for the next time. For one goroutine.
type Reader struct{ plain []byte }

// Size is the bytes of memory that it keeps.
func (r *Reader) Size() int { return cap(r.plain) }

// Parse is the function of that name; the values are good until the next call.
func (r *Reader) Parse(data []byte) (v any, err error) {
	line := 0
	defer caught(&err, &line)
	p := jsonReader{s: textOf(data), b: data, memory: r}
	p.space()
	v = p.value(0)
	p.space()
	if p.i < len(p.s) {
		p.broken()
	}
	return v, nil
}

type jsonReader struct {
	s      string // data
	b      []byte // the same bytes
	i      int
	plain  []byte // texts that had escapes; it never grows, for they lie in it; nil: none yet
	memory *Reader

	values, holders int
}

func (p *jsonReader) broken() { fail(ErrJSON, "at byte %d", p.i) }

func (p *jsonReader) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n' || p.s[p.i] == '\r' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *jsonReader) word(w string) {
	if !strings.HasPrefix(p.s[p.i:], w) {
		p.broken()
	}
	p.i += len(w)
}

func (p *jsonReader) value(depth int) any {
	if depth > maxDepth {
		fail(ErrUnsupported, "JSON nested more than %d deep", maxDepth)
	}
	if p.i == len(p.s) {
		p.broken()
	}
	if p.values++; p.values > maxValues {
		fail(ErrUnsupported, "JSON of more than %d values", maxValues)
	}
	switch c := p.s[p.i]; c {
	case '"':
		return boxed(p.text())
	case '{', '[':
		if p.holders++; p.holders > maxHolders {
			fail(ErrUnsupported, "JSON of more than %d objects and lists", maxHolders)
		}
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case 't':
		p.word("true")
		return true
	case 'f':
		p.word("false")
		return false
	case 'n':
		p.word("null")
		return nil
	case 'N', 'I':
		fail(ErrUnsupported, "JSON with numbers that are none")
	}
	return p.number()
}

func (p *jsonReader) object(depth int) any {
	var d *Dict
	p.i++
	for p.space(); ; p.space() {
		if d == nil {
			if p.i < len(p.s) && p.s[p.i] == '}' {
				d = &Dict{}
				break
			}
			d = NewDict(roomy)
		}
		if p.i >= len(p.s) || p.s[p.i] != '"' {
			p.broken()
		}
		key := p.text()
		p.space()
		p.word(":")
		p.space()
		d.Set(key, p.value(depth+1))
		p.space()
		if p.i < len(p.s) && p.s[p.i] == '}' {
			break
		}
		p.word(",")
	}
	p.i++
	return d
}

func (p *jsonReader) array(depth int) any {
	l := &List{}
	p.i++
	for p.space(); ; p.space() {
		if p.i < len(p.s) && p.s[p.i] == ']' && len(l.Items) == 0 {
			break
		}
		l.Items = append(l.Items, p.value(depth+1))
		p.space()
		if p.i < len(p.s) && p.s[p.i] == ']' {
			break
		}
		p.word(",")
	}
	p.i++
	return l
}

func (p *jsonReader) number() any {
	start, s := p.i, p.s
	digits := func() int {
		from := p.i
		for p.i < len(s) && s[p.i] >= '0' && s[p.i] <= '9' {
			p.i++
		}
		return p.i - from
	}
	if s[p.i] == '-' {
		p.i++
		if strings.HasPrefix(s[p.i:], "Infinity") {
			fail(ErrUnsupported, "JSON with numbers that are none")
		}
	}
	if p.i < len(s) && s[p.i] == '0' {
		p.i++
	} else if digits() == 0 {
		p.broken()
	}
	whole := true
	if p.i+1 < len(s) && s[p.i] == '.' && s[p.i+1] >= '0' && s[p.i+1] <= '9' {
		p.i++
		digits()
		whole = false
	}
	if p.i < len(s) && s[p.i]|0x20 == 'e' {
		back := p.i
		p.i++
		if p.i < len(s) && (s[p.i] == '+' || s[p.i] == '-') {
			p.i++
		}
		if digits() == 0 {
			p.i = back // and then whatever follows is wrong
		} else {
			whole = false
		}
	}
	if !whole {
		f, _ := strconv.ParseFloat(s[start:p.i], 64) // too large: infinity, as in Python
		return f
	}
	i, err := strconv.ParseInt(s[start:p.i], 10, 64)
	if err == nil {
		return i
	}
	if p.i-start > 4300 {
		fail(ErrUnsupported, "an integer of more than 4300 digits")
	}
	return BigInt(s[start:p.i])
}

// text reads a string.
func (p *jsonReader) text() string {
	p.i++
	from := p.i
	n, wide := plainLength(p.b[from:])
	p.i += n
	if p.i == len(p.b) || p.b[p.i] != '"' {
		return p.escaped(from, wide)
	}
	p.i++
	return valid(p.s[from:p.i-1], wide)
}

// valid checks a text where it may have more than ASCII.
func valid(s string, wide bool) string {
	if wide && !utf8.ValidString(s) {
		fail(ErrJSON, "not UTF-8")
	}
	return s
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// odd marks the bytes of a word that are a quote, a backslash or a control character. In w^2 a quote and
// the control characters lie below 0x21, so one subtraction finds both; what a borrow marks beside them
// lies behind the first.
func odd(w uint64) uint64 {
	control, slash := w^2*ones, w^'\\'*ones
	return ((control-0x21*ones)&^control | (slash-ones)&^slash) & highs
}

// plainLength is the number of bytes before the first that is odd. wide says that there is more than
// ASCII among them, or a little behind.
func plainLength(b []byte) (n int, wide bool) {
	seen := uint64(0)
	for ; n+8 <= len(b); n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		seen |= w
		if odd := odd(w); odd != 0 {
			return n + bits.TrailingZeros64(odd)>>3, seen&highs != 0
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' {
		seen |= uint64(b[n])
		n++
	}
	return n, seen&highs != 0
}

// plainEscape is what \c stands for, 0 if it is none.
var plainEscape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads a string that began at from on from its first escape, into the buffer: what follows a place
// of the body becomes no longer than it is there, so there is room. It copies eight bytes at a time
// and then looks where it should have stopped: code has an escape in every 20 bytes.
func (p *jsonReader) escaped(from int, wide bool) string {
	if p.plain == nil {
		if room := len(p.b) - from + 8; cap(p.memory.plain) < room {
			p.memory.plain = make([]byte, 0, room)
		}
		p.plain = p.memory.plain
	}
	b, i, out := p.b, p.i, p.plain[len(p.plain):cap(p.plain)]
	n := copy(out, b[from:i])
	seen := uint64(0)
	for i < len(b) && b[i] == '\\' {
		if p.i = i; i+1 == len(b) {
			p.broken()
		}
		if c := plainEscape[b[i+1]]; c != 0 {
			out[n] = c
			i, n = i+2, n+1
		} else if b[i+1] == 'u' {
			n = len(utf8.AppendRune(out[:n], p.unicode()))
			i = p.i
		} else {
			p.broken()
		}
		for i+8 <= len(b) && n+8 <= len(out) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(out[n:], w)
			seen |= w
			if odd := odd(w); odd != 0 {
				k := bits.TrailingZeros64(odd) >> 3
				i, n = i+k, n+k
				break
			}
			i, n = i+8, n+8 // foreseen, and not computed from what was read
		}
		for ; i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\'; i++ {
			out[n] = b[i]
			seen |= uint64(b[i])
			n++
		}
	}
	if p.i = i; i == len(b) || b[i] != '"' {
		p.broken()
	}
	p.i++
	p.plain = p.plain[:len(p.plain)+n]
	return valid(textOf(out[:n]), wide || seen&highs != 0)
}

// unicode reads \uXXXX, or two that are one character.
func (p *jsonReader) unicode() rune {
	r := p.unit()
	if !utf16.IsSurrogate(r) {
		return r
	}
	if strings.HasPrefix(p.s[p.i:], `\u`) {
		if both := utf16.DecodeRune(r, p.unit()); both != utf8.RuneError {
			return both
		}
	}
	fail(ErrUnsupported, "half a character in JSON")
	return 0
}

func (p *jsonReader) unit() rune {
	if p.i+6 > len(p.s) {
		p.broken()
	}
	var r rune
	for _, c := range []byte(p.s[p.i+2 : p.i+6]) {
		d := strings.IndexByte(hexDigits, c|0x20)
		if c < '0' || d < 0 || c < 'A' && c > '9' {
			p.broken()
		}
		r = r<<4 | rune(d)
	}
	p.i += 6
	return r
}
