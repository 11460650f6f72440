// What judging costs: allocations, and time by length.

package classify

import (
	"strings"
	"testing"
)

const prose = "The committee will meet on the second floor to discuss how the budget for the new library is to be spent. "

// everything is a request of n bytes and a classifier that computes all of it.
func everything(tb testing.TB, w weights, n int) (*Classifier, *Request) {
	o := blocking()
	o.PII.Allow = piiTypes()
	o.Signals = []SignalOptions{
		{Name: "k", Kind: KindKeyword, Keywords: []string{"apple", "pear"}},
		{Name: "f", Kind: KindKeyword, Keywords: []string{"strawberry"}, Method: "fuzzy"},
		{Name: "b", Kind: KindKeyword, Keywords: []string{"apple"}, Method: "bm25"},
		{Name: "c", Kind: KindContext, Features: []Feature{{Name: "tokens", Min: 1e9}}},
		{Name: "e", Kind: KindEmbedding, Phrases: []string{"apple", "pear"}, Threshold: 0.999},
	}
	for _, s := range o.Signals {
		o.Decisions = append(o.Decisions, Decision{Name: s.Name, When: Condition{Is: []Is{{s.Kind, []string{s.Name}}}}})
	}
	c, err := newWith(o, w)
	if err != nil {
		tb.Fatal(err)
	}
	r := said(strings.Repeat(prose, n/len(prose)+1)[:n])
	r.Auto, r.Also = true, []Kind{KindLanguage, KindComplexity}
	return c, r
}

// fresh makes the text one that was not there before.
func fresh(r *Request, i int) {
	copy(r.Texts[0].Bytes, []byte{byte('a' + i%26), byte('a' + i/26%26), byte('a' + i/676%26)})
}

func TestJudgeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	w, err := openWeights(new(Options), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{256, 2048, 100 << 10} {
		c, r := everything(t, w, n)
		i := 0
		if allocs := testing.AllocsPerRun(20, func() {
			fresh(r, i)
			i++
			c.Judge(r).Release()
		}); allocs > 0 {
			t.Errorf("%d bytes: %v allocations", n, allocs)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	w, err := openWeights(new(Options), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		bytes int
	}{{"64tokens", 320}, {"512tokens", 2560}, {"100KB", 100 << 10}} {
		b.Run(row.name, func(b *testing.B) {
			c, r := everything(b, w, row.bytes)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				fresh(r, i)
				c.Judge(r).Release()
			}
		})
	}
	b.Run("again", func(b *testing.B) { // a text that came before
		c, r := everything(b, w, 2560)
		for b.Loop() {
			c.Judge(r).Release()
		}
	})
}

// BenchmarkSignal is one signal alone, on 2,560 bytes that did not come before.
func BenchmarkSignal(b *testing.B) {
	w, err := openWeights(new(Options), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []Kind{KindJailbreak, KindPII, KindCategory, KindSentence, KindLanguage, KindComplexity, KindContext, KindStructure} {
		b.Run(string(kind), func(b *testing.B) {
			c, err := newWith(Options{}, w)
			if err != nil {
				b.Fatal(err)
			}
			r := said(strings.Repeat(prose, 25)[:2560])
			r.Also = []Kind{kind}
			for i := 0; b.Loop(); i++ {
				fresh(r, i)
				c.Judge(r).Release()
			}
		})
	}
	for _, method := range []string{"exact", "regex", "fuzzy", "bm25"} {
		b.Run("keyword/"+method, func(b *testing.B) {
			o := Options{
				Signals:   []SignalOptions{{Name: "k", Kind: KindKeyword, Method: method, Keywords: []string{"apple", "pear tree", "strawberry"}}},
				Decisions: []Decision{{Name: "d", When: Condition{Is: []Is{{KindKeyword, []string{"k"}}}}, Explicit: true}},
			}
			c, err := newWith(o, w)
			if err != nil {
				b.Fatal(err)
			}
			r := said(strings.Repeat(prose, 25)[:2560])
			for b.Loop() {
				c.Judge(r).Release()
			}
		})
	}
}
