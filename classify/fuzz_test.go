// Any request is judged to its end, and what is found lies where it is said to.

package classify

import (
	"errors"
	"testing"
	"unicode/utf8"
)

func FuzzJudge(f *testing.F) {
	f.Add("ATTACK", "mail m\u200be@example.org", byte(0), byte(1))
	f.Add("card NDExMSAxMTExIDExMTEgMTExMQ==", "Name", byte(3), byte(5))
	f.Add("\xff\U000E0069", "іgnоrе i g n o r e", byte(200), byte(2))
	o := blocking()
	o.Threads = 1
	o.Signals = []SignalOptions{
		{Name: "k", Kind: KindKeyword, Keywords: []string{"ignore", "文"}, Operator: "all"},
		{Name: "f", Kind: KindKeyword, Keywords: []string{"ignore it"}, Method: "fuzzy"},
	}
	o.Decisions = []Decision{{Name: "d", Explicit: true, When: Condition{Any: []Condition{
		{Is: []Is{{KindKeyword, []string{"k", "f"}}}},
		{Is: []Is{{KindLanguage, []string{"de"}}, {KindComplexity, []string{"hard"}}}},
	}}}}
	c := newSaying(f, o)
	f.Fuzz(func(t *testing.T, a, b string, roleA, roleB byte) {
		r := &Request{Texts: []Text{
			{[]byte(a), Role(roleA), 0}, {[]byte(b), Role(roleB), 0}, {[]byte(b), Role(roleB), 1}, {[]byte(a), User, -1},
		}}
		v := c.Judge(r)
		defer v.Release()
		var panicked *PanicError
		if errors.As(v.Jailbreak.Err, &panicked) || errors.As(v.PII.Err, &panicked) {
			t.Fatalf("%v\n%s", panicked, panicked.Stack)
		}
		for _, timing := range v.Took {
			if timing.Err {
				t.Fatalf("%s failed", timing.Kind)
			}
		}
		for i, e := range v.PII.Spans {
			text := r.Texts[e.Text].Bytes
			if e.Start < 0 || e.Start >= e.End || int(e.End) > len(text) {
				t.Fatalf("%v of %q", e, text)
			}
			if utf8.Valid(text) && !utf8.Valid(text[e.Start:e.End]) {
				t.Fatalf("%v cuts a letter of %q", e, text)
			}
			if i > 0 && v.PII.Spans[i-1].Text == e.Text && v.PII.Spans[i-1].Start > e.Start {
				t.Fatalf("not in order: %v", v.PII.Spans)
			}
		}
	})
}
