// Package tagger finds names of people, places and organisations, nationalities, titles and addresses
// in a text: a small network over the words, with word lists and the vectors of the model's tokens.
//
//	names, err := tagger.Embedded()
//	var s tagger.Scratch // one for each goroutine, reused
//	found = names.Tag(found[:0], text, m.Tokenize(tokens[:0], text, &net), &net, &s)
//
// The weights were trained by scripts/train/tagger.py and are embedded in the binary.
package tagger

import (
	_ "embed" // the weights
	"fmt"
	"sync"
	"unsafe"

	"kvasir/classify/model"
	"kvasir/classify/pii"
)

//go:embed weights/tagger.safetensors
var file string

// Weights returns the embedded weights, which must not be written to.
func Weights() []byte { return unsafe.Slice(unsafe.StringData(file), len(file)) }

// entities are the types that are tagged. Type i begins with tag 1+2*i and goes on with 2+2*i; tag
// 0 is no name.
var entities = [...]pii.Type{pii.Person, pii.GPE, pii.Organization, pii.NRP, pii.Title, pii.StreetAddress}

const tags = 1 + 2*len(entities)

// The network: a dense layer on each word, and convolutions over neighbouring words, each added to
// its input; then a score for each tag.
const (
	hiddenSize = 128
	width      = 5 // words that a convolution sees
)

// dilations are the distances of the words that each convolution sees.
var dilations = [...]int{1, 2, 4}

// reach is how many words on each side a tag depends on.
const reach = width / 2 * (1 + 2 + 4)

// A Tagger holds the word lists and the network; read-only.
type Tagger struct {
	model  *model.Model // whose tokens are looked at
	lists  lexicon
	input  model.Layer
	layers [len(dilations)]model.Layer
	output model.Layer
	follow [tags][tags]float32 // what tag b after tag a adds to the score, [a][b]
	first  [tags]float32       // what tag b at the beginning adds
	slope  float32             // of the logit of a span's probability, to calibrate it
	offset [len(entities)]float32
}

// Embedded returns the tagger that the binary carries. It is opened once.
func Embedded() (*Tagger, error) { return embedded() }

var embedded = sync.OnceValues(func() (*Tagger, error) {
	m, err := model.Embedded()
	if err != nil {
		return nil, err
	}
	g, err := open(m, Weights())
	if err != nil {
		return nil, fmt.Errorf("cannot open tagger: %w", err)
	}
	return g, nil
})

// Own returns what model.Own does of a directory, and the tagger of tagger.safetensors there, or the
// embedded one.
func Own(dir string) (*model.Model, *Tagger, error) {
	g, err := Embedded()
	if err != nil {
		return nil, nil, err
	}
	m, err := model.Own(dir, model.OwnFile{Name: "tagger.safetensors", Open: func(m *model.Model, data []byte) (err error) {
		g, err = open(m, data)
		return err
	}})
	return m, g, err
}

// open opens the weights in file, which must stay as it is.
func open(m *model.Model, file []byte) (*Tagger, error) {
	t, err := model.OpenTensors(file)
	if err != nil {
		return nil, err
	}
	g := &Tagger{model: m}
	slots, err := t.Uint32s("lists")
	if err != nil {
		return nil, err
	}
	if err := g.lists.open(slots); err != nil {
		return nil, err
	}
	if g.input, err = t.Layer("input", inputSize, hiddenSize); err != nil {
		return nil, err
	}
	for i := range g.layers {
		if g.layers[i], err = t.Layer(fmt.Sprintf("layer%d", i), width*hiddenSize, hiddenSize); err != nil {
			return nil, err
		}
	}
	if g.output, err = t.Layer("output", hiddenSize, tags); err != nil {
		return nil, err
	}
	follow, err := t.Float32s("follow", tags, tags)
	if err != nil {
		return nil, err
	}
	for a := range g.follow {
		copy(g.follow[a][:], follow[a*tags:])
	}
	first, err := t.Float32s("first", tags)
	copy(g.first[:], first)
	if err != nil {
		return nil, err
	}
	scale, err := t.Float32s("calibration", 1+len(entities))
	if err != nil {
		return nil, err
	}
	g.slope = scale[0]
	copy(g.offset[:], scale[1:])
	return g, nil
}

// Tag appends the names in text to dst, sorted by where they begin, not overlapping. tokens are
// those of text; words behind the last token are judged by their looks alone. Scores are calibrated
// probabilities. Time is linear in the text; memory beside dst is net and s alone.
func (g *Tagger) Tag(dst []pii.Span, text []byte, tokens []model.Token, net *model.Scratch, s *Scratch) []pii.Span {
	if s.block == nil {
		s.block = new(block)
	}
	b := s.block
	b.begin(text)
	for b.fill(&g.lists) {
		limit := b.size
		if !b.done {
			limit -= reach
		}
		cut := limit
		if from, to := b.candidates(limit); from < to {
			g.score(b, from, to, tokens, net)
			g.decode(b, from, to)
			cut = b.cut(from, to, limit)
			dst = g.emit(dst, b, from, min(to, cut))
		}
		b.drop(cut, tokens)
	}
	b.scan.text = nil
	return dst
}
