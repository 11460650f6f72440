// Embeddings of texts that nobody judges.

package classify

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Embed makes what Judge makes of the same text, also of one that is folded
// or shortened.
func TestEmbedIsWhatJudgeFinds(t *testing.T) {
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"How tall is the Eiffel Tower?", "Wie hoch ist der Eiffelturm?", "zero\u200bwidth \u0430pple", strings.Repeat("a long question ", 1000),
	} {
		r := said(text)
		r.Also = []Kind{KindSentence}
		v := c.Judge(r)
		var got [Dim]float32
		other, err := New(Options{}) // which shares no results
		if err != nil {
			t.Fatal(err)
		}
		if !other.Embed(&got, []byte(text)) || v.Embedding == nil || got != [Dim]float32(v.Embedding) {
			t.Errorf("%.20q: another embedding", text)
		}
		length := 0.0
		for _, x := range got {
			length += float64(x) * float64(x)
		}
		if math.Abs(length-1) > 1e-3 {
			t.Errorf("%.20q: length %v", text, length)
		}
		v.Release()
	}
}

func TestEmbedSaysWhenThereIsNone(t *testing.T) {
	c := newSaying(t, Options{Threads: 1, Timeout: time.Millisecond})
	var v [Dim]float32
	if c.Embed(&v, nil) {
		t.Error("an embedding of nothing")
	}
	c.line.take() // somebody holds the only thread
	if c.Embed(&v, []byte("a")) {
		t.Error("an embedding without a thread")
	}
	c.line.leave(nil, 0)
	if !c.Embed(&v, []byte("a")) {
		t.Error("no embedding")
	}
}

// A panic is one text's: the next one has its embedding.
func TestEmbedOutlivesAPanic(t *testing.T) {
	broken := true
	c := newSaying(t, Options{Threads: 1, Fault: func(Kind) {
		if broken {
			panic("broken")
		}
	}})
	var v [Dim]float32
	if c.Embed(&v, []byte("a")) {
		t.Error("an embedding of a broken step")
	}
	broken = false
	if !c.Embed(&v, []byte("a")) {
		t.Error("no embedding after a panic")
	}
}

func TestEmbedAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(strings.Repeat(prose, 4))
	var v [Dim]float32
	i := 0
	if allocs := testing.AllocsPerRun(100, func() {
		text[0], text[1] = byte('a'+i%26), byte('a'+i/26)
		i++
		c.Embed(&v, text)
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
