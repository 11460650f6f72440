// Tense: who is president is not who was.
package verify

// A tense is when a verb says that something is.
type tense uint8

const (
	timeless tense = iota
	present
	past
	future
)

// tenseDiffers refuses pairs of which one asks what is and the other what was or
// will be.
func tenseDiffers(p *pair) bool {
	a, b := p.a.tense(), p.b.tense()
	return a != b && a != timeless && b != timeless
}

// tense is that of the first verb of a side that the other has not.
func (s *side) tense() tense {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.class&aux == 0 {
			continue
		}
		switch string(s.text[w.start:w.end]) {
		case "is", "are", "am", "do", "does", "has":
			return present
		case "was", "were", "did", "had":
			return past
		case "will", "shall":
			return future
		}
	}
	return timeless
}
