// Weights: those of classify/model and classify/tagger, as a reader.

package classify

import (
	"fmt"

	"kvasir/classify/encoder"
	"kvasir/classify/model"
	"kvasir/classify/pii"
	"kvasir/classify/tagger"
)

type modelWeights struct {
	m     *model.Model
	names *tagger.Tagger
}

// openWeights opens the weights of the options: the embedded ones, or files of a directory in their place, and the
// encoders of the user's own. With a classifier in use, the embedding stays its own.
func openWeights(o *Options, used *Classifier) (weights, error) {
	w, err := openModel(o.Models)
	if err != nil {
		return nil, err
	}
	own, err := openOwned(o, used)
	if own == nil || err != nil {
		return w, err
	}
	return ownWeights{w, own}, nil
}

// openModel opens the embedded weights, with those of a directory in their place; "": of none.
func openModel(dir string) (weights, error) {
	if dir != "" {
		m, names, err := tagger.Own(dir)
		return modelWeights{m, names}, err
	}
	m, err := model.Embedded()
	if err != nil {
		return nil, fmt.Errorf("cannot read the embedded weights: %w", err)
	}
	names, err := tagger.Embedded()
	if err != nil {
		return nil, fmt.Errorf("cannot read the embedded weights: %w", err)
	}
	return modelWeights{m, names}, nil
}

// CheckModels says what is wrong with a directory that is to be Options.Models.
func CheckModels(dir string) error {
	_, _, err := tagger.Own(dir)
	return err
}

// WeightsHash is a short hash of all embedded weights, 12 hexadecimal digits. It reads all of them.
func WeightsHash() string { return model.Hash(tagger.Weights(), encoder.Weights()) }

func (w modelWeights) newReader(s stops) reader {
	return &modelReader{m: w.m, tagger: w.names, stop: s.late}
}

func (w modelWeights) batches() bool { return model.Batches() }

// modelReader keeps the tokens of the text it read last, which the next
// question is likely about.
type modelReader struct {
	m       *model.Model
	tagger  *tagger.Tagger
	stop    func() error
	scratch model.Scratch
	encoder encoder.Scratch
	tagging tagger.Scratch
	tokens  []model.Token
	of      []byte // the text of tokens
}

func (r *modelReader) tokenize(text []byte) []model.Token {
	if len(text) == 0 || len(r.of) != len(text) || &r.of[0] != &text[0] {
		r.tokens, r.of = r.m.Tokenize(r.tokens[:0], text, &r.scratch), text
	}
	return r.tokens
}

func (r *modelReader) together(list []model.Short) { r.m.Together(list, &r.scratch) }

func (r *modelReader) forget() { r.of = nil }

func (r *modelReader) openSecond() error {
	_, err := encoder.OpenSecond()
	return err
}

func (r *modelReader) second(text []byte, as encoder.Reading) (float32, error) {
	e, err := encoder.OpenSecond()
	if err != nil {
		return 0, err
	}
	return e.Score(text, as, &r.encoder, r.stop)
}

func (r *modelReader) whole() int { return maxWhole }

func (r *modelReader) embed(dst *[Dim]float32, text []byte) error {
	r.m.Gist(dst, r.tokenize(text), &r.scratch)
	return nil
}

func (r *modelReader) names(dst []pii.Span, text []byte) ([]pii.Span, error) {
	from := len(dst)
	dst = r.tagger.Tag(dst, text, r.tokenize(text), &r.scratch, &r.tagging)
	for i := range dst[from:] {
		s := &dst[from+i]
		w := nameOdds(s.Type)
		s.Score = s.Score * w / (s.Score*w + 1 - s.Score)
	}
	return dst, nil
}

// nameOdds are the odds that the scores of names get, so that the threshold
// that rules go by, 0.7, is where most names are found for each that is none:
// the tagger's own probability is about 0.4 there, of organisations 0.25.
func nameOdds(t pii.Type) float32 {
	if t == pii.Organization {
		return 7
	}
	return 3.5
}

// attack reads a text of any length.
func (r *modelReader) attack(text []byte, read bool) (attackScores, error) {
	s := r.m.Attack(text, r.tokenize(text), read, &r.scratch)
	return attackScores{s.Attack, s.Injection, s.Indirect}, nil
}

func (r *modelReader) suspicion(piece []byte) (attack, indirect float32) {
	return r.m.Suspicion(piece, &r.scratch)
}

func (r *modelReader) category(dst *[len(Categories)]float32, text []byte) error {
	r.m.Category(dst, text, r.tokenize(text), &r.scratch)
	return nil
}
