// Features: what the heads look at, for those who train them.

package model

import "slices"

// Features are what the heads see in a text. Training takes them from here, so that it sees what
// serving sees.
type Features struct {
	Windows [][2]int32         // first and last span, of a text's windows; its gist first
	Views   [][viewDim]float32 // of the windows: embedding and what it is made of
	Chunks  [][]uint32         // n-grams of each chunk of four spans
	Text    []uint32           // n-grams of the text
	Script  int                // 0: letters, 1: ideographs, 2: letters that the encoder does not read
}

// Features returns the features of a text. It allocates; serving has no use for it.
func (m *Model) Features(text []byte, s *Scratch) Features {
	tokens := m.Tokenize(nil, text, s)
	if len(tokens) > MaxTokens {
		tokens = tokens[:MaxTokens]
	}
	spans := spansOf(m.begin(tokens, s))
	runs := appendWindows(nil, spans)
	runs[0] = gist(spans)
	vectors := make([]float32, len(runs)*viewDim)
	m.viewRuns(vectors, runs, s)
	var f Features
	for i, r := range runs {
		f.Windows = append(f.Windows, [2]int32{r.from, r.to})
		f.Views = append(f.Views, [viewDim]float32(vectors[i*viewDim:]))
	}
	var g Ngrams
	for i := range chunksOf(spans) {
		f.Chunks = append(f.Chunks, slices.Clone(g.Collect(bytesOfTokens(text, chunkOf(tokens, i)))))
	}
	f.Text = slices.Clone(g.Collect(text[:min(len(text), maxCategoryText)]))
	f.Script = scriptOf(bytesOfTokens(text, tokens))
	return f
}
