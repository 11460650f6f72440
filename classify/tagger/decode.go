// From the scores of tags to names: the best row of tags, and how sure each name is.

package tagger

import (
	"math"

	"kvasir/classify/pii"
)

// decode finds the row of tags for words [from, to) of the block whose scores add up to the most
// (Viterbi), and stores it in b.tag.
func (g *Tagger) decode(b *block, from, to int) {
	var sum, next [tags]float32
	for k := range sum {
		sum[k] = b.score[from*tags+k] + g.first[k]
	}
	for i := from + 1; i < to; i++ {
		score := (*[tags]float32)(b.score[i*tags:])
		before := &b.best[i]
		for k := range next {
			top, at := sum[0]+g.follow[0][k], 0
			for j := 1; j < tags; j++ {
				if v := sum[j] + g.follow[j][k]; v > top {
					top, at = v, j
				}
			}
			next[k], before[k] = top+score[k], uint8(at)
		}
		sum = next
	}
	last := 0
	for k, v := range sum {
		if v > sum[last] {
			last = k
		}
	}
	for i := to - 1; i >= from; i-- {
		b.tag[i] = uint8(last)
		last = int(b.best[i][last])
	}
}

// emit appends the names of the tagged words [from, to).
func (g *Tagger) emit(dst []pii.Span, b *block, from, to int) []pii.Span {
	for i := from; i < to; {
		tag := b.tag[i]
		if tag%2 == 0 {
			i++
			continue
		}
		end := i + 1
		for end < to && b.tag[end] == tag+1 {
			end++
		}
		kind := int(tag) / 2
		dst = append(dst, pii.Span{
			Start: b.words[i].start, End: b.words[end-1].end,
			Type: entities[kind], Score: g.sure(b, i, end, from, to, kind),
		})
		i = end
	}
	return dst
}

// sure returns the calibrated probability of a name at words [i, end) of the tagged [from, to):
// that of its least sure tag, of the word behind it too, given the tags around it.
func (g *Tagger) sure(b *block, i, end, from, to, kind int) float32 {
	least := math.Inf(1)
	for ; i <= end && i < to; i++ {
		score := b.score[i*tags:][:tags]
		chosen := int(b.tag[i])
		var best float64
		others := 0.0
		for k, v := range score {
			v += g.first[k]
			if i > from {
				v += g.follow[b.tag[i-1]][k] - g.first[k]
			}
			if i+1 < to {
				v += g.follow[k][b.tag[i+1]]
			}
			if k == chosen {
				best = float64(v)
			} else {
				others += math.Exp(float64(v))
			}
		}
		least = min(least, best-math.Log(others+1e-30))
	}
	logit := float64(least*float64(g.slope)) + float64(g.offset[kind]) // converted, so that it is not fused
	return float32(1 / (1 + math.Exp(-logit)))
}
