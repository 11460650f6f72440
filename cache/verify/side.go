// Side: one text of a pair, cut into words, and the words that the other side lacks.

package verify

// A side is one text of a pair. Its slices grow with the text and are reused.
type side struct {
	text   []byte // folded, contractions written out
	raws   []raw
	quotes []span // ranges of raws between quotation marks
	words  []word
	signs  []byte // characters that are not part of words, in UTF-8; see unread
	marks  int    // punctuation marks; a repeated one counts once

	accents int // accents that the comparison ignores
	oddCase int // words with a capital after the first letter and also small letters

	letters, capitals, ideographs int // counted characters
	titled                        bool
	shouted                       bool
	form                          form // of question
	bare                          bool // it is a "what" alone
	compares                      bool // it asks how things differ
	explains                      bool // it wants something explained or described, and asks no more of it
	tongues                       tally
}

// A span is the range of raws from from to to.
type span struct{ from, to int32 }

// maxQuotes bounds the quotations of a text that are compared.
const maxQuotes = 16

// word returns the text of word i; "": there is no word i.
func (s *side) word(i int) []byte {
	if i < 0 || i >= len(s.words) {
		return nil
	}
	return s.text[s.words[i].start:s.words[i].end]
}

// rawText returns the text of raw i; "": there is no raw i, or it ends a clause.
func (s *side) rawText(i int) []byte {
	if i < 0 || i >= len(s.raws) || s.raws[i].kind == stop {
		return nil
	}
	return s.text[s.raws[i].start:s.raws[i].end]
}

// says reports whether a side has a word.
func (s *side) says(word string) bool {
	for i := range s.words {
		if string(s.word(i)) == word {
			return true
		}
	}
	return false
}

// hasUnmatched reports whether a side has an unmatched word of a class.
func (s *side) hasUnmatched(c class) bool {
	for i := range s.words {
		if w := &s.words[i]; w.class&c != 0 && w.match < 0 {
			return true
		}
	}
	return false
}

// hasLoose reports whether a side has an unmatched word of some weight.
func (s *side) hasLoose() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.content() && w.class&light == 0 {
			return true
		}
	}
	return false
}

// saysMore reports whether a side has an unmatched word that counts.
func (s *side) saysMore() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.counts() {
			return true
		}
	}
	return false
}

// saysOther reports whether a side has an unmatched content word other than those in but.
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
