// The inner loops against slow reference versions, in every form that this processor supports.

package embedded

import (
	"math"
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

// randomEmbedding returns a vector of length 1. If to is not nil, their cosine is about
// similarity.
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

// randomChunk returns a chunk in which n entries have vectors.
func randomChunk(rng *rand.Rand, n int) *chunk {
	c := newChunk(chunkSlots)
	for range n {
		c.add(&item{vector: randomVector(rng)})
	}
	for i := n; i < chunkSlots; i++ { // as if a slot were being written now
		c.heads[i/lanes*blockBytes+i%lanes+rng.IntN(headBytes)*lanes] = byte(rng.Uint32())
	}
	return c
}

// sumsOf returns, for each entry, the sum of the query's values at the entry's negative values:
// over the head, and over all.
func sumsOf(c *chunk, query *vector) (heads, wholes []int) {
	values, _ := valuesOf(query)
	for i := range c.n.Load() {
		head, whole := 0, 0
		for k, x := range c.items[i].Load().vector {
			if x < 0 {
				whole += int(int8(values[k]))
				if k < headBits {
					head += int(int8(values[k]))
				}
			}
		}
		heads, wholes = append(heads, head), append(wholes, whole)
	}
	return heads, wholes
}

// randomVector returns vectors of many kinds, also with most values 0.
func randomVector(rng *rand.Rand) *vector {
	v := new(vector)
	switch rng.IntN(8) {
	case 0:
		v[rng.IntN(len(v))] = unit
	case 1:
		v[rng.IntN(headBits)] = -unit
	case 2:
		for i := range v {
			v[i] = -unit / 23
		}
	default:
		e := randomEmbedding(rng, nil, 0)
		v.quantise(&e)
	}
	return v
}

func TestScanGivesTheSameInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 8, 13, 63, 64, 65, 100, 128, 1000, 1024} {
		for range 4 {
			query, c := randomVector(rng), randomChunk(rng, n)
			var e estimate
			e.of(query)
			heads, wholes := sumsOf(c, query)
			for _, bound := range boundsAround(rng, heads) {
				near := below(heads, bound, nil)
				for _, whole := range boundsAround(rng, wholes) {
					want := below(wholes, whole, near)
					withForm(t, func(t *testing.T) {
						s := new(scanned)
						for i := range s.hits {
							s.hits[i] = 0xaaaaaaaaaaaaaaaa // left by the scan before
						}
						got := s.scan(c, n, &e, bound)
						if !slices.Equal(got, near) {
							t.Errorf("%d heads, bound %d: %x, want %x", n, bound, got, near)
						}
						if s.refine(got, c, &e, whole); !slices.Equal(got, want) {
							t.Errorf("%d tails, bounds %d and %d: %x, want %x", n, bound, whole, got, want)
						}
					})
				}
			}
		}
	}
}

// boundsAround returns bounds equal to some of the sums, and some below and above all of them.
func boundsAround(rng *rand.Rand, sums []int) []int {
	all := []int{-1 << 20, 1 << 20, -headOffset - 1, -headOffset, 0}
	for range min(5, len(sums)) {
		all = append(all, sums[rng.IntN(len(sums))])
	}
	slices.Reverse(all)
	return all
}

// below sets the bits of the sums that are at most bound. If of is not nil, only bits set in of
// count.
func below(sums []int, bound int, of []uint64) []uint64 {
	words := make([]uint64, (len(sums)+lanes-1)/lanes)
	for i, sum := range sums {
		if sum <= bound && (of == nil || of[i/lanes]>>(i%lanes)&1 != 0) {
			words[i/lanes] |= 1 << (i % lanes)
		}
	}
	return words
}

func TestDotGivesTheSameInEveryForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	vectors := make([]vector, 40)
	for i := range vectors {
		e := randomEmbedding(rng, nil, 0)
		if i%5 == 0 { // only one value is not 0
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

// The file holds sketches and vectors, so another rotation would be another file format.
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

// The transform against its definition, bit for bit, because the file's format depends on it.
func TestTransformGivesTheSameAsStepByStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20 {
		x := randomEmbedding(rng, nil, 0)
		want := x
		for half := 1; half < len(want); half *= 2 {
			for i := 0; i < len(want); i += 2 * half {
				for k := i; k < i+half; k++ {
					want[k], want[k+half] = want[k]+want[k+half], want[k]-want[k+half]
				}
			}
		}
		if transform(&x); x != want {
			t.Fatalf("%v, want %v", x[:8], want[:8])
		}
	}
}

// BenchmarkQuery prepares an embedding for a search.
func BenchmarkQuery(b *testing.B) {
	x := randomEmbedding(rand.New(rand.NewPCG(13, 14)), nil, 0)
	var v vector
	var e estimate
	for b.Loop() {
		v.quantise(&x)
		e.of(&v)
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

// The two bounds miss no more than promised at the floor itself, where most entries are missed.
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
	c := newChunk(lanes)
	c.add(&item{vector: v})
	var e estimate
	e.of(query)
	var s scanned
	head, whole := e.bounds(floor)
	hits := s.scan(c, 1, &e, head)
	s.refine(hits, c, &e, whole)
	return hits[0] == 0
}

// The estimate against its definition.
func TestEstimate(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		a, b := randomEmbedding(rng, nil, 0), randomEmbedding(rng, nil, 0)
		if rng.IntN(8) == 0 { // only a few values are not 0
			b = [cache.Dim]float32{1: 0.6, 500: -0.8}
		}
		var query, v vector
		query.quantise(&a)
		v.quantise(&b)
		var e estimate
		e.of(&query)
		wantHead, want := 0.0, 0.0
		for i, x := range query {
			if v[i] < 0 {
				x = -x
			}
			want += float64(x) / unit
			if i < headBits {
				wantHead += float64(x) / unit
			}
		}
		c := newChunk(lanes)
		c.add(&item{vector: &v})
		var s scanned
		s.scan(c, 1, &e, 0)
		head := int(s.sums[0][sumAt(0)]) - headOffset
		gotHead := float64(e.head-2*head) * e.step
		got := float64(e.whole-2*(head+c.tails[0].sum(&e.planes))) * e.step
		// A rounded value is off by at most half a step, and by step/sqrt(12) on average.
		for _, row := range []struct {
			what      string
			got, want float64
			n         float64
		}{{"head", gotHead, wantHead, headBits}, {"whole", got, want, cache.Dim}} {
			if off := math.Abs(row.got - row.want); off > 5*e.step*math.Sqrt(row.n/12) {
				t.Errorf("%s: %v, want %v", row.what, row.got, row.want)
			}
		}
	}
}
