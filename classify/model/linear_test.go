// Dense layers and convolutions against slow twins, in every form that this processor has.

package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// withForm runs test once in each form of the inner loops.
func withForm(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	chosen := kernel
	t.Cleanup(func() { kernel = chosen })
	for _, f := range forms() {
		kernel = f
		t.Run(f.name, test)
	}
}

func randomLayer(rng *rand.Rand, in, out int) (w []int8, scale, bias []float32) {
	w = make([]int8, in*out)
	for i := range w {
		w[i] = int8(rng.IntN(256) - 128)
	}
	return w, randomFloats(rng, out), randomFloats(rng, out)
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// applyTwin is apply by its definition: the same roundings, sums in int64.
func applyTwin(w []int8, scale, bias, x []float32, in, out, rows int) []float32 {
	dst := make([]float32, rows*out)
	for r := range rows {
		row := x[r*in:][:in]
		var top float32
		for _, v := range row {
			top = max(top, float32(math.Abs(float64(v))))
		}
		sx, inv := scaleOf(top)
		for o := range out {
			var sum int64
			for i, v := range row {
				sum += int64(math.RoundToEven(float64(float32(v*inv)))) * int64(w[o*in+i])
			}
			dst[r*out+o] = float32(float32(float32(sum)*sx)*scale[o]) + bias[o]
		}
	}
	return dst
}

func TestApplyGivesTheSameBitsInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var shapes [][3]int // in, out, rows
	for range 40 {
		shapes = append(shapes, [3]int{4 * (1 + rng.IntN(100)), 1 + rng.IntN(200), rng.IntN(14)})
	}
	shapes = append(shapes, [3]int{512, 768, 66}, [3]int{1280, 512, 1}, [3]int{4, 64, 97})
	for _, shape := range shapes {
		in, out, rows := shape[0], shape[1], shape[2]
		w, scale, bias := randomLayer(rng, in, out)
		x := randomFloats(rng, rows*in)
		if rows > 1 {
			clear(x[:in])
		}
		want := applyTwin(w, scale, bias, x, in, out, rows)
		tiles := packTiles(w, in, out)
		withForm(t, func(t *testing.T) {
			l := newLinear(tiles, scale, bias, in, out)
			got := make([]float32, rows*out)
			l.apply(got, x, rows, new(Scratch))
			if i := firstDifference(got, want); i >= 0 {
				t.Fatalf("in %d out %d rows %d: value %d is %v, want %v", in, out, rows, i, got[i], want[i])
			}
		})
	}
}

// firstDifference returns the first place where the bits differ, -1 if none.
func firstDifference(a, b []float32) int {
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// TestRunReadsWindowsInPlace holds a dilated convolution over rows with zeros around them against
// the same one with each window copied out.
func TestRunReadsWindowsInPlace(t *testing.T) {
	const (
		width, taps, dilation = 20, 5, 2
		left                  = taps / 2 * dilation
	)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, rows := range []int{1, 2, 5, 6, 7, 13, 40} {
		for _, out := range []int{64, 30, 128} {
			relu := min(out, 64) // of two tiles the first
			seen := width
			if rows%2 == 1 {
				seen = 12 // of a row's values, the first; the others must not be read
			}
			w, scale, bias := randomLayer(rng, seen*taps, out)
			x := randomFloats(rng, rows*width)
			res := randomFloats(rng, rows*out)
			tiles := packTiles(w, seen*taps, out)
			withForm(t, func(t *testing.T) {
				l := newLinear(tiles, scale, bias, seen*taps, out)
				s := new(Scratch)
				q := s.activations((rows + 2*left) * width)
				q.clear(0, left*width)
				q.clear((left+rows)*width, left*width)
				sx := q.fill(left*width, x)
				got := make([]float32, rows*out)
				l.run(&job{
					x: q, scale: slices.Repeat([]float32{sx}, rows), taps: taps, seg: seen,
					rowStride: width, tapStride: dilation * width,
					dst: got, dstStride: out, res: res, resStride: out, relu: relu,
				}, rows, s)
				want := convTwin(w, scale, bias, x, res, rows, width, seen, taps, dilation, out, relu)
				if i := firstDifference(got, want); i >= 0 {
					t.Fatalf("rows %d out %d: value %d is %v, want %v", rows, out, i, got[i], want[i])
				}
			})
		}
	}
}

func convTwin(w []int8, scale, bias, x, res []float32, rows, width, seen, taps, dilation, out, relu int) []float32 {
	var top float32
	for _, v := range x {
		top = max(top, float32(math.Abs(float64(v))))
	}
	sx, inv := scaleOf(top)
	dst := make([]float32, rows*out)
	for r := range rows {
		for o := range out {
			var sum int64
			for tap := range taps {
				at := r + (tap-taps/2)*dilation
				for i := 0; i < seen && at >= 0 && at < rows; i++ {
					q := int64(math.RoundToEven(float64(float32(x[at*width+i] * inv))))
					sum += q * int64(w[o*seen*taps+tap*seen+i])
				}
			}
			v := float32(float32(float32(sum)*sx)*scale[o]) + bias[o]
			if o < relu {
				v = max(v, 0)
			}
			dst[r*out+o] = v + res[r*out+o]
		}
	}
	return dst
}

func TestVectorLoopsGiveTheSameBitsInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{16, 32, 48, 80, 128, 512, 768, 1280} {
		x := randomFloats(rng, n)
		gain, bias := randomFloats(rng, n), randomFloats(rng, n)
		wantSum, wantSquares := momentsPlain(x)
		wantTop := maxAbsPlain(x)
		wantAdded := slices.Clone(gain)
		addScaledPlain(wantAdded, x, 0.25, 1.5)
		wantNormal := slices.Clone(x)
		normalisePlain(wantNormal, gain, bias, 0.25, 1.5)
		withForm(t, func(t *testing.T) {
			sum, squares := kernel.moments(x)
			added, normal := slices.Clone(gain), slices.Clone(x)
			kernel.addScaled(added, x, 0.25, 1.5)
			kernel.normalise(normal, gain, bias, 0.25, 1.5)
			top := kernel.maxAbs(x)
			if sum != wantSum || squares != wantSquares || top != wantTop {
				t.Errorf("%d values: sum %v, squares %v, top %v, want %v, %v, %v", n, sum, squares, top, wantSum, wantSquares, wantTop)
			}
			if i := firstDifference(added, wantAdded); i >= 0 {
				t.Errorf("addScaled of %d values differs at %d", n, i)
			}
			if i := firstDifference(normal, wantNormal); i >= 0 {
				t.Errorf("normalise of %d values differs at %d", n, i)
			}
		})
	}
}

func TestRoundIsHalfToEvenInEveryForm(t *testing.T) {
	x := []float32{0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5, 127, -127, 3.49, -3.51}
	want := []int{0, 0, 2, 2, 0, -2, -2, 126, -126, 127, -127, 3, -4}
	for n := range 70 {
		long := make([]float32, n)
		for i := range long {
			long[i] = x[i%len(x)]
		}
		withForm(t, func(t *testing.T) {
			q := new(Scratch).activations(n)
			q.store(0, long, 1)
			for i := range n {
				if got := q.at(i); got != want[i%len(x)] {
					t.Fatalf("%d values: %v became %d, want %d", n, long[i], got, want[i%len(x)])
				}
			}
		})
	}
}

// at returns activation i as an integer.
func (q quantised) at(i int) int {
	if q.width == 2 {
		return int(int16(uint16(q.data[2*i]) | uint16(q.data[2*i+1])<<8))
	}
	return int(int8(q.data[i] - byte(kernel.offset)))
}

func TestMaxAbsOfAnyLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 100 {
		x := randomFloats(rng, n)
		if n > 0 {
			x[rng.IntN(n)] = -9
		}
		want := maxAbsPlain(x)
		withForm(t, func(t *testing.T) {
			if got := kernel.maxAbs(x); got != want {
				t.Fatalf("%d values: %v, want %v", n, got, want)
			}
		})
	}
}

func TestRowsHaveTheSameBitsInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	code := [16]float32(randomFloats(rng, 16))
	row := make([]byte, 512)
	for i := range row {
		row[i] = byte(rng.Uint32())
	}
	decoded, widened := make([]float32, 512), make([]float32, 512)
	decodePlain(decoded, row[:256], &code)
	widenPlain(widened, row, 0.7, -3)
	withForm(t, func(t *testing.T) {
		got := make([]float32, 512)
		kernel.decode(got, row[:256], &code)
		if i := firstDifference(got, decoded); i >= 0 {
			t.Errorf("decoded value %d is %v, want %v", i, got[i], decoded[i])
		}
		kernel.widen(got, row, 0.7, -3)
		if i := firstDifference(got, widened); i >= 0 {
			t.Errorf("widened value %d is %v, want %v", i, got[i], widened[i])
		}
	})
}

func TestApplyAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	w, scale, bias := randomLayer(rng, 128, 70)
	l := newLinear(packTiles(w, 128, 70), scale, bias, 128, 70)
	s := new(Scratch)
	x, dst := randomFloats(rng, 100*128), make([]float32, 100*70)
	if n := testing.AllocsPerRun(20, func() { l.apply(dst, x, 100, s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkLinear reports the matrix work alone, in each form.
func BenchmarkLinear(b *testing.B) {
	const rows, seg, taps, out = 64, 256, 5, 256
	rng := rand.New(rand.NewPCG(13, 14))
	w, scale, bias := randomLayer(rng, seg*taps, out)
	tiles := packTiles(w, seg*taps, out)
	x := randomFloats(rng, (rows+taps)*seg)
	chosen := kernel
	defer func() { kernel = chosen }()
	for _, f := range forms() {
		kernel = f
		b.Run(fmt.Sprintf("%s/%dx%dx%d", f.name, rows, seg*taps, out), func(b *testing.B) {
			l := newLinear(tiles, scale, bias, seg*taps, out)
			s := new(Scratch)
			q := s.activations(len(x))
			j := &job{
				x: q, scale: slices.Repeat([]float32{q.fill(0, x)}, rows), taps: taps, seg: seg,
				rowStride: seg, tapStride: seg, dst: make([]float32, rows*out), dstStride: out,
			}
			for b.Loop() {
				l.run(j, rows, s)
			}
			b.ReportMetric(2*rows*seg*taps*out*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
		})
	}
}

// packTiles puts weights [out][in], row-major, into the order that newLinear takes, as
// container.tiles of scripts/train does. in must be a multiple of 4.
func packTiles(w []int8, in, out int) []int8 {
	packed := make([]int8, tilesOf(out)*tileOut*in)
	for o := range out {
		tile := packed[o/tileOut*tileOut*in:]
		for i := range in {
			tile[i/4*4*tileOut+o%tileOut*4+i%4] = w[o*in+i]
		}
	}
	return packed
}

// TestTanh: within 5e-7 of the function, and the same bits in every form.
func TestTanh(t *testing.T) {
	rng := rand.New(rand.NewPCG(27, 28))
	x := randomFloats(rng, 512)
	copy(x, []float32{0, 1e-30, -1e-30, 7.9, -7.9, 8, -8, 1e9, -1e9, 0.5, -0.5, float32(math.Inf(1)), float32(math.Inf(-1))})
	want := slices.Clone(x)
	tanhPlain(want)
	for i, v := range x {
		if exact := math.Tanh(float64(v)); math.Abs(float64(want[i])-exact) > 5e-7 {
			t.Errorf("tanh of %v is %v, want %v", v, want[i], exact)
		}
	}
	withForm(t, func(t *testing.T) {
		got := slices.Clone(x)
		kernel.tanh(got)
		if i := firstDifference(got, want); i >= 0 {
			t.Errorf("tanh of %v is %v, want %v", x[i], got[i], want[i])
		}
	})
}

// TestGELU: within 2e-6 of the function, relative to the value, and the same bits in every form.
func TestGELU(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 30))
	x := randomFloats(rng, 512)
	copy(x, []float32{0, 1e-30, -1e-30, 5.3, -5.3, 6, -6, 1e9, -1e9, 0.5, -0.5})
	want := slices.Clone(x)
	geluPlain(want)
	for i, v := range x {
		exact := float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)) / 2
		if math.Abs(float64(want[i])-exact) > 1e-6*max(1, math.Abs(float64(v))) {
			t.Errorf("GELU of %v is %v, want %v", v, want[i], exact)
		}
	}
	withForm(t, func(t *testing.T) {
		got := slices.Clone(x)
		kernel.gelu(got)
		if i := firstDifference(got, want); i >= 0 {
			t.Errorf("GELU of %v is %v, want %v", x[i], got[i], want[i])
		}
	})
}

// TestExp: within 3e-7 of the function, relative to the value, and the same bits and sum in every form.
func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, n := range []int{16, 32, 48, 512} {
		x := randomFloats(rng, n)
		for i := range x {
			x[i] *= 20
		}
		copy(x[n/2:], []float32{-1e30, -1000, 0, 1e-30})
		want := slices.Clone(x)
		sum, top := expPlain(want, 0.3), slices.Max(x)
		for i, v := range x {
			exact := math.Exp(max(float64((v-top)*0.3), -87))
			if math.Abs(float64(want[i])-exact) > 3e-7*exact {
				t.Errorf("exp of %v is %v, want %v", (v-top)*0.3, want[i], exact)
			}
		}
		withForm(t, func(t *testing.T) {
			got := slices.Clone(x)
			if s := kernel.exp(got, 0.3); s != sum {
				t.Errorf("the sum of %d is %v, want %v", n, s, sum)
			}
			if i := firstDifference(got, want); i >= 0 {
				t.Errorf("exp of %v is %v, want %v", x[i], got[i], want[i])
			}
		})
	}
}
