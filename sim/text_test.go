// Answers say that they are simulated, differ by key, and end where they should.

package sim

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnswersDifferAndSayWhatTheyAre(t *testing.T) {
	seen := map[string]bool{}
	wide, lengths := 0, map[int]bool{}
	for key := range uint64(200) {
		a := writeAnswer("prefill-0", mix(key, 1), limits{max: 1000})
		if !strings.Contains(string(a.text), "a simulated answer from worker prefill-0, no model is behind it.") {
			t.Fatalf("%q does not say what it is", a.text)
		}
		if again := writeAnswer("prefill-0", mix(key, 1), limits{max: 1000}); string(again.text) != string(a.text) {
			t.Fatal("the same key gives two answers")
		}
		if a.reason != "stop" || len(a.tokens) < 32 || len(a.tokens) > 159 || !utf8.Valid(a.text) {
			t.Fatalf("%s after %d tokens: %q", a.reason, len(a.tokens), a.text)
		}
		seen[string(a.text[:4])] = true
		lengths[len(a.tokens)] = true
		if len(a.text) != utf8.RuneCount(a.text) {
			wide++
		}
	}
	if len(seen) < 190 || len(lengths) < 60 || wide < 150 {
		t.Errorf("of 200 answers %d begin differently, %d lengths, %d with characters beyond ASCII",
			len(seen), len(lengths), wide)
	}
}

func TestAnswerEnds(t *testing.T) {
	plain := writeAnswer("w", 5, limits{max: 64, ignoreEnd: true})
	if !strings.HasPrefix(string(plain.text), "0005: This is a simulated answer from worker w, no model") {
		t.Fatalf("%q", plain.text)
	}
	for _, c := range []struct {
		name               string
		limits             limits
		text, reason, stop string
		tokens             int
	}{
		{"one token", limits{max: 1}, "0005", "length", "", 1},
		{"length", limits{max: 5}, "0005: This is a", "length", "", 5},
		{"stop", limits{max: 90, stop: []string{" sim"}}, "0005: This is a", "stop", " sim", 6},
		{"stop across tokens", limits{max: 90, stop: []string{"zzz", "ated a"}}, "0005: This is a simul", "stop", "ated a", 9},
		{"stop kept", limits{max: 90, stop: []string{" sim"}, includeStop: true}, "0005: This is a sim", "stop", " sim", 6},
		{"no stop before min", limits{max: 7, min: 7, stop: []string{" is"}}, "0005: This is a simulate", "length", "", 7},
		{"stop not found", limits{max: 5, stop: []string{"never found"}}, "0005: This is a", "length", "", 5},
	} {
		a := writeAnswer("w", 5, c.limits)
		if string(a.text) != c.text || a.reason != c.reason || a.stopString != c.stop || len(a.tokens) != c.tokens {
			t.Errorf("%s: %q %s %q after %d tokens", c.name, a.text, a.reason, a.stopString, len(a.tokens))
		}
		joined := ""
		for i := range a.tokens {
			joined += string(a.piece(i))
			if !strings.HasPrefix(c.text, joined) {
				t.Errorf("%s: %q was shown and is not in %q", c.name, joined, c.text)
			}
		}
		if joined != c.text {
			t.Errorf("%s: the pieces make %q", c.name, joined)
		}
	}
	if a := writeAnswer("w", 5, limits{max: 1000, min: 300}); len(a.tokens) != 300 || a.reason != "stop" {
		t.Errorf("min 300: %s after %d tokens", a.reason, len(a.tokens))
	}
}

func TestHalfCharactersAreHeldBack(t *testing.T) {
	for key := range uint64(1000) {
		a := writeAnswer("w", key, limits{max: 400, ignoreEnd: true, stop: []string{"ü", "no such text at all"}})
		for i := range a.tokens {
			if !utf8.Valid(a.piece(i)) {
				t.Fatalf("key %d, token %d: half a character in %q", key, i, a.piece(i))
			}
		}
	}
}
