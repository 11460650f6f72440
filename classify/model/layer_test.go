package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A layer of weights that are computed gives what floats give, to within what 8 bits leave, and the same bits in
// every form; with large inputs apart and with finer ones it is nearer.
func TestComputedLayer(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	for _, size := range []struct{ in, out, rows int }{{16, 1, 1}, {32, 64, 5}, {48, 100, 49}, {128, 200, 97}} {
		in, out, rows := size.in, size.out, size.rows
		w, x, add := randomFloats(rng, in*out), randomFloats(rng, in*rows), randomFloats(rng, out*rows)
		bias, far := randomFloats(rng, out), []int32{3, int32(in - 1)}
		large := slices.Clone(x)
		for r := range rows {
			large[r*in+3] *= 40
			large[r*in+in-1] *= 60
		}
		exact := func(x, add []float32) []float64 {
			y := make([]float64, rows*out)
			for i := range y {
				for k := range in {
					y[i] += float64(x[i/out*in+k]) * float64(w[i%out*in+k])
				}
				if add != nil {
					y[i] += float64(bias[i%out]) + float64(add[i])
				}
			}
			return y
		}
		off := func(got []float32, want []float64) float64 {
			var difference, all float64
			for i, v := range want {
				difference += (float64(got[i]) - v) * (float64(got[i]) - v)
				all += v * v
			}
			return math.Sqrt(difference / all)
		}
		var first [3][]float32
		withForm(t, func(t *testing.T) {
			var s Scratch
			got := [3][]float32{make([]float32, rows*out), make([]float32, rows*out), make([]float32, rows*out)}
			plain, apart, fine := new(Layer), new(Layer), new(Layer)
			for _, l := range []*Layer{plain, fine} {
				l.Set(Rows{w, in}, in, out, &s)
			}
			apart.SetApart(Rows{w, in}, in, out, far, &s)
			for i, l := range []*Layer{plain, apart} {
				l.SetBias(bias)
				l.ApplyRows(Rows{got[i], out}, Rows{large, in}, Rows{add, out}, rows, &s)
			}
			top := float32(0)
			for _, v := range x {
				top = max(top, v, -v)
			}
			fine.ApplyFine(Rows{got[2], out}, Rows{x, in}, top, rows, &s)
			if first[0] == nil {
				first = got
			}
			for i, g := range got {
				if at := firstDifference(g, first[i]); at >= 0 {
					t.Errorf("%v, way %d: value %d is %v, in another form %v", size, i, at, g[at], first[i][at])
				}
			}
		})
		whole := exact(large, add)
		if a, b := off(first[0], whole), off(first[1], whole); b > 0.02 || in > 16 && b > a {
			t.Errorf("%v: off by %.5f, with large inputs apart by %.5f", size, a, b)
		}
		if d := off(first[2], exact(x, nil)); d > 0.02 {
			t.Errorf("%v: with finer inputs off by %.5f", size, d)
		}
	}
}
