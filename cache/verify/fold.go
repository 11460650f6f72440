// Fold: different spellings of the same text become equal: case, full-width forms, typographic
// quotes, accents, traditional characters.

package verify

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed lists/simplified.txt
var simplifiedList string

// simplified maps traditional Chinese characters to their simplified forms.
type simplified map[rune]rune

func readSimplified(list string) simplified {
	table := make(simplified, 4096)
	var first rune
	for line := range lines(list) {
		for _, r := range line {
			if first == 0 {
				first = r
				continue
			}
			table[first], first = r, 0
		}
	}
	return table
}

// fold returns the form under which a character is compared.
func (s simplified) fold(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	case 0xff01 <= r && r <= 0xff5e: // full-width ASCII
		return s.fold(r - 0xfee0)
	case 0x4e00 <= r && r <= 0x9fff:
		if to, ok := s[r]; ok {
			return to
		}
		return r
	}
	if to := folded(r); to != 0 {
		return to
	}
	return unaccented(unicode.ToLower(r))
}

// folded returns the plain form of a sign; 0: none.
func folded(r rune) rune {
	switch r {
	case '‘', '’', '‛', 'ʼ', '`', '´':
		return '\''
	case '“', '”', '„', '‟', '«', '»', '「', '」', '『', '』', '《', '》', '〈', '〉':
		return '"'
	case '–', '—', '−', '‐', '‑', '―':
		return '-'
	case '\u00a0', '\u2007', '\u2009', '\u202f', '\u3000':
		return ' '
	case '。':
		return '.'
	case '、':
		return ','
	case '×', '✕', '·', '∗':
		return '*'
	case '÷':
		return '/'
	case '⁰', '₀':
		return '0'
	case '¹', '₁':
		return '1'
	case '²', '₂':
		return '2'
	case '³', '₃':
		return '3'
	case '⁴', '₄':
		return '4'
	}
	return 0
}

// accents are the Latin-1 letters from U+00E0 on, without their accents.
const accents = "aaaaaaaceeeeiiiidnooooo/ouuuuyty"

func unaccented(r rune) rune {
	if 0xe0 <= r && r <= 0xff && r != 0xf7 {
		return rune(accents[r-0xe0])
	}
	return r
}

//go:embed lists/composed.txt
var composedList string

// accented maps a letter and an accent to the code point of both together. With an accent of 0 it
// maps the composed letter to its parts.
type accented map[[2]rune][2]rune

func readComposed(list string) accented {
	table := make(accented, 1024)
	for line := range lines(list) {
		code, pairs, _ := strings.Cut(line, " ")
		accent, err := strconv.ParseInt(code, 16, 32)
		if err != nil {
			continue // a bad line; a test counts the good ones
		}
		var letter rune
		for _, r := range pairs {
			if letter == 0 {
				letter = r
				continue
			}
			table[[2]rune{letter, rune(accent)}] = [2]rune{r}
			table[[2]rune{r}] = [2]rune{letter, rune(accent)}
			letter = 0
		}
	}
	return table
}

// with returns the code point of letter r with an accent; 0: none. In Unicode's order an accent
// below the letter comes first, whichever was typed first.
func (t accented) with(r, accent rune) rune {
	r = unicode.ToLower(r)
	if to, ok := t[[2]rune{r, accent}]; ok {
		return to[0]
	}
	if accent < 0x31b {
		return 0
	}
	parts, ok := t[[2]rune{r}]
	if !ok || parts[1] >= 0x31b {
		return 0
	}
	return t[[2]rune{t[[2]rune{parts[0], accent}][0], parts[1]}][0]
}

// isIdeograph reports whether a character belongs to a script without spaces between words. Each
// such character is one piece.
func isIdeograph(r rune) bool {
	return r >= 0x0e00 && (r <= 0x0eff || // Thai, Lao
		0x1780 <= r && r <= 0x17ff || // Khmer
		0x3040 <= r && r <= 0x30ff || // kana
		0x3400 <= r && r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0x20000 <= r && r <= 0x3ffff)
}
