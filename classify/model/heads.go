// Heads: small layers that turn views or n-grams into scores. Trained by scripts/train.

package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// dense is a head over views: a hidden layer with ReLU, and an output.
type dense struct{ hidden, out linear }

func (t *Tensors) dense(name string, out int) (d dense, err error) {
	scales, err := t.view(name+".hidden.scale", "F32", []int{-1})
	if err != nil {
		return d, err
	}
	hidden := len(scales) / 4
	if hidden > maxHidden || out > maxOutputs {
		return d, fmt.Errorf("%d hidden values and %d outputs of %q are more than %d and %d", hidden, out, name, maxHidden, maxOutputs)
	}
	if d.hidden, err = t.linear(name+".hidden", viewDim, hidden); err != nil {
		return d, err
	}
	d.out, err = t.linear(name+".out", hidden, out)
	return d, err
}

const (
	maxHidden  = 1920 // of a dense head; category.py has the same number
	maxOutputs = 256  // of a dense head
	maxClasses = 15   // of an n-gram head: a row is 16 bytes at most
)

var _ [maxClasses - max(len(Categories), guardNgramOuts)]struct{} // or they do not fit

// headScratch is the memory of the heads, what vectors lie in first (encoderScratch).
type headScratch struct {
	views  [max(maxRuns, 2*batchRuns) * viewDim]float32 // of runs; of texts judged together, and then their gists
	hidden [batchRuns * maxHidden]float32
	scores [batchRuns * maxOutputs]float32
	runs   [maxRuns]run
	ngrams Ngrams
	chunks [maxChunks]ngramSum
}

func (s *Scratch) forHeads() *headScratch {
	if s.heads == nil {
		s.heads = new(headScratch)
	}
	return s.heads
}

// apply returns the scores of rows views, [rows][outputs], rows at most batchRuns. They are
// valid until the next call.
func (d *dense) apply(x []float32, rows int, s *Scratch) []float32 {
	h := s.forHeads()
	hidden, scores := h.hidden[:rows*d.hidden.out], h.scores[:rows*d.out.out]
	d.hidden.applyReLU(hidden, x, rows, d.hidden.out, s)
	d.out.apply(scores, hidden, rows, s)
	return scores
}

// ngramHead is a linear head over hashed n-grams.
type ngramHead struct {
	classes int
	mask    uint32 // buckets - 1
	// rows are [buckets][1+classes]: an n-gram's rarity, and its weights times that, plus 128. Side by side
	// they are mostly one way to the caches instead of two, which is what an n-gram costs.
	rows  []byte
	scale []float32
	bias  []float32
}

func (t *Tensors) ngramHead(name string, classes int) (h ngramHead, err error) {
	if _, old := t.index[name+".idf"]; old {
		return h, errors.New("it was trained for a version of Kvasir that had rarities and weights of n-grams apart: train it anew with this one")
	}
	h.classes = classes
	if h.rows, err = t.bytes(name+".rows", -1, 1+classes); err != nil {
		return h, err
	}
	n := len(h.rows) / (1 + classes)
	if n == 0 || n&(n-1) != 0 || n > NgramBuckets {
		return h, fmt.Errorf("%d buckets of %q are not a power of 2 up to %d", n, name, NgramBuckets)
	}
	h.mask = uint32(n - 1)
	if h.scale, err = t.Float32s(name+".scale", classes); err != nil {
		return h, err
	}
	h.bias, err = t.Float32s(name+".bias", classes)
	return h, err
}

// ngramSum is what the n-grams of a piece of text add up to.
type ngramSum struct {
	sums    [maxClasses]int32
	squares int64
}

// sum adds up the weights of n-grams.
func (h *ngramHead) sum(dst *ngramSum, list []uint32) {
	*dst = ngramSum{}
	if len(h.rows) < 8 {
		h.sumSlowly(dst, list)
		return
	}
	for len(list) > 0 {
		n := min(len(list), laneSums)
		h.sumLanes(dst, list[:n])
		list = list[n:]
	}
}

func (h *ngramHead) sumSlowly(dst *ngramSum, list []uint32) {
	for _, f := range list {
		row := h.rows[int(f&h.mask)*(1+h.classes):][:1+h.classes]
		r := int64(row[0])
		dst.squares += r * r
		for i, w := range row[1:] {
			dst.sums[i] += int32(w) - 128
		}
	}
}

// Eight bytes are added at once, in lanes of 16 bits that hold 257 sums of up to 255: an n-gram after
// the other waited for the caches, now they overlap (27 to 16 us for 64 tokens, with an earlier table).
const (
	laneSums = 256
	laneMask = 0x00ff00ff00ff00ff
)

// sumLanes adds up the weights of at most laneSums n-grams.
func (h *ngramHead) sumLanes(dst *ngramSum, list []uint32) {
	rows, width := h.rows, 1+h.classes
	last, second := len(rows)-8, max(width-8, 0)
	var even, odd, even2, odd2 uint64
	var squares int64
	for _, f := range list {
		first := int(f&h.mask) * width
		at := min(first, last)
		x := binary.LittleEndian.Uint64(rows[at:]) >> (8 * uint(first-at) & 63)
		r := int64(x & 0xff)
		squares += r * r
		even += x & laneMask
		odd += x >> 8 & laneMask
		if second > 0 {
			x = binary.LittleEndian.Uint64(rows[first+second:])
			even2 += x & laneMask
			odd2 += x >> 8 & laneMask
		}
	}
	dst.squares += squares
	for i := range h.classes {
		lane, a, b := 1+i, even, odd
		if lane >= 8 {
			lane, a, b = lane-second, even2, odd2
		}
		if lane%2 == 1 {
			a = b
		}
		dst.sums[i] += int32(a>>(8*uint(lane&^1))&0xffff) - 128*int32(len(list))
	}
}

// scores stores the scores of one or two pieces together in dst, one a class: the sum of the
// weights over the length of the vector of rarities.
func (h *ngramHead) scores(dst []float32, a, b *ngramSum) {
	squares := a.squares
	if b != nil {
		squares += b.squares
	}
	length := math.Sqrt(float64(max(squares, 1)))
	for i := range h.classes {
		sum := a.sums[i]
		if b != nil {
			sum += b.sums[i]
		}
		dst[i] = float32(float64(sum)/length*float64(h.scale[i])) + h.bias[i]
	}
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
