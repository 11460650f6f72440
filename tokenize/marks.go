// Marks: places in a text where tokenising can stop and be resumed later.

package tokenize

import "unicode/utf8"

// Mark is the end of an added token in a text: the tokens before it and those behind it do not
// depend on each other. A text that is equal up to Tokenizer.Reach bytes behind a mark has the same
// mark, and the same tokens before it.
type Mark struct {
	Byte  int // of the text
	Token int // how many tokens lie before the mark
}

// marking collects the marks of one text.
type marking struct {
	marks  []Mark
	text   []byte
	passed int // bytes of text before the piece that is being cut
	base   int // tokens in dst before the first
}

// at notes a mark behind an added token, if that token leaves marks (finder.apart).
func (m *marking) at(f *finder, hit *found, to, tokens int) {
	if f.apart[hit.added] {
		m.marks = append(m.marks, Mark{to, tokens - m.base})
	}
}

// apart tells whether what stands on one side of an added token cannot change the tokens on the
// other: it takes no white space, and has none at its ends that another token could take.
func (a *addedToken) apart() bool {
	first, _ := utf8.DecodeRuneInString(a.Content)
	last, _ := utf8.DecodeLastRuneInString(a.Content)
	return !a.LStrip && !a.RStrip && !spaceLike(first) && !spaceLike(last)
}

// spaceLike holds for all white space that an added token can take, and for some more.
func spaceLike(r rune) bool {
	return r <= ' ' || r >= 0x7f && r <= 0xa0 || r >= 0x1680 && r <= 0x205f || r == 0x3000 || r == 0xfeff
}

// AppendMarks is like Append without specials, and also appends the marks of text to marks. A
// mark's Token counts from the end of the given dst. behind says that text follows a mark of a
// longer text. Text that is not valid UTF-8 has no marks.
func (t *Tokenizer) AppendMarks(dst []uint32, marks []Mark, text []byte, behind bool) ([]uint32, []Mark) {
	s := scratches.Get().(*scratch)
	text = text[:len(text):len(text)] // see wordKey.set
	var m marking
	if utf8.Valid(text) {
		m = marking{marks: marks, text: text, base: len(dst)}
		s.marks = &m
	} else {
		s.valid = appendValid(s.valid[:0], text)
		m.marks, text = marks, s.valid
	}
	dst = t.text(dst, text, !behind, s)
	s.release()
	return dst, m.marks
}

// Reach is how many bytes behind a mark can decide whether the mark is there.
func (t *Tokenizer) Reach() int { return t.reach }
