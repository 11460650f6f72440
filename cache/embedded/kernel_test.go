// The inner loops against slow twins, in every form that this processor has.

package embedded

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"kvasir/cache"
)

// withForm runs test once in each form of the inner loops.
func withForm(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	chosen := kernel
	t.Cleanup(func() { kernel = chosen })
	for _, f := range forms() {
		kernel = f
		t.Run(f.String(), test)
	}
}

// randomEmbedding returns a vector of length 1, near to if that is given: their
// cosine is about similarity.
func randomEmbedding(rng *rand.Rand, to *[cache.Dim]float32, similarity float64) (v [cache.Dim]float32) {
	var norm float64
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] *= float32(1 / math.Sqrt(norm))
		if to != nil {
			v[i] = v[i]*float32(math.Sqrt(1-similarity*similarity)) + to[i]*float32(similarity)
		}
	}
	return v
}

func cosine(a, b *[cache.Dim]float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		y := b[i]
		ab, aa, bb = ab+float64(x)*float64(y), aa+float64(x)*float64(x), bb+float64(y)*float64(y)
	}
	return ab / math.Sqrt(aa*bb)
}

func TestScanGivesTheSameInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 8, 13, 16, 24, 57, 1024} {
		blocks := (n + lanes - 1) / lanes
		near, far := make([]uint64, blocks*blockWords), make([]uint64, blocks*blockWords)
		var query sketch
		for i := range query {
			query[i] = rng.Uint64()
		}
		for i := range blocks * lanes {
			block, lane, kept := i/lanes, i%lanes, rng.Uint64()|rng.Uint64()
			for w := range halfWords {
				at := block*blockWords + w*lanes + lane
				near[at] = query[w] ^ rng.Uint64()&^kept
				far[at] = query[halfWords+w] ^ rng.Uint64()&^kept
			}
		}
		for _, b := range []bounds{{0, 0}, {32, 64}, {32, 70}, {40, 64}, {256, 64}, {30, 512}, {256, 512}} {
			want := make([]byte, blocks)
			for i := range n {
				var first, all int
				for w := range halfWords {
					at := i/lanes*blockWords + w*lanes + i%lanes
					first += bits.OnesCount64(near[at] ^ query[w])
					all += bits.OnesCount64(near[at]^query[w]) + bits.OnesCount64(far[at]^query[halfWords+w])
				}
				if first <= int(b.half) && all <= int(b.whole) {
					want[i/lanes] |= 1 << (i % lanes)
				}
			}
			withForm(t, func(t *testing.T) {
				hits := make([]byte, blocks)
				for i := range hits {
					hits[i] = 0xaa // of the scan before
				}
				scan(hits, near, far, n, &query, &b)
				if !slices.Equal(hits, want) {
					t.Errorf("%d sketches, bounds %v: %08b, want %08b", n, b, hits, want)
				}
			})
		}
	}
}

func TestDotGivesTheSameInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	vectors := make([]vector, 40)
	for i := range vectors {
		e := randomEmbedding(rng, nil, 0)
		if i%5 == 0 { // all its length in one value
			clear(e[:])
			e[i] = float32(1 - 2*(i/5%2))
		}
		if !vectors[i].quantise(&e) {
			t.Fatal("no vector")
		}
	}
	vectors[3] = vector{0: unit}
	vectors[4] = vector{0: -unit}
	for i := range vectors {
		for k := range vectors {
			var want int64
			for n, x := range vectors[i] {
				want += int64(x) * int64(vectors[k][n])
			}
			withForm(t, func(t *testing.T) {
				if got := dot(&vectors[i], &vectors[k]); int64(got) != want {
					t.Errorf("vectors %d and %d: %d, want %d", i, k, got, want)
				}
			})
		}
	}
}

func TestVectorsKeepTheCosine(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		a := randomEmbedding(rng, nil, 0)
		b := randomEmbedding(rng, &a, rng.Float64())
		var va, vb vector
		if !va.quantise(&a) || !vb.quantise(&b) {
			t.Fatal("no vector")
		}
		got, want := float64(dot(&va, &vb))/square, cosine(&a, &b)
		if math.Abs(got-want) > 5e-5 {
			t.Errorf("cosine %v, want %v", got, want)
		}
	}
}

// A sketch and a vector are what the file holds: another rotation is another
// format.
func TestRotationStaysAsItIs(t *testing.T) {
	e := [cache.Dim]float32{0: 0.6, 511: -0.8}
	var v vector
	v.quantise(&e)
	got := sketch{0: v.sketch()[0], 7: v.sketch()[7]}
	want := sketch{0: 0x7969590cdfb98309, 7: 0x6b0574d334e0633f}
	if got != want {
		t.Errorf("signs %#x, want %#x", got, want)
	}
}

func TestVectorsWithoutALength(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, e := range [][cache.Dim]float32{{}, {5: nan}, {5: inf}, {5: inf, 6: -inf}, {0: 1e-30}} {
		if new(vector).quantise(&e) {
			t.Errorf("%v has no length", e[:8])
		}
	}
}

// What the three bounds promise at the floor itself, where most is missed.
func TestBoundsMissLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, floor := range []float64{0.55, 0.8, 0.95, 0.999, 1} {
		const tries = 1000
		missed := 0
		for range tries {
			a := randomEmbedding(rng, nil, 0)
			b := randomEmbedding(rng, &a, min(1, floor+0.001))
			var va, vb vector
			va.quantise(&a)
			vb.quantise(&b)
			if similarity := float64(dot(&va, &vb)) / square; similarity >= floor && passedOver(&va, &vb, floor) {
				missed++
			}
		}
		if missed > tries/200 {
			t.Errorf("floor %v: %d of %d missed", floor, missed, tries)
		}
	}
}

func passedOver(query, v *vector, floor float64) bool {
	c := newChunk(sketchedSlots)
	c.add(&item{vector: v})
	s, b := query.sketch(), boundsOf(floor)
	var hits [chunkSlots / lanes]byte
	var e estimate
	e.of(query)
	return scan(hits[:], c.near, c.far, 1, &s, &b)[0] == 0 || e.similarity(c, 0) < leastOf(floor)
}

// The estimate by its definition.
func TestEstimate(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	c := newChunk(sketchedSlots)
	for slot := range sketchedSlots {
		a, b := randomEmbedding(rng, nil, 0), randomEmbedding(rng, nil, 0)
		if slot%8 == 7 { // few values that are not 0
			b = [cache.Dim]float32{1: 0.6, 500: -0.8}
		}
		var query, v vector
		query.quantise(&a)
		v.quantise(&b)
		c.add(&item{vector: &v})
		var e estimate
		e.of(&query)
		want := 0.0
		for i, x := range query {
			if v[i] < 0 {
				x = -x
			}
			want += float64(x) / unit / math.Sqrt(cache.Dim)
		}
		if got := e.similarity(c, slot); math.Abs(got-want) > 0.03 {
			t.Errorf("slot %d: %v, want %v", slot, got, want)
		}
	}
}
