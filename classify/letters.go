// Letters: which ones are invisible, dressed up or borrowed, and what they
// stand for.

package classify

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// gone stands for a letter that is left out.
const gone rune = -1

// plainLetter is what a letter stands for, itself for most: no letter at all
// for what cannot be seen, a Latin one for the mathematical, enclosed,
// full-width and small-capital alphabets. before is the letter before.
func plainLetter(r, before rune) rune {
	switch {
	case r < 0x2000:
		return plainEarly(r)
	case r < 0x2070:
		return plainSpace(r, before)
	case r < 0x2500:
		return plainSymbol(r)
	case r < 0xa730:
		switch r {
		case 0x3164: // Hangul filler
			return gone
		case 0x2800: // Braille without dots
			return ' '
		}
	case r < 0x10000:
		return plainWide(r)
	case r < 0x1d400:
		if r >= 0x1bca0 && r <= 0x1bca3 || r >= 0x1d173 && r <= 0x1d17a { // marks of shorthand and music that are not drawn
			return gone
		}
	case r <= 0x1d6a3:
		return latin((r - 0x1d400) % 52)
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return '0' + (r-0x1d7ce)%10
	case r >= 0x1f110 && r <= 0x1f129:
		return 'A' + r - 0x1f110
	case r >= 0x1f130 && r <= 0x1f149:
		return 'A' + r - 0x1f130
	case r >= 0x1f150 && r <= 0x1f169:
		return 'A' + r - 0x1f150
	case r >= 0x1f170 && r <= 0x1f189:
		return 'A' + r - 0x1f170
	case r >= 0x1f1e6 && r <= 0x1f1ff: // regional indicators: flags, or letters
		return 'A' + r - 0x1f1e6
	case r >= 0xe0020 && r <= 0xe007e: // tags: invisible ASCII
		if before == 0x1f3f4 { // the flags of England, Scotland, Wales
			return gone
		}
		return r - 0xe0000
	case r >= 0xe0000 && r <= 0xe0fff && !isVariation(r): // the other tags, and what is set aside to be ignored
		return gone
	}
	return r
}

func latin(i rune) rune {
	if i < 26 {
		return 'A' + i
	}
	return 'a' + i - 26
}

func plainEarly(r rune) rune {
	switch r {
	case '\n', '\t', '\r':
		return r
	case '\v', '\f', 0x85:
		return '\n'
	case 0x1c, 0x1d, 0x1e, 0x1f: // between fields and records
		return ' '
	case 0xa0:
		return ' '
	case 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180c, 0x180d, 0x180e, 0x180f:
		return gone
	}
	switch {
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return gone
	case r >= 0x262:
		return dressed(r)
	}
	return r
}

func plainSpace(r, before rune) rune {
	switch {
	case r <= 0x200a || r == 0x202f || r == 0x205f:
		return ' '
	case r == 0x200c || r == 0x200d: // joiners: Persian, the scripts of India and emoji need them
		if before >= 0x600 {
			return r
		}
		return gone
	case r == 0x2028 || r == 0x2029:
		return '\n'
	case r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060:
		return gone
	}
	return r
}

func plainSymbol(r rune) rune {
	switch {
	case r >= 0x249c && r <= 0x24b5:
		return 'a' + r - 0x249c
	case r >= 0x24b6 && r <= 0x24cf:
		return 'A' + r - 0x24b6
	case r >= 0x24d0 && r <= 0x24e9:
		return 'a' + r - 0x24d0
	}
	return dressed(r)
}

func plainWide(r rune) rune {
	switch {
	case r == 0xfeff || r == 0xffa0 || r >= 0xfff0 && r <= 0xfffb:
		return gone
	case r >= 0xff10 && r <= 0xff19, r >= 0xff21 && r <= 0xff3a, r >= 0xff41 && r <= 0xff5a:
		return r - 0xfee0
	case r == '＠' || r == '．' || r == '－' || r == '＿' || r == '＋' || r == '／' || r == '＃' || r == '＄' || r == '％' || r == '＆' || r == '＝':
		return r - 0xfee0
	}
	return dressed(r)
}

// dressedLetters are pairs of a letter and what it stands for: small capitals,
// raised and letter-like ones.
var dressedLetters = pairs("ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz" +
	"ᵃaᵇbᶜcᵈdᵉeᶠfᵍgʰhⁱiʲjᵏkˡlᵐmⁿnᵒoᵖpʳrˢsᵗtᵘuᵛvʷwˣxʸyᶻz" +
	"ℂCℊgℋHℌHℍHℎhℐIℑIℒLℓlℕNℙPℚQℛRℜRℝRℤZℨZℬBℭCℯeℰEℱFℳMℴoℹi")

// lookalikes are Cyrillic and Greek letters and the Latin ones they look like.
var lookalikes = pairs("аaеeоoрpсcуyхxіiїiјjѕsһhԁdԛqԝwкkмmтtнnвvгrиuпnьb" +
	"АAВBЕEКKМMНHОOРPСCТTУYХXІIЇIЈJЅSԚQԜWЗ3" +
	"αaβbεeηnιiκkνvοoρpτtυuχxγyωwϲcϳj" +
	"ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX")

// pairs makes a sorted table from letters that take turns.
func pairs(s string) (table [][2]rune) {
	letters := []rune(s)
	for i := 0; i+1 < len(letters); i += 2 {
		table = append(table, [2]rune{letters[i], letters[i+1]})
	}
	slices.SortFunc(table, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	return table
}

func lookUp(table [][2]rune, r rune) rune {
	i, ok := slices.BinarySearchFunc(table, r, func(p [2]rune, r rune) int { return int(p[0] - r) })
	if !ok {
		return 0
	}
	return table[i][1]
}

func dressed(r rune) rune {
	if to := lookUp(dressedLetters, r); to != 0 {
		return to
	}
	return r
}

// lookalike is the Latin letter that a Cyrillic or Greek one looks like; 0: none.
func lookalike(r rune) rune {
	if r < 0x391 || r > 0x51d {
		return 0
	}
	return lookUp(lookalikes, r)
}

// isForeign says that a letter is Greek or Cyrillic.
func isForeign(r rune) bool { return r >= 0x370 && r <= 0x52f && unicode.IsLetter(r) }

func isLatin(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 0xc0 && r < 0x250 && r != 0xd7 && r != 0xf7
}

// borrowed says that the word around i is Latin with look-alikes among its
// letters. A word of one script is what it is, and one with a letter that looks
// like no Latin one was not meant to pass for Latin.
func borrowed(text []byte, i int) (end int, yes bool) {
	start := i
	for start > 0 {
		r, n := utf8.DecodeLastRune(text[:start])
		if !isLatin(r) && !isForeign(r) && plainLetter(r, 'a') != gone {
			break
		}
		start -= n
	}
	hasLatin, alike := false, true
	for end = start; end < len(text); {
		r, n := utf8.DecodeRune(text[end:])
		switch {
		case isLatin(r):
			hasLatin = true
		case isForeign(r):
			alike = alike && lookalike(r) != 0
		case plainLetter(r, 'a') != gone:
			return end, hasLatin && alike
		}
		end += n
	}
	return end, hasLatin && alike
}

// isMarkNoise says that a letter is a mark on the one before, of those that
// Latin letters bear.
func isMarkNoise(r rune) bool {
	return r >= 0x300 && r <= 0x36f && r != 0x34f || r >= 0x1ab0 && r <= 0x1aff || r >= 0x1dc0 && r <= 0x1dff ||
		r >= 0x20d0 && r <= 0x20f0 || r >= 0xfe20 && r <= 0xfe2f
}

// isOrthographic says that a language is written with this mark.
func isOrthographic(r rune) bool {
	return r <= 0x304 || r >= 0x306 && r <= 0x30c || r == 0x30f || r == 0x311 || r == 0x313 || r == 0x314 || r == 0x31b ||
		r >= 0x323 && r <= 0x328 || r >= 0x32d && r <= 0x331 || r == 0x342 || r == 0x345 || r == 0x358 || r == 0x20e3
}

func isVariation(r rune) bool {
	return r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef
}

// isEmojiLike says that a variation selector has its place after this letter.
func isEmojiLike(r rune) bool {
	return r >= 0x2000 && !isVariation(r) || r == '#' || r == '*' || '0' <= r && r <= '9' || r == 0xa9 || r == 0xae
}
