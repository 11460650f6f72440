// Package header takes apart the header lines of HTTP/1, as strictly as RFC 9112 asks.
// It copies nothing: what it returns are parts of the lines.
//
//	name, value, err := header.CutField([]byte("Content-Type: application/json\r\n"))
package header

import (
	"bytes"
	"errors"
)

// Errors of CutField.
var (
	ErrFolded  = errors.New("a header line is folded (begins with a space or a tab)")
	ErrNoColon = errors.New("a header line has no colon")
	ErrName    = errors.New("a header name has a character that is not allowed")
	ErrValue   = errors.New("a header value has a control character")
	errLineEnd = errors.New("a header line does not end in CRLF")
)

// CutLine takes the first line off b, its LF included.
func CutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1], b[i+1:]
	}
	return b, nil
}

// SplitField takes apart a line that CutField has accepted.
func SplitField(line []byte) (name, value []byte) {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return nil, nil
	}
	return line[:i], trimBlanks(bytes.TrimSuffix(line[i+1:], []byte("\r\n")))
}

// CutField reads one header line that ends in CRLF, as strictly as RFC 9112
// asks: a token, a colon with no space before it, a value without control
// characters. name is set whenever it is a good one.
func CutField(line []byte) (name, value []byte, err error) {
	if len(line) == 0 || line[0] == ' ' || line[0] == '\t' {
		return nil, nil, ErrFolded
	}
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return nil, nil, ErrNoColon
	}
	name = line[:i]
	if i == 0 {
		return nil, nil, ErrName
	}
	for _, c := range name {
		if !IsToken(c) {
			return nil, nil, ErrName
		}
	}
	n := len(line) - 2
	if n <= i || line[n] != '\r' || line[n+1] != '\n' {
		return name, nil, errLineEnd
	}
	value = trimBlanks(line[i+1 : n])
	if !ValidValue(value) {
		return name, nil, ErrValue
	}
	return name, value, nil
}

// ValidValue reports whether a header may have this value.
func ValidValue(b []byte) bool {
	for _, c := range b {
		if !IsValue(c) {
			return false
		}
	}
	return true
}

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for n := len(b); n > 0 && (b[n-1] == ' ' || b[n-1] == '\t'); n = len(b) {
		b = b[:n-1]
	}
	return b
}

// CutToken takes the first element off a list like "close, TE".
func CutToken(list []byte) (token, rest []byte) {
	if i := bytes.IndexByte(list, ','); i >= 0 {
		return trimBlanks(list[:i]), list[i+1:]
	}
	return trimBlanks(list), nil
}

// HasToken reports whether a list like "close, TE" has an element, given in lower case.
func HasToken(list []byte, lower string) bool {
	for len(list) > 0 {
		var token []byte
		token, list = CutToken(list)
		if Is(token, lower) {
			return true
		}
	}
	return false
}

// Is reports whether b is the given lower-case ASCII word, in any case.
func Is(b []byte, lower string) bool {
	return len(b) == len(lower) && HasPrefix(b, lower)
}

// HasPrefix reports whether b begins with the given lower-case ASCII word, in any case.
func HasPrefix(b []byte, lower string) bool {
	if len(b) < len(lower) {
		return false
	}
	for i := range len(lower) {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// Alike reports whether a header's name is the given one, in any case and with _ instead of -:
// CGI and WSGI turn - into _, so that both are the same header there.
func Alike(name []byte, of string) bool { return len(name) == len(of) && BeginsAlike(name, of) }

// BeginsAlike is Alike for the beginning of a name.
func BeginsAlike(name []byte, with string) bool {
	if len(name) < len(with) {
		return false
	}
	for i := range len(with) {
		c, want := name[i], with[i]
		if c|0x20 != want|0x20 && !(c == '_' && want == '-') {
			return false
		}
	}
	return true
}

// IsToken reports whether a byte is allowed in a header name: RFC 9110, 5.6.2.
func IsToken(c byte) bool { return byteClass[c]&classToken != 0 }

// IsValue reports whether a byte is allowed in a header value: RFC 9110, 5.5.
func IsValue(c byte) bool { return byteClass[c]&classValue != 0 }

const (
	classToken = 1 << iota
	classValue
)

var byteClass = func() (t [256]byte) {
	for c := range 256 {
		if c == '\t' || c >= ' ' && c != 0x7f {
			t[c] |= classValue
		}
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0 {
			t[c] |= classToken
		}
	}
	return t
}()
