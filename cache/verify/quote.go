// Quote: what stands between quotation marks is asked about as it is.

package verify

// quoteDiffers refuses pairs of which one quotes what the other does not hold.
func quoteDiffers(p *pair) bool {
	return p.a.quotesBeyond(&p.b) || p.b.quotesBeyond(&p.a)
}

// quotesBeyond says whether a quotation of s is nowhere in t. Case and
// punctuation within do not count.
func (s *side) quotesBeyond(t *side) bool {
	for _, q := range s.quotes {
		if !t.holds(s.raws[q.from:q.to]) {
			return true
		}
	}
	return false
}

// holds says whether the raws stand in s, one after another.
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
