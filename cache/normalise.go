// Which questions have the same text.

package cache

import (
	"bytes"
	"unicode"
)

// normalise drops what no answer depends on, and clients add by accident: white
// space after the text, lines of white space before it, and before a text of
// one line also what that line is indented by.
//
// All else stays, for equal texts are not verified:
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
	first := len(text) - len(bytes.TrimLeftFunc(text, unicode.IsSpace)) // that is no space
	line := bytes.LastIndexByte(text[:first], '\n') + 1
	return text[line : first+len(trimmed)]
}

// Unshouted returns the text to embed a question by: in small letters if it is
// written in capitals, which an embedding takes for another language, and the
// question itself, not a copy, if it is not. Whether the letters' case means
// anything is for the verification, which sees the question as it was written.
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

// leastShouted is how many letters a text has that is written in capitals, and
// no abbreviation.
const leastShouted = 8
