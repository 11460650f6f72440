package verify

import (
	"strings"
	"testing"
)

// TestFrames: pairs of nearly the same words in which somebody else acts, or that ask for another
// thing, are refused; the same question in other words is a hit.
func TestFrames(t *testing.T) {
	v, e := open(t), newEmbedder(t)
	type tally struct{ near, answered, same, hits int }
	kinds := make(map[string]*tally)
	for _, fields := range readPairs(t, "testdata/frames.txt") {
		label, kind, _ := strings.Cut(fields[0], " ")
		n := kinds[kind]
		if n == nil {
			n = new(tally)
			kinds[kind] = n
		}
		for _, pair := range [][2]string{{fields[1], fields[2]}, {fields[2], fields[1]}} {
			a, b := pair[0], pair[1]
			score, why := v.Compare([]byte(a), []byte(b), e.similarity(a, b))
			hit := why == "" && score >= threshold
			switch {
			case label == "near":
				n.near++
				if hit {
					n.answered++
					t.Logf("%s: answered with %.3f: %q and %q", kind, score, a, b)
				}
			case label == "same":
				n.same++
				if hit {
					n.hits++
				} else {
					t.Logf("%s: not answered: %.3f %q: %q and %q", kind, score, why, a, b)
				}
			default:
				t.Fatalf("%q is neither near nor same", fields)
			}
		}
	}
	var all tally
	for kind, n := range kinds {
		t.Logf("%-12s %2d of %2d near-misses answered, %2d of %2d rewordings", kind, n.answered, n.near, n.hits, n.same)
		all = tally{all.near + n.near, all.answered + n.answered, all.same + n.same, all.hits + n.hits}
		if n.near < 20 || n.same < 16 {
			t.Errorf("%s: %d near-misses and %d rewordings, want 20 and 16", kind, n.near, n.same)
		}
		if 10*n.hits < 7*n.same {
			t.Errorf("%s: %d of %d rewordings answered, want 70 %%", kind, n.hits, n.same)
		}
	}
	if 40*all.answered > all.near || 100*all.hits < 90*all.same {
		t.Errorf("%d of %d near-misses and %d of %d rewordings answered, want at most 2.5 %% and at least 90", all.answered, all.near, all.hits, all.same)
	}
}

// TestExplained: an explanation, a definition, a comparison or a recipe is asked for in many frames, and the same frame
// asks for other things.
func TestExplained(t *testing.T) {
	v, e := open(t), newEmbedder(t)
	for _, c := range []struct {
		a, b string
		hit  bool
	}{
		{"How does a sextant work?", "Explain sextants to me", true},
		{"What is a sextant?", "Describe a sextant", true},
		{"What is entropy?", "What does entropy mean?", true},
		{"How does a sextant work?", "How do I repair a sextant?", false},
		{"How does a sextant work?", "What is a sextant made of?", false},
		{"What is entropy?", "Who discovered entropy?", false},
		{"What is the difference between jam and jelly?", "Which is cheaper, jam or jelly?", false},
	} {
		score, why := v.Compare([]byte(c.a), []byte(c.b), e.similarity(c.a, c.b))
		if hit := why == "" && score >= threshold; hit != c.hit {
			t.Errorf("%q and %q: score %.3f, %q, hit %v, want %v", c.a, c.b, score, why, hit, c.hit)
		}
	}
}
