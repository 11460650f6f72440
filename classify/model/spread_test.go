// Tests of what is kept of pieces: nothing of it may show but in time.

package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestSpreadsFit: no piece gives more than the fixed point holds.
func TestSpreadsFit(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	m.Embed(new([Dim]float32), nil, &s)
	sp := &s.encoder.spread
	for id := 0; id+31*rowBlock < len(m.table.kinds); id += 31 * rowBlock {
		for i := range sp.ids {
			sp.ids[i] = int32(id + 31*i)
		}
		m.compute(rowBlock, &s)
		for i := range sp.fresh {
			for k, v := range sp.fresh[i] {
				if v == math.MaxInt16 || v == -math.MaxInt16 {
					t.Fatalf("value %d of piece %d is cut off", k, sp.ids[i])
				}
			}
		}
	}
}

// TestKeptPiecesDoNotShow embeds texts of more pieces than are kept, several at a time, again and
// again: each must come out as a model that knows nothing has it.
func TestKeptPiecesDoNotShow(t *testing.T) {
	const texts, length = 12, 700
	fresh := func() *Model {
		m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	rng := rand.New(rand.NewPCG(17, 18))
	var tokens [texts][]Token
	var want [texts][Dim]float32
	for i := range tokens {
		for range length {
			tokens[i] = append(tokens[i], Token{ID: int32(rng.IntN(40) * rng.IntN(400))})
		}
		fresh().Embed(&want[i], tokens[i], new(Scratch))
	}
	m := fresh()
	var done sync.WaitGroup
	for thread := range 4 {
		done.Go(func() {
			var s Scratch
			for i := range 2 * texts {
				var got [Dim]float32
				k := (i + 3*thread) % texts
				if m.Embed(&got, tokens[k], &s); got != want[k] {
					t.Errorf("text %d: another embedding with what is kept", k)
				}
			}
		})
	}
	done.Wait()
}

// TestSpreadsAreBounded: a set holds as many as it may, each under its own id, and those asked for
// stay longest.
func TestSpreadsAreBounded(t *testing.T) {
	c, of, sp := new(spreads), new(spread), new(spreadScratch)
	known := func(id int32) bool { return c.addTo(sp, 0, id) && sp.own[0] == int16(id/spreadSets) }
	for i := range int32(100) {
		of[spreadSums] = int16(i)
		c.keep(i*spreadSets, of)
		if !known(0) {
			t.Fatalf("a piece that is asked for is gone after %d others", i)
		}
	}
	kept := 0
	for i := range int32(100) {
		if known(i * spreadSets) {
			kept++
		}
	}
	if kept != spreadWays {
		t.Errorf("%d pieces of one set are kept, want %d", kept, spreadWays)
	}
}

func TestFixedPointHasTheSameBitsInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for _, n := range []int{16, 48, 256, 768, 1792} {
		x := randomFloats(rng, n)
		copy(x, []float32{1e9, -1e9, 127.996, -127.996, 128, 0.5 / spreadOne, 1.5 / spreadOne, -0.5 / spreadOne})
		sums := make([]int32, n)
		for i := range sums {
			sums[i] = rng.Int32N(1<<20) - 1<<19
		}
		fixed, added, rectified := make([]int16, n), slices.Clone(sums), make([]float32, n)
		fixPlain(fixed, x, spreadOne)
		addWidePlain(added, fixed)
		rectifyPlain(rectified, added, fixed, 1.0/spreadOne)
		if want := []int16{32767, -32767, 32767, -32767, 32767, 0, 2, 0}; !slices.Equal(fixed[:8], want) {
			t.Errorf("fixed to %v, want %v", fixed[:8], want)
		}
		withForm(t, func(t *testing.T) {
			f, a, r := make([]int16, n), slices.Clone(sums), make([]float32, n)
			kernel.fix(f, x, spreadOne)
			kernel.addWide(a, fixed)
			kernel.rectify(r, added, fixed, 1.0/spreadOne)
			if !slices.Equal(f, fixed) {
				t.Errorf("fix of %d values differs", n)
			}
			if !slices.Equal(a, added) {
				t.Errorf("addWide of %d values differs", n)
			}
			if i := firstDifference(r, rectified); i >= 0 {
				t.Errorf("rectify of %d values differs at %d", n, i)
			}
		})
	}
}

// TestPartsOfALayerAddUp holds the parts of a layer against it.
func TestPartsOfALayerAddUp(t *testing.T) {
	const in, out, rows = 3 * 64, 128, 7
	rng := rand.New(rand.NewPCG(21, 22))
	w, scale, bias := randomLayer(rng, in, out)
	tiles := packTiles(w, in, out)
	x := make([]float32, rows*in) // integers up to 127 in each part, so that all round alike
	for i := range x {
		if x[i] = float32(rng.IntN(255) - 127); i%64 == 0 {
			x[i] = 127
		}
	}
	withForm(t, func(t *testing.T) {
		var s Scratch
		l := newLinear(tiles, scale, bias, in, out)
		want, sum := make([]float32, rows*out), make([]float64, rows*out)
		l.apply(want, x, rows, &s)
		for from := 0; from < in; from += 64 {
			p := l.part(from, 64)
			part, got := make([]float32, rows*64), make([]float32, rows*out)
			for r := range rows {
				copy(part[r*64:], x[r*in+from:][:64])
			}
			p.apply(got, part, rows, &s)
			for i, v := range got {
				sum[i] += float64(v)
			}
		}
		for i, v := range sum {
			if got := v + float64(bias[i%out]); math.Abs(got-float64(want[i])) > 0.1 { // of sums of some 10,000
				t.Fatalf("value %d is %v in parts, %v whole", i, got, want[i])
			}
		}
	})
}
