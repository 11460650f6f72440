// Suspicion: what the words alone say of a text, for texts too long to be embedded whole.

package model

// maxSuspected is how many bytes of a text Suspicion reads.
const maxSuspected = 4 << 10

// suspectedPart is how many bytes are looked at together, with the part before them: about as much
// as two chunks of the guard's.
const suspectedPart = 512

// Suspicion returns the highest score that the guard's n-grams give to a stretch of a short text:
// as an attack, and as instructions in what is only to be read. They are not calibrated; they say
// which of many texts is worth an embedding. It costs a twentieth of Attack.
func (m *Model) Suspicion(text []byte, s *Scratch) (attack, indirect float32) {
	h := s.forHeads()
	text = text[:min(len(text), maxSuspected)]
	var scores [guardNgramOuts]float32
	var before ngramSum
	for at := 0; at < len(text) || at == 0; at += suspectedPart {
		part := text[at:min(at+suspectedPart, len(text))]
		var sum ngramSum
		m.guard.ngrams.sum(&sum, h.ngrams.Collect(part))
		if at == 0 {
			m.guard.ngrams.scores(scores[:], &sum, nil)
			attack, indirect = scores[attackOut], scores[indirectOut]
		} else {
			m.guard.ngrams.scores(scores[:], &before, &sum)
			attack, indirect = max(attack, scores[attackOut]), max(indirect, scores[indirectOut])
		}
		before = sum
	}
	return attack, indirect
}
