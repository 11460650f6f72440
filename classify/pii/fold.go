// Characters read as plain ASCII: full-width forms, the digits of other
// scripts, and the many spaces and dashes that stand between digits.

package pii

import (
	"unicode"
	"unicode/utf8"
)

// Results of fold for characters without an ASCII form.
const (
	foreign = 1 // a letter or mark of another script than Latin's ASCII part
	nothing = 2 // drawn as nothing: zero-width characters, soft hyphen
	ideo    = 3 // a character of a script written without spaces
)

// fold returns the character at text[i] as ASCII and how many bytes it takes; 0: a character
// without an ASCII form that ends words.
func fold(text []byte, i int) (c byte, size int) {
	if b := text[i]; b < utf8.RuneSelf {
		return b, 1
	}
	return foldWide(text[i:])
}

// foldWide is a function of its own, so that the compiler inlines fold.
func foldWide(text []byte) (c byte, size int) {
	r, size := utf8.DecodeRune(text)
	return foldRune(r), size
}

// foldBefore is fold for the character that ends at text[:i]; size is 0 at
// the beginning of the text.
func foldBefore(text []byte, i int) (c byte, size int) {
	if i == 0 {
		return 0, 0
	}
	if b := text[i-1]; b < utf8.RuneSelf {
		return b, 1
	}
	r, size := utf8.DecodeLastRune(text[:i])
	return foldRune(r), size
}

// zeros are the code points of the digit zero in the common scripts whose ten digits are
// consecutive (Unicode, general category Nd).
var zeros = [...]rune{
	0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6,
	0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810,
}

func foldRune(r rune) byte {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E:
		return byte(r - 0xFEE0)
	case r >= 0x2E80 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0xF900 && r <= 0xFAFF || r >= 0x20000 && r <= 0x3FFFF:
		switch r {
		case 0x3000:
			return ' '
		case 0x30FB:
			return '.'
		case 0x3001, 0x3002, 0x3008, 0x3009, 0x300A, 0x300B, 0x3010, 0x3011:
			return 0
		case 0x300C, 0x300D, 0x300E, 0x300F: // corner brackets, East Asian quotes
			return '"'
		}
		return ideo
	case r >= 0x1D7CE && r <= 0x1D7FF:
		return '0' + byte((r-0x1D7CE)%10)
	}
	switch r {
	case 0x00A0, 0x1680, 0x202F, 0x205F:
		return ' '
	case 0x20E3: // the keycap of 1️⃣
		return nothing
	case 0x00AD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069:
		return nothing
	case 0x2212, 0xFE58, 0xFE63:
		return '-'
	case 0x00B7, 0x2022, 0x2024, 0x2027:
		return '.'
	case 0x2018, 0x2019, 0x00B4, 0x2039, 0x203A:
		return '\''
	case 0x201C, 0x201D, 0x201E, 0x00AB, 0x00BB:
		return '"'
	case 0x2044, 0x2215:
		return '/'
	}
	if r >= 0xE0000 && r <= 0xE0FFF { // tags and code points reserved as ignorable
		return nothing
	}
	if r >= 0xFE00 && r <= 0xFE0F { // variation selectors: digits are drawn with and without
		return nothing
	}
	if r >= 0x2000 && r <= 0x200A {
		return ' '
	}
	if r >= 0x2010 && r <= 0x2015 {
		return '-'
	}
	for _, zero := range zeros {
		if r < zero {
			break
		}
		if r <= zero+9 {
			return '0' + byte(r-zero)
		}
	}
	if unicode.IsLetter(r) || unicode.IsMark(r) {
		return foreign
	}
	return 0
}

func isDigit(c byte) bool  { return c-'0' <= 9 }
func isUpper(c byte) bool  { return c-'A' <= 25 }
func isLower(c byte) bool  { return c-'a' <= 25 }
func isLetter(c byte) bool { return c|0x20-'a' <= 25 }
func isAlnum(c byte) bool  { return isDigit(c) || isLetter(c) }
func isHex(c byte) bool    { return isDigit(c) || c|0x20-'a' <= 5 }

// wordy reports whether c (a result of fold) would continue a word or number that it touches.
// Ideographs do not: Chinese text writes a number directly after a word.
func wordy(c byte) bool { return isAlnum(c) || c == '_' || c == foreign }

// ends reports whether a value that ends at text[:i] is complete there.
func ends(text []byte, i int) bool {
	if i >= len(text) {
		return true
	}
	c, _ := fold(text, i)
	return !wordy(c)
}

// begins reports whether a value that begins at text[i] is complete there.
func begins(text []byte, i int) bool {
	c, _ := foldBefore(text, i)
	return !wordy(c)
}

// at returns the folded character at i, 0 outside the text.
func charAt(text []byte, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	c, _ := fold(text, i)
	return c
}
