// Tests of words that are known: nothing of it may show but in time.

package model

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNoPieceCrossesWords: what cutting word by word rests on. No piece has the mark of white space
// but at its beginning.
func TestNoPieceCrossesWords(t *testing.T) {
	m := embeddedModel(t)
	var key [longestPiece]byte
	pieces := 0
	var walk func(base uint32, n int)
	walk = func(base uint32, n int) {
		for c := range 256 {
			next, ends, ok := m.words.pieces.step(base, byte(c))
			if !ok || n == len(key) {
				continue
			}
			key[n] = byte(c)
			if ends {
				pieces++
				if bytes.LastIndex(key[:n+1], space) > 0 {
					t.Errorf("piece %q", key[:n+1])
				}
			}
			walk(next, n+1)
		}
	}
	walk(m.words.pieces.root(), 0)
	if pieces < 100000 {
		t.Errorf("only %d pieces", pieces)
	}
}

// TestKnownWordsDoNotShow: texts of more words than are known, of all lengths, again and again.
func TestKnownWordsDoNotShow(t *testing.T) {
	m := embeddedModel(t)
	rng := rand.New(rand.NewPCG(25, 26))
	runes := []rune("abcdefghijklmnopqrstuvwxyz '-.ABCÄéß中文字ПриветالسΩ▁\x00\ufffd09")
	word := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(1<<rng.IntN(6)) {
			b.WriteRune(runes[rng.IntN(len(runes))])
		}
		return b.String()
	}
	var texts [][]byte
	for range 200 {
		var b strings.Builder
		for range 100 {
			b.WriteString(word() + strings.Repeat(" ", 1+rng.IntN(2)))
		}
		texts = append(texts, []byte(b.String()))
	}
	var s Scratch
	for range 2 {
		for _, text := range texts {
			clear(s.forget())
			want := slices.Clone(m.Tokenize(nil, text, &s))
			if got := m.Tokenize(nil, text, &s); !slices.Equal(got, want) {
				t.Fatalf("%q: other tokens of known words", text)
			}
		}
	}
	var other Scratch
	for _, text := range texts {
		got := m.Tokenize(nil, text, &other)
		clear(s.forget())
		if want := m.Tokenize(nil, text, &s); !slices.Equal(got, want) {
			t.Fatalf("%q: other tokens after other texts", text)
		}
	}
}

// forget returns the known words, to be cleared.
func (s *Scratch) forget() []wordSet {
	if s.window == nil {
		return nil
	}
	return s.window.words[:]
}
