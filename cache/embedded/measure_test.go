// What the search misses and costs on embeddings of real questions. It needs a file of questions:
//
//	KVASIR_DATA=../shared/data go test ./cache/embedded -run Measure -v

package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/classify/model"
	"kvasir/jsonltest"
)

// realQuestions returns at most n different questions that people asked.
func realQuestions(t *testing.T, n int) (texts []string) {
	t.Helper()
	dir := os.Getenv("KVASIR_DATA")
	if dir == "" {
		t.Skip("KVASIR_DATA is not set")
	}
	seen := map[string]bool{}
	for _, name := range []string{"dev.jsonl", "train.jsonl"} {
		for _, row := range jsonltest.Read[struct{ A, B string }](t, filepath.Join(dir, "semcache", name)) {
			for _, text := range []string{row.A, row.B} {
				if text != "" && !seen[text] && len(texts) < n {
					seen[text] = true
					texts = append(texts, text)
				}
			}
		}
	}
	return texts
}

// TestMeasureRealQuestions puts up to 100,000 real questions into one scope and looks some of
// them up. It measures the time with the embedding, also the fastest of several passes for each
// question (for a busy machine), and compares the results with an exact search.
func TestMeasureRealQuestions(t *testing.T) {
	texts := realQuestions(t, 100_000)
	m, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{MaxEntries: len(texts)})
	vectors := make([][cache.Dim]float32, len(texts))
	var scratch model.Scratch
	var tokens []model.Token
	embed := func(dst *[cache.Dim]float32, text string) {
		tokens = m.Tokenize(tokens[:0], []byte(text), &scratch)
		m.Embed(dst, tokens, &scratch)
	}
	for i, text := range texts {
		embed(&vectors[i], text)
		if err := s.Put(newEntry(cache.Scope{1}, text, 100), &vectors[i]); err != nil {
			t.Fatal(err)
		}
	}
	const k, floor = 8 + 1, 0.55 // the question itself is one of them
	var room [k]cache.Candidate
	nearest := func(v *[cache.Dim]float32) []cache.Candidate {
		found, err := s.Nearest(room[:0], cache.Scope{1}, v, k, floor, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const passes = 5
	var took, searched, least []time.Duration // least: the fastest pass, with the embedding
	for pass := range passes {
		for i := 0; i < len(texts); i += 25 {
			var v [cache.Dim]float32
			began := time.Now()
			embed(&v, texts[i])
			middle := time.Now()
			nearest(&v)
			whole := time.Since(began)
			took, searched = append(took, whole), append(searched, time.Since(middle))
			if pass == 0 {
				least = append(least, whole)
			} else {
				least[i/25] = min(least[i/25], whole)
			}
		}
	}
	slices.Sort(took)
	slices.Sort(searched)
	slices.Sort(least)
	at := func(all []time.Duration, percent int) time.Duration { return all[(len(all)-1)*percent/100] }
	t.Logf("%d questions, %s: search p50 %v, p99 %v; with the embedding p50 %v, p99 %v; least of %d for each p50 %v, p99 %v",
		len(texts), kernel, at(searched, 50), at(searched, 99), at(took, 50), at(took, 99), passes, at(least, 50), at(least, 99))

	var counts [2]struct{ want, got int } // neighbours above 0.8; the nearest k
	for i := 0; i < len(texts); i += 400 {
		found := nearest(&vectors[i])
		for _, want := range exactly(vectors, texts, &vectors[i], k, floor) {
			hit := slices.ContainsFunc(found, func(c cache.Candidate) bool { return c.Text == want.text })
			for n := range counts {
				if n == 1 || want.similarity >= 0.8 {
					counts[n].want++
					if hit {
						counts[n].got++
					}
				}
			}
		}
	}
	for n, what := range []string{"of similarity 0.8 or more", "of the nearest"} {
		c := counts[n]
		t.Logf("%s: found %d of %d, %.4f", what, c.got, c.want, float64(c.got)/float64(c.want))
		if float64(c.got) < 0.999*float64(c.want) {
			t.Errorf("%s: too many are missed", what)
		}
	}
}

type neighbour struct {
	text       string
	similarity float64
}

// exactly is the exact search.
func exactly(vectors [][cache.Dim]float32, texts []string, query *[cache.Dim]float32, k int, floor float64) (best []neighbour) {
	for i := range vectors {
		var d float32
		for n, x := range &vectors[i] {
			d += x * query[n]
		}
		if float64(d) < floor || len(best) == k && float64(d) <= best[k-1].similarity {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, float64(d), func(n neighbour, d float64) int {
			if n.similarity > d {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, neighbour{texts[i], float64(d)})
		best = best[:min(k, len(best))]
	}
	return best
}
