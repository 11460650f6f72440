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
	a, b := tenseOf(&p.a), tenseOf(&p.b)
	return a != b && a != timeless && b != timeless
}

// tenseOf is that of the first verb of a side that the other has not.
func tenseOf(s *side) tense {
	for i := range s.words {
		w := &s.words[i]
		if w.match >= 0 || w.class&aux == 0 {
			continue
		}
		switch string(s.word(i)) {
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
