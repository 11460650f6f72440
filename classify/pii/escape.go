// Escapes: what characters are written as in programs, addresses, mails and TeX.

package pii

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// mostBackslashes is how many may stand before an escape: a text of JSON in a text
// of JSON, and so on, has 1, 2, 4.
const mostBackslashes = 4

// escaped is what the escape at i stands for, which begins with a backslash or
// more, and its bytes; size 0: there is none. The arguments of a call are such a
// text, and a model is shown them read. What moves the place of writing counts
// behind a digit alone: paths have \n in them, too.
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
		if rest[0] == 'N' { // the name of a character; of those that stand between digits nothing else matters
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

// maxName is how long what stands in the braces of an escape may be, in bytes.
const maxName = 40

// behindDigit says whether a digit stands before the escape at i, or one and other
// escapes.
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

// coded is the character with a code in hexadecimal digits, where it takes size
// bytes; halves of pairs are none.
func coded(hex []byte, size int) (rune, int) {
	n, err := strconv.ParseUint(string(hex), 16, 32)
	if err != nil || n > 0x10ffff || n >= 0xd800 && n < 0xe000 {
		return 0, 0
	}
	return drawn(rune(n)), size
}

// drawn is what a character is drawn as where it was written as an escape: a
// control is the end of a line, a blank or nothing.
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

// byBytes is the character whose bytes in UTF-8 are written one by one from i on.
func byBytes(text []byte, i int) (to rune, size int) {
	var utf [utf8.UTFMax]byte
	b, size := byteAt(text, i)
	if size == 0 {
		return 0, 0
	}
	if b < utf8.RuneSelf {
		if text[i] == '%' && b < ' ' && (b < '\t' || b > '\r') { // 18%12 is a share
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

// byteAt is the byte that is written at i: %2D, where the sign may be written so
// itself, \x2d, \055, and =2D behind a digit, as in mails. size 0: there is none.
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

// commands of TeX that dress a text, or set a space.
var commands = []struct {
	name string
	to   rune
}{
	{"text", 0}, {"texttt", 0}, {"textbf", 0}, {"textit", 0}, {"textrm", 0}, {"mathrm", 0}, {"mathbf", 0}, {"mathit", 0}, {"mathtt", 0}, {"mathsf", 0}, {"mbox", 0},
	{"emph", 0}, {"underline", 0}, {"quad", ' '}, {"qquad", ' '}, {"enspace", ' '}, {"thinspace", ' '}, {"space", ' '}, {"hfill", ' '},
}

// command reads the name of a command, with a brace or a blank behind it.
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

// plusOfForm says whether the plus at i is a blank between digits of a value in a
// query string: ?name=4111+1111.
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
