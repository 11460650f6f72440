// Suspicious: whether a text has anything to fold, in one pass and without a
// copy.

package classify

import "unicode/utf8"

// Bounds from which on a stretch of text is taken for an encoded one.
const (
	minRun      = 16  // letters of base64 or hex
	minEscapes  = 3   // %69, \x69, \u0069, &#105;
	minSpaced   = 5   // single letters in a row
	minReadable = 10  // bytes of decoded text: noise is seldom readable for so long
	sureRun     = 512 // letters of a run that is not readable by chance
	minShifted  = 14  // where base64 was looked for at each of four places
)

// Classes of ASCII bytes.
const (
	classLetter = 1 << iota
	classDigit
	classCode   // of the alphabets of base64 and hex
	classEscape // begins one
	classGap    // may stand between spaced letters
	classHidden // controls but for white space
)

var byteClass = func() (class [utf8.RuneSelf]uint8) {
	for b := range class {
		switch c := byte(b); {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			class[b] = classLetter | classCode
		case '0' <= c && c <= '9':
			class[b] = classDigit | classCode
		case c == '+' || c == '/':
			class[b] = classCode
		case c == '-' || c == '_':
			class[b] = classCode | classGap
		case c == '%' || c == '\\' || c == '&':
			class[b] = classEscape
		case c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f:
			class[b] = classHidden
		case c == ' ' || c == '.' || c == '*' || c == '|' || c == ',':
			class[b] = classGap
		}
	}
	return class
}()

// suspicious says whether the text has letters to fold, and whether it has
// stretches that may be encoded or spaced out.
func suspicious(text []byte) (letters, runs bool) {
	code, word, gap, singles, escapes := 0, 0, 0, 0, 0
	var before rune
	latin, foreign := false, false // in the word under way
	for i := 0; i < len(text); i++ {
		if b := text[i]; b < utf8.RuneSelf {
			class := byteClass[b]
			if class&classHidden != 0 {
				letters = true
				continue
			}
			if class&classCode != 0 {
				if code++; code == minRun {
					runs = true
				}
			} else {
				code = 0
			}
			switch {
			case class&classLetter != 0:
				if word++; word == 1 && gap > 3 {
					singles = 0
				}
				gap, latin = 0, true
				letters = letters || foreign
			case word > 0 || latin || foreign:
				if singles++; word != 1 || class&classGap == 0 {
					singles = 0
				}
				runs = runs || singles >= minSpaced-1
				word, gap, latin, foreign = 0, 1, false, false
			default:
				if gap++; class&classGap == 0 {
					singles = 0
				}
			}
			if class&classEscape != 0 && escapeLen(text[i:]) > 0 {
				if escapes++; escapes == minEscapes {
					runs = true
				}
			}
			before = rune(b)
			continue
		}
		code = 0
		if b := text[i]; b >= 0xe4 && b <= 0xe9 && i+2 < len(text) && text[i+1]&0xc0 == 0x80 && text[i+2]&0xc0 == 0x80 { // most Chinese letters
			before = 0x4e00
			word, singles, latin, foreign = 0, 0, false, false
			i += 2
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n - 1
		switch {
		case isForeign(r):
			foreign = true
			letters = letters || latin
			word++
		case isLatin(r):
			latin = true
			letters = letters || foreign
			word++
		case isMarkNoise(r):
			letters = true
		case isVariation(r):
			letters = letters || !(isEmojiLike(before) && n == 3)
		case plainLetter(r, before) != r:
			letters = true
		default:
			word, singles, latin, foreign = 0, 0, false, false
		}
		before = r
	}
	return letters, runs
}

// escapeLen is how long an escape at the beginning of the text is; 0: there is
// none.
func escapeLen(text []byte) int {
	_, n := escape(text)
	return n
}

// escape reads an escape of a URL, a string or HTML: its value, a byte for %69
// and \x69, and its length.
func escape(text []byte) (r rune, n int) {
	switch {
	case len(text) < 3:
	case text[0] == '%':
		return hexRune(text, 1, 2)
	case text[0] == '\\' && text[1] == 'x':
		return hexRune(text, 2, 2)
	case text[0] == '\\' && text[1] == 'u':
		return hexRune(text, 2, 4)
	case text[0] == '&' && text[1] == '#':
		return reference(text)
	}
	return 0, 0
}

func hexRune(text []byte, at, digits int) (r rune, n int) {
	if len(text) < at+digits {
		return 0, 0
	}
	for _, b := range text[at : at+digits] {
		v := nibble(b)
		if v < 0 {
			return 0, 0
		}
		r = r<<4 | rune(v)
	}
	return r, at + digits
}

// reference reads &#105; or &#x69;.
func reference(text []byte) (r rune, n int) {
	i, base := 2, rune(10)
	if text[i] == 'x' || text[i] == 'X' {
		i, base = 3, 16
	}
	for first := i; i < len(text) && i < first+6; i++ {
		v := rune(nibble(text[i]))
		if v < 0 || v >= base {
			if text[i] == ';' && i > first {
				return r, i + 1
			}
			return 0, 0
		}
		r = r*base + v
	}
	return 0, 0
}

func nibble(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}
