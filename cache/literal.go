// Literal questions: those that only the very same bytes may answer.

package cache

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"kvasir/unseen"
)

// Why only the same bytes answer a question: values of Result.Why.
const (
	WhyHidden = "hidden" // it has characters that a model reads and the comparison does not
	WhyShort  = "short"  // it has no words, or one: emoji, marks, numbers, "ok"
	WhyNoise  = "noise"  // its letters are drawn by chance
)

// Literal says why a question is answered, and answers, by equal bytes alone; "":
// similar questions are good enough. An embedding does not see hidden characters, so
// a question that has some would lie right beside the plain one and put words into
// its answer. And questions that say next to nothing all lie close together, a pizza
// beside an angry face.
func Literal(text []byte) (why string) {
	switch w := readWords(text); {
	case unseen.Count(text) > 0 || oddlySpaced(text) || oddlyDrawn(text):
		return WhyHidden
	case w.words < 2 || !w.said:
		return WhyShort
	case w.isNoise():
		return WhyNoise
	}
	return ""
}

// mostSpace is how much needless white space a text may have, in bytes.
const mostSpace = 32

// oddlySpaced says that the text has white space, around or in it, of a kind that
// people do not type, or so much that it could spell something. Comparing questions
// ignores most white space.
func oddlySpaced(text []byte) bool {
	spare := 0
	for i := 0; i < len(text); {
		if b := text[i]; b > ' ' && b < utf8.RuneSelf || b == ' ' && i+1 < len(text) && text[i+1]-'!' < utf8.RuneSelf-'!' {
			i++
			continue
		}
		gap := text[i : len(text)-len(bytes.TrimLeftFunc(text[i:], unicode.IsSpace))]
		if len(gap) == 0 {
			_, size := utf8.DecodeRune(text[i:])
			i += size
			continue
		}
		i += len(gap)
		n, typed := spareSpace(gap, i == len(text))
		if spare += n; !typed || spare > mostSpace {
			return true
		}
	}
	return false
}

// spareSpace is how many bytes of the gap between two words, or behind the last, are
// needless: all but the blank that parts the words, the end of an empty line and the
// indentation of the next line. Of white space beyond ASCII, which French and Chinese
// use, people type one at a time.
func spareSpace(gap []byte, last bool) (n int, typed bool) {
	if r, size := utf8.DecodeRune(gap); r >= utf8.RuneSelf {
		return 0, size == len(gap) && (r == 0xa0 || r == 0x202f || r == 0x3000)
	}
	if bytes.IndexFunc(gap, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return 0, false
	}
	end := bytes.LastIndexByte(gap, '\n') + 1
	if indent := gap[end:]; end > 0 && !last && len(indent) <= mostIndent && len(bytes.Trim(indent, " "))*len(bytes.Trim(indent, "\t")) == 0 {
		gap = gap[:end]
	}
	return len(gap) - min(2, max(1, bytes.Count(gap, []byte{'\n'}))), true
}

// mostIndent is how far a line of code is indented, by blanks alone or tabs alone.
const mostIndent = 64

// oddlyDrawn says that the text has characters that fonts draw differently or not at
// all: of private use, not assigned, the place of an object, a ring around the letter
// before.
func oddlyDrawn(text []byte) bool {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if !unicode.IsGraphic(r) && !unicode.In(r, unicode.Cf, unicode.Cc) ||
			r == 0xfffc || r == 0x1d159 || // an object, a note without a head
			unicode.Is(unicode.Me, r) && r != 0x20e3 { // a keycap is an emoji's
			return true
		}
	}
	return false
}

// wordCount is what a text is made of. A run of letters and digits is a word, of
// a script that is written without spaces each two letters.
type wordCount struct {
	words int  // of any script
	said  bool // there is a letter among them
	other int  // of scripts but the Latin one
	latin int  // of three and more letters, a to z
	odd   int  // of those, the ones that nobody can say
}

// isNoise says that most of what could be Latin words are letters drawn by chance.
func (w *wordCount) isNoise() bool {
	if w.other > 0 {
		return 2*w.odd > w.latin && 2*w.latin > w.words
	}
	return 2*w.odd > w.latin || w.latin == 0
}

// A lettering is the script of a letter, as far as it matters here.
type lettering uint8

const (
	noLetter lettering = iota
	numeral
	latin
	spaced   // another script with spaces between words, or an accented letter
	unspaced // a script without
)

// readWords counts until it knows enough: a long text has words.
func readWords(text []byte) (w wordCount) {
	const enough = 64
	lone := 0 // letters without spaces so far
	before := noLetter
	for i := 0; i < len(text) && w.words < enough; {
		kind, size := letteringAt(text[i:])
		w.said = w.said || kind > numeral
		switch {
		case kind == unspaced:
			if lone++; lone%2 == 0 {
				w.words++
				w.other++
			}
		case kind != noLetter && (before == noLetter || before == unspaced):
			w.words++
		}
		if kind == spaced && before != spaced {
			w.other++
		}
		if kind == latin {
			for size < len(text)-i && text[i+size]|0x20-'a' <= 25 {
				size++
			}
			after := noLetter
			if i+size < len(text) {
				after, _ = letteringAt(text[i+size:])
			}
			if (before == noLetter || before == unspaced) && (after == noLetter || after == unspaced) { // no part of "café", "x86"
				w.addLatin(text[i : i+size])
			}
		}
		before = kind
		i += size
	}
	return w
}

func letteringAt(text []byte) (kind lettering, size int) {
	b := text[0]
	switch {
	case b|0x20-'a' <= 25:
		return latin, 1
	case b-'0' <= 9:
		return numeral, 1
	case b < utf8.RuneSelf:
		return noLetter, 1
	}
	r, size := utf8.DecodeRune(text)
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unspaced, size
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return spaced, size
	}
	return noLetter, size
}

// addLatin counts a word of the letters a to z.
func (w *wordCount) addLatin(run []byte) {
	if len(run) < 3 {
		return
	}
	w.latin++
	vowel, odd := false, false
	for i, c := range run {
		c |= 0x20
		vowel = vowel || bytes.IndexByte([]byte("aeiouy"), c) >= 0
		odd = odd || i > 0 && strangers[run[i-1]|0x20-'a']>>(c-'a')&1 == 1
	}
	if odd || !vowel && len(run) > 3 {
		w.odd++
	}
}

// strangers are the letters that follow a letter less often than once in 12,500
// pairs of the words of 60,000 questions and other texts in some ten languages,
// by the first. Of texts of 2 to 6 words of 3 to 8 letters drawn by chance 94 %
// are noise by them, of 15,217 written questions 3.
var strangers = func() (set [26]uint32) {
	for i, letters := range [...]string{
		"", "dfgkpqvwxz", "fgqvwx", "kqx", "", "bcdghjkmnpqvwxz", "bcdfjkqvwxz", "cfghjkpqvwxz", "w", "bcdfghjklmnpqrtvwxyz",
		"bcdfgjkmpqvxz", "jqrxz", "dgjkqrvwxz", "x", "q", "bfjknqvwxz", "abcdefghijkmnopqrstvwxyz", "jqx", "jvx", "jqvx",
		"hquw", "bcdfghjklmnpqstvwxyz", "bcfgjkmpqtuvwxz", "bdfghjklmnoqrsvwyz", "fhjkqvxyz", "bcdfghjklmnpqrstvx",
	} {
		for _, c := range letters {
			set[i] |= 1 << (c - 'a')
		}
	}
	return set
}()
