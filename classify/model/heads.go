// Heads: small layers that turn views or n-grams into scores. Trained by scripts/train.

package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// dense is a head over views: a hidden layer with ReLU, and an output.
type dense struct{ hidden, out linear }

func (t *tensors) dense(name string, out int) (d dense, err error) {
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
	maxHidden  = 1536
	maxOutputs = 256 // of a dense head
	maxClasses = 16  // of an n-gram head
)

// headScratch is the memory of the heads.
type headScratch struct {
	ngrams Ngrams
	hidden [batchRuns * maxHidden]float32
	scores [batchRuns * maxOutputs]float32
	runs   [maxRuns]run
	views  [max(maxRuns, 2*batchRuns) * viewDim]float32 // of runs; of texts judged together, and then their gists
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
	mask    uint32  // buckets - 1
	weights []int8  // [buckets][classes], times the n-gram's rarity
	rarity  []uint8 // [buckets]
	scale   []float32
	bias    []float32
}

func (t *tensors) ngramHead(name string, classes int) (h ngramHead, err error) {
	h.classes = classes
	if h.rarity, err = t.bytes(name+".idf", -1); err != nil {
		return h, err
	}
	n := len(h.rarity)
	if n == 0 || n&(n-1) != 0 || n > NgramBuckets {
		return h, fmt.Errorf("%d buckets of %q are not a power of 2 up to %d", n, name, NgramBuckets)
	}
	h.mask = uint32(n - 1)
	if h.weights, err = t.int8s(name+".weight", n, classes); err != nil {
		return h, err
	}
	if h.scale, err = t.float32s(name+".scale", classes); err != nil {
		return h, err
	}
	h.bias, err = t.float32s(name+".bias", classes)
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
	if len(h.weights) < 8 {
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
		f &= h.mask
		r := int64(h.rarity[f])
		dst.squares += r * r
		for i, w := range h.weights[int(f)*h.classes:][:h.classes] {
			dst.sums[i] += int32(w)
		}
	}
}

// Eight weights are added at once, in lanes of 16 bits that hold 257 sums of up to 255: an n-gram after
// the other waited for the caches, now they overlap (27 to 16 us for 64 tokens).
const (
	laneSums = 256
	laneMask = 0x00ff00ff00ff00ff
	laneBias = 0x8080808080808080 // adds 128 to each weight
)

// sumLanes adds up the weights of at most laneSums n-grams.
func (h *ngramHead) sumLanes(dst *ngramSum, list []uint32) {
	w := bytesView(h.weights)
	last, second := len(w)-8, max(h.classes-8, 0)
	var even, odd, even2, odd2 uint64
	var squares int64
	for _, f := range list {
		f &= h.mask
		r := int64(h.rarity[f])
		squares += r * r
		first := int(f) * h.classes
		at := min(first, last)
		x := binary.LittleEndian.Uint64(w[at:])>>(8*uint(first-at)&63) ^ laneBias
		even += x & laneMask
		odd += x >> 8 & laneMask
		if second > 0 {
			x = binary.LittleEndian.Uint64(w[first+second:]) ^ laneBias
			even2 += x & laneMask
			odd2 += x >> 8 & laneMask
		}
	}
	dst.squares += squares
	for i := range h.classes {
		lane, a, b := i, even, odd
		if i >= 8 {
			lane, a, b = i-second, even2, odd2
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
