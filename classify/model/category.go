// Category: what a text is about.

package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Categories are the labels of MMLU-Pro, in the order of Category's probabilities.
var Categories = [...]string{
	"biology", "business", "chemistry", "computer science", "economics", "engineering", "health",
	"history", "law", "math", "other", "philosophy", "physics", "psychology",
}

// maxCategoryText is how much of a text Category looks for n-grams in, in bytes.
const maxCategoryText = 8 << 10

// expertNames are those of categoryHead's experts, in the order of the gate's outputs (EXPERTS of
// scripts/train/category.py).
var expertNames = [...]string{"exam", "everyday"}

// categoryHead has an expert for exam text and one for everyday questions, whose words tell other things, and a gate
// that says which of them a text is for.
type categoryHead struct {
	gate    dense
	experts [len(expertNames)]expert
}

// expert mixes two views: the view of the encoder, which knows languages and everyday words, and
// n-grams, which know the words of the field. The net for exam text tells fields apart, such as organic
// chemistry, and a category is as probable as its fields together.
type expert struct {
	net    dense
	label  []uint8 // of each of the net's outputs
	ngrams ngramHead
	share  float32 // of the n-grams
	factor float32 // on both, so that probabilities are calibrated
}

func (c *categoryHead) open(t *Tensors) (err error) {
	if _, old := t.index["category.label"]; old {
		return errors.New("it was trained for a version of Kvasir that had one head for all texts: train it anew with this one")
	}
	if c.gate, err = t.dense("category.gate", len(expertNames)); err != nil {
		return err
	}
	for i, name := range expertNames {
		if err := c.experts[i].open(t, "category."+name); err != nil {
			return err
		}
	}
	return nil
}

func (e *expert) open(t *Tensors, name string) (err error) {
	if e.label, err = t.bytes(name+".label", -1); err != nil {
		return err
	}
	for field, label := range e.label {
		if int(label) >= len(Categories) {
			return fmt.Errorf("field %d of %q has the label %d", field, name, label)
		}
	}
	if e.net, err = t.dense(name, len(e.label)); err != nil {
		return err
	}
	if e.ngrams, err = t.ngramHead(name+".ngram", len(Categories)); err != nil {
		return err
	}
	mix, err := t.Float32s(name+".mix", 2)
	if err == nil {
		e.share, e.factor = mix[0], mix[1]
	}
	return err
}

// Category stores in dst how probable each of Categories is, calibrated, for a text of these tokens.
// Of a long text the encoder sees the gist, see Gist; what has just been encoded is not encoded again.
func (m *Model) Category(dst *[len(Categories)]float32, text []byte, tokens []Token, s *Scratch) {
	view := m.view(tokens, s)
	e := &m.category.experts[choose(m.category.gate.apply(view, 1, s))]
	words := e.words(ngramsOf(text, s.forHeads()))
	e.mix(dst, e.net.apply(view, 1, s), &words)
}

// choose returns the expert that the gate's scores name: the place of the highest.
func choose(scores []float32) (top int) {
	for i, v := range scores {
		if v > scores[top] {
			top = i
		}
	}
	return top
}

// ngramsOf returns the n-grams of a text that Category looks at, valid until the next call.
func ngramsOf(text []byte, h *headScratch) []uint32 {
	return h.ngrams.Collect(text[:min(len(text), maxCategoryText)])
}

// words returns what n-grams say.
func (e *expert) words(list []uint32) (scores [maxClasses]float32) {
	var sum ngramSum
	e.ngrams.sum(&sum, list)
	e.ngrams.scores(scores[:], &sum, nil)
	return scores
}

// mix stores the probabilities that the net's scores and the words make together.
func (e *expert) mix(dst *[len(Categories)]float32, scores []float32, words *[maxClasses]float32) {
	*dst = e.sumFields(scores)
	top := float32(math.Inf(-1))
	for i, p := range dst {
		v := float32(math.Log(max(float64(p), 1e-9)))
		dst[i] = float32((v + float32(words[i]*e.share)) * e.factor)
		top = max(top, dst[i])
	}
	normalise(dst[:], top)
}

// sumFields returns how probable each category is by the scores of its fields.
func (e *expert) sumFields(scores []float32) (p [len(Categories)]float32) {
	top := slices.Max(scores)
	var total float32
	for field, label := range e.label[:len(scores)] {
		v := expNegative(scores[field] - top)
		p[label] += v
		total += v
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// normalise turns scores, the highest of which is top, into probabilities.
func normalise(scores []float32, top float32) {
	var total float32
	for i, v := range scores {
		scores[i] = expNegative(v - top)
		total += scores[i]
	}
	for i := range scores {
		scores[i] /= total
	}
}

// expNegative returns e to the power of x, x at most 0, to 4 parts in a million. With math.Exp the 162
// fields of a text took 2.0 us instead of 1.2.
func expNegative(x float32) float32 {
	if x < -80 {
		return 0
	}
	// e^x = 2^whole * 2^part, part from -0.5 to 0.5, by the first terms of its series. The conversions keep
	// products and sums apart, which arm64 would round as one.
	t := float32(x * math.Log2E)
	whole := int32(t - 0.5)
	part := t - float32(whole)
	p := float32(1.5403530e-4*part) + 1.3333558e-3
	p = float32(p*part) + 9.6181291e-3
	p = float32(p*part) + 5.5504109e-2
	p = float32(p*part) + 2.4022651e-1
	p = float32(p*part) + 6.9314718e-1
	p = float32(p*part) + 1
	return p * math.Float32frombits(uint32(whole+127)<<23)
}
