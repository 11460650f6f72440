// Embedding: how near the last user text is to phrases of the configuration.
package classify

import (
	"fmt"
	"math"
)

// KindEmbedding holds under names of the user's own.
const KindEmbedding Kind = "embedding"

// KindSentence is the sentence embedding itself. No condition asks for it, but
// category and embedding do, and Request.Also may.
const KindSentence Kind = "sentence"

func (j *judging) findSentence() error {
	text := j.lastUser()
	if len(text) == 0 {
		return nil
	}
	key, ok := j.c.shared.key(text), false
	if j.v.embedding, ok = j.c.shared.sentence.get(key); !ok {
		j.reader.embed(&j.v.embedding, text)
		j.c.shared.sentence.put(key, j.v.embedding)
	}
	j.v.Embedding = j.v.embedding[:]
	return nil
}

// defaultCosine is the threshold where the configuration names none.
const defaultCosine = 0.7

// newEmbedding embeds the phrases once. aggregate: max asks for the nearest
// phrase, mean for their mean, any is max by its name in Semantic Router.
func newEmbedding(c *Classifier, o *SignalOptions) (test, error) {
	if len(o.Phrases) == 0 {
		return nil, fmt.Errorf("it has no phrases to compare with")
	}
	mean := false
	switch o.Aggregate {
	case "", "max", "any":
	case "mean":
		mean = true
	default:
		return nil, oneOf("aggregate", o.Aggregate, []string{"max", "mean", "any"})
	}
	threshold := o.Threshold
	if threshold == 0 {
		threshold = defaultCosine
	}
	phrases := make([][Dim]float32, len(o.Phrases))
	r := c.weights.newReader()
	var f folds
	for i, p := range o.Phrases {
		if p == "" {
			return nil, fmt.Errorf("phrase %d is empty", i+1)
		}
		f.begin(1)
		r.embed(&phrases[i], head(f.fold(0, []byte(p)).bytes, maxLast))
	}
	return func(j *judging) (float64, bool, error) {
		if err := j.find(rowSentence); err != nil || j.v.Embedding == nil {
			return 0, false, err
		}
		score := nearness(phrases, &j.v.embedding, mean)
		return score, score >= threshold, nil
	}, nil
}

// nearness is the greatest or the mean cosine of vectors of length 1.
func nearness(phrases [][Dim]float32, to *[Dim]float32, mean bool) float64 {
	best, sum := math.Inf(-1), 0.0
	for i := range phrases {
		var dot float32
		for k, x := range phrases[i] {
			dot += x * to[k]
		}
		best, sum = max(best, float64(dot)), sum+float64(dot)
	}
	if mean {
		return sum / float64(len(phrases))
	}
	return best
}
