// Own: encoders of the user's own, in place of the embedded weights or beside them.

package classify

import (
	"errors"
	"fmt"
	"slices"

	"kvasir/classify/encoder"
	"kvasir/classify/pii"
	"kvasir/wording"
)

// An OwnModel is an encoder in a directory (classify/encoder), which judges in place of the embedded weights.
type OwnModel struct {
	Dir    string            // "": there is none
	Labels map[string]string // what its labels mean, where their names do not say it
	Beside bool              // the embedded weights judge, too, and the higher counts
}

// owned are the encoders that are in use; nil: the embedded weights alone judge.
type owned struct {
	attack    *ownLabels[string]
	category  *ownLabels[int]
	names     *ownLabels[tag]
	embedding *encoder.Encoder
}

// ownLabels is an encoder with the meaning of each of its outputs.
type ownLabels[T any] struct {
	*encoder.Encoder
	means  []T
	beside bool
}

// openOwned opens the encoders of the options; nil: there are none. With a classifier in use, the embedding is not
// opened: it stays.
func openOwned(o *Options, used *Classifier) (w *owned, err error) {
	w = new(owned)
	if w.attack, err = openLabels(KindJailbreak, &o.Jailbreak.Model, attackOfLabel); err != nil {
		return nil, err
	}
	if w.category, err = openLabels(KindCategory, &o.Category.Model, categoryOfLabel); err != nil {
		return nil, err
	}
	if w.names, err = openLabels(KindPII, &o.PII.Model, tagOfLabel); err != nil {
		return nil, err
	}
	if used == nil {
		w.embedding, err = openFor(KindSentence, &o.Embedding)
	} else if before, ok := used.weights.(ownWeights); ok {
		w.embedding = before.own.embedding
	}
	if err != nil {
		return nil, err
	}
	if w.attack == nil && w.category == nil && w.names == nil && w.embedding == nil {
		return nil, nil
	}
	return w, nil
}

// openFor opens an encoder for a use; nil: there is none.
func openFor(use Kind, m *OwnModel) (*encoder.Encoder, error) {
	if m.Dir == "" {
		return nil, nil
	}
	e, err := encoder.Open(m.Dir)
	if err != nil {
		return nil, err
	}
	if err := suits(use, e.Shape, m.Labels); err != nil {
		return nil, unsuitable(m.Dir, err)
	}
	return e, nil
}

func openLabels[T any](use Kind, m *OwnModel, meaning func(name string) (T, []string)) (*ownLabels[T], error) {
	e, err := openFor(use, m)
	if e == nil {
		return nil, err
	}
	all, err := meanings(e.Labels, m.Labels, meaning)
	return &ownLabels[T]{e, all, m.Beside}, err
}

// Models says which encoders of the user's own judge, for each use in a few words; none where the embedded weights do
// all of it.
func (c *Classifier) Models() (all []string) {
	w, ok := c.weights.(ownWeights)
	if !ok {
		return nil
	}
	o := &c.options
	if w.own.attack != nil {
		all = append(all, inWords(KindJailbreak, &o.Jailbreak.Model, w.own.attack.Shape))
	}
	if w.own.category != nil {
		all = append(all, inWords(KindCategory, &o.Category.Model, w.own.category.Shape))
	}
	if w.own.names != nil {
		all = append(all, inWords(KindPII, &o.PII.Model, w.own.names.Shape))
	}
	if w.own.embedding != nil {
		all = append(all, inWords("embedding", &o.Embedding, w.own.embedding.Shape))
	}
	return all
}

func inWords(use Kind, m *OwnModel, of encoder.Shape) string {
	what := fmt.Sprintf("%s: %s in %s, %d values", use, of.Family, m.Dir, of.Size)
	if len(of.Labels) > 0 {
		what = fmt.Sprintf("%s: %s in %s, %s", use, of.Family, m.Dir, wording.Count(len(of.Labels), "label"))
	}
	if m.Beside {
		what += ", beside the embedded weights"
	}
	return what
}

// CheckModel says what is wrong with a model for a use, without reading its weights: KindJailbreak, KindCategory,
// KindPII or KindSentence.
func CheckModel(use Kind, m *OwnModel) error {
	shape, err := encoder.Describe(m.Dir)
	if err != nil {
		return err
	}
	if err := suits(use, shape, m.Labels); err != nil {
		return unsuitable(m.Dir, err)
	}
	return nil
}

func unsuitable(dir string, err error) error {
	return fmt.Errorf("cannot use the model in %q: %w", dir, err)
}

// suits says what is wrong with an encoder for a use.
func suits(use Kind, of encoder.Shape, labels map[string]string) (err error) {
	task := encoder.Sequence
	switch use {
	case KindPII:
		task = encoder.Token
	case KindSentence:
		task = encoder.Embedding
	}
	if of.Task != task {
		return fmt.Errorf("it gives %s, and %s is needed", of.Task, task)
	}
	switch use {
	case KindJailbreak:
		var kinds []string
		if kinds, err = meanings(of.Labels, labels, attackOfLabel); err == nil && !slices.ContainsFunc(kinds, func(kind string) bool { return kind != "" }) {
			err = errors.New("labels: none of them means an attack")
		}
	case KindCategory:
		_, err = meanings(of.Labels, labels, categoryOfLabel)
	case KindPII:
		var tags []tag
		if tags, err = meanings(of.Labels, labels, tagOfLabel); err == nil && !slices.ContainsFunc(tags, func(t tag) bool { return t.kind != 0 }) {
			err = errors.New("labels: none of them means personal data")
		}
	case KindSentence:
		if of.Size > Dim {
			err = fmt.Errorf("its embeddings have %d values, and at most %d can be kept", of.Size, Dim)
		}
	}
	return err
}

// ownWeights are weights of which encoders do a part.
type ownWeights struct {
	weights
	own *owned
}

func (w ownWeights) newReader(s stops) reader {
	return &ownReader{reader: w.weights.newReader(s), own: w.own, stop: s.soon}
}

// batches: what is judged together is judged by the embedded weights.
func (w ownWeights) batches() bool { return false }

// ownReader asks the encoders, and the embedded weights where there is none or both count.
type ownReader struct {
	reader
	own     *owned
	stop    func() error
	scratch encoder.Scratch
	labels  []encoder.Label
	vector  []float32
}

// whole: attention costs the square of a text, so a long one is judged by its suspicious pieces sooner.
func (r *ownReader) whole() int {
	if r.own.attack == nil {
		return r.reader.whole()
	}
	return 2 * attackPiece
}

func (r *ownReader) attack(text []byte, read bool) (s attackScores, err error) {
	of := r.own.attack
	if of == nil || of.beside {
		if s, err = r.reader.attack(text, read); err != nil || of == nil {
			return s, err
		}
	}
	err = of.Classify(func(p []float32) {
		one := attackScores{}
		for i, kind := range of.means {
			if kind != "" {
				one.attack += p[i]
			}
			if kind == typeInjection {
				one.injection += p[i]
			}
		}
		one.injection /= max(one.attack, 1e-9)
		s.indirect = max(s.indirect, one.attack)
		if one.attack > s.attack {
			s.attack, s.injection = one.attack, one.injection
		}
	}, text, &r.scratch, r.stop)
	return s, err
}

func (r *ownReader) category(dst *[len(Categories)]float32, text []byte) error {
	of := r.own.category
	if of == nil {
		return r.reader.category(dst, text)
	}
	clear(dst[:])
	windows := float32(0)
	err := of.Classify(func(p []float32) {
		windows++
		for i, at := range of.means {
			dst[at] += p[i]
		}
	}, text, &r.scratch, r.stop)
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] /= windows
	}
	if of.beside {
		err = r.higher(dst, text)
	}
	return err
}

// higher takes for each category the higher of both probabilities, so that they still add up to 1.
func (r *ownReader) higher(dst *[len(Categories)]float32, text []byte) error {
	var other [len(Categories)]float32
	if err := r.reader.category(&other, text); err != nil {
		return err
	}
	sum := float32(0)
	for i, p := range other {
		dst[i] = max(dst[i], p)
		sum += dst[i]
	}
	for i := range dst {
		dst[i] /= sum
	}
	return nil
}

func (r *ownReader) embed(dst *[Dim]float32, text []byte) (err error) {
	if r.own.embedding == nil {
		return r.reader.embed(dst, text)
	}
	r.vector, err = r.own.embedding.Embed(r.vector[:0], text, &r.scratch, r.stop)
	if err == nil {
		clear(dst[copy(dst[:], r.vector):]) // zeros change no cosine
	}
	return err
}

func (r *ownReader) names(dst []pii.Span, text []byte) (_ []pii.Span, err error) {
	of := r.own.names
	if of == nil || of.beside {
		if dst, err = r.reader.names(dst, text); err != nil || of == nil {
			return dst, err
		}
	}
	if r.labels, err = of.Tag(r.labels[:0], text, &r.scratch, r.stop); err != nil {
		return dst, err
	}
	return namesOf(dst, text, r.labels, of.means), nil
}
