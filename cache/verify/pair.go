// Pair: two questions under comparison.

package verify

import (
	"math"

	"kvasir/classify/model"
)

// A pair is two questions under comparison, and the memory for it. The comparison reads both
// texts, aligns their words (finds the match of each word on the other side), and computes the
// model's features. Then each rule checks for one kind of difference (see rules); rules are
// functions of the pair or of its two sides.
type pair struct {
	v          *Verifier
	a, b       side
	similarity float64
	features   [features]float32

	loose   [2][]int32 // unmatched content words of each side, at most maxLoose
	vectors [2][maxLoose][model.Dim]float32
	known   [2][maxLoose]bool
	slots   table

	model   model.Scratch
	tokens  []model.Token
	ids     []int32
	scratch []byte
	base    [48]byte
	row     [model.Dim]float32
}

// maxLoose is how many unmatched words of a side are compared by meaning: a pair with more is not
// the same question anyway.
const maxLoose = 8

// read reads both texts and aligns their words.
func (p *pair) read(v *Verifier, a, b []byte, similarity float64) {
	p.v, p.ids = v, p.ids[:0]
	p.similarity = min(max(similarity, -1), 1)
	if math.IsNaN(similarity) {
		p.similarity = 0
	}
	p.a.scan(v.words, a)
	p.b.scan(v.words, b)
	p.a.read(v, p)
	p.b.read(v, p)
	p.align()
	p.measure()
}

// sides returns both sides.
func (p *pair) sides() (a, b *side) { return &p.a, &p.b }
