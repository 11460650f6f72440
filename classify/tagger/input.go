// Input: what the network is given for each word of a text.

package tagger

import (
	"math/bits"

	"kvasir/classify/model"
)

// The input of a word: the mean of the token table's rows of its pieces, then bits: the lists that
// have the word, those that have it with the next word, those that have it with the word before,
// and its shape.
const (
	inputBits = 3*lexiconBits + shapeRoom
	inputSize = model.Dim + inputBits
)

// rowGain scales the table's rows, so that they are about as large as the bits.
const rowGain = 8

// shapeRoom is the room for the bits of a shape; a few are free.
const shapeRoom = 56

// wordInput stores the input of words[i], whose pieces begin at or after tokens[from], in x.
// It returns where to look for the pieces of the next word.
func (g *Tagger) wordInput(x []float32, words []word, i int, tokens []model.Token, from int, row *[model.Dim]float32) int {
	w := &words[i]
	x = x[:inputSize]
	clear(x)
	for from < len(tokens) && tokens[from].End <= w.start {
		from++
	}
	n := 0
	for k := from; k < len(tokens) && tokens[k].Start < w.end; k++ {
		if tokens[k].End <= w.start {
			continue
		}
		g.model.AddRow(x, tokens[k].ID, rowGain, row)
		n++
	}
	if n > 1 {
		for k, v := range x[:model.Dim] {
			x[k] = v / float32(n)
		}
	}
	x = x[model.Dim:]
	setBits(x, uint64(w.lists))
	if i+1 < len(words) {
		setBits(x[lexiconBits:], uint64(words[i+1].pair))
	}
	setBits(x[2*lexiconBits:], uint64(w.pair))
	setBits(x[3*lexiconBits:], uint64(w.shape))
	return from
}

// setBits stores 1 in x where set has a bit.
func setBits(x []float32, set uint64) {
	for ; set != 0; set &= set - 1 {
		x[bits.TrailingZeros64(set)] = 1
	}
}
