// The tagger's network: scores of the tags of each word.

package model

// scoreWords stores the scores of the tags of words [from, to) of the block, which depend on
// tagReach words on each side.
func (m *Model) scoreWords(from, to int, tokens []Token, s *Scratch) {
	g, b := &m.tagger, s.tagger
	lo, hi := max(from-tagReach, 0), min(to+tagReach, b.size)
	m.hide(lo, hi, tokens, s)
	x, y := &b.hidden[0], &b.hidden[1]
	for i := range g.layers {
		g.convolve(&g.layers[i], dilations[i], hi-lo, x, y, s)
		x, y = y, x
	}
	for at := from; at < to; at += rowBlock {
		n := min(rowBlock, to-at)
		g.output.apply(b.score[at*tags:], x[(at-lo)*tagHidden:], n, s)
	}
}

// hide applies the first layer to words [lo, hi).
func (m *Model) hide(lo, hi int, tokens []Token, s *Scratch) {
	g, b := &m.tagger, s.tagger
	token := b.token
	for at := lo; at < hi; at += rowBlock {
		n := min(rowBlock, hi-at)
		q := s.activations(n * tagInput)
		for i := range n {
			x := b.input[i*tagInput:][:tagInput]
			token = m.wordInput(x, b.words[:b.size], at+i, tokens, token, &b.row)
			b.scale[i] = q.fill(i*tagInput, x)
		}
		s.job = job{
			x: q, scale: b.scale[:n], taps: 1, seg: tagInput, rowStride: tagInput,
			dst: b.hidden[0][(at-lo)*tagHidden:], dstStride: tagHidden, relu: tagHidden,
		}
		g.input.run(&s.job, n, s)
	}
}

// convolve stores x + ReLU(l over x) in y, for n words; beyond them lie zeros.
func (g *tagger) convolve(l *linear, dilation, n int, x, y *[tagBlock * tagHidden]float32, s *Scratch) {
	b := s.tagger
	pad := tagWidth / 2 * dilation
	q := s.activations((n + 2*pad) * tagHidden)
	q.clear(0, pad*tagHidden)
	q.clear((pad+n)*tagHidden, pad*tagHidden)
	scale := q.fill(pad*tagHidden, x[:n*tagHidden])
	for i := range n {
		b.scale[i] = scale
	}
	s.job = job{
		x: q, scale: b.scale[:n], taps: tagWidth, seg: tagHidden, rowStride: tagHidden, tapStride: dilation * tagHidden,
		dst: y[:], dstStride: tagHidden, res: x[:], resStride: tagHidden, relu: tagHidden,
	}
	l.run(&s.job, n, s)
}
