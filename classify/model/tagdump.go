// What the tagger sees in a text, for the training.

package model

// TagInput is what the tagger is given for one word.
type TagInput struct {
	Start, End int32  // bytes of the text
	Hash       uint64 // of the word in small letters
	X          [tagInput]float32
}

// TagInputs returns the inputs of all words of a text. It allocates; serving has no use for it.
func (m *Model) TagInputs(text []byte, s *Scratch) []TagInput {
	tokens := m.Tokenize(nil, text, s)
	var words []word
	scan := wordScan{text: text}
	for {
		w, ok := scan.next()
		if !ok {
			break
		}
		m.tagger.lists.look(&w, words)
		words = append(words, w)
	}
	inputs := make([]TagInput, len(words))
	from := 0
	var row [Dim]float32
	for i, w := range words {
		in := &inputs[i]
		in.Start, in.End, in.Hash = w.start, w.end, w.hash
		from = m.wordInput(in.X[:], words, i, tokens, from, &row)
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

// WithLists returns a model that has these word lists and no network, for the training of the
// tagger: it works whatever tagger the binary carries.
func WithLists(slots []byte) (*Model, error) {
	m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
	if err != nil {
		return nil, err
	}
	return m, m.tagger.lists.open(slots)
}
