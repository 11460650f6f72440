// Spans beyond what the golden files say: broken text, bounds, allocations.

package tokenize

import (
	"slices"
	"testing"
)

// checkSpans wants the tokens of Append, and spans of whole characters that begin in the text's
// order.
func checkSpans(t *testing.T, name string, tokenizer *Tokenizer, text []byte) {
	t.Helper()
	want := tokenizer.Append(nil, text, false)
	ids, spans := tokenizer.AppendSpans([]uint32{7}, []Span{{1, 2}, {3, 4}}, text)
	if len(ids) != len(want)+1 || ids[0] != 7 || !slices.Equal(ids[1:], want) || len(spans) != len(want)+2 || spans[1] != (Span{3, 4}) {
		t.Fatalf("%s: %q:\n got %v, %d spans\nwant %v", name, text, ids, len(spans), want)
	}
	last := uint32(0)
	for i, s := range spans[2:] {
		if s.Start > s.End || int(s.End) > len(text) || s.Start < last && !tokenizer.trim {
			t.Fatalf("%s: %q: token %d stands at %v, behind %d", name, text, i, s, last)
		}
		last = s.Start
	}
}

func TestSpansOfBrokenText(t *testing.T) {
	tokenizer, err := Read(smallFile(map[string]string{
		"model": `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["b",-1],["\ufffd",-2]]}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	ids, spans := tokenizer.AppendSpans(nil, nil, []byte("a\xe2\x82b\xffxy中a"))
	wantIDs, want := []uint32{1, 3, 2, 3, 0, 1}, []Span{{0, 1}, {1, 3}, {3, 4}, {4, 5}, {5, 10}, {10, 11}}
	if !slices.Equal(ids, wantIDs) || !slices.Equal(spans, want) {
		t.Errorf("got %v %v, want %v %v", ids, spans, wantIDs, want)
	}
}

func TestSpansHold(t *testing.T) {
	for _, name := range fixtureNames(t) {
		tokenizer := fixture(t, name)
		m := newTexts(17, tokenizer)
		for range 1000 {
			checkSpans(t, name, tokenizer, []byte(m.text()))
		}
	}
}

func TestAppendSpansAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, name := range fixtureNames(t) {
		tokenizer := fixture(t, name)
		m := newTexts(3, tokenizer)
		for _, size := range []int{1 << 10, 1 << 15, 1 << 17} {
			text := []byte(mixedText(m, size))
			ids, spans := tokenizer.AppendSpans(nil, nil, text)
			types := make([]uint8, 0, len(ids)+10)
			framed := make([]uint32, 0, len(ids)+10)
			n := testing.AllocsPerRun(10, func() {
				ids, spans = tokenizer.AppendSpans(ids[:0], spans[:0], text)
				framed, types = tokenizer.Frame(framed[:0], types[:0], ids)
			})
			if n > 4 { // as for Append
				t.Errorf("%s: %v allocations for %d bytes", name, n, size)
			}
		}
	}
}

// Without a post-processor, two texts simply follow one another. A template that swaps them has
// no pair.
func TestFramePair(t *testing.T) {
	sequence := func(id string) string { return `{"Sequence":{"id":"` + id + `","type_id":1}}` }
	template := func(pair string) string {
		return `{"type":"TemplateProcessing","single":[` + sequence("A") + `],"pair":[` + pair + `],"special_tokens":{}}`
	}
	for _, c := range []struct {
		post string
		ok   bool
		want []uint8
	}{
		{`null`, true, []uint8{0, 1}},
		{template(sequence("A") + "," + sequence("B")), true, []uint8{1, 1}},
		{template(sequence("B") + "," + sequence("A")), false, nil},
		{template(sequence("A")), false, nil},
		{template(sequence("A") + "," + sequence("B") + "," + sequence("B")), false, nil},
		{template(sequence("A") + `,{"SpecialToken":{"id":"x","type_id":0}},` + sequence("B")), false, nil},
	} {
		tokenizer, err := Read(smallFile(map[string]string{"post": c.post}))
		if err != nil {
			t.Fatal(err)
		}
		ids, types, ok := tokenizer.FramePair(nil, nil, []uint32{1}, []uint32{2})
		if ok != c.ok || !slices.Equal(types, c.want) || ok && !slices.Equal(ids, []uint32{1, 2}) {
			t.Errorf("%s: %v %v %v", c.post, ids, types, ok)
		}
	}
}
