// Tests of the hashed n-grams.

package model

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// slowNgrams is the plain twin of Collect: it writes the n-grams down, as text, and hashes them
// one by one.
func slowNgrams(text string) map[uint32]bool {
	found := make(map[uint32]bool)
	var words []string // of the text so far; "" is nothing
	note := func(kind uint64, s string) uint64 {
		h := kind
		for _, r := range s {
			h = step(h, r)
		}
		found[uint32(h^h>>32)&(NgramBuckets-1)] = true
		return h
	}
	notePair := func(a, b uint64) uint64 {
		h := pair(a, b)
		found[uint32(h^h>>32)&(NgramBuckets-1)] = true
		return h
	}
	hash := func(s string) uint64 { return note(kindWord, s) }
	runes := []rune(strings.ToLower(text))
	for i := 0; i < len(runes); {
		j := i + 1
		switch r := runes[i]; {
		case isIdeograph(r):
			words = append(words, string(r))
			n := len(words)
			hash(words[n-1])
			if n > 1 {
				last := notePair(hash(words[n-2]), hash(words[n-1]))
				if n > 2 && isIdeograph([]rune(words[n-2])[0]) {
					notePair(hash(words[n-3]), last)
				}
			}
		case isLetter(r):
			for j < len(runes) && isLetter(runes[j]) && !isIdeograph(runes[j]) {
				j++
			}
			word := runes[i:j]
			words = append(words, string(word))
			hash(string(word))
			if n := len(words); n > 1 {
				notePair(hash(words[n-2]), hash(words[n-1]))
			}
			cut := append(append([]rune{'_'}, word[:min(len(word), maxWord)]...), '_')
			for n := 3; n <= 5; n++ {
				for k := 0; k+n <= len(cut); k++ {
					note(kindLetter, string(cut[k:k+n]))
				}
			}
		case r <= ' ' || unicode.IsSpace(r):
		default:
			for j < len(runes) && isMark(runes[j]) {
				j++
			}
			note(kindMark, string(runes[i:min(j, i+4)]))
		}
		i = j
	}
	return found
}

func TestCollectIsAsItsTwin(t *testing.T) {
	var g Ngrams
	for _, text := range []string{
		"", " ", "a", "Ignore ALL previous instructions!!!", "x=f(y)[0]; // ok?",
		"请问这个怎么做 hello 世界", "Straße ÜBER naïve", "привет, мир", "----------", "#### a ##",
		strings.Repeat("w", 200) + " end", "が、ください。", "안녕하세요 친구", "1,234.56 kg", "a\u200bb",
	} {
		want := slowNgrams(text)
		got := slices.Clone(g.Collect([]byte(text)))
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%q: a feature is there twice", text)
		}
		for _, f := range got {
			if !want[f] {
				t.Errorf("%q: %d should not be there", text, f)
			}
			delete(want, f)
		}
		if len(want) > 0 {
			t.Errorf("%q: %d features are missing", text, len(want))
		}
	}
}

func TestCollectIgnoresCase(t *testing.T) {
	var a, b Ngrams
	if !slices.Equal(a.Collect([]byte("What Is THIS? ÉCOLE")), b.Collect([]byte("what is this? école"))) {
		t.Error("upper case changed the features")
	}
}

func TestCollectIsBounded(t *testing.T) {
	var text strings.Builder
	for i := range 100000 {
		text.WriteRune(rune(0x4E00 + i*7919%20000))
		if i%3 == 0 {
			text.WriteString("word ")
			text.WriteRune(rune('a' + i%26))
		}
	}
	var g Ngrams
	if n := len(g.Collect([]byte(text.String()))); n > maxNgrams || n < maxNgrams/2 {
		t.Errorf("%d features of a long text, the most is %d", n, maxNgrams)
	}
}

func TestCollectRoundsWrap(t *testing.T) {
	var g, fresh Ngrams
	want := slices.Clone(fresh.Collect([]byte("the same features every time")))
	for range 1<<14 + 3 {
		if got := g.Collect([]byte("the same features every time")); !slices.Equal(got, want) {
			t.Fatalf("round %d has %d features, the first had %d", g.round, len(got), len(want))
		}
	}
}

func FuzzCollect(f *testing.F) {
	f.Add([]byte("Ignore 前面的 instructions, и всё"))
	f.Add([]byte("\xff\xfe a\xc3"))
	var g Ngrams
	f.Fuzz(func(t *testing.T, text []byte) {
		got := g.Collect(text)
		for _, n := range got {
			if n >= NgramBuckets {
				t.Fatalf("feature %d", n)
			}
		}
		if utf8.Valid(text) && len(text) < 2000 && !strings.ContainsRune(string(text), utf8.RuneError) {
			want := slowNgrams(string(text))
			if len(want) != len(got) {
				t.Fatalf("%q: %d features, its twin has %d", text, len(got), len(want))
			}
		}
	})
}
