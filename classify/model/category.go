// Category: what a text is about.

package model

import "math"

// Categories are the labels of MMLU-Pro, in the order of Category's probabilities.
var Categories = [...]string{
	"biology", "business", "chemistry", "computer science", "economics", "engineering", "health",
	"history", "law", "math", "other", "philosophy", "physics", "psychology",
}

// maxCategoryText is how much of a text Category looks for n-grams in, in bytes.
const maxCategoryText = 8 << 10

// categoryHead mixes two views: the view of the encoder, which knows languages and everyday words, and
// n-grams, which know the words of the field.
type categoryHead struct {
	net    dense
	ngrams ngramHead
	share  float32 // of the n-grams
	factor float32 // on both, so that probabilities are calibrated
}

func (c *categoryHead) open(t *tensors) (err error) {
	if c.net, err = t.dense("category", len(Categories)); err != nil {
		return err
	}
	if c.ngrams, err = t.ngramHead("category.ngram", len(Categories)); err != nil {
		return err
	}
	mix, err := t.float32s("category.mix", 2)
	if err == nil {
		c.share, c.factor = mix[0], mix[1]
	}
	return err
}

// Category stores in dst how probable each of Categories is, calibrated, for a text of these tokens.
// Of a long text the encoder sees the gist, see Gist; what has just been encoded is not encoded again.
func (m *Model) Category(dst *[len(Categories)]float32, text []byte, tokens []Token, s *Scratch) {
	c, h := &m.category, s.forHeads()
	var sum ngramSum
	c.ngrams.sum(&sum, h.ngrams.Collect(text[:min(len(text), maxCategoryText)]))
	var words [maxClasses]float32
	c.ngrams.scores(words[:], &sum, nil)
	scores := c.net.apply(m.view(tokens, s), 1, s)
	top := float32(math.Inf(-1))
	for i, v := range scores {
		dst[i] = float32((v + float32(words[i]*c.share)) * c.factor)
		top = max(top, dst[i])
	}
	var total float64
	for i, v := range dst {
		e := math.Exp(float64(v - top))
		dst[i] = float32(e)
		total += e
	}
	for i := range dst {
		dst[i] = float32(float64(dst[i]) / total)
	}
}
