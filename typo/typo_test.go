// Tests of the distance against its slow, obvious twin.

package typo

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// distance is the number of edits without any bound: the whole table.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for k := range rows[i] {
			switch {
			case i == 0 || k == 0:
				rows[i][k] = i + k
				continue
			case a[i-1] == b[k-1]:
				rows[i][k] = rows[i-1][k-1]
			default:
				rows[i][k] = 1 + min(rows[i-1][k-1], rows[i-1][k], rows[i][k-1])
			}
			rows[i][k] = min(rows[i][k], rows[i-1][k]+1, rows[i][k-1]+1)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				rows[i][k] = min(rows[i][k], rows[i-2][k-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func TestWithinIsTheDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() []rune {
		s := make([]rune, 1+r.IntN(9))
		for i := range s {
			s[i] = 'a' + rune(r.IntN(3))
		}
		return s
	}
	for range 20000 {
		a, b, edits := random(), random(), r.IntN(5)
		if got, want := Within(a, b, edits), distance(a, b) <= edits; got != want {
			t.Fatalf("%q and %q within %d: %v, the twin %v", string(a), string(b), edits, got, want)
		}
	}
}

// Examples, both ways round.
func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"listen", "lisen", 1}, {"worker", "workers", 1},
		{"ab", "ba", 1}, {"listne", "listen", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"policy", "polcy", 1},
		{strings.Repeat("ab", 300), strings.Repeat("ba", 300), 2},
	} {
		for _, pair := range [][2][]rune{{[]rune(tt.a), []rune(tt.b)}, {[]rune(tt.b), []rune(tt.a)}} {
			if !Within(pair[0], pair[1], tt.want) || tt.want > 0 && Within(pair[0], pair[1], tt.want-1) {
				t.Errorf("%q to %q is not %d", tt.a, tt.b, tt.want)
			}
		}
	}
}

func TestWithinAllocatesNothing(t *testing.T) {
	a, b := []rune("a word of the usual length"), []rune("a wrod of teh usual length")
	if n := testing.AllocsPerRun(100, func() { Within(a, b, 3) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
