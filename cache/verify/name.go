// Name: countries, cities, languages, products, people; and what has a capital.
package verify

// nameDiffers refuses pairs of which one side names what the other does not.
func nameDiffers(p *pair) bool {
	return p.unnamed(&p.a, &p.b) || p.unnamed(&p.b, &p.a)
}

// unnamed says whether s has a name that t has not, nor its letters. A word that
// only its capital makes a name has to stand against another word: alone it may
// be a title, and the model weighs it.
func (p *pair) unnamed(s, t *side) bool {
	const most = 16 // names that are looked at: with more unmatched the pair is refused anyhow
	looked := 0
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.class&(closed|name) == 0 || w.class&(date|light|slip) != 0 {
			continue
		}
		if looked++; looked > most {
			return true
		}
		if w.class&closed == 0 && (s.isSpelledOut(w, t) || !t.hasLoose()) {
			continue
		}
		return true
	}
	return false
}

// isSpelledOut says whether an acronym stands for words of the other side:
// their first letters are its letters.
func (s *side) isSpelledOut(w *word, t *side) bool {
	text := s.text[w.start:w.end]
	if !s.raws[w.raw].acronym || len(text) < 2 {
		return false
	}
	for from := range t.raws {
		k := 0
		for i := from; i < len(t.raws) && k < len(text); i++ {
			r := &t.raws[i]
			if r.kind != letters || r.start == r.end {
				break
			}
			if t.text[r.start] != text[k] {
				if n := r.end - r.start; k > 0 && n <= 3 { // of, and, the
					continue
				}
				break
			}
			k++
		}
		if k == len(text) {
			return true
		}
	}
	return false
}

// letterDiffers refuses pairs of which one side has a letter that the other has
// not: vitamin K, plan B, type I. A letter that stands alone is a name or a
// symbol. Not one is what may be short for a word, nor an initial within a name.
func letterDiffers(p *pair) bool {
	return p.a.hasLetter() || p.b.hasLetter() || p.keywordDiffers()
}

// keywordDiffers says whether small words name two statements of a language: a
// for loop, a while loop.
func (p *pair) keywordDiffers() bool {
	for i := range p.a.words {
		m := p.a.words[i].match
		if i == 0 || m < 1 || !p.a.isKeyword(i-1) || !p.b.isKeyword(int(m)-1) {
			continue
		}
		switch string(p.a.word(i)) {
		case "loop", "loops", "statement", "statements", "clause", "clauses", "keyword", "operator", "gate":
			return true
		}
	}
	return false
}

// isKeyword says whether word i is one of a programming language, and not one of
// the other side.
func (s *side) isKeyword(i int) bool {
	if s.words[i].match >= 0 {
		return false
	}
	switch string(s.word(i)) {
	case "for", "while", "until", "do", "if", "else", "and", "or", "not", "in", "is", "with", "case", "where", "having", "switch":
		return true
	}
	return false
}

func (s *side) hasLetter() bool {
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
func (s *side) isNumeral(i int) bool {
	r := int(s.words[i].raw)
	if i == 0 || !s.ends(i) || r+1 < len(s.raws) && s.raws[r+1].kind != stop || s.words[i-1].class&(small|asks|negator) != 0 {
		return false
	}
	return s.words[i-1].raw+1 == s.words[i].raw
}

// isShort says whether a letter may be a word: u for you, the rest of what's.
func (s *side) isShort(w *word) bool {
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
func (s *side) isInitial(i int) bool {
	if i == 0 || i+1 == len(s.words) {
		return false
	}
	before, after := &s.words[i-1], &s.words[i+1] // behind its point a sentence seems to begin
	return (after.class&(name|closed) != 0 || s.raws[after.raw].first && before.class&name != 0) && (before.class&(name|closed) != 0 || s.raws[before.raw].first && before.class&asks == 0)
}
