// Tokens: an estimate of how many a text has, without a tokenizer.

package classify

import "unicode/utf8"

// Tokens that a letter costs, by script, as the tokenizers of current models
// have it (vocabularies of 100,000 to 250,000): a common English word is one, a
// Chinese letter two thirds.
const (
	perWord     = 0.9  // the first six Latin letters of a word, its space included
	perLetter   = 0.22 // each more
	perDigit    = 0.4
	perMark     = 0.6  // punctuation
	perHan      = 0.68 // also kana, Hangul
	perCyrillic = 0.31
	perAccented = 0.45 // Latin letters beyond ASCII
	perOther    = 0.55 // other alphabets
	perNewline  = 0.5
)

// estimate is how many tokens a text has, roughly.
func estimate(text []byte) (n float64) {
	word := 0 // letters so far
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		i += size
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (r < 0xc0 || r >= 0x250) {
			word = 0
		}
		switch {
		case letter:
			switch word++; {
			case word == 1:
				n += perWord
			case word > 6:
				n += perLetter
			}
		case r == '\n':
			n += perNewline
		case r == ' ' || r == '\t' || r == '\r':
		case '0' <= r && r <= '9':
			n += perDigit
		case r < utf8.RuneSelf:
			n += perMark
		case r < 0x250:
			n += perAccented
			word++
		case 0x400 <= r && r < 0x530:
			n += perCyrillic
		case r >= 0x2e80 && unspaced(r):
			n += perHan
		default:
			n += perOther
		}
	}
	return n
}
