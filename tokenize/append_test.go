// Append beyond what the golden files say: broken text, goroutines, allocations, steps.

package tokenize

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What Python's bytes.decode("utf-8", "replace") makes of it.
func TestBrokenText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\xffb", "a\ufffdb"},
		{"\xe2\x82", "\ufffd"},
		{"\xe2\x82a", "\ufffda"},
		{"\xe2(\xa1", "\ufffd(\ufffd"},
		{"\xf0\x9f\x98", "\ufffd"},
		{"\xf0\x9f\x98\xf0\x9f\x98\x80", "\ufffd\U0001f600"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"\xc0\xaf", "\ufffd\ufffd"},
		{"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
		{"\xf8\x88", "\ufffd\ufffd"},
		{"\xc3", "\ufffd"},
	} {
		if got := string(appendValid(nil, []byte(c.text))); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// White space that the added token before has taken is not itself an added token, unless that
// token does not strip white space on its left. The tokens are the library's, except for the
// texts marked "fails": there the library fails.
func TestWhiteSpaceTaken(t *testing.T) {
	for _, c := range []struct {
		strips, text string
		want         []uint32
	}{
		{`"lstrip":true`, "<x>  1", []uint32{8, 0}},
		{`"lstrip":true`, "<x>  ", []uint32{8}},
		{`"lstrip":true`, "<x>  <x>  1", []uint32{8, 8, 0}},
		{`"lstrip":true`, "<x>1  1", []uint32{8, 0, 9, 0}},
		{`"lstrip":true`, "<x>   1", []uint32{8, 0}}, // fails
		{`"lstrip":true`, "<x>     ", []uint32{8}},   // fails
		{`"lstrip":true,"rstrip":true`, "<x>   1", []uint32{8, 0}},
		{`"lstrip":false`, "<x>  1", []uint32{8, 9, 0}},
		{`"lstrip":false`, "<x>   1", []uint32{8, 9, 1, 0}},
	} {
		for _, normalized := range []bool{false, true} {
			tokenizer, err := Read(smallFile(map[string]string{
				"added": fmt.Sprintf(`[{"content":"<x>","rstrip":true,"normalized":%t},{"content":"  ",%s,"normalized":%[1]t}]`, normalized, c.strips),
				"model": `{"type":"BPE","vocab":{"1":0," ":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7},"merges":[]}`,
			}))
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Append(nil, []byte(c.text), false); !slices.Equal(got, c.want) {
				t.Errorf("%s, %q: got %v, want %v", c.strips, c.text, got, c.want)
			}
		}
	}
}

// Many goroutines share one tokenizer, and their words push each other out of its cache; each
// gets the tokens that it would get alone.
func TestConcurrent(t *testing.T) {
	for _, name := range []string{"cl100k", "llama", "bert", "unigram", "unigram-strip"} {
		tokenizer := fixture(t, name)
		m := newTexts(7, tokenizer)
		var all [][]byte
		var want [][]uint32
		for range 300 {
			text := []byte(m.text())
			all, want = append(all, text), append(want, tokenizer.Append(nil, text, true))
		}
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				var ids []uint32
				for i := range all {
					i = (i*7 + g*31) % len(all)
					if ids = tokenizer.Append(ids[:0], all[i], true); !slices.Equal(ids, want[i]) {
						t.Errorf("%s: %q: got %v, want %v", name, all[i], ids, want[i])
					}
				}
			})
		}
		wait.Wait()
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, name := range fixtureNames(t) {
		tokenizer := fixture(t, name)
		m := newTexts(3, tokenizer)
		for _, size := range []int{1 << 10, 1 << 15, 1 << 18} {
			text := []byte(mixedText(m, size))
			ids := tokenizer.Append(nil, text, true)
			// The pool may be emptied meanwhile; the working space made then grows in few
			// allocations.
			if n := testing.AllocsPerRun(10, func() { ids = tokenizer.Append(ids[:0], text, true) }); n > 4 {
				t.Errorf("%s: %v allocations for %d bytes", name, n, size)
			}
		}
	}
}

// A word is merged in n log n steps, whatever it is made of.
func TestStepsOfLongWords(t *testing.T) {
	// Merges that double a token each time are the worst case: each letter takes part in as many
	// merges as possible.
	vocab, merges := []string{`"a":0`, `"b":1`}, []string{}
	for i, s := 2, "a"; len(s) < 1<<10; i++ {
		merges = append(merges, fmt.Sprintf(`["%s","%s"]`, s, s))
		s += s
		vocab = append(vocab, fmt.Sprintf(`"%s":%d`, s, i))
	}
	tokenizer, err := Read(smallFile(map[string]string{
		"model": `{"type":"BPE","vocab":{` + strings.Join(vocab, ",") + `},"merges":[` + strings.Join(merges, ",") + `]}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	for _, text := range []string{
		strings.Repeat("a", size),
		strings.Repeat("ab", size/2),
		strings.Repeat("a", size/2) + "b" + strings.Repeat("a", size/2),
		strings.Repeat(strings.Repeat("a", 1023)+"b", size/1024),
	} {
		m := merger{}
		ids := tokenizer.bpe.word(nil, []byte(text), &m)
		if limit := 3 * len(text) * bits.Len(uint(len(text))); m.steps > limit {
			t.Errorf("%.20q...: %d steps for %d bytes, more than %d", text, m.steps, len(text), limit)
		}
		var back []byte
		for _, id := range ids {
			back = tokenizer.AppendBytes(back, id)
		}
		if string(back) != text {
			t.Errorf("%.20q...: %d tokens do not spell it", text, len(ids))
		}
	}
}

// slowMerge is the definition: the pair of the lowest rank, of equal ones the leftmost, until none is
// left.
func slowMerge(t *pairTable, symbols []uint32) []uint32 {
	symbols = slices.Clone(symbols)
	for {
		best, at := noPair, -1
		for i := range len(symbols) - 1 {
			if p := t.merge(symbols[i], symbols[i+1]); p < best {
				best, at = p, i
			}
		}
		if at < 0 {
			return symbols
		}
		symbols[at] = uint32(best)
		symbols = slices.Delete(symbols, at+1, at+2)
	}
}

func TestMergeTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 3000 {
		// Few letters and many merges, so that most merges can be done.
		letters, table := 1+r.Uint32N(4), newPairTable(40)
		for rank := range uint32(r.IntN(40)) {
			table.set(r.Uint32N(letters+rank), r.Uint32N(letters+rank), rank, letters+rank)
		}
		symbols := make([]uint32, r.IntN(3*maxShort))
		for i := range symbols {
			symbols[i] = r.Uint32N(letters)
		}
		want := slowMerge(table, symbols)
		m := merger{symbols: slices.Clone(symbols)}
		if got := m.run(nil, table); !slices.Equal(got, want) {
			t.Fatalf("%v:\n got %v\nwant %v", symbols, got, want)
		}
	}
}

// Cutting long words loses no merge: the tokens are the same as without cuts. All bytes and
// characters are symbols here, so that words of all kinds are cut.
func TestCutsLoseNothing(t *testing.T) {
	for _, name := range []string{"llama", "mistral", "cl100k", "tekken", "gpt2"} {
		cut, whole := fixture(t, name), fixture(t, name)
		if cut.bpe.glue == nil {
			t.Fatal("not cut")
		}
		whole.bpe.glue = nil
		m := newTexts(11, cut)
		parts := 0
		for range 2000 {
			text := []byte(m.text())
			got, want := cut.Append(nil, text, false), whole.Append(nil, text, false)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q:\n got %v\nwant %v", name, text, got, want)
			}
			// Harder than single words: the whole text as one word.
			if text = appendValid(nil, text); len(text) == 0 {
				continue
			}
			s := new(scratch)
			got, want = cut.longWord(nil, text, s), whole.bpe.word(nil, text, &s.merger)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q as a word:\n got %v\nwant %v", name, text, got, want)
			}
			for i := 0; i < len(text); parts++ {
				i = cut.bpe.glue.part(text, i)
			}
		}
		if parts < 10_000 {
			t.Errorf("%s: only %d parts", name, parts)
		}
	}
}

// keyOf is the key of a word.
func keyOf(w []byte) (k wordKey) {
	k.set(w)
	return k
}

// Words that differ have keys that differ, and equal ones have the same key wherever they stand.
func TestWordKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for size := 1; size <= maxKey; size++ {
		word := make([]byte, size, size+8)
		for i := range word {
			word[i] = byte(r.Uint32())
		}
		key := keyOf(word)
		for behind := range maxKey {
			text := append(bytes.Clone(word), bytes.Repeat([]byte{0xff}, behind)...)
			if within := keyOf(text[:size:len(text)]); within != key {
				t.Errorf("a word of %d bytes with %d behind it has another key", size, behind)
			}
		}
		for i := range word {
			word[i] ^= 1 << r.IntN(8)
			if other := keyOf(word); other.part == key.part {
				t.Errorf("two words of %d bytes that differ in byte %d", size, i)
			}
			word[i] = byte(r.Uint32())
			key = keyOf(word)
		}
		if size < maxKey {
			if longer := keyOf(append(word, 0)); longer.part == key.part && longer.size == key.size {
				t.Errorf("words of %d and %d bytes", size, size+1)
			}
		}
	}
}
