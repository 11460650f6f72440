// Package verify computes how likely it is that one answer serves two questions.
//
// An embedding finds questions that sound alike, but hardly sees a different number, name or
// negation. So this package compares the words: first by rules, each of which refuses one kind of
// difference that changes the answer, then by a small model, trained on pairs of questions.
//
//	v, err := verify.Embedded()
//	score, why := v.Compare([]byte("how tall is k2"), []byte("How high is K2?"), 0.93)
//
// It covers English and Chinese well. For other languages it has only the rules that need no word
// lists (numbers, quotes, code, capitals, order) and the rarity of words.
package verify

import (
	"bytes"
	"sync"

	"kvasir/classify/model"
)

// MaxText is how many bytes of a question are compared. Longer questions are the same only if all
// their bytes are equal.
const MaxText = 4096

// A Verifier compares questions. It is safe for concurrent use.
type Verifier struct {
	words   *lexicon
	tokens  *model.Model
	forest  *forest
	scratch sync.Pool // of *pair
}

// Embedded returns the verifier embedded in the binary. It is opened once.
func Embedded() (*Verifier, error) { return embedded() }

var embedded = sync.OnceValues(func() (*Verifier, error) {
	tokens, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	return New(tokens)
})

// New returns a verifier that takes tokens and their vectors from a model.
func New(tokens *model.Model) (*Verifier, error) {
	v, err := Untrained(tokens)
	if err != nil {
		return nil, err
	}
	v.forest, err = openForest(weights)
	return v, err
}

// Untrained returns a verifier without a pair model, for training a new one. It offers Features,
// but not Compare.
func Untrained(tokens *model.Model) (*Verifier, error) {
	words, err := openLexicon()
	if err != nil {
		return nil, err
	}
	v := &Verifier{words: words, tokens: tokens}
	v.scratch.New = func() any { return new(pair) }
	return v, nil
}

// Compare returns how likely it is that the answer to the stored question a serves the new
// question b, from 0 to 1, and the name of the rule that refused the pair, or "": number, date,
// unit, negation, antonym, name, quote, code, order, comparison, language, question, word, sign;
// "long" for texts beyond MaxText. similarity is the cosine of their embeddings. Compare does not
// keep or change the texts.
func (v *Verifier) Compare(a, b []byte, similarity float64) (score float64, why string) {
	if len(a) > MaxText || len(b) > MaxText {
		if bytes.Equal(a, b) {
			return 1, ""
		}
		return 0, "long"
	}
	p := v.scratch.Get().(*pair)
	defer v.scratch.Put(p)
	p.read(v, a, b, similarity)
	if why = p.refused(); why != "" {
		return refusedShare * v.forest.score(&p.features), why
	}
	return v.forest.score(&p.features), ""
}

// refusedShare is the factor by which a refusal multiplies the score: refused pairs stay at or
// below 0.5, and are still ordered by similarity.
const refusedShare = 0.5
