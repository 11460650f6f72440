// Pair: two questions, read and laid side by side.

package verify

import (
	"math"

	"kvasir/classify/model"
)

// A pair is two questions under comparison, and the memory for it. What is asked
// of it is asked of a view, which is made where it is asked and holds nothing: an
// aligner finds which word is which; a clause knows the sentence of one side; an
// order, roles, a predicate, names, a negation, symbols and affixes know one kind
// of difference each, which a rule refuses; a gauge measures the rest for the
// model.
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

// maxLoose is how many unmatched words of a side are compared by meaning: a pair
// with more is another question anyhow.
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
	aligner{p}.align()
	gauge{p}.measure()
}

// clauses are both sides as sentences.
func (p *pair) clauses() (a, b clause) { return clause{&p.a}, clause{&p.b} }
