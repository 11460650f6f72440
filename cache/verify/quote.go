// Quote: text between quotation marks is compared word for word.

package verify

// quoteDiffers refuses pairs in which one quotes a text that the other does not contain.
func quoteDiffers(p *pair) bool {
	return p.a.quotesBeyond(&p.b) || p.b.quotesBeyond(&p.a)
}

// quotesBeyond reports whether some quotation of s is nowhere in t, ignoring case and
// punctuation.
func (s *side) quotesBeyond(t *side) bool {
	for _, q := range s.quotes {
		if !t.holds(s.raws[q.from:q.to]) {
			return true
		}
	}
	return false
}

// holds reports whether s contains the raws, one after another.
func (s *side) holds(raws []raw) bool {
	const most = 256 // raws of a quotation that are compared
	for from := range s.raws {
		i, j := from, 0
		for j < min(len(raws), most) {
			if raws[j].kind == stop {
				j++
				continue
			}
			for i < len(s.raws) && s.raws[i].kind == stop {
				i++
			}
			if i >= len(s.raws) || s.raws[i].hash != raws[j].hash {
				break
			}
			i, j = i+1, j+1
		}
		if j >= min(len(raws), most) {
			return true
		}
	}
	return false
}
