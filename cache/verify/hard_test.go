package verify

import (
	"strings"
	"testing"
	"time"
)

// TestLinear compares texts of the greatest length that are hard to read: each was once slow, or
// looks as if it could be. The bound is far above the time that any takes (7 ms), and far below
// quadratic time.
func TestLinear(t *testing.T) {
	v := open(t)
	for _, unit := range []string{"(a", "why ", "AB ", "\"a\" ", "a and b ", "1 ", "一", "a'", "`x` ", "5 km to 6 miles ", "not ", "ab_c ", "问"} {
		a, b := strings.Repeat(unit, MaxText/len(unit)), strings.Repeat(unit+"b", MaxText/(len(unit)+1))
		for _, pair := range [][2]string{{a, a}, {a, b}, {b, a}} {
			start := time.Now()
			v.Compare([]byte(pair[0]), []byte(pair[1]), 0.9)
			if took := time.Since(start); took > time.Second {
				t.Errorf("%v for %q again and again", took, unit)
			}
		}
	}
}
