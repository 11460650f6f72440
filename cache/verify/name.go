// Name: countries, cities, languages, products, people, and words with a capital letter.

package verify

// names compares the names in s with the words of t.
type names struct{ s, t *side }

// nameDiffers refuses pairs in which one side has a name that the other does not have.
func nameDiffers(p *pair) bool {
	return names{&p.a, &p.b}.unmatched() || names{&p.b, &p.a}.unmatched()
}

// unmatched reports whether s has a name that t does not have, not even in other words. A word
// that is a name only by its capital letter counts only if t has another word in its place:
// otherwise it may be a title, and the model decides.
func (n names) unmatched() bool {
	const most = 16 // names to check: with more unmatched ones the pair is refused anyway
	looked := 0
	for i := range n.s.words {
		w := &n.s.words[i]
		if w.match >= 0 || w.class&(closed|name) == 0 || w.class&(date|light|slip) != 0 {
			continue
		}
		if looked++; looked > most {
			return true
		}
		if w.class&closed == 0 && (n.isSpelledOut(w) || !n.t.hasLoose()) {
			continue
		}
		return true
	}
	return false
}

// isSpelledOut reports whether an acronym of s is made of the first letters of words of t.
func (n names) isSpelledOut(w *word) bool {
	s, t := n.s, n.t
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
				if k > 0 && r.end-r.start <= 3 { // of, and, the
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
