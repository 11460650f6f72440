// Tense: "who is president" is not "who was president".

package verify

// A tense is the time that a verb speaks of.
type tense uint8

const (
	timeless tense = iota
	present
	past
	future
)

// tenseDiffers refuses pairs in which one asks about the present and the other about the past or
// future.
func tenseDiffers(p *pair) bool {
	a, b := tenseOf(&p.a), tenseOf(&p.b)
	return a != b && a != timeless && b != timeless
}

// tenseOf returns the tense of the first unmatched verb of a side.
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
