// Escapes: how programs, URLs, mails and TeX encode characters.

package pii

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// mostBackslashes is how many backslashes may begin an escape: JSON nested in JSON strings has 1,
// then 2, then 4 of them.
const mostBackslashes = 4

// escaped returns the character for the escape at i, which begins with one or more backslashes,
// and its size in bytes; size 0: none. Such text occurs in the arguments of tool calls, and a
// model sees it decoded. Escapes of white space count only after a digit, because paths contain
// \n too.
func escaped(text []byte, i int) (to rune, size int) {
	at := i + 1
	for at < len(text) && text[at] == '\\' && at-i < mostBackslashes {
		at++
	}
	if at == len(text) {
		return 0, 0
	}
	if to, n := command(text[at:]); n > 0 {
		return to, at + n - i
	}
	switch rest := text[at:]; {
	case hasByte("nrtfbv", rest[0]) && behindDigit(text, i):
		return '\n', at + 1 - i
	case (rest[0] == 'u' || rest[0] == 'x' || rest[0] == 'N') && len(rest) > 3 && rest[1] == '{':
		end := bytes.IndexByte(rest[:min(len(rest), maxName)], '}')
		if end < 0 {
			return 0, 0
		}
		if rest[0] == 'N' { // \N{NAME}: only names of characters that can separate digits matter
			return ' ', at + end + 1 - i
		}
		return coded(rest[2:end], at+end+1-i)
	case rest[0] == 'u' && len(rest) > 4:
		return coded(rest[1:5], at+5-i)
	case rest[0] == 'U' && len(rest) > 8:
		return coded(rest[1:9], at+9-i)
	}
	return byBytes(text, i)
}

// maxName bounds the text in the braces of an escape, in bytes.
const maxName = 40

// behindDigit reports whether a digit stands before the escape at i; other escapes may stand
// between the two.
func behindDigit(text []byte, i int) bool {
	for range 4 {
		if i == 0 || isDigit(text[i-1]) {
			return i > 0
		}
		if !hasByte("nrtfbv", text[i-1]) || i < 2 || text[i-2] != '\\' {
			return false
		}
		i -= 2
		for i > 0 && text[i-1] == '\\' {
			i--
		}
	}
	return false
}

// coded returns the character with a hexadecimal code, for an escape of size bytes; surrogate
// halves are not characters.
func coded(hex []byte, size int) (rune, int) {
	n, err := strconv.ParseUint(string(hex), 16, 32)
	if err != nil || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return 0, 0
	}
	return drawn(rune(n)), size
}

// drawn returns how an escaped character is drawn: a control character is a line end, a blank or
// nothing.
func drawn(r rune) rune {
	switch {
	case r >= '\n' && r <= '\r':
		return '\n'
	case r == '\t':
		return ' '
	case r < ' ' || r == 0x7f:
		return 0
	}
	return r
}

// byBytes returns the character whose UTF-8 bytes are written as escapes from i on.
func byBytes(text []byte, i int) (to rune, size int) {
	var utf [utf8.UTFMax]byte
	b, size := byteAt(text, i)
	if size == 0 {
		return 0, 0
	}
	if b < utf8.RuneSelf {
		if text[i] == '%' && b < ' ' && (b < '\t' || b > '\r') { // 18%12 is a percentage or a remainder
			return 0, 0
		}
		return drawn(rune(b)), size
	}
	utf[0] = b
	end := i + size
	for k := 1; k < len(utf); k++ {
		b, n := byteAt(text, end)
		if n == 0 || b&0xc0 != 0x80 {
			break
		}
		utf[k], end = b, end+n
		if utf8.FullRune(utf[:k+1]) {
			if r, n := utf8.DecodeRune(utf[:k+1]); n == k+1 {
				return r, end - i
			}
			break
		}
	}
	return rune(utf[0]), size // as in Latin-1
}

// byteAt returns the byte escaped at i: %2D (the % may itself be escaped), \x2d, \055 and, after
// a digit, =2D as in mails. size 0: none.
func byteAt(text []byte, i int) (b byte, size int) {
	if i >= len(text) {
		return 0, 0
	}
	at := i + 1
	switch text[i] {
	case '%':
		for at+4 <= len(text) && text[at] == '2' && text[at+1] == '5' && isHex(text[at+2]) && isHex(text[at+3]) {
			at += 2
		}
	case '=':
		if i == 0 || text[i-1] >= utf8.RuneSelf || !isDigit(text[i-1]) && !hasByte("ABCDEF", text[i-1]) {
			return 0, 0
		}
	case '\\':
		for at < len(text) && text[at] == '\\' && at-i < mostBackslashes {
			at++
		}
		if at+3 <= len(text) && text[at]-'0' <= 3 && text[at+1]-'0' <= 7 && text[at+2]-'0' <= 7 {
			return (text[at]-'0')<<6 | (text[at+1]-'0')<<3 | text[at+2] - '0', at + 3 - i
		}
		if at == len(text) || text[at] != 'x' {
			return 0, 0
		}
		at++
	default:
		return 0, 0
	}
	if at+2 > len(text) || !isHex(text[at]) || !isHex(text[at+1]) {
		return 0, 0
	}
	return hexValue(text[at])<<4 | hexValue(text[at+1]), at + 2 - i
}

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// commands are TeX commands that only style a text, or set a space.
var commands = []struct {
	name string
	to   rune
}{
	{"text", 0}, {"texttt", 0}, {"textbf", 0}, {"textit", 0}, {"textrm", 0}, {"mathrm", 0}, {"mathbf", 0}, {"mathit", 0}, {"mathtt", 0}, {"mathsf", 0}, {"mbox", 0},
	{"emph", 0}, {"underline", 0}, {"quad", ' '}, {"qquad", ' '}, {"enspace", ' '}, {"thinspace", ' '}, {"space", ' '}, {"hfill", ' '},
}

// command reads the name of a command, with a brace or a blank after it.
func command(text []byte) (to rune, size int) {
	end := 0
	for end < len(text) && end < 10 && isLetter(text[end]) {
		end++
	}
	if end < 4 || end == 10 {
		return 0, 0
	}
	for _, c := range commands {
		if c.name == string(text[:end]) {
			if end < len(text) && (text[end] == '{' || text[end] == ' ') {
				end++
			}
			return c.to, end
		}
	}
	return 0, 0
}

// plusOfForm reports whether the plus at i encodes a space between digits of a value in a query
// string: ?name=4111+1111.
func plusOfForm(text []byte, i int) bool {
	if i == 0 || i+1 == len(text) || !isDigit(text[i-1]) || !isDigit(text[i+1]) {
		return false
	}
	at := i
	for at > max(0, i-maxApart) && (isDigit(text[at-1]) || text[at-1] == '+') {
		at--
	}
	if at == 0 || text[at-1] != '=' {
		return false
	}
	at--
	name := at
	for at > max(0, name-maxName) && (isAlnum(text[at-1]) || hasByte("_-.[]%", text[at-1])) {
		at--
	}
	return at > 0 && at < name && (text[at-1] == '?' || text[at-1] == '&')
}
