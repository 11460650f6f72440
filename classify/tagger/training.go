// Training: what the tagger sees in a text, for those who train it.

package tagger

import "kvasir/classify/model"

// Input is what the tagger is given for one word.
type Input struct {
	Start, End int32  // bytes of the text
	Hash       uint64 // of the word in small letters
	X          [inputSize]float32
}

// Inputs returns the inputs of all words of a text. It allocates; serving has no use for it.
func (g *Tagger) Inputs(text []byte, s *model.Scratch) []Input {
	tokens := g.model.Tokenize(nil, text, s)
	var words []word
	scan := wordScan{text: text}
	for {
		w, ok := scan.next()
		if !ok {
			break
		}
		g.lists.look(&w, words)
		words = append(words, w)
	}
	inputs := make([]Input, len(words))
	from := 0
	var row [model.Dim]float32
	for i, w := range words {
		in := &inputs[i]
		in.Start, in.End, in.Hash = w.start, w.end, w.hash
		from = g.wordInput(in.X[:], words, i, tokens, from, &row)
	}
	return inputs
}

// WordHashes returns the hashes of the words of a text, symbols left out: the keys of the word
// lists.
func WordHashes(text []byte) (hashes []uint64) {
	scan := wordScan{text: text}
	for {
		w, ok := scan.next()
		if !ok {
			return hashes
		}
		if w.shape&shapeLetters != 0 {
			hashes = append(hashes, w.hash)
		}
	}
}

// PairHash returns the key of two words in a row.
func PairHash(a, b uint64) uint64 { return hashPair(a, b) }

// WithLists returns a tagger that has these word lists and no network, for the training: it works
// whatever tagger the binary carries.
func WithLists(slots []byte) (*Tagger, error) {
	m, err := model.Headless()
	if err != nil {
		return nil, err
	}
	g := &Tagger{model: m}
	return g, g.lists.open(slots)
}
