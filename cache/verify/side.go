// Side: one text of a pair as it was read, and what of it the other side lacks.

package verify

// A side is one text of a pair. Its slices grow to the text's size, and are
// reused.
type side struct {
	text   []byte // folded, contractions written out
	raws   []raw
	quotes []span // of raws, between quotation marks
	words  []word
	signs  []byte // characters that are no words, in UTF-8: see unread
	marks  int    // of punctuation; one that is repeated counts once

	accents int // on letters that are compared without
	oddCase int // words with capitals behind the first letter, and small ones

	letters, capitals, ideographs int // counted characters
	titled                        bool
	shouted                       bool
	form                          form // of question
	bare                          bool // it is a "what" alone
	tongues                       tally
}

// A span is the raws from from to to.
type span struct{ from, to int32 }

// maxQuotes bounds the quotations of a text that are compared.
const maxQuotes = 16

// word returns the text of word i, "" where there is none.
func (s *side) word(i int) []byte {
	if i < 0 || i >= len(s.words) {
		return nil
	}
	return s.text[s.words[i].start:s.words[i].end]
}

// rawText returns the text of raw i, "" where there is none and at the end of a
// clause.
func (s *side) rawText(i int) []byte {
	if i < 0 || i >= len(s.raws) || s.raws[i].kind == stop {
		return nil
	}
	return s.text[s.raws[i].start:s.raws[i].end]
}

// says says whether a side has a word.
func (s *side) says(word string) bool {
	for i := range s.words {
		if string(s.word(i)) == word {
			return true
		}
	}
	return false
}

// hasUnmatched says whether a side has a word of a class that the other has not.
func (s *side) hasUnmatched(c class) bool {
	for i := range s.words {
		if w := &s.words[i]; w.class&c != 0 && w.match < 0 {
			return true
		}
	}
	return false
}

// hasLoose says whether a side has an unmatched word of some weight.
func (s *side) hasLoose() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.content() && w.class&light == 0 {
			return true
		}
	}
	return false
}

// saysMore says whether a side has a word that counts and that the other has not.
func (s *side) saysMore() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.counts() {
			return true
		}
	}
	return false
}

// saysOther says whether a side has an unmatched word of content besides some.
func (s *side) saysOther(but ...string) bool {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || !w.content() {
			continue
		}
		known := false
		for _, b := range but {
			known = known || string(s.word(i)) == b
		}
		if !known {
			return true
		}
	}
	return false
}
