// Convolutions over tokens, two neighbours at a time, with fewer multiplications.

package model

import "fmt"

// conv is a convolution over tokens by minimal filtering (Winograd 1980; Lavin and Gray 2015,
// https://arxiv.org/abs/1509.09308): two neighbours' sums over three taps take 4 products instead of 6,
// over two taps 3 instead of 4, and five taps are three and two. What is multiplied are blends, sums
// and differences of two tokens, with weights that table.py of scripts/train blends of the taps'. A
// product is for both neighbours, for both but with its sign turned for the second, or for one of them;
// the blends lie in this order.
//
// Blends are rounded to 8 bits, so that 127 is blendRange times the largest value of a token. The few
// that are larger, up to twice that value, are cut off: a finer step for all the others is worth more.
// Of the 0.0045 that a cosine with the package's embedding is off, the filtering makes 0.0002.
type conv struct {
	all    linear        // the layer of all blends of two neighbours
	seg    int           // values of a token that it reads, a multiple of 16
	blends []blend       // in the order of the weights
	kinds  [kinds]linear // the blends of each kind
	zero   [2][]int32    // where the sums of the first and the second neighbour start, as linear's
}

const blendRange = 1.25

// The kinds of products.
const (
	kindBoth = iota
	kindTurned
	kindFirst
	kindSecond
	kinds
)

// A blend is a sum or a difference of two tokens' values, or one token's: of + sign*with, tokens from
// the first neighbour on.
type blend struct {
	of, with int
	sign     float32
}

// convBlends are the blends of each branch, of 2, 3 and 5 taps, a kind after the other. No kind but the
// turned ones may be empty.
var convBlends = [branches][kinds][]blend{
	{{{1, 1, 0}}, {}, {{0, 1, -1}}, {{2, 1, -1}}},
	{{{0, 1, 1}}, {{1, 0, -1}}, {{-1, 1, -1}}, {{2, 0, -1}}},
	{{{-1, 0, 1}, {2, 2, 0}}, {{0, -1, -1}}, {{-2, 0, -1}, {1, 2, -1}}, {{1, -1, -1}, {3, 2, -1}}},
}

// Kernels compute so many pairs at least, spareRows of them behind the last one.
const (
	leastPairs = 4
	spareRows  = leastPairs - 1
)

// newConv takes the second layer of a branch, all its blends as one layer.
func newConv(l linear, branch int) conv {
	c := conv{all: l, seg: sights[branch]}
	if c.seg%16 != 0 || l.out%tileOut != 0 || l.in != blendsOf(branch)*c.seg {
		panic(fmt.Sprintf("BUG: a convolution of %d values from %d inputs to %d outputs", c.seg, l.in, l.out))
	}
	from := 0
	for k, kind := range convBlends[branch] {
		n := len(kind) * c.seg
		c.blends, c.kinds[k] = append(c.blends, kind...), l.part(from, n)
		from += n
	}
	for k := range c.zero {
		c.zero[k] = make([]int32, l.out)
	}
	for o := range l.out {
		both, turned := c.kinds[kindBoth].zero[o], c.kinds[kindTurned].zero[o]
		c.zero[0][o] = both + turned + c.kinds[kindFirst].zero[o]
		c.zero[1][o] = both - turned + c.kinds[kindSecond].zero[o]
	}
	return c
}

// blendsOf returns how many blends a pair has in a branch.
func blendsOf(branch int) (n int) {
	for _, kind := range convBlends[branch] {
		n += len(kind)
	}
	return n
}

// blend stores the blends of pairs pairs of tokens, a row each, in memory that is valid until the next
// call of s.activations. The first token's values begin at x[at], the next one's stride values later; the
// tokens that blends name before it and behind the last one lie there, too. Where the last token has no
// neighbour, those that only the neighbour sees may be any. inv is 127 over the largest value that is
// not cut off.
func (c *conv) blend(x []float32, at, stride, pairs int, inv float32, s *Scratch) quantised {
	q := s.activations((pairs + spareRows) * c.all.in)
	for k, b := range c.blends {
		s.blending = blending{
			dst: q.from(k * c.seg), dstStride: c.all.in,
			of: x[at+b.of*stride:], with: x[at+b.with*stride:], stride: 2 * stride,
			sign: b.sign, inv: inv, rows: pairs, seg: c.seg,
		}
		s.blending.check()
		kernel.blend(&s.blending)
	}
	return q
}

// blending is one blend of rows pairs: round-half-even((of + sign*with)*inv), cut off at -128 and 127,
// of seg values, a multiple of 16. Strides, from pair to pair, count elements. sign is -1, 0 or 1, so
// that the product is exact.
type blending struct {
	dst       quantised
	dstStride int
	of, with  []float32
	stride    int
	sign, inv float32
	rows, seg int
}

// check panics if a kernel would touch what is not there: they do not look.
func (b *blending) check() {
	_ = b.of[(b.rows-1)*b.stride+b.seg-1]
	_ = b.with[(b.rows-1)*b.stride+b.seg-1]
	_ = b.dst.data[((b.rows-1)*b.dstStride+b.seg)*b.dst.width-1]
}

// run applies c to pairs pairs of neighbours: j.x are their blends, all else of j is of single tokens.
// All scales are the same. Results are written for all tokens of all pairs, and of leastPairs at least.
func (c *conv) run(j *job, pairs int, s *Scratch) {
	last := 2*max(pairs, leastPairs) - 1
	_ = j.x.data[(pairs+spareRows)*c.all.in*j.x.width-1]
	_ = j.scale[last]
	_ = j.dst[last*j.dstStride+c.all.out-1]
	_ = j.res[last*j.resStride+c.all.out-1]
	for tile := 0; tile < c.all.out; tile += tileOut {
		kernel.conv(c, j, tile, pairs, s)
	}
}

// accumulators are the sums of at most 4 rows.
type accumulators [4][tileOut]int32

// convBySums returns a form's conv: sum stores what rows rows of x, stride apart, make of the 64 outputs
// from tile on.
func convBySums(rows int, sum func(acc *accumulators, l *linear, x quantised, stride, tile int)) func(c *conv, j *job, tile, pairs int, s *Scratch) {
	return func(c *conv, j *job, tile, pairs int, s *Scratch) {
		for r := 0; r < pairs; r += rows {
			x := j.x.from(r * c.all.in)
			for k := range c.kinds {
				kind := &c.kinds[k]
				if kind.in == 0 {
					s.sums[k] = accumulators{}
					continue
				}
				sum(&s.sums[k], kind, x, c.all.in, tile)
				x = x.from(kind.in)
			}
			for i := range min(rows, pairs-r) {
				first, second := &s.sums[kindFirst][i], &s.sums[kindSecond][i]
				for o, both := range &s.sums[kindBoth][i] {
					turned := s.sums[kindTurned][i][o]
					first[o] += both + turned
					second[o] += both - turned
				}
				finishPlain(first, &c.all, j, tile, 2*(r+i))
				finishPlain(second, &c.all, j, tile, 2*(r+i)+1)
			}
		}
	}
}
