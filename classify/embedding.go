// Embedding: how near the last user text is to phrases of the configuration.

package classify

import (
	"fmt"
	"math"

	"kvasir/classify/encoder"
	"kvasir/classify/model"
)

// KindEmbedding holds under names of the user's own.
const KindEmbedding Kind = "embedding"

// KindSentence is the sentence embedding itself. No condition asks for it, but
// category and embedding do, and Request.Also may.
const KindSentence Kind = "sentence"

func (j *judging) findSentence() error {
	if text := j.lastUser(); len(text) > 0 {
		if err := j.sentence(&j.v.embedding, text); err != nil {
			return err
		}
		j.v.Embedding = j.v.embedding[:]
	}
	return nil
}

func reportSentence(*Verdict) string { return "the embedding of the last user text" }

// sentence makes the embedding of a folded text, or finds it.
func (j *judging) sentence(dst *[Dim]float32, text []byte) error {
	key, ok := j.c.shared.key(text), false
	if *dst, ok = j.c.shared.sentence.get(key); !ok {
		if err := j.reader.embed(dst, text); err != nil {
			return err
		}
		j.c.shared.sentence.put(key, *dst)
	}
	return nil
}

// foldVersion goes up when folding makes another text of the same bytes, and so another embedding.
const foldVersion = "1"

// EmbeddingVersion names what embeddings are made with, the embedded encoder or that of a directory, all of which is
// read: those of two versions are not comparable.
func EmbeddingVersion(own OwnModel) (string, error) {
	if own.Dir == "" {
		return model.EncoderHash + "-" + foldVersion, nil
	}
	hash, err := encoder.Hash(own.Dir)
	return hash + "-" + encoder.Version + "-" + foldVersion, err
}

// Embed makes the sentence embedding, of length 1, of one text: the one that
// Judge makes of it as a user's last. It says whether there is one: not of a
// text without anything to read, and not when no thread was free within the
// time that judging may take. A text that was judged or embedded a short while ago costs a copy.
func (c *Classifier) Embed(dst *[Dim]float32, text []byte) (ok bool) {
	j := c.acquire(nil, c.moment())
	if j == nil {
		return false
	}
	j.v = c.verdict() // that a panic is noted in
	v := j.v
	defer func() {
		p := recover()
		ok = ok && p == nil
		c.release(j, p)
		v.Release()
	}()
	if c.options.Fault != nil {
		c.options.Fault(KindSentence)
	}
	j.folds.begin(1)
	if text = j.shorten(j.folds.fold(0, text).bytes); len(text) == 0 {
		return false
	}
	return j.sentence(dst, text) == nil
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
	if threshold > 1 {
		return nil, fmt.Errorf("threshold %v of a cosine is above 1: no text would reach it", threshold)
	}
	if threshold == 0 {
		threshold = defaultCosine
	}
	phrases := make([][Dim]float32, len(o.Phrases))
	r := c.weights.newReader(stops{})
	var f folds
	for i, p := range o.Phrases {
		if p == "" {
			return nil, fmt.Errorf("phrase %d is empty", i+1)
		}
		f.begin(1)
		if err := r.embed(&phrases[i], head(f.fold(0, []byte(p)).bytes, maxLast)); err != nil {
			return nil, err
		}
	}
	return func(j *judging) (float64, bool, error) {
		if err := j.find(KindSentence); err != nil || j.v.Embedding == nil {
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
		dot := float64(model.Dot(&phrases[i], to))
		best, sum = max(best, dot), sum+dot
	}
	if mean {
		return sum / float64(len(phrases))
	}
	return best
}
