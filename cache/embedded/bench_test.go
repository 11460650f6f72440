// Benchmarks: lookups, puts, opening.

package embedded

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/cache"
)

// newEntry returns an entry in a tenant's scope.
func newEntry(scope cache.Scope, text string, answer int) *cache.Entry {
	now := time.Now()
	return &cache.Entry{
		ID: cache.NewID(), Scope: scope, Tenant: "acme", Model: "qwen", Text: text,
		Answer: make([]byte, answer), Created: now, Expires: now.Add(time.Hour),
	}
}

// fill puts n entries with random vectors into one scope, and returns some of
// the vectors.
func fill(tb testing.TB, s *Store, n int) (some [][cache.Dim]float32) {
	tb.Helper()
	return fillCrowded(tb, s, n, 0)
}

// fillCrowded is fill with vectors in groups: each has similarity 0.7 to one of `crowds` centres.
func fillCrowded(tb testing.TB, s *Store, n, crowds int) (some [][cache.Dim]float32) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	centres := make([][cache.Dim]float32, crowds)
	for i := range centres {
		centres[i] = randomEmbedding(rng, nil, 0)
	}
	for i := range n {
		v := randomEmbedding(rng, nil, 0)
		if crowds > 0 {
			v = randomEmbedding(rng, &centres[rng.IntN(crowds)], 0.7)
		}
		if err := s.Put(newEntry(cache.Scope{1}, fmt.Sprintf("question number %d of many that are about as long as this", i), 1000), &v); err != nil {
			tb.Fatal(err)
		}
		if i%1000 == 0 {
			some = append(some, v)
		}
	}
	return some
}

// BenchmarkLookup100k searches 100,000 entries of one scope. Their vectors are random, so that
// hardly any is near.
func BenchmarkLookup100k(b *testing.B) { benchmarkLookup(b, 0) }

// BenchmarkCrowded100k is a search in which 5,000 entries are almost near enough: more than among
// real questions.
func BenchmarkCrowded100k(b *testing.B) { benchmarkLookup(b, 20) }

func benchmarkLookup(b *testing.B, crowds int) {
	s := open(b, Options{})
	some := fillCrowded(b, s, 100_000, crowds)
	chosen := kernel
	defer func() { kernel = chosen }()
	for _, f := range forms() {
		kernel = f
		b.Run(f.String(), func(b *testing.B) {
			var room [8]cache.Candidate
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				found, err := s.Nearest(room[:0], cache.Scope{1}, &some[i%len(some)], 8, 0.55, time.Time{})
				took = append(took, time.Since(began))
				if err != nil || len(found) == 0 {
					b.Fatal(found, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

func BenchmarkEqual100k(b *testing.B) {
	s := open(b, Options{})
	fill(b, s, 100_000)
	text := []byte("question number 77777 of many that are about as long as this")
	for b.Loop() {
		if e, _ := s.Equal(cache.Scope{1}, text, time.Time{}); e == nil {
			b.Fatal("not found")
		}
	}
}

// BenchmarkPut stores entries with an answer of 1,000 bytes in a file: from one goroutine, and
// from 64 at once.
func BenchmarkPut(b *testing.B) {
	for _, row := range []struct {
		name  string
		procs int
	}{{"one", 0}, {"many", 64}} {
		b.Run(row.name, func(b *testing.B) {
			s := open(b, Options{Path: filepath.Join(b.TempDir(), "cache")})
			v := randomEmbedding(rand.New(rand.NewPCG(1, 1)), nil, 0)
			var n atomic.Int64
			put := func() {
				if err := s.Put(newEntry(cache.Scope{1}, fmt.Sprint("question ", n.Add(1)), 1000), &v); err != nil {
					b.Fatal(err)
				}
			}
			if row.procs == 0 {
				for b.Loop() {
					put()
				}
				return
			}
			b.SetParallelism(row.procs)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					put()
				}
			})
		})
	}
}

func BenchmarkOpen100k(b *testing.B) {
	path := filepath.Join(b.TempDir(), "cache")
	s, err := Open(Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	fill(b, s, 100_000)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(Options{Path: path})
		if err != nil || s.Opened().Entries != 100_000 {
			b.Fatal(err, s.Opened())
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// open opens a store and closes it when the test ends.
func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}
