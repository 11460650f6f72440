// Antonym: opposites, and the ends of a comparison.

package verify

// antonymDiffers refuses pairs with a word here and its opposite there.
func antonymDiffers(p *pair) bool { return p.opposed(false) || affixes{p}.contrary() }

// comparisonDiffers refuses pairs with the largest here and the smallest there,
// or a superlative here and none there.
func comparisonDiffers(p *pair) bool { return p.opposed(true) }

// maxOpposed bounds the words with opposites of a side that are looked at.
const maxOpposed = 16

// opposed says whether unmatched words of both sides are two sides of a pair of
// the lists.
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
