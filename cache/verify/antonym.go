// Antonym: opposites, and the ends of a comparison.

package verify

// antonymDiffers refuses pairs in which one side has a word and the other its opposite.
func antonymDiffers(p *pair) bool { return p.opposed(false) || prefixesOppose(p) }

// comparisonDiffers refuses pairs in which one side has "the largest" and the other "the
// smallest", or only one has a superlative.
func comparisonDiffers(p *pair) bool { return p.opposed(true) }

// maxOpposed bounds the words with opposites that are compared, per side.
const maxOpposed = 16

// opposed reports whether unmatched words of the two sides are opposites in the lists. compared
// selects the ends of a comparison.
func (p *pair) opposed(compared bool) bool {
	var mine, others [maxOpposed]uint64
	n := p.a.unmatchedOpposites(&mine)
	m := p.b.unmatchedOpposites(&others)
	for _, c := range mine[:n] {
		for _, id := range p.v.words.opposites[c] {
			if p.v.words.compared[max(id, -id)] != compared {
				continue
			}
			for _, d := range others[:m] {
				for _, other := range p.v.words.opposites[d] {
					if other == -id {
						return true
					}
				}
			}
		}
	}
	return false
}

func (s *side) unmatchedOpposites(found *[maxOpposed]uint64) (n int) {
	for i := range s.words {
		if w := &s.words[i]; w.class&opposite != 0 && w.match < 0 && n < maxOpposed {
			found[n] = w.concept
			n++
		}
	}
	return n
}
