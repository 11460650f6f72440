// Convolutions by minimal filtering against convolutions by their definition.

package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// blended are the weights of a branch's blends, of whole-numbered weights [taps][seg][out]: packed as
// newLinear takes them. Their halves must be whole, too.
func blended(t testing.TB, taps [][]int, branch, seg, out int) []int8 {
	t.Helper()
	w := make([]int8, blendsOf(branch)*seg*out)
	n := 0
	add := func(of func(at int) int) {
		for i := range seg {
			for o := range out {
				v := of(i*out + o)
				if v%2 != 0 || v < 2*math.MinInt8 || v > 2*math.MaxInt8 {
					t.Fatal("a weight that a byte does not hold:", v)
				}
				w[o*blendsOf(branch)*seg+n*seg+i] = int8(v / 2)
			}
		}
		n++
	}
	three, pair := taps, [][]int(nil)
	switch len(taps) {
	case 2:
		three, pair = nil, taps
	case 5:
		three, pair = taps[:3], taps[3:]
	}
	if three != nil {
		add(func(at int) int { return three[0][at] + three[1][at] + three[2][at] })
	}
	if pair != nil {
		add(func(at int) int { return 2 * (pair[0][at] + pair[1][at]) })
	}
	if three != nil {
		add(func(at int) int { return three[0][at] - three[1][at] + three[2][at] })
	}
	for _, last := range []int{0, 1} {
		if three != nil {
			add(func(at int) int { return 2 * three[2*last][at] })
		}
		if pair != nil {
			add(func(at int) int { return 2 * pair[last][at] })
		}
	}
	return packTiles(w, blendsOf(branch)*seg, out)
}

// Of whole numbers that need no rounding a convolution by minimal filtering gives what the sum over the
// taps gives, to the bit, in every form, and writes nothing else than it says.
func TestConvIsTheSumOverItsTaps(t *testing.T) {
	const out, stride, dstStride, resStride, slack = 2 * tileOut, branchDim + 7, 2*tileOut + 5, 2*tileOut + 9, 12
	rng := rand.New(rand.NewPCG(31, 32))
	for branch, seg := range sights {
		taps := make([][]int, widths[branch])
		for k := range taps {
			taps[k] = make([]int, seg*out)
			for i := range taps[k] {
				taps[k][i] = 2 * (rng.IntN(41) - 20)
			}
		}
		tiles := blended(t, taps, branch, seg, out)
		scale, bias := randomFloats(rng, out), randomFloats(rng, out)
		for _, tokens := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 37, 93, 94, 96} {
			// Before and behind lie empty tokens that the first and the last one see, and then any.
			pairs := (tokens + 1) / 2
			at := reachTokens * stride
			x := make([]float32, (reachTokens+2*pairs+2*reachTokens)*stride)
			for i := range tokens * stride {
				x[at+i] = float32(rng.IntN(127) - 63)
			}
			for i := at + (tokens+reachTokens)*stride; i < len(x); i++ {
				x[i] = 1e9
			}
			rows := 2*max(pairs, leastPairs) + slack
			res := randomFloats(rng, rows*resStride)
			want := make([]float32, tokens*out)
			for i := range tokens {
				for o := range out {
					sum := 0
					for k, tap := range taps {
						for v, x := range x[at+(i-lefts[branch]+k)*stride:][:seg] {
							sum += int(x) * tap[v*out+o]
						}
					}
					v := float32(float32(float32(sum)*0.5)*scale[o]) + bias[o]
					if o < tileOut {
						v = max(v, 0)
					}
					want[i*out+o] = v + res[i*resStride+o]
				}
			}
			withForm(t, func(t *testing.T) {
				c := newConv(newLinear(tiles, scale, bias, blendsOf(branch)*seg, out), branch)
				s := new(Scratch)
				for i, old := 0, s.activations(60*c.all.in); i < len(old.data); i++ {
					old.data[i] = 0x77 // what was there before is not added up
				}
				const untouched = 1e30
				got := slices.Repeat([]float32{untouched}, rows*dstStride)
				c.run(&job{
					x: c.blend(x, at, stride, pairs, 1, s), scale: slices.Repeat([]float32{0.5}, rows),
					dst: got, dstStride: dstStride, res: res, resStride: resStride, relu: tileOut,
				}, pairs, s)
				for i, v := range got {
					row, o := i/dstStride, i%dstStride
					switch {
					case row < tokens && o < out && v != want[row*out+o]:
						t.Fatalf("%d taps, %d tokens: value %d of token %d is %v, want %v", len(taps), tokens, o, row, v, want[row*out+o])
					case (row >= 2*max(pairs, leastPairs) || o >= out) && v != untouched:
						t.Fatalf("%d taps, %d tokens: %v was written to value %d of token %d", len(taps), tokens, v, o, row)
					}
				}
			})
		}
	}
}

// Blends are rounded half to even and cut off where a byte ends.
func TestBlendGivesTheSameBitsInEveryForm(t *testing.T) {
	const rows, seg, stride, dstStride = 5, 48, 60, 100
	rng := rand.New(rand.NewPCG(33, 34))
	of, with := make([]float32, rows*stride), make([]float32, rows*stride)
	for i := range of {
		of[i], with[i] = float32(rng.IntN(600)-300)/2, float32(rng.IntN(600)-300)/2
	}
	copy(of, []float32{127, 127.5, -128, -128.5, -129, 200, -200, 126.5, 0, float32(math.Copysign(0, -1))})
	for _, sign := range []float32{-1, 0, 1} {
		clear(with[:10])
		withForm(t, func(t *testing.T) {
			q := new(Scratch).activations(rows * dstStride)
			b := blending{dst: q, dstStride: dstStride, of: of, with: with, stride: stride, sign: sign, inv: 1, rows: rows, seg: seg}
			b.check()
			kernel.blend(&b)
			for r := range rows {
				for i := range seg {
					v := float64(of[r*stride+i]) + float64(sign)*float64(with[r*stride+i])
					want := int(min(max(math.RoundToEven(v), math.MinInt8), math.MaxInt8))
					if got := q.at(r*dstStride + i); got != want {
						t.Fatalf("sign %v: row %d, value %d, %v, became %d, want %d", sign, r, i, v, got, want)
					}
				}
			}
		})
	}
}

// BenchmarkConv is the second layers of a text of 22 tokens, in each form.
func BenchmarkConv(b *testing.B) {
	const pairs = 11
	rng := rand.New(rand.NewPCG(35, 36))
	x := randomFloats(rng, 60*mixDim)
	chosen := kernel
	defer func() { kernel = chosen }()
	for _, f := range forms() {
		kernel = f
		b.Run(f.name, func(b *testing.B) {
			var layers [branches]conv
			products := 0
			for i, seg := range sights {
				in := blendsOf(i) * seg
				w, scale, bias := randomLayer(rng, in, branchDim)
				layers[i] = newConv(newLinear(packTiles(w, in, branchDim), scale, bias, in, branchDim), i)
				products += pairs * in * branchDim
			}
			s, dst, scale := new(Scratch), make([]float32, 60*mixDim), slices.Repeat([]float32{1}, 60)
			for b.Loop() {
				for i := range layers {
					c := &layers[i]
					s.job = job{
						x: c.blend(x, reachTokens*mixDim+i*branchDim, mixDim, pairs, 30, s), scale: scale,
						dst: dst[i*branchDim:], dstStride: mixDim, res: x, resStride: mixDim, relu: branchDim,
					}
					c.run(&s.job, pairs, s)
				}
			}
			b.ReportMetric(2*float64(products)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
}
