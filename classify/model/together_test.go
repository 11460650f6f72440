// Tests of texts judged together: nothing of the batch may show.

package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// togetherTexts are texts of all lengths, in many languages, some of them too long.
func togetherTexts(n int) []Short {
	rng := rand.New(rand.NewPCG(21, 22))
	runes := []rune(strings.Repeat(benchText+override, 6))
	many := make([]byte, 540) // of more n-grams than are kept
	for i := range many {
		if many[i] = byte('a' + rng.IntN(26)); i%20 == 19 {
			many[i] = ' '
		}
	}
	list := []Short{
		{}, {Text: []byte(" \n")}, {Text: []byte("\xff\xfe")}, {Text: []byte(override), Categorise: true},
		{Text: many, Categorise: true},
	}
	for len(list) < n {
		from := rng.IntN(len(runes) / 2)
		text := runes[from : from+1+rng.IntN(1<<rng.IntN(11))]
		list = append(list, Short{Text: []byte(string(text)), Categorise: rng.IntN(3) > 0})
	}
	return list
}

// alone is what a text comes to by itself.
func alone(m *Model, text []byte) (want Short) {
	var s Scratch
	tokens := m.Tokenize(nil, text, &s)
	want.Judged = len(tokens)+2 <= wholeSpans*spanTokens
	want.Scores = m.Attack(text, tokens, false, &s)
	m.Gist(&want.Embedding, tokens, &s)
	m.Category(&want.Category, text, tokens, &s)
	return want
}

// TestTogetherIsAsAlone: to the bit, in any batch, in every form.
func TestTogetherIsAsAlone(t *testing.T) {
	withForm(t, func(t *testing.T) {
		m, err := open(bytesOf(tokensFile), bytesOf(encoderFile))
		if err == nil {
			err = errors.Join(m.openCategory(bytesOf(headsFile)), m.openGuard(bytesOf(guardFile)))
		}
		if err != nil {
			t.Fatal(err)
		}
		list := togetherTexts(60)
		if kernel.name == "go" {
			list = list[:16]
		}
		var s Scratch
		tooLong, tooMany, chosen := 0, 0, [len(expertNames)]int{}
		for size := 1; len(list) > 0; size += 5 {
			some := list[:min(size, len(list))]
			list = list[len(some):]
			m.Together(some, &s)
			for _, got := range some {
				want := alone(m, got.Text)
				if got.Judged != want.Judged {
					t.Errorf("%.60q is judged: %v", got.Text, got.Judged)
				}
				if !want.Judged {
					tooLong++
					continue
				}
				if got.Scores != want.Scores || got.Embedding != want.Embedding {
					t.Errorf("%.60q among %d: %+v, alone %+v", got.Text, len(some), got.Scores, want.Scores)
				}
				if !got.Categorise {
					continue
				}
				chosen[got.expert]++
				if got.ngrams > len(got.grams) {
					tooMany++
				}
				if got.Category != want.Category {
					t.Errorf("%.60q among %d: category %v, alone %v", got.Text, len(some), got.Category, want.Category)
				}
			}
		}
		if tooLong == 0 && kernel.name != "go" {
			t.Error("no text was too long")
		}
		if tooMany == 0 {
			t.Error("no text had more n-grams than are kept")
		}
		if slices.Min(chosen[:]) == 0 && kernel.name != "go" {
			t.Errorf("of the experts for a category these were chosen: %v", chosen)
		}
	})
}

// TestShortsAreUsedAgain: nothing of the text before shows.
func TestShortsAreUsedAgain(t *testing.T) {
	m := embeddedModel(t)
	rng := rand.New(rand.NewPCG(43, 44))
	var s Scratch
	texts, list := togetherTexts(24), make([]Short, 8)
	for range 30 {
		for i := range list {
			of := texts[rng.IntN(len(texts))]
			list[i].Text, list[i].Categorise = of.Text, rng.IntN(2) == 0
		}
		m.Together(list, &s)
		for _, got := range list {
			want := alone(m, got.Text)
			if got.Judged != want.Judged || got.Judged && (got.Scores != want.Scores || got.Embedding != want.Embedding) {
				t.Fatalf("%.60q: %+v, alone %+v", got.Text, got.Scores, want.Scores)
			}
			if got.Judged && got.Categorise && got.Category != want.Category {
				t.Fatalf("%.60q: category %v, alone %v", got.Text, got.Category, want.Category)
			}
		}
	}
}

func TestTogetherAllocatesNothing(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	list := togetherTexts(24)
	if allocs := testing.AllocsPerRun(10, func() { m.Together(list, &s) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkTogether(b *testing.B) {
	m := embeddedModel(b)
	text := []byte("Why is the river near the engine older than the garden of the teacher and its window?")
	for _, n := range []int{1, 2, 4, 8, 16, 24} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var s Scratch
			list := make([]Short, n)
			for i := range list {
				list[i] = Short{Text: append([]byte{byte('a' + i), ' '}, text...), Categorise: true}
			}
			for b.Loop() {
				m.Together(list, &s)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/text")
		})
	}
}
