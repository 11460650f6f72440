// Normalising: which questions have the same text.

package cache

import (
	"bytes"
	"unicode"
)

// normalise drops white space that no answer depends on and that clients add by accident: after
// the text, blank lines before it, and, for a text of one line, its indentation.
//
// Everything else stays, because equal texts are not verified:
//   - the first line's indentation where more lines follow: it may be code, and
//     Python means another thing without it;
//   - case, line ends and runs of spaces within: they may be code, a table or a
//     quotation, and somebody asks how many there are;
//   - the form of letters, as of \u00e9 in one code point or two: a question may
//     be about just that, and one client sends one form.
//
// What differs only in these is found by its embedding, and verified.
func normalise(text []byte) []byte {
	trimmed := bytes.TrimSpace(text)
	if bytes.IndexByte(trimmed, '\n') < 0 {
		return trimmed
	}
	first := len(text) - len(bytes.TrimLeftFunc(text, unicode.IsSpace)) // the first character that is not white space
	line := bytes.LastIndexByte(text[:first], '\n') + 1
	return text[line : first+len(trimmed)]
}

// Unshouted returns the text that is embedded for a question: lower case if the question is all
// capitals, which the embedding would mistake for another language; otherwise the question
// itself, not a copy. The verification, which sees the question as written, decides whether case
// matters.
func Unshouted(text []byte) []byte {
	letters, capitals := 0, 0
	for _, b := range text {
		switch {
		case 'A' <= b && b <= 'Z':
			capitals++
			letters++
		case 'a' <= b && b <= 'z':
			letters++
		}
	}
	if letters < leastShouted || capitals*10 <= letters*7 {
		return text
	}
	return bytes.ToLower(text)
}

// leastShouted: a text of fewer capital letters than this may be an abbreviation.
const leastShouted = 8
