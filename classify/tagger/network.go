// The network: scores of the tags of each word.

package tagger

import "kvasir/classify/model"

// score stores the scores of the tags of words [from, to) of the block, which depend on reach words on
// each side.
func (g *Tagger) score(b *block, from, to int, tokens []model.Token, net *model.Scratch) {
	lo, hi := max(from-reach, 0), min(to+reach, b.size)
	g.hide(b, lo, hi, tokens, net)
	x, y := &b.hidden[0], &b.hidden[1]
	for i := range g.layers {
		g.layers[i].Convolve(y[:], x[:], hi-lo, width, dilations[i], b.scale[:], net)
		x, y = y, x
	}
	g.output.Apply(b.score[from*tags:], x[(from-lo)*hiddenSize:], to-from, 0, net)
}

// hide applies the first layer to words [lo, hi).
func (g *Tagger) hide(b *block, lo, hi int, tokens []model.Token, net *model.Scratch) {
	token := b.token
	for at := lo; at < hi; at += model.RowBlock {
		n := min(model.RowBlock, hi-at)
		for i := range n {
			token = g.wordInput(b.input[i*inputSize:], b.words[:b.size], at+i, tokens, token, &b.row)
		}
		g.input.Apply(b.hidden[0][(at-lo)*hiddenSize:], b.input[:], n, hiddenSize, net)
	}
}
