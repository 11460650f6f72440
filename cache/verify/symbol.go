// Symbol: a letter that stands alone: vitamin K, plan B, type I.

package verify

// letterDiffers refuses pairs in which one side has a single letter that the other does not have:
// vitamin K, plan B, type I. Such a letter is a name or a symbol, unless it may be short for a
// word, or is an initial within a name.
func letterDiffers(p *pair) bool {
	a, b := p.sides()
	return hasOwnLetter(a) || hasOwnLetter(b)
}

// hasOwnLetter reports whether a side has a symbol that the other does not have.
func hasOwnLetter(s *side) bool {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.end-w.start != 1 || w.class&cjk != 0 || w.class&number != 0 {
			continue
		}
		if b := s.text[w.start]; b == 'i' && isNumeral(s, i) || b != 'i' && isLetter(b) && !isShort(s, w) && !isInitial(s, i) {
			return true
		}
	}
	return false
}

// isNumeral reports whether an I at the end of a clause is not the pronoun. The pronoun stands
// there only after an auxiliary verb or a conjunction (am I, you and I).
func isNumeral(s *side, i int) bool {
	r := int(s.words[i].raw)
	if i == 0 || !endsClause(s, i) || r+1 < len(s.raws) && s.raws[r+1].kind != stop || s.words[i-1].class&(small|asks|negator) != 0 {
		return false
	}
	return s.words[i-1].raw+1 == s.words[i].raw
}

// isShort reports whether a letter may be short for a word: u for you, the s of what's.
func isShort(s *side, w *word) bool {
	switch s.text[w.start] {
	case 'a', 'd', 'm', 'n', 'o', 'r', 's', 't', 'u', 'y':
		return !s.raws[w.raw].capital
	case 'k':
		return w.class != 0
	}
	return false
}

// isInitial reports whether word i stands between two words of a name: George W. Bush.
func isInitial(s *side, i int) bool {
	if i == 0 || i+1 == len(s.words) {
		return false
	}
	before, after := &s.words[i-1], &s.words[i+1] // after its point a sentence seems to begin
	return (after.class&(name|closed) != 0 || s.raws[after.raw].first && before.class&name != 0) && (before.class&(name|closed) != 0 || s.raws[before.raw].first && before.class&asks == 0)
}
