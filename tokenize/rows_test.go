// Rows beside the heap, on random merges.

package tokenize

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// merges of few symbols with few others, ranks in no order: a token may be made again by what it
// was part of.
func randomMerges(random *rand.Rand, symbols, merges uint32) *pairTable {
	t := newPairTable(int(merges))
	for i, rank := range random.Perm(int(merges)) {
		left, right := random.Uint32N(symbols+uint32(i)), random.Uint32N(symbols+uint32(i))
		t.set(left, right, uint32(rank), symbols+uint32(i))
	}
	return t
}

func TestRowsMergeAsTheHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var heap, row merger
	for range 3000 {
		symbols := 1 + random.Uint32N(4)
		table := randomMerges(random, symbols, 1+random.Uint32N(40))
		n := 2 + random.IntN(300)
		word := make([]uint32, n)
		for i := range word {
			word[i] = random.Uint32N(symbols)
		}
		begin := func(m *merger) {
			m.symbols, m.pairs = append(m.symbols[:0], word...), m.pairs[:0]
			for i := range n - 1 {
				m.pairs = append(m.pairs, table.merge(word[i], word[i+1]))
			}
		}
		begin(&heap)
		begin(&row)
		want, got := heap.long(nil, table), row.endless(nil, table)
		if !slices.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", word, got, want)
		}
	}
}

// TestEndlessWordsAreLinear counts steps: a word twice as long takes about twice as many.
func TestEndlessWordsAreLinear(t *testing.T) {
	tokenizer, err := Open("testdata/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"a", " ", "\n", "abcdefghij", "=", "\t", "0", "é", "中", "\u0301", "😀"} {
		var steps [2]int
		for i, n := range []int{100_000, 400_000} {
			s := new(scratch)
			tokenizer.text(nil, []byte(strings.Repeat(run, n/len(run))), true, s)
			steps[i] = s.merger.steps
		}
		if steps[1] > 5*steps[0]+1000 {
			t.Errorf("%q: %d and %d steps", run, steps[0], steps[1])
		}
	}
}
