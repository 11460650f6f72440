// Tense: "who is president" is not "who was president".

package verify

import "bytes"

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

// tenseOf returns the tense of the first unmatched verb of a side, or of the verb within the words
// that ask for a thing: what is the.
func tenseOf(s *side) tense {
	for i := range s.words {
		w := &s.words[i]
		if s.form == what && w.class&asks != 0 {
			if t := tenseWithin(s.word(i)); t != timeless {
				return t
			}
		}
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

// tenseWithin returns the tense of a phrase that asks, its words written as one.
func tenseWithin(phrase []byte) tense {
	for _, start := range [...]string{"what", "which"} {
		rest, ok := bytes.CutPrefix(phrase, []byte(start))
		switch {
		case !ok:
		case bytes.HasPrefix(rest, []byte("is")), bytes.HasPrefix(rest, []byte("are")):
			return present
		case bytes.HasPrefix(rest, []byte("was")), bytes.HasPrefix(rest, []byte("were")):
			return past
		}
	}
	return timeless
}
