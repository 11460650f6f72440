// Package verify says how surely one answer serves two questions.
//
// An embedding finds questions that sound alike, and takes another number, name
// or negation for the same question. So the words are compared here: first rules,
// each of which refuses a kind of difference that changes the answer, then a
// small model, trained on pairs of questions, that weighs what is left.
//
//	v, err := verify.Embedded()
//	score, why := v.Compare([]byte("how tall is k2"), []byte("How high is K2?"), 0.93)
//
// English and Chinese are known well. In other languages the rules that need no
// words (numbers, quotes, code, capitals, order) and rarity are what is left.
package verify

import (
	"bytes"
	"sync"

	"kvasir/classify/model"
)

// MaxText is how many bytes of a question are compared. Longer ones are the same
// question only if all their bytes are.
const MaxText = 4096

// A Verifier compares questions. All its methods may be called at the same time.
type Verifier struct {
	words   *lexicon
	tokens  *model.Model
	forest  *forest
	scratch sync.Pool // of *pair
}

// Embedded returns the verifier that the binary carries. It is opened once.
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

// Untrained returns a verifier without its pair model, which training makes
// anew. It has Features, but cannot Compare.
func Untrained(tokens *model.Model) (*Verifier, error) {
	words, err := openLexicon()
	if err != nil {
		return nil, err
	}
	v := &Verifier{words: words, tokens: tokens}
	v.scratch.New = func() any { return new(pair) }
	return v, nil
}

// Compare returns how likely the answer to the stored question a serves the new
// question b, from 0 to 1, and the name of the rule that refused the pair, or
// "": number, date, unit, negation, antonym, name, quote, code, order,
// comparison, language, question, word, sign; long for texts beyond MaxText.
// similarity is the cosine of their embeddings. The texts are only read.
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

// refusedShare is what a refusal leaves of the score: such a pair is never above
// a threshold of 0.5, and still in the order of its likeness.
const refusedShare = 0.5
