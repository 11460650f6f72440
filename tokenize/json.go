// Reading JSON in one pass: a tokenizer.json is up to tens of megabytes, nearly all of it two lists.

package tokenize

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep values may nest.
const maxDepth = 32

// jsonReader reads one JSON text. Its functions return errors that name the byte.
type jsonReader struct {
	data  []byte
	at    int
	depth int
	text  []byte // of the last string that had escapes
}

func (r *jsonReader) wrong(what string) error {
	return fmt.Errorf("byte %d: %s", r.at, what)
}

// peek is the next byte behind white space, 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// object calls member for each key; member must read the value. The key is valid until then.
func (r *jsonReader) object(member func(key []byte) error) error {
	return r.list('{', '}', "object", func(int) error {
		key, err := r.string()
		if err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.wrong("a colon is missing")
		}
		r.at++
		return member(key)
	})
}

// array calls element for each element; element must read the value.
func (r *jsonReader) array(element func(i int) error) error {
	return r.list('[', ']', "array", element)
}

func (r *jsonReader) list(open, shut byte, what string, one func(i int) error) error {
	if r.peek() != open {
		return r.wrong("an " + what + " was expected")
	}
	if r.depth++; r.depth > maxDepth {
		return r.wrong("nested too deep")
	}
	r.at++
	for i := 0; ; i++ {
		c := r.peek()
		if c == shut && i == 0 {
			break
		}
		if err := one(i); err != nil {
			return err
		}
		if c = r.peek(); c == shut {
			break
		}
		if c != ',' {
			return r.wrong("a comma or the end of the " + what + " was expected")
		}
		r.at++
	}
	r.at++
	r.depth--
	return nil
}

// string returns the next string, valid until the next call.
func (r *jsonReader) string() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.wrong("a string was expected")
	}
	start := r.at + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.at = i + 1
			if s := r.data[start:i]; utf8.Valid(s) {
				return s, nil
			}
			r.at = start
			return nil, r.wrong("a string that is no UTF-8")
		case c == '\\':
			return r.escaped(start, i)
		case c < 0x20:
			r.at = i
			return nil, r.wrong("a control character in a string")
		}
	}
	return nil, r.wrong("a string without an end")
}

// escaped reads a string that begins at start and has its first escape at i.
func (r *jsonReader) escaped(start, i int) ([]byte, error) {
	r.text = append(r.text[:0], r.data[start:i]...)
	for r.at = i; r.at < len(r.data); {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			if !utf8.Valid(r.text) {
				return nil, r.wrong("a string that is no UTF-8")
			}
			return r.text, nil
		case c == '\\':
			if err := r.escape(); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, r.wrong("a control character in a string")
		default:
			r.text = append(r.text, c)
			r.at++
		}
	}
	return nil, r.wrong("a string without an end")
}

func (r *jsonReader) escape() error {
	if r.at+1 >= len(r.data) {
		return r.wrong("a string without an end")
	}
	c := r.data[r.at+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		u, ok := r.hex(r.at)
		if !ok {
			return r.wrong("not an escape")
		}
		r.at += 6
		if utf16.IsSurrogate(u) {
			second, ok := r.hex(r.at)
			if u = utf16.DecodeRune(u, second); !ok || u == utf8.RuneError {
				return r.wrong("half a surrogate pair")
			}
			r.at += 6
		}
		r.text = utf8.AppendRune(r.text, u)
		return nil
	default:
		return r.wrong("not an escape")
	}
	r.text = append(r.text, c)
	r.at += 2
	return nil
}

// hex is the code unit of \uXXXX at i.
func (r *jsonReader) hex(i int) (rune, bool) {
	if i+6 > len(r.data) || r.data[i] != '\\' || r.data[i+1] != 'u' {
		return 0, false
	}
	u := rune(0)
	for _, c := range r.data[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			u = u<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return u, true
}

var errNumber = errors.New("not a number from 0 to 4294967295")

// id is the next value, a whole number.
func (r *jsonReader) id() (uint32, error) {
	c, n, digits := r.peek(), uint64(0), 0
	for c >= '0' && c <= '9' {
		digits++
		if n = n*10 + uint64(c-'0'); n > 1<<32-1 {
			return 0, r.wrong(errNumber.Error())
		}
		if r.at++; r.at == len(r.data) {
			break
		}
		c = r.data[r.at]
	}
	if digits == 0 || c == '.' || c == 'e' || c == 'E' {
		return 0, r.wrong(errNumber.Error())
	}
	return uint32(n), nil
}

// value is the bytes of the next value, whatever it is. What is inside a literal is not checked.
func (r *jsonReader) value() ([]byte, error) {
	c := r.peek()
	start := r.at
	var err error
	switch c {
	case '{':
		err = r.object(func([]byte) error { _, err := r.value(); return err })
	case '[':
		err = r.array(func(int) error { _, err := r.value(); return err })
	case '"':
		_, err = r.string()
	default:
		for r.at < len(r.data) && literal(r.data[r.at]) {
			r.at++
		}
		if r.at == start {
			err = r.wrong("a value was expected")
		}
	}
	return r.data[start:r.at], err
}

func literal(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '+' || c == '-' || c == '.'
}

// end says whether anything follows.
func (r *jsonReader) end() error {
	if r.peek() != 0 || r.at < len(r.data) {
		return r.wrong("more after the end")
	}
	return nil
}
