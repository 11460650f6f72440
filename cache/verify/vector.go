// Vector: what a word means, as the mean of its tokens' rows.
package verify

import (
	"math"

	"kvasir/classify/model"
)

// vector adds the mean of the word's token rows, of length 1, to dst, and
// reports whether it has one.
func (p aligner) vector(dst *[model.Dim]float32, w *word) bool {
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

func dot(a, b *[model.Dim]float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < model.Dim; i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	return s0 + s1 + s2 + s3
}

// normalise gives a vector the length 1, and says whether it has any.
func normalise(v *[model.Dim]float32) bool {
	n := dot(v, v)
	if n <= 1e-12 {
		return false
	}
	scale := float32(1 / math.Sqrt(float64(n)))
	for i := range v {
		v[i] *= scale
	}
	return true
}
