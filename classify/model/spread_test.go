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
		for i := range rowBlock {
			sp.ids[i] = int32(id + 31*i)
		}
		m.compute(0, rowBlock, &s)
		for i := range rowBlock {
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
	c, of := new(spreads), new(spread)
	known := func(id int32) bool {
		lent, loan := c.borrow(id)
		if lent == nil {
			return false
		}
		defer loan.end()
		return lent[spreadSums] == int16(id/spreadSets)
	}
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

// TestLentSpreadsStay: what is lent is not replaced, and nothing is where all of a set is lent.
func TestLentSpreadsStay(t *testing.T) {
	c := new(spreads)
	var lent [spreadWays]*spread
	var loans [spreadWays]loan
	for i := range int32(spreadWays) {
		c.keep(i*spreadSets, &spread{int16(i)})
		lent[i], loans[i] = c.borrow(i * spreadSets)
	}
	c.keep(spreadWays*spreadSets, &spread{spreadWays})
	if c.has(spreadWays * spreadSets) {
		t.Error("a piece was kept in the place of one that is lent")
	}
	loans[3].end()
	for i := int32(spreadWays); i < 4*spreadWays; i++ {
		c.keep(i*spreadSets, &spread{int16(i)})
	}
	for i, of := range lent {
		if got := int(of[0]); (got == i) == (i == 3) {
			t.Errorf("place %d holds what piece %d gives", i, got)
		}
	}
	if !c.has((4*spreadWays - 1) * spreadSets) {
		t.Error("nothing was kept in the place whose loan has ended")
	}
}

// TestPanicGivesBack: nothing stays lent, and the same memory can be used again.
func TestPanicGivesBack(t *testing.T) {
	m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
	if err != nil {
		t.Fatal(err)
	}
	chosen := kernel
	defer func() { kernel = chosen }()
	var s Scratch
	var tokens []Token
	for i := range int32(maxNear) {
		tokens = append(tokens, Token{ID: 1000 + i})
	}
	var want, got [Dim]float32
	m.Embed(&want, tokens, new(Scratch)) // keeps the pieces
	broken := *kernel
	broken.gather = func([]float32, []int32, *[2*reachTokens + 1]*spread, *spread, float32) float32 { panic("a bug") }
	kernel = &broken
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		m.Embed(&got, tokens, &s)
	}()
	for i := range m.spreads.sets {
		for k := range m.spreads.sets[i].lent {
			if n := m.spreads.sets[i].lent[k].Load(); n != 0 {
				t.Fatalf("place %d of set %d is lent %d times", k, i, n)
			}
		}
	}
	kernel = chosen
	if m.Embed(&got, tokens, &s); got != want {
		t.Error("another embedding after a panic")
	}
}

func TestFixedPointHasTheSameBitsInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	for _, n := range []int{16, 48, 256, 768, 1792} {
		x := randomFloats(rng, n)
		copy(x, []float32{1e9, -1e9, 127.996, -127.996, 128, 0.5 / spreadOne, 1.5 / spreadOne, -0.5 / spreadOne})
		fixed := make([]int16, n)
		fixPlain(fixed, x, spreadOne)
		if want := []int16{32767, -32767, 32767, -32767, 32767, 0, 2, 0}; !slices.Equal(fixed[:8], want) {
			t.Errorf("fixed to %v, want %v", fixed[:8], want)
		}
		withForm(t, func(t *testing.T) {
			f := make([]int16, n)
			kernel.fix(f, x, spreadOne)
			if !slices.Equal(f, fixed) {
				t.Errorf("fix of %d values differs", n)
			}
		})
	}
}

// TestGatherIsTheSumOverTaps holds gather against the first layer by its definition: tap t of a branch
// is of the token t-left further.
func TestGatherIsTheSumOverTaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	bias := make([]int32, mixDim)
	var all [2*reachTokens + 1]spread
	var of [2*reachTokens + 1]*spread
	for range 20 {
		for i := range bias {
			bias[i] = rng.Int32N(1<<18) - 1<<17
		}
		for i := range all {
			of[i] = &all[i]
			for k := range all[i] {
				all[i][k] = int16(rng.Uint32())
			}
		}
		want, top := make([]float32, mixDim), float32(0)
		for i := range want {
			b, sum := i/branchDim, bias[i]
			for tap := range widths[b] {
				from := tap - lefts[b] // the token's place, seen from the row
				at := slices.Index(segments, segment{-from, b, tap})
				sum += int32(all[reachTokens+from][at*branchDim+i%branchDim])
			}
			want[i] = float32(max(sum, 0)+int32(all[reachTokens][spreadSums+i])) / spreadOne
			top = max(top, float32(math.Abs(float64(want[i]))))
		}
		withForm(t, func(t *testing.T) {
			got := make([]float32, mixDim)
			if gotTop := kernel.gather(got, bias, &of, &all[0], 1.0/spreadOne); gotTop != top {
				t.Errorf("top is %v, want %v", gotTop, top)
			}
			if i := firstDifference(got, want); i >= 0 {
				t.Errorf("value %d is %v, want %v", i, got[i], want[i])
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
