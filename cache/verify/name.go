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

// hasLoose says whether a side has an unmatched word of some weight.
func (s *side) hasLoose() bool {
	for i := range s.words {
		if w := &s.words[i]; w.match < 0 && w.content() && w.class&light == 0 {
			return true
		}
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
