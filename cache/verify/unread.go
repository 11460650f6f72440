// Unread: what a text has beside words, numbers, operators and code.

package verify

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// signsDiffer refuses pairs of which one side has a sign that no other rule reads
// and the other side has not, or many more marks: a model reads words in letters
// drawn as signs, in emoji, in ancient numerals and in Morse, while an embedding
// sees hardly any of it, so that such a question lies right beside the plain one.
func signsDiffer(p *pair) bool {
	more := p.a.marks - p.b.marks
	return !bytes.Equal(p.a.signs, p.b.signs) || max(more, -more) > mostMoreMarks
}

// mostMoreMarks is how many more marks of punctuation one of two questions that
// are the same may have. Of 4,354 public pairs of the same question it costs none
// that would be a hit at 0.9.
const mostMoreMarks = 8

// unread keeps a sign that nothing else reads, but for marks of punctuation, which
// are counted: they mean little, and people set them as they like. What joins emoji
// or says how they are drawn means as little; elsewhere it makes a question literal.
func (c *scanner) unread(r rune) {
	if r >= utf8.RuneSelf && !unicode.IsPunct(r) && !unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
		c.signs = utf8.AppendRune(c.signs, r)
	}
}

// mark reads a combining mark behind a letter, within a word.
func (c *scanner) mark(r rune) {
	letter, _ := utf8.DecodeLastRune(c.text)
	switch {
	case r <= 0x30c || r == 0x31b || r >= 0x323 && r <= 0x328: // an accent: dropped, as \u00e9 is read as e
	case letter < 0x590 || unicode.Is(unicode.Inherited, r): // no language writes it: letters over letters, rings
		c.signs = utf8.AppendRune(c.signs, r)
	case r < 0x900: // points of Hebrew and Arabic, mostly left out
	default: // a vowel, as in Hindi
		c.text = utf8.AppendRune(c.text, r)
	}
}
