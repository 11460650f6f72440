// Spreads: what a token gives to its neighbours before the second layer of the convolutions. It
// depends on the token's piece alone, so it is computed once and kept.

package model

import (
	"math"
	"slices"
)

// A layer of a convolution is the sum, over its taps, of a product with one token's inputs. Before
// the first layer these inputs depend on no neighbour, so neither do the products. A spread holds
// them in the order in which they lie in the rows of the tokens from two before to two after:
//
//	two before                       branch 2
//	before       branch 0  branch 1  branch 2
//	the token    branch 0  branch 1  branch 2
//	after                  branch 1  branch 2
//	two after                        branch 2
//
// and after them the token's own inputs, which are added to what comes out of the layer. Where its
// pieces are known a text costs two of five parts of the encoder's multiplications.
const (
	spreadSums = (2 + 3 + 5) * branchDim
	spreadLen  = spreadSums + mixDim
)

// A spread is in fixed point, so that sums are exact in any order. What 16 bits do not hold is cut
// off; nothing of any piece is (TestSpreadsFit).
type spread [spreadLen]int16

// spreadOne is 1 in fixed point.
const spreadOne = 1 << 8

// segments are the branch and the tap of each 256 sums of a spread.
var segments = func() (list [][2]int) {
	for row := -reachTokens; row <= reachTokens; row++ {
		for b := range branches {
			if tap := lefts[b] - row; tap >= 0 && tap < widths[b] {
				list = append(list, [2]int{b, tap})
			}
		}
	}
	return list
}()

// spreadScratch is the memory in which tokens spread.
type spreadScratch struct {
	sums [(blockTokens + 2*halo + 2*reachTokens) * mixDim]int32 // what goes into the first layer's ReLU; row 0 is two before token 0
	own  [(blockTokens + 2*halo) * mixDim]int16                 // the tokens' own inputs

	unknown [blockTokens + 2*halo]int32 // tokens whose piece is to be learned
	ids     [rowBlock]int32             // pieces that are learned at a time,
	fresh   [rowBlock]spread            // and what they give
	mixed   [rowBlock * mixDim]float32
	scale   [branches][rowBlock]float32
	out     [rowBlock * branchDim]float32
}

// spread fills sums and own for tokens.
func (m *Model) spread(ids []int32, s *Scratch) {
	sp := &s.encoder.spread
	for i := range len(ids) + 2*reachTokens {
		copy(sp.sums[i*mixDim:][:mixDim], m.encoder.firstBias)
	}
	unknown := sp.unknown[:0]
	for i, id := range ids {
		if !m.spreads.addTo(sp, i, id) {
			unknown = append(unknown, int32(i))
		}
	}
	for len(unknown) > 0 {
		unknown = m.learn(unknown, ids, s)
	}
}

// add adds what token i gives.
func (sp *spreadScratch) add(i int, of *spread) {
	const second, third, fourth = 7 * branchDim, 9 * branchDim, spreadSums // where the rows after begin
	sums := sp.sums[i*mixDim:][:5*mixDim]
	kernel.addWide(sums[2*branchDim:][:second], of[:second]) // three rows, one after the other
	kernel.addWide(sums[3*mixDim+branchDim:][:third-second], of[second:third])
	kernel.addWide(sums[4*mixDim+2*branchDim:][:fourth-third], of[third:fourth])
	copy(sp.own[i*mixDim:][:mixDim], of[spreadSums:])
}

// learn adds what the first of the unknown tokens give, up to rowBlock pieces, keeps it, and returns
// the tokens that are left.
func (m *Model) learn(unknown, ids []int32, s *Scratch) (left []int32) {
	sp, n := &s.encoder.spread, 0
	for i, at := range unknown {
		if slices.Contains(sp.ids[:n], ids[at]) {
			continue
		}
		if n == rowBlock {
			unknown, left = unknown[:i], unknown[i:]
			break
		}
		sp.ids[n] = ids[at]
		n++
	}
	m.study(n, s)
	for _, at := range unknown {
		sp.add(int(at), &sp.fresh[slices.Index(sp.ids[:n], ids[at])])
	}
	return left
}

// study computes and keeps the spreads of the first n ids.
func (m *Model) study(n int, s *Scratch) {
	m.compute(n, s)
	sp := &s.encoder.spread
	for i, id := range sp.ids[:n] {
		m.spreads.keep(id, &sp.fresh[i])
	}
}

// compute computes the spreads of the first n ids.
func (m *Model) compute(n int, s *Scratch) {
	e, sp := &m.encoder, &s.encoder.spread
	m.mix(sp.mixed[:], sp.ids[:n], s)
	q := s.activations(n * mixDim)
	for i := range n {
		x := sp.mixed[i*mixDim:][:mixDim]
		for b := range branches {
			sp.scale[b][i] = q.fill(i*mixDim+b*branchDim, x[b*branchDim:][:branchDim])
		}
		kernel.fix(sp.fresh[i][spreadSums:], x, spreadOne)
	}
	for at, segment := range segments {
		b, tap := segment[0], segment[1]
		s.job = job{
			x: q.from(b * branchDim), scale: sp.scale[b][:n], taps: 1, seg: branchDim, rowStride: mixDim,
			dst: sp.out[:], dstStride: branchDim,
		}
		e.first[b][tap].run(&s.job, n, s)
		for i := range n {
			kernel.fix(sp.fresh[i][at*branchDim:][:branchDim], sp.out[i*branchDim:][:branchDim], spreadOne)
		}
	}
}

// openFirst cuts the first layer of branch b into its taps.
func (e *encoder) openFirst(l *linear, b int) {
	for tap := range widths[b] {
		e.first[b] = append(e.first[b], l.part(tap*branchDim, branchDim))
	}
	for _, v := range l.bias {
		e.firstBias = append(e.firstBias, int32(math.RoundToEven(float64(v)*spreadOne)))
	}
}
