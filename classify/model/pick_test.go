// Tests of what the encoder sees of long texts.

package model

import (
	"strings"
	"testing"
)

const harvest = "The harvest was late that year, and the mill stood still until October. Rain fell on the roofs, and the children stayed in school. "

// TestPickedWindows: the beginning, the end, the chunk that the words speak against most and those
// that they clearly speak against are covered, nothing else, and no window goes beyond a stretch.
func TestPickedWindows(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	clean := strings.Repeat(harvest, 20)
	for _, row := range []struct {
		name, text string
		want       string // a mark for each chunk that is picked
	}{
		{"innocent", clean, "+"},
		{"attack in the middle", clean[:1200] + override + clean[1200:], "+"},
		{"attacks", strings.Repeat(override+" ", 30), "++++"},
	} {
		text := []byte(row.text)
		tokens := m.Tokenize(nil, text, &s)
		n := spansOf(m.begin(tokens, &s))
		h := s.forHeads()
		m.guard.words(text, tokens, chunksOf(n), h)
		runs := m.guard.appendPicked(nil, n, false, h)
		if runs[0] != gist(n) {
			t.Errorf("%s: the first run is %v, want the gist", row.name, runs[0])
		}
		seen := make([]bool, chunksOf(n))
		for _, r := range runs[1:] {
			if r.from < 0 || r.from >= r.to || int(r.to) > n {
				t.Fatalf("%s: window %v of %d spans", row.name, r, n)
			}
			for i := r.from; i < r.to; i++ {
				seen[i/chunkSpans] = true
			}
		}
		picked := 0
		for i := 1; i < lastChunks(n); i++ {
			if seen[i] {
				picked++
			}
		}
		if !seen[0] || !seen[len(seen)-1] {
			t.Errorf("%s: the beginning or the end is not seen", row.name)
		}
		if want := len(row.want); picked < want || row.name == "innocent" && picked > want {
			t.Errorf("%s: %d of %d chunks in between are seen, want %d", row.name, picked, len(seen), want)
		}
	}
}

// TestAttackInTheMiddleIsSeen: by a text of 500 tokens, of which the encoder sees a part.
func TestAttackInTheMiddleIsSeen(t *testing.T) {
	m := embeddedModel(t)
	var s Scratch
	clean := strings.Repeat(harvest, 16)
	if got := m.Attack([]byte(clean), m.Tokenize(nil, []byte(clean), &s), false, &s); got.Attack > 0.2 {
		t.Errorf("without an attack it scores %.2f", got.Attack)
	}
	for at := 0; at < len(clean); at += len(harvest) {
		text := []byte(clean[:at] + override + " " + clean[at:])
		if got := m.Attack(text, m.Tokenize(nil, text, &s), false, &s); got.Attack < 0.5 {
			t.Errorf("an attack at byte %d scores %.2f", at, got.Attack)
		}
	}
}

// TestGistIsOfBothEnds: what lies between them does not count, and nothing that was asked before.
func TestGistIsOfBothEnds(t *testing.T) {
	m := embeddedModel(t)
	gistOf := func(text string, s *Scratch) (v [Dim]float32) {
		m.Gist(&v, m.Tokenize(nil, []byte(text), s), s)
		return v
	}
	var used Scratch
	for _, n := range []int{1, 5, 7, 8, 20, 100} {
		text := strings.Repeat(harvest, n)
		tokens := m.Tokenize(nil, []byte(text), &used)
		var whole, again [Dim]float32
		m.Embed(&whole, tokens, &used)
		m.Attack([]byte(text), tokens, false, &used)
		after := gistOf(text, &used)
		if fresh := gistOf(text, new(Scratch)); after != fresh {
			t.Errorf("%d bytes: another gist after Embed and Attack", len(text))
		}
		if m.Embed(&again, tokens, &used); again != whole {
			t.Errorf("%d bytes: another embedding after Gist and Attack", len(text))
		}
		g := gist(spansOf(len(tokens) + 2))
		if all := g.gapFrom >= g.gapTo; all != (after == whole) {
			t.Errorf("%d tokens: gist is the embedding: %v", len(tokens), after == whole)
		}
		if cosine := dot(&after, &whole); cosine < 0.9 {
			t.Errorf("%d tokens: cosine of gist and embedding is %.3f", len(tokens), cosine)
		}
	}
}
