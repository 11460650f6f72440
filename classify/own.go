// Own: encoders of the user's own, in place of the embedded weights or beside them.

package classify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

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

// unsaid is the meaning of a label that says nothing of interest.
const unsaid = "none"

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

// tag is what a token's label says.
type tag struct {
	kind  pii.Type // 0: nothing
	first bool     // another name begins here, even behind one of the same type
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

// meanings finds what each label means: what mapped says of it, or else its name. meaning returns the names that would
// do where a name means nothing.
func meanings[T any](labels []string, mapped map[string]string, meaning func(name string) (T, []string)) ([]T, error) {
	all, unused := make([]T, len(labels)), maps.Clone(mapped)
	var open, known []string
	for i, label := range labels {
		name, key := renamed(label, mapped)
		delete(unused, key)
		var others []string
		all[i], others = meaning(name)
		switch {
		case others == nil:
		case name != label:
			return nil, fmt.Errorf("labels: %w", oneOf("meaning of a label", mapped[key], others))
		default:
			open, known = append(open, label), others
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("labels: it is not known what %s mean; say it of each: %s", wording.List(open, "and"), wording.List(known, "or"))
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("labels: the model has no label %q; it has %s", slices.Sorted(maps.Keys(unused))[0], wording.List(labels, "and"))
	}
	return all, nil
}

// renamed is the name that a label goes by, and the key that says so. A key may leave out the place of a token.
func renamed(label string, mapped map[string]string) (name, key string) {
	for _, key := range []string{label, withoutPlace(label)} {
		if to, ok := mapped[key]; ok {
			return strings.TrimSuffix(label, key) + to, key
		}
	}
	return label, ""
}

// withoutPlace takes off the place of a token in a name, as in B-PERSON.
func withoutPlace(label string) string {
	if len(label) > 2 && (label[1] == '-' || label[1] == '_') && strings.IndexByte("BIESLU", label[0]) >= 0 {
		return label[2:]
	}
	return label
}

// shouted is a label in one spelling.
func shouted(label string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToUpper(label))
}

// attackOfLabel is the type of an attack, "" for what is none.
func attackOfLabel(name string) (kind string, others []string) {
	switch shouted(name) {
	case "BENIGN", "SAFE", "LEGIT", "LEGITIMATE", "NORMAL", "NONE", "NO_INJECTION":
		return "", nil
	case "JAILBREAK", "MALICIOUS", "UNSAFE", "ATTACK":
		return typeJailbreak, nil
	case "INJECTION", "PROMPT_INJECTION":
		return typeInjection, nil
	case "INDIRECT_INJECTION":
		return typeIndirect, nil
	}
	return "", append([]string{"benign"}, jailbreakTypes()...)
}

// categoryOfLabel is the index of a category.
func categoryOfLabel(name string) (at int, others []string) {
	spelled := strings.ReplaceAll(strings.ToLower(name), "_", " ")
	if at = slices.Index(Categories[:], spelled); at < 0 {
		return 0, Categories[:]
	}
	return at, nil
}

// tagOfLabel is the type of personal data, and whether a name begins with the token.
func tagOfLabel(name string) (t tag, others []string) {
	spelled := shouted(withoutPlace(name))
	if spelled == "O" || spelled == shouted(unsaid) {
		return tag{}, nil
	}
	if len(name) > 2 && name != withoutPlace(name) {
		t.first = strings.IndexByte("BSU", name[0]) >= 0
	}
	for kind := pii.Type(1); kind <= pii.Types(); kind++ {
		if kind.String() == spelled {
			t.kind = kind
			return t, nil
		}
	}
	return tag{}, append(piiTypes(), unsaid)
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

// namesOf appends the names that labels of tokens make, white space at their ends left out. A word has the label of its
// first token: many models were taught that one alone. A name's score is the mean of its words'.
func namesOf(dst []pii.Span, text []byte, labels []encoder.Label, means []tag) []pii.Span {
	for i := 0; i < len(labels); {
		t, end := means[labels[i].Label], endOfWord(text, labels, i)
		sum, words := labels[i].Score, float32(1)
		for t.kind != 0 && end < len(labels) {
			next := means[labels[end].Label]
			inside := labels[end].Start < labels[end-1].End // a character that several tokens share
			if next.kind != t.kind || next.first && !inside {
				break
			}
			sum, words = sum+labels[end].Score, words+1
			end = endOfWord(text, labels, end)
		}
		if t.kind != 0 {
			from, to := int(labels[i].Start), int(labels[end-1].End)
			from += len(text[from:to]) - len(bytes.TrimLeft(text[from:to], " \t\r\n"))
			to = from + len(bytes.TrimRight(text[from:to], " \t\r\n"))
			if from < to {
				dst = append(dst, pii.Span{Start: int32(from), End: int32(to), Type: t.kind, Score: sum / words})
			}
		}
		i = end
	}
	return dst
}

// endOfWord is the index behind the tokens of the word that begins with token i.
func endOfWord(text []byte, labels []encoder.Label, i int) int {
	for i++; i < len(labels); i++ {
		at := int(labels[i].Start)
		before, _ := utf8.DecodeLastRune(text[:at])
		here, _ := utf8.DecodeRune(text[at:])
		if labels[i].Start != labels[i-1].End || !isWord(before) || !isWord(here) || unspaced(before) || unspaced(here) {
			break
		}
	}
	return i
}

// cutAtRules cuts off of the spans behind the first rules of them what rules have found, so that a model that is wrong
// about a number, or about what stands beside it, hides none of it. Those of the rules are sorted.
func cutAtRules(spans []pii.Span, rules int) []pii.Span {
	slices.SortStableFunc(spans[rules:], func(a, b pii.Span) int { return cmp.Compare(a.Start, b.Start) })
	kept, near := spans[:rules], 0
	for _, s := range spans[rules:] {
		for near < rules && spans[near].End <= s.Start {
			near++
		}
		for _, r := range spans[near:rules] {
			if r.Start >= s.End {
				break
			}
			if r.Start <= s.Start {
				s.Start = r.End
			} else {
				s.End = r.Start
			}
		}
		if s.Start < s.End {
			kept = append(kept, s)
		}
	}
	return kept
}
