// Validation: strict JSON in one pass over the bytes, without a copy and without an allocation.

package openai

import "bytes"

// maxDepth is how deep arrays and objects may nest, the outermost included.
const maxDepth = 64

// A validator checks the JSON of a body, stops at the first fault and remembers
// it. It accepts what RFC 8259 does and refuses what readers disagree about:
// invalid UTF-8, lone surrogates, and deep nesting.
//
// Its methods take the offset at which something begins and return the offset
// behind it, -1 after a fault. They never move back, so that a body is read once.
type validator struct {
	body  []byte
	fault fault // kind faultNone: all is well so far
}

// ValidValue tells whether b is one JSON value, with nothing around it, that a
// strict reader of request bodies takes.
func ValidValue(b []byte) bool {
	v := validator{body: b}
	return v.value(0, 0) == len(b)
}

// ValidString tells whether b, which begins with a quote, is one such string, and
// whether it is written with escapes.
func ValidString(b []byte) (escaped, good bool) {
	v := validator{body: b}
	end, escaped := v.str(0)
	return escaped, end == len(b)
}

// failed tells whether there was a fault.
func (v *validator) failed() bool { return v.fault.kind != faultNone }

// stop notes a fault, if it is the first of the body, and returns -1.
func (v *validator) stop(kind faultKind, at int, what string) int {
	if v.fault.kind == faultNone {
		v.fault = fault{kind: kind, at: at, what: what}
	}
	return -1
}

// broken stops at bytes that are no JSON.
func (v *validator) broken(at int, what string) int { return v.stop(faultSyntax, at, what) }

// space returns the offset of the first byte from i on that is no white space.
func (v *validator) space(i int) int {
	b := v.body
	for ; i < len(b) && b[i] <= ' '; i++ {
		if c := b[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
	}
	return i
}

// value checks the value that begins at i, depth levels deep, and returns
// the offset behind it. It recurses at most maxDepth deep.
func (v *validator) value(i, depth int) int {
	if i >= len(v.body) {
		return v.broken(i, cutOff)
	}
	switch c := v.body[i]; c {
	case '"':
		end, _ := v.str(i)
		return end
	case '{':
		return v.object(i, depth+1)
	case '[':
		return v.array(i, depth+1)
	case 't':
		return v.literal(i, "true")
	case 'f':
		return v.literal(i, "false")
	case 'n':
		return v.literal(i, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return v.number(i)
		}
		return v.noValue(i)
	}
}

func (v *validator) object(i, depth int) int {
	if depth > maxDepth {
		return v.broken(i, tooDeep)
	}
	b := v.body
	if i = v.space(i + 1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return v.noKey(i)
		}
		if i, _ = v.str(i); i < 0 {
			return -1
		}
		if i = v.colon(i); i < 0 {
			return -1
		}
		if i = v.value(i, depth); i < 0 {
			return -1
		}
		if i = v.space(i); i >= len(b) {
			return v.broken(i, cutOff)
		}
		switch b[i] {
		case ',':
			i = v.space(i + 1)
		case '}':
			return i + 1
		default:
			return v.broken(i, "expected ',' or '}' after the value of a member")
		}
	}
}

func (v *validator) array(i, depth int) int {
	if depth > maxDepth {
		return v.broken(i, tooDeep)
	}
	b := v.body
	if i = v.space(i + 1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = v.value(i, depth); i < 0 {
			return -1
		}
		if i = v.space(i); i >= len(b) {
			return v.broken(i, cutOff)
		}
		switch b[i] {
		case ',':
			i = v.space(i + 1)
		case ']':
			return i + 1
		default:
			return v.broken(i, "expected ',' or ']' after an element")
		}
	}
}

// colon returns the offset of the value behind a key that ended before i.
func (v *validator) colon(i int) int {
	if i < len(v.body) && v.body[i] != ':' {
		i = v.space(i)
	}
	if i >= len(v.body) {
		return v.broken(i, cutOff)
	}
	if v.body[i] != ':' {
		return v.broken(i, "expected ':' after a key")
	}
	return v.space(i + 1)
}

func (v *validator) literal(i int, word string) int {
	for k := range len(word) {
		if i+k >= len(v.body) {
			return v.broken(i+k, cutOff)
		}
		if v.body[i+k] != word[k] {
			return v.noValue(i)
		}
	}
	return i + len(word)
}

// number checks the number at i: -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)?
func (v *validator) number(i int) int {
	b := v.body
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		if i++; i < len(b) && b[i]-'0' <= 9 {
			return v.broken(i-1, "a number may not begin with a 0 before other digits")
		}
	default:
		none := "a number needs a digit after '-'"
		if i < len(b) && b[i] == 'I' {
			none = noNumber
		}
		if i = v.digits(i, none); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = v.digits(i+1, "a number needs a digit after '.'"); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return v.digits(i, "a number needs a digit in its exponent")
	}
	return i
}

func (v *validator) digits(i int, none string) int {
	b, start := v.body, i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		if i >= len(b) {
			none = cutOff
		}
		return v.broken(i, none)
	}
	return i
}

// noValue stops where no value can begin.
func (v *validator) noValue(i int) int {
	switch c, rest := v.body[i], v.body[i:]; {
	case c == ']' || c == '}':
		return v.broken(i, "expected a value, but the array or object ends (a comma too many?)")
	case c == '+':
		return v.broken(i, "a number may not begin with '+'")
	case c == '.':
		return v.broken(i, "a number needs a digit before '.'")
	case bytes.HasPrefix(rest, []byte("NaN")) || bytes.HasPrefix(rest, []byte("Inf")):
		return v.broken(i, noNumber)
	case c == '\'':
		return v.broken(i, "expected a value; strings stand in double quotes")
	case bytes.IndexByte([]byte("tTfFnN"), c) >= 0:
		return v.broken(i, "expected a value; the words JSON has are true, false and null")
	}
	return v.broken(i, "expected a value, but this cannot begin one")
}

// noKey stops where a key should begin.
func (v *validator) noKey(i int) int {
	switch {
	case i >= len(v.body):
		return v.broken(i, cutOff)
	case v.body[i] == '}':
		return v.broken(i, "expected a key, but the object ends (a comma too many?)")
	}
	return v.broken(i, "expected a key in double quotes")
}
