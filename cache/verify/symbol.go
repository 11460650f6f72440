// Symbol: a letter that stands alone: vitamin K, plan B, type I.

package verify

// Symbols are the letters of one side that are no words.
type symbols struct{ clause }

// letterDiffers refuses pairs of which one side has a letter that the other has
// not: vitamin K, plan B, type I. A letter that stands alone is a name or a
// symbol. Not one is what may be short for a word, nor an initial within a name.
func letterDiffers(p *pair) bool {
	a, b := p.clauses()
	return symbols{a}.unmatched() || symbols{b}.unmatched()
}

// unmatched says whether a side has a symbol that the other has not.
func (s symbols) unmatched() bool {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.end-w.start != 1 || w.class&cjk != 0 || w.class&number != 0 {
			continue
		}
		if b := s.text[w.start]; b == 'i' && s.isNumeral(i) || b != 'i' && isLetter(b) && !s.isShort(w) && !s.isInitial(i) {
			return true
		}
	}
	return false
}

// isNumeral says whether an I at the end of a clause is no pronoun: one stands
// there only behind a verb of grammar or a word that joins (am I, you and I).
func (s symbols) isNumeral(i int) bool {
	r := int(s.words[i].raw)
	if i == 0 || !s.ends(i) || r+1 < len(s.raws) && s.raws[r+1].kind != stop || s.words[i-1].class&(small|asks|negator) != 0 {
		return false
	}
	return s.words[i-1].raw+1 == s.words[i].raw
}

// isShort says whether a letter may be a word: u for you, the rest of what's.
func (s symbols) isShort(w *word) bool {
	switch s.text[w.start] {
	case 'a', 'd', 'm', 'n', 'o', 'r', 's', 't', 'u', 'y':
		return !s.raws[w.raw].capital
	case 'k':
		return w.class != 0
	}
	return false
}

// isInitial says whether word i stands between two words of a name: George W.
// Bush.
func (s symbols) isInitial(i int) bool {
	if i == 0 || i+1 == len(s.words) {
		return false
	}
	before, after := &s.words[i-1], &s.words[i+1] // behind its point a sentence seems to begin
	return (after.class&(name|closed) != 0 || s.raws[after.raw].first && before.class&name != 0) && (before.class&(name|closed) != 0 || s.raws[before.raw].first && before.class&asks == 0)
}
