// Together: short texts that are judged at the same moment share one pass over the weights of the
// layers over windows, whose way from the third cache takes half of the time of one alone.

package model

import "slices"

// A Short is a text that is judged together with others. What comes out is to the bit what Attack,
// Gist and Category give.
type Short struct {
	Text       []byte
	Categorise bool // Category is asked for, of all of Text

	Judged    bool // false: it has more than 190 tokens and nothing below is set
	Scores    Scores
	Embedding [Dim]float32
	Category  [len(Categories)]float32

	tokens, script int
	ids            [wholeSpans * spanTokens]int32 // with <s> and </s>
	n              int                            // of ids
	runs           [shortRuns]run
	rows           int // how many of the runs there are
	words          [guardNgramOuts]float32
	grams          [shortGrams]uint32 // for Category; they wait for the gate to name one of the experts
	ngrams         int                // how many there are; if more than fit, none is kept
	expert         int                // that its category is asked of
}

// Batches says that texts judged together cost less than one by one: not in plain Go, which
// multiplies no faster than weights come.
func Batches() bool { return kernel != &plainForm }

// shortRuns is how many windows a text of wholeSpans spans has.
const shortRuns = 1 + 7 + 3

// shortGrams is how many n-grams of a text are kept. Of the English questions that the category is measured with,
// up to 190 tokens, 99 of 100 have no more than 911, of the Chinese ones 221.
const shortGrams = 1024

// Together judges texts, as many as there are.
func (m *Model) Together(list []Short, s *Scratch) {
	for i := range list {
		m.prepare(&list[i], s)
	}
	m.learnTogether(list, s)
	first, rows := 0, 0
	for i := range list {
		t := &list[i]
		if !t.Judged {
			continue
		}
		if rows+t.rows > batchRuns {
			m.judgeShorts(list[first:i], rows, s)
			first, rows = i, 0
		}
		s.encoder.take(t.ids[:t.n])
		for k, r := range t.runs[:t.rows] {
			m.sumRun(rows+k, r, s)
		}
		rows += t.rows
	}
	m.judgeShorts(list[first:], rows, s)
}

// prepare does what a text's tokens and words are needed for.
func (m *Model) prepare(t *Short, s *Scratch) {
	s.tokens = m.Tokenize(s.tokens[:0], t.Text, s)
	tokens, h := s.tokens, s.forHeads()
	ids := frame(s.forEncoder().next[:], tokens)
	if t.Judged = len(ids) <= len(t.ids); !t.Judged {
		return
	}
	t.tokens, t.n = len(tokens), copy(t.ids[:], ids)
	spans := spansOf(t.n)
	t.rows = len(appendWindows(t.runs[:0], spans))
	t.words = m.guard.words(t.Text, tokens, chunksOf(spans), h)
	t.script = scriptOf(bytesOfTokens(t.Text, tokens))
	if t.Categorise { // now, since most texts have them from the guard
		list := ngramsOf(t.Text, h)
		if t.ngrams = len(list); t.ngrams <= len(t.grams) {
			copy(t.grams[:], list)
		}
	}
}

// learnTogether learns the pieces of all texts that are not known, 1 MB of weights for all of them.
func (m *Model) learnTogether(list []Short, s *Scratch) {
	n := 0
	for i := range list {
		t := &list[i]
		if !t.Judged {
			continue
		}
		for _, id := range t.ids[:t.n] {
			sp := &s.encoder.spread
			if m.spreads.has(id) || slices.Contains(sp.ids[:n], id) {
				continue
			}
			sp.ids[n] = id
			if n++; n == rowBlock {
				m.study(0, n, s)
				n = 0
			}
		}
	}
	if n > 0 {
		m.study(0, n, s)
	}
}

// judgeShorts ends the texts whose runs have been summed up, in so many rows.
func (m *Model) judgeShorts(list []Short, rows int, s *Scratch) {
	if rows == 0 {
		return
	}
	h := s.forHeads()
	views, gists := h.views[:rows*viewDim], h.views[batchRuns*viewDim:2*batchRuns*viewDim]
	m.encoder.finish(views, rows, s)
	scores := m.guard.net.apply(views, rows, s)
	var asked [batchRuns]*Short
	n := 0
	for i := range list {
		t := &list[i]
		if !t.Judged {
			continue
		}
		var worst worstWindows
		worst.add(t.runs[:t.rows], scores)
		t.Scores = m.guard.judge(&worst, &t.words, t.script, t.n, t.tokens)
		copy(t.Embedding[:], views) // the first run is the whole text
		if t.Categorise {
			copy(gists[n*viewDim:], views[:viewDim])
			asked[n] = t
			n++
		}
		scores, views = scores[t.rows*guardOuts:], views[t.rows*viewDim:]
	}
	if n > 0 {
		m.category.judgeGists(asked[:n], gists, s)
	}
}

// judgeGists judges texts by their gists, one pass over the weights of each expert that some are for.
// The first half of the views, which nobody needs any more, takes the gists of one expert.
func (c *categoryHead) judgeGists(list []*Short, gists []float32, s *Scratch) {
	own := s.heads.views[:batchRuns*viewDim]
	scores := c.gate.apply(gists, len(list), s)
	for i, t := range list {
		t.expert = choose(scores[i*len(expertNames):][:len(expertNames)])
	}
	for i := range c.experts {
		e, n := &c.experts[i], 0
		for k, t := range list {
			if t.expert == i {
				copy(own[n*viewDim:], gists[k*viewDim:][:viewDim])
				n++
			}
		}
		if n == 0 {
			continue
		}
		scores = e.net.apply(own, n, s)
		for _, t := range list {
			if t.expert == i {
				words := e.words(t.forCategory(s.heads))
				e.mix(&t.Category, scores[:len(e.label)], &words)
				scores = scores[len(e.label):]
			}
		}
	}
}

// forCategory returns the n-grams that Category looks at, valid until the next call.
func (t *Short) forCategory(h *headScratch) []uint32 {
	if t.ngrams > len(t.grams) {
		return ngramsOf(t.Text, h)
	}
	return t.grams[:t.ngrams]
}
