// Package unseen finds characters in a text that no reader sees: zero-width characters, tags,
// variation selectors, direction controls, fillers. A model reads them all, so a text can say one
// thing to a person and another to a model.
//
//	if n := unseen.Count(text); n > 0 { ... }
//
// Legitimate uses of such characters are not counted: see Count.
package unseen

import (
	"unicode"
	"unicode/utf8"
)

// Count returns how many characters of the text are unseen: those that Unicode says to ignore if
// they cannot be drawn (Default_Ignorable_Code_Point), blank Braille cells, controls other than
// white space, and excess combining marks on one letter, which are drawn over each other: more
// than two, or four in Hebrew and Arabic. It does not count the following, if they stand alone
// and in a legitimate place:
//
//   - a variation selector behind an emoji, a keycap's digit or a Mongolian letter;
//   - a joiner between two emoji, and a joiner or non-joiner between two letters
//     of a script that needs them, such as those of Persian and Hindi;
//   - the tags of the flags of England, Scotland and Wales.
func Count(text []byte) (n int) {
	var before rune // the character directly before, if it is visible or legitimate; 0: none
	marks := 0      // number of marks on the letter before
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			for i++; i < len(text) && b-' ' <= '~'-' '; i++ {
				b = text[i]
			}
			// b is the first non-ASCII byte, or the last byte of the text
			if b >= utf8.RuneSelf {
				i--
			} else if b < ' ' && b != '\n' && b != '\t' && b != '\r' || b == 0x7f {
				n++
			}
			before, marks = rune(text[i-1]), 0
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r >= 0x3165 && r < 0xfe00 { // most East Asian characters
			before, marks = r, 0
			i += size
			continue
		}
		if most := mostMarks(r); most == 0 {
			marks = 0
		} else if marks++; marks > most && !hidden(r) {
			n++
		}
		if hidden(r) {
			if flag := flagTags(before, text[i:]); flag > 0 {
				size = flag
			} else if !placed(before, r, text[i+size:]) {
				n++
				r = 0
			}
		}
		before = r
		i += size
	}
	return n
}

const (
	nonJoiner  = 0x200c
	joiner     = 0x200d
	asText     = 0xfe0e // variation selectors 15 and 16: draw as text, as emoji
	asEmoji    = 0xfe0f
	keycap     = 0x20e3
	blackFlag  = 0x1f3f4
	blankCells = 0x2800
)

// ignorable is Default_Ignorable_Code_Point (Unicode 16, DerivedCoreProperties).
var ignorable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00ad, 0x00ad, 1}, {0x034f, 0x034f, 1}, {0x061c, 0x061c, 1}, {0x115f, 0x1160, 1}, {0x17b4, 0x17b5, 1},
		{0x180b, 0x180f, 1}, {0x200b, 0x200f, 1}, {0x202a, 0x202e, 1}, {0x2060, 0x206f, 1}, {0x3164, 0x3164, 1},
		{0xfe00, 0xfe0f, 1}, {0xfeff, 0xfeff, 1}, {0xffa0, 0xffa0, 1}, {0xfff0, 0xfff8, 1},
	},
	R32:         []unicode.Range32{{0x1bca0, 0x1bca3, 1}, {0x1d173, 0x1d17a, 1}, {0xe0000, 0xe0fff, 1}},
	LatinOffset: 1,
}

// hidden reports that a character is not drawn, whatever its place. r is not ASCII.
func hidden(r rune) bool {
	switch {
	case r < 0xa0:
		return r != 0x85 // a line end among the controls
	case r == blankCells, r >= 0xfff9 && r <= 0xfffb: // marks of annotations
		return true
	}
	return unicode.Is(ignorable, r)
}

// mostMarks returns how many marks of the kind of r may stand on one letter; 0: r is not such a
// mark. Marks of Indian and South East Asian scripts do not count as such: they are vowels and
// the like, and each is read.
func mostMarks(r rune) int {
	switch {
	case r < 0x300:
		return 0
	case r < 0x370, r >= 0x483 && r <= 0x489, r >= 0x1ab0 && r <= 0x1aff, r >= 0x1dc0 && r <= 0x1dff,
		r >= 0x20d0 && r <= 0x20ff, r >= 0xfe20 && r <= 0xfe2f:
		return 2
	case r >= 0x591 && r <= 0x5c7, r >= 0x610 && r <= 0x61a, r >= 0x64b && r <= 0x65f, r >= 0x6d6 && r <= 0x6ed, r >= 0x8ca && r <= 0x8ff:
		if unicode.IsMark(r) {
			return 4
		}
	}
	return 0
}

// placed reports that a hidden character between before and rest belongs to their spelling.
func placed(before, r rune, rest []byte) bool {
	after, _ := utf8.DecodeRune(rest)
	switch {
	case r == asText || r == asEmoji:
		return isEmoji(before) || after == keycap && (before >= '0' && before <= '9' || before == '#' || before == '*')
	case r == joiner && (isEmoji(before) || before == asEmoji):
		return isEmoji(after)
	case r == joiner || r == nonJoiner:
		return joins(before) && joins(after)
	case r >= 0x180b && r <= 0x180f:
		return before >= 0x1820 && before <= 0x18aa
	case r == blankCells:
		return before >= blankCells && before <= 0x28ff || after > blankCells && after <= 0x28ff
	}
	return false
}

// flagTags returns the length, in bytes, of the tags at the beginning of the text if, after a
// black flag, they make one of the three flags; 0: they do not.
func flagTags(before rune, text []byte) int {
	if before != blackFlag {
		return 0
	}
	for _, flag := range [...]string{
		"\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
		"\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
	} {
		if len(text) >= len(flag) && string(text[:len(flag)]) == flag {
			return len(flag)
		}
	}
	return 0
}

// isEmoji reports that a character may be drawn as an emoji, or is a skin colour.
func isEmoji(r rune) bool {
	switch {
	case r < 0x2000:
		return r == 0xa9 || r == 0xae
	case r < 0x3000:
		return r == 0x203c || r == 0x2049 || r == 0x2122 || r == 0x2139 || r >= 0x2194 && r <= 0x21aa || r >= 0x231a && r <= 0x23ff ||
			r == 0x24c2 || r >= 0x25aa && r <= 0x25fe || r >= 0x2600 && r <= 0x27bf || r == 0x2934 || r == 0x2935 || r >= 0x2b05 && r <= 0x2b55
	}
	return r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299 || r >= 0x1f000 && r <= 0x1faff
}

// joins reports that a letter or mark belongs to a script in which invisible characters join
// letters or keep them apart.
func joins(r rune) bool {
	switch {
	case r >= 0x0620 && r < 0x0e00, r >= 0x0f00 && r < 0x10a0, r >= 0x1780 && r < 0x18b0, // Arabic to Sinhala, Tibetan, Myanmar, Khmer, Mongolian
		r >= 0xa800 && r < 0xaa60, r >= 0xfb50 && r < 0xfe00, r >= 0xfe70 && r < 0xfeff, r >= 0x11000 && r < 0x12000:
		return unicode.IsLetter(r) || unicode.IsMark(r)
	}
	return false
}
