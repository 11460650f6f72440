// The tagger: finds names of people, places and organisations, nationalities, titles and addresses.

package model

import (
	_ "embed" // the weights
	"fmt"

	"kvasir/classify/pii"
)

//go:embed weights/tagger.safetensors
var taggerFile string

// Tagged is a name found in a text: bytes of the text, what it is, and how likely it is that.
type Tagged = pii.Span

// entities are the types that are tagged. Type i begins with tag 1+2*i and goes on with 2+2*i; tag
// 0 is no name.
var entities = [...]pii.Type{pii.Person, pii.GPE, pii.Organization, pii.NRP, pii.Title, pii.StreetAddress}

const tags = 1 + 2*len(entities)

// The network: a dense layer on each word, and convolutions over neighbouring words, each added to
// its input; then a score for each tag.
const (
	tagHidden = 128
	tagWidth  = 5 // words that a convolution sees
)

// dilations are the distances of the words that each convolution sees.
var dilations = [...]int{1, 2, 4}

// tagReach is how many words on each side a tag depends on.
const tagReach = tagWidth / 2 * (1 + 2 + 4)

// tagger holds the word lists and the network.
type tagger struct {
	lists  lexicon
	input  linear
	layers [len(dilations)]linear
	output linear
	follow [tags][tags]float32 // what tag b after tag a adds to the score, [a][b]
	first  [tags]float32       // what tag b at the beginning adds
	slope  float32             // of the logit of a span's probability, to calibrate it
	offset [len(entities)]float32
}

// openTagger opens the weights in file, which must stay as it is.
func (m *Model) openTagger(file []byte) error {
	t, err := openTensors(file)
	if err != nil {
		return err
	}
	g := &m.tagger
	slots, err := t.view("lists", "U32", []int{-1})
	if err != nil {
		return err
	}
	if err := g.lists.open(slots); err != nil {
		return err
	}
	if g.input, err = t.linear("input", tagInput, tagHidden); err != nil {
		return err
	}
	for i := range g.layers {
		if g.layers[i], err = t.linear(fmt.Sprintf("layer%d", i), tagWidth*tagHidden, tagHidden); err != nil {
			return err
		}
	}
	if g.output, err = t.linear("output", tagHidden, tags); err != nil {
		return err
	}
	follow, err := t.float32s("follow", tags, tags)
	if err != nil {
		return err
	}
	for a := range g.follow {
		copy(g.follow[a][:], follow[a*tags:])
	}
	first, err := t.float32s("first", tags)
	copy(g.first[:], first)
	if err != nil {
		return err
	}
	scale, err := t.float32s("calibration", 1+len(entities))
	if err != nil {
		return err
	}
	g.slope = scale[0]
	copy(g.offset[:], scale[1:])
	return nil
}

// Tag appends the names in text to dst, sorted by where they begin, not overlapping. tokens are
// those of text; words behind the last token are judged by their looks alone. Time is linear in the
// text; memory beside dst is s alone.
func (m *Model) Tag(dst []Tagged, text []byte, tokens []Token, s *Scratch) []Tagged {
	if s.tagger == nil {
		s.tagger = new(tagScratch)
	}
	b := s.tagger
	b.begin(text)
	for b.fill(&m.tagger.lists) {
		limit := b.size
		if !b.done {
			limit -= tagReach
		}
		cut := limit
		if from, to := b.candidates(limit); from < to {
			m.scoreWords(from, to, tokens, s)
			m.tagger.decode(b, from, to)
			cut = b.cut(from, to, limit)
			dst = m.tagger.emit(dst, b, from, min(to, cut))
		}
		b.drop(cut, tokens)
	}
	b.scan.text = nil
	return dst
}
