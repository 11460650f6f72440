// Unread: characters of a text that are not words, numbers, operators or code.

package verify

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// signsDiffer refuses pairs in which only one side has a sign that no other rule reads, or has
// many more marks, accents or words in odd case. A language model can read words written in
// look-alike signs, emoji, ancient numerals or Morse, but an embedding hardly sees them, so such
// a question lies right beside the plain one.
func signsDiffer(p *pair) bool {
	a, b := &p.a, &p.b
	return !bytes.Equal(a.signs, b.signs) || apart(a.marks, b.marks) > mostMoreMarks ||
		apart(a.accents, b.accents) > mostMoreMarks || apart(a.oddCase, b.oddCase) > mostMoreOdd
}

func apart(a, b int) int { return max(a-b, b-a) }

// How many more of these one of two equal questions may have: punctuation marks or accents; words
// such as iPhone. Of 4,354 public pairs of equal questions, these limits refuse none that would
// be a hit at 0.9.
const (
	mostMoreMarks = 8
	mostMoreOdd   = 2
)

// unread keeps a sign that nothing else reads. It only counts punctuation marks that people type,
// because they mean little and people use them freely. It also ignores characters that join emoji
// or select their style; elsewhere those make a question literal.
func (c *scanner) unread(r rune) {
	if r >= utf8.RuneSelf && !c.typed(r) && !unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
		c.side.signs = utf8.AppendRune(c.side.signs, r)
	}
}

// typedMarks are punctuation marks that keyboards and word processors produce, accepted in any
// text. Others are accepted only among letters of their own script.
var typedMarks = func() map[rune]bool {
	set := make(map[rune]bool)
	for _, r := range "‐‑‒–—―‘’‚‛“”„‟‹›«»…•·¡¿、。〈〉《》「」『』【】〔〕〖〗〜・！（），．：；？［］｛｝～｡｢｣､･" {
		set[r] = true
	}
	return set
}()

// typed reports whether r is a punctuation mark that people type at this place: an Arabic comma
// after an Arabic letter.
func (c *scanner) typed(r rune) bool {
	if !unicode.IsPunct(r) {
		return false
	}
	if typedMarks[r] {
		return true
	}
	letter, _ := utf8.DecodeLastRune(bytes.TrimRight(c.side.text, " 0123456789"))
	for _, s := range scriptsWithMarks {
		if inRange(r, s.marks) {
			return inRange(letter, s.letters)
		}
	}
	return false
}

// scriptsWithMarks are scripts with punctuation marks of their own: the code points of the marks
// and of the letters.
var scriptsWithMarks = [...]struct{ marks, letters [2]rune }{
	{[2]rune{0x37e, 0x387}, [2]rune{0x370, 0x3ff}},     // Greek
	{[2]rune{0x55a, 0x58a}, [2]rune{0x531, 0x587}},     // Armenian
	{[2]rune{0x5be, 0x5f4}, [2]rune{0x5d0, 0x5f2}},     // Hebrew
	{[2]rune{0x60c, 0x61f}, [2]rune{0x620, 0x8ff}},     // Arabic, Syriac
	{[2]rune{0x66a, 0x6d4}, [2]rune{0x620, 0x8ff}},     //
	{[2]rune{0x964, 0x970}, [2]rune{0x900, 0xdff}},     // scripts of India
	{[2]rune{0xf04, 0xfda}, [2]rune{0xf00, 0xfff}},     // Tibetan
	{[2]rune{0x104a, 0x104f}, [2]rune{0x1000, 0x109f}}, // Myanmar
	{[2]rune{0x1361, 0x1368}, [2]rune{0x1200, 0x139f}}, // Ethiopic
	{[2]rune{0x17d4, 0x17da}, [2]rune{0x1780, 0x17ff}}, // Khmer
	{[2]rune{0x1800, 0x180a}, [2]rune{0x1820, 0x18ff}}, // Mongolian
}

func inRange(r rune, between [2]rune) bool { return between[0] <= r && r <= between[1] }

// composed reads the accents after the letter r that form one letter with it: a client may send a
// letter as one code point or as two.
func (c *scanner) composed(r rune) rune {
	for c.at+1 < len(c.in) && (c.in[c.at] == 0xcc || c.in[c.at] == 0xcd) { // U+0300 to U+037F
		accent, n := utf8.DecodeRune(c.in[c.at:])
		to := c.words.composed.with(r, accent)
		if to == 0 {
			break
		}
		r = to
		c.at += n
	}
	return r
}

// mark reads a combining mark after a letter, within a word, that does not form one letter with
// it.
func (c *scanner) mark(r rune) {
	letter, _ := utf8.DecodeLastRune(c.side.text)
	switch {
	case letter < 0x590 || unicode.Is(unicode.Inherited, r): // an accent that this letter never has, letters over letters, rings
		c.side.signs = utf8.AppendRune(c.side.signs, r)
	case inRange(r, [2]rune{0x591, 0x5c7}) && inRange(letter, [2]rune{0x5d0, 0x5f2}),
		inRange(r, [2]rune{0x610, 0x74a}) && inRange(letter, [2]rune{0x620, 0x77f}): // vowel points of Hebrew, Arabic and Syriac, usually left out
	default: // a vowel, as in Hindi
		c.side.text = utf8.AppendRune(c.side.text, r)
	}
}
