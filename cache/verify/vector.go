// Vector: the meaning of a word, as the mean of its tokens' embedding rows.

package verify

import (
	"math"

	"kvasir/classify/model"
)

// vector adds the mean of the word's token rows, of length 1, to dst, and
// reports whether it has one.
func (p *pair) vector(dst *[model.Dim]float32, w *word) bool {
	if w.tokens <= 0 {
		return false
	}
	clear(dst[:])
	for _, id := range p.ids[w.token : w.token+min(w.tokens, 4)] {
		p.v.tokens.Row(p.row[:], id)
		for i, v := range p.row {
			dst[i] += v
		}
	}
	return normalise(dst)
}

// normalise scales a vector to length 1. It returns false for a vector of length 0.
func normalise(v *[model.Dim]float32) bool {
	n := model.Dot(v, v)
	if n <= 1e-12 {
		return false
	}
	scale := float32(1 / math.Sqrt(float64(n)))
	for i := range v {
		v[i] *= scale
	}
	return true
}
