// Name: countries, cities, languages, products, people; and what has a capital.

package verify

// Names are those of s, held against what t says.
type names struct{ s, t *side }

// nameDiffers refuses pairs of which one side names what the other does not.
func nameDiffers(p *pair) bool {
	return names{&p.a, &p.b}.unmatched() || names{&p.b, &p.a}.unmatched()
}

// unmatched says whether s has a name that t has not, nor its letters. A word
// that only its capital makes a name has to stand against another word: alone it
// may be a title, and the model weighs it.
func (n names) unmatched() bool {
	const most = 16 // names that are looked at: with more unmatched the pair is refused anyhow
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

// isSpelledOut says whether an acronym of s stands for words of t: their first
// letters are its letters.
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
