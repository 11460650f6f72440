// Figures: what is let through, what is found, on written pairs and on public ones.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"kvasir/scripts/train/floors"
)

// threshold is the shipped one of cache.threshold.
const threshold = 0.9

// floor is that of the similarity under which the cache verifies nothing, and
// candidates is how many it verifies.
const (
	floor      = 0.55
	candidates = 8
)

// A figure is one line of the table.
type figure = floors.Figure

// A result is a row and what the verifier says of it.
type result struct {
	row
	similarity, score float64
	why               string
}

// hit says whether the cache would answer at a threshold.
func (r *result) hit(threshold float64) bool {
	return r.why == "" && r.score >= threshold && r.similarity >= floor
}

func (j *judge) judge(rows []row) []result {
	var all []string
	for _, r := range rows {
		all = append(all, r.a, r.b)
	}
	j.embed(all)
	results := make([]result, len(rows))
	parallel(len(rows), func() func(int) {
		return func(i int) {
			r := result{row: rows[i], similarity: j.similarity(rows[i].a, rows[i].b)}
			r.score, r.why = j.verifier.Compare([]byte(r.a), []byte(r.b), r.similarity)
			results[i] = r
		}
	})
	return results
}

func shareOf(results []result, of func(*result) bool, has func(*result) bool) (float64, int) {
	n, all := 0, 0
	for i := range results {
		if r := &results[i]; of(r) {
			all++
			if has(r) {
				n++
			}
		}
	}
	return float64(n) / float64(max(all, 1)), all
}

// written gives the figures of the written groups that are held out of training.
func written(results []result) []figure {
	var figures []figure
	held := make(map[string]bool)
	for _, r := range results {
		if r.held {
			held[r.lang+" "+r.kind] = true
		}
	}
	asShipped := func(r *result) bool { return r.hit(threshold) }
	add := func(name string, of func(*result) bool, has func(*result) bool) {
		value, n := shareOf(results, of, has)
		figures = append(figures, floors.Of(name, value, n))
	}
	for _, lang := range []string{"en", "zh"} {
		add("written, "+lang+": near-misses answered", func(r *result) bool { return r.held && r.lang == lang && r.label == 0 }, asShipped)
		add("written, "+lang+": the same answered", func(r *result) bool { return r.held && r.lang == lang && r.label == 1 }, asShipped)
		add("written, "+lang+": near-misses refused by a rule", func(r *result) bool { return r.held && r.lang == lang && r.label == 0 }, func(r *result) bool { return r.why != "" })
		add("written, "+lang+": the same refused by a rule", func(r *result) bool { return r.held && r.lang == lang && r.label == 1 }, func(r *result) bool { return r.why != "" })
	}
	for _, kind := range slices.Sorted(maps.Keys(held)) {
		lang, tag, _ := strings.Cut(kind, " ")
		add("written, "+lang+", answered: "+tag, func(r *result) bool { return r.held && r.lang == lang && r.kind == tag }, asShipped)
	}
	return figures
}

// measurePublic gives the figures of pairs that others wrote.
func measurePublic(j *judge, path string) ([]figure, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read pairs: %w", err)
	}
	defer file.Close()
	var rows []row
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var p struct {
			A, B, Source string
			Label        *float32
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("cannot read pair %d: %w", len(rows)+1, err)
		}
		if p.Label != nil && strings.HasPrefix(p.Source, "qqp") {
			rows = append(rows, row{a: p.A, b: p.B, label: *p.Label, lang: "en", kind: "public"})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read pairs: %w", err)
	}
	results := j.judge(rows)
	var figures []figure
	for _, most := range []float64{0.02, 0.01} {
		figures = append(figures,
			atMost("public pairs: hit rate, by score", results, most, func(r *result) float64 { return r.score }),
			atMost("public pairs: hit rate, by similarity", results, most, func(r *result) float64 { return r.similarity }))
	}
	for _, t := range []float64{0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97} {
		hit := func(r *result) bool { return r.hit(t) }
		value, n := shareOf(results, func(r *result) bool { return r.label == 1 }, hit)
		figures = append(figures, floors.Of(fmt.Sprintf("public pairs: hit rate at %.2f", t), value, n))
		value, n = shareOf(results, func(r *result) bool { return r.label == 0 }, hit)
		figures = append(figures, floors.Of(fmt.Sprintf("public pairs: let through at %.2f", t), value, n))
	}
	return append(figures, fromStore(j, results)...), nil
}

// atMost gives the share of the pairs that are the same above the score that a
// share of the different pairs reaches.
func atMost(name string, results []result, most float64, by func(*result) float64) figure {
	var same, other []float64
	for i := range results {
		if results[i].label == 1 {
			same = append(same, by(&results[i]))
		} else {
			other = append(other, by(&results[i]))
		}
	}
	slices.Sort(other)
	bound := other[len(other)-1-int(most*float64(len(other)))]
	n := 0
	for _, s := range same {
		if s > bound {
			n++
		}
	}
	return floors.Of(fmt.Sprintf("%s, at most %.0f %% let through", name, 100*most), float64(n)/float64(len(same)), len(same))
}
