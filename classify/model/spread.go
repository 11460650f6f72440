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
// pieces are known a text costs a quarter of the encoder's multiplications.
const (
	spreadSums = (2 + 3 + 5) * branchDim
	spreadLen  = spreadSums + mixDim
)

// A spread is in fixed point, so that sums are exact in any order. What 16 bits do not hold is cut
// off; nothing of any piece is (TestSpreadsFit).
type spread [spreadLen]int16

// spreadOne is 1 in fixed point.
const spreadOne = 1 << 8

// A segment is 256 sums of a spread: for which row, seen from the token, and of which tap of a branch.
type segment struct{ row, branch, tap int }

// segments are those of a spread, in order.
var segments = func() (list []segment) {
	for row := -reachTokens; row <= reachTokens; row++ {
		for b := range branches {
			if tap := lefts[b] - row; tap >= 0 && tap < widths[b] {
				list = append(list, segment{row, b, tap})
			}
		}
	}
	return list
}()

// maxNear is how many tokens a block and its halo have.
const maxNear = blockTokens + 2*halo

// spreadScratch is the memory in which tokens spread.
type spreadScratch struct {
	fresh [maxNear]spread // what the pieces in ids give
	mixed [rowBlock * mixDim]float32
	out   [rowBlock * branchDim]float32
	scale [branches][rowBlock]float32

	near [maxNear + 2*reachTokens]*spread // what tokens give, the first reachTokens of them before the first token
	lent [maxNear]loan                    // of them, those that are kept
	n    int                              // of lent

	unknown [maxNear]int32 // tokens whose piece is to be learned
	ids     [maxNear]int32 // these pieces
}

// noSpread is what lies beyond the ends of a text.
var noSpread spread

// spread finds what tokens give, until giveBack.
func (m *Model) spread(ids []int32, s *Scratch) {
	sp := &s.encoder.spread
	for i := range reachTokens {
		sp.near[i], sp.near[reachTokens+len(ids)+i] = &noSpread, &noSpread
	}
	near, unknown := sp.near[reachTokens:], sp.unknown[:0]
	for i, id := range ids {
		of, loan := m.spreads.borrow(id)
		if of == nil {
			unknown = append(unknown, int32(i))
			continue
		}
		near[i] = of
		sp.lent[sp.n] = loan
		sp.n++
	}
	m.learn(unknown, ids, s)
}

// giveBack ends the loans: what was lent may be replaced.
func (sp *spreadScratch) giveBack() {
	for _, l := range sp.lent[:sp.n] {
		l.end()
	}
	sp.n = 0
}

// learn computes and keeps what the unknown tokens give.
func (m *Model) learn(unknown, ids []int32, s *Scratch) {
	sp, n := &s.encoder.spread, 0
	for _, at := range unknown {
		k := slices.Index(sp.ids[:n], ids[at])
		if k < 0 {
			k = n
			sp.ids[k] = ids[at]
			n++
		}
		sp.near[reachTokens+int(at)] = &sp.fresh[k]
	}
	for first := 0; first < n; first += rowBlock {
		m.study(first, min(n, first+rowBlock), s)
	}
}

// study computes and keeps the spreads of ids [first, last), up to rowBlock.
func (m *Model) study(first, last int, s *Scratch) {
	m.compute(first, last, s)
	sp := &s.encoder.spread
	for i, id := range sp.ids[first:last] {
		m.spreads.keep(id, &sp.fresh[first+i])
	}
}

// compute computes the spreads of ids [first, last), up to rowBlock.
func (m *Model) compute(first, last int, s *Scratch) {
	e, sp, n := &m.encoder, &s.encoder.spread, last-first
	fresh := sp.fresh[first:last]
	m.mix(sp.mixed[:], sp.ids[first:last], s)
	q := s.activations(n * mixDim)
	for i := range fresh {
		x := sp.mixed[i*mixDim:][:mixDim]
		for b := range branches {
			sp.scale[b][i] = q.fill(i*mixDim+b*branchDim, x[b*branchDim:][:branchDim])
		}
		kernel.fix(fresh[i][spreadSums:], x, spreadOne)
	}
	for at, of := range segments {
		s.job = job{
			x: q.from(of.branch * branchDim), scale: sp.scale[of.branch][:n], taps: 1, seg: branchDim, rowStride: mixDim,
			dst: sp.out[:], dstStride: branchDim,
		}
		e.first[of.branch][of.tap].run(&s.job, n, s)
		for i := range fresh {
			kernel.fix(fresh[i][at*branchDim:][:branchDim], sp.out[i*branchDim:][:branchDim], spreadOne)
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
