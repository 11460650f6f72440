// Tests of finding words: against slow, obvious twins, and that they are linear.

package classify

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// slowly finds patterns by looking everywhere, in the symbols of both.
func slowly(patterns []string, text string) (found []int) {
	write := func(s string) string {
		var out []byte
		var sym symbols
		sym.feed([]byte(s), func(b byte) bool { out = append(out, b); return true })
		return string(out)
	}
	for i, p := range patterns {
		if strings.Contains(write(text), write(p)) {
			found = append(found, i)
		}
	}
	return found
}

func TestMatcherFindsWhatTheTwinFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "A", " ", "-", "é", "É", "中", "文", "\n ", "ß", "_", "1"}
	random := func(n int) string {
		var s strings.Builder
		for range 1 + r.IntN(n) {
			s.WriteString(letters[r.IntN(len(letters))])
		}
		return s.String()
	}
	for range 3000 {
		var patterns []string
		for range 1 + r.IntN(6) {
			patterns = append(patterns, random(4))
		}
		text := random(24)
		m, err := newMatcher(patterns, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			var h hits
			h.begin(len(patterns), again, true)
			m.search([]byte(text), again, h.has, h.hit)
			var found []int
			for i := range patterns {
				if h.has(i) {
					found = append(found, i)
				}
			}
			if want := slowly(patterns, text); !slices.Equal(found, want) {
				t.Fatalf("%q in %q: %v, the twin %v", patterns, text, found, want)
			}
		}
	}
}

// Words longer than any keyword, and very many of them, do not confuse the window.
func TestFuzzyWindow(t *testing.T) {
	f, err := newFuzzy(&SignalOptions{Keywords: []string{"one two three four", "seven"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		strings.Repeat("x", 500) + " seven":                        1,
		strings.Repeat("abc ", 1000) + "one two thre four":         1,
		"one " + strings.Repeat("y", 100) + " two three four":      0,
		strings.Repeat(strings.Repeat("z", 48)+" ", 50) + "sevven": 1,
		"": 0, "seve": 1, "sev": 0, "one two three": 0,
	} {
		var h hits
		h.begin(2, false, true)
		f.find([]byte(text), &h)
		if h.found != want {
			t.Errorf("%q: %d", text, h.found)
		}
	}
}

func TestKeywordsAreLinear(t *testing.T) {
	nested := make([]string, 64)
	for i := range nested {
		nested[i] = strings.Repeat("-", i+1) // each the end of the next
	}
	for _, o := range []SignalOptions{
		{Keywords: nested, Operator: "all"},
		{Keywords: append(nested, "a"), Operator: "all"},
		{Keywords: []string{"one two three for"}, Method: "fuzzy"},
		{Keywords: []string{`(a*)*b`, `-+x`}, Method: "regex"},
	} {
		f, err := newFinder(&o)
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range []string{"-", "a", "one two three "} {
			took := func(n int) time.Duration {
				text := []byte(strings.Repeat(unit, n/len(unit)))
				best := time.Hour
				for range 3 {
					var h hits
					h.begin(len(o.Keywords), false, true)
					start := time.Now()
					f.find(text, &h)
					best = min(best, time.Since(start))
				}
				return best
			}
			// 64 times as long, 4096 if it were a square; a long run may have a small part of a busy machine.
			small, large := took(1<<11), took(1<<17)
			if large > 800*small+20*time.Millisecond {
				t.Errorf("%s in %q: %v for 2 KiB, %v for 128 KiB", o.Method, unit, small, large)
			}
		}
	}
}

func FuzzKeyword(f *testing.F) {
	f.Add("asap", "Reply ASAP")
	f.Add("C++", "c++11")
	f.Add("紧急", "很紧急！")
	f.Fuzz(func(t *testing.T, keyword, text string) {
		if keyword == "" || len(keyword) > maxKeyword {
			return
		}
		m, err := newMatcher([]string{keyword}, false)
		if err != nil {
			t.Fatal(err)
		}
		var h hits
		h.begin(1, false, false)
		m.search([]byte(text), false, h.has, h.hit)
		if want := len(slowly([]string{keyword}, text)) > 0; want != (h.found > 0) {
			t.Errorf("%q in %q: %v", keyword, text, h.found)
		}
		fuzzy, err := newFuzzy(&SignalOptions{Keywords: []string{keyword}})
		if err == nil {
			h.begin(1, false, false)
			fuzzy.find([]byte(text), &h)
		}
	})
}
