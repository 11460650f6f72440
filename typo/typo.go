// Slips of the pen between two words.

// Package typo says how many slips of the pen lie between two words:
// insertions, deletions, substitutions and swaps of neighbouring letters
// (Damerau and Levenshtein, optimal string alignment).
//
//	typo.Within([]rune("lisen"), []rune("listen"), 1) // true
package typo

import "slices"

// onStack is how many letters of b need no memory but the stack.
const onStack = 200

// Within says whether a and b differ by no more than so many edits. It takes
// time in proportion to the product of their lengths at most, and allocates
// only where b has more than 200 letters.
func Within(a, b []rune, edits int) bool {
	if len(a)-len(b) > edits || len(b)-len(a) > edits {
		return false
	}
	if edits == 0 {
		return slices.Equal(a, b)
	}
	var rows [3][onStack + 1]int
	before, last, row := rows[0][:], rows[1][:], rows[2][:] // for a[:i-2], a[:i-1] and a[:i]
	if len(b) > onStack {
		before, last, row = make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	}
	for k := range len(b) + 1 {
		last[k] = k
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for k := 1; k <= len(b); k++ {
			cost := 1
			if a[i-1] == b[k-1] {
				cost = 0
			}
			d := min(last[k]+1, row[k-1]+1, last[k-1]+cost)
			if i > 1 && k > 1 && a[i-1] == b[k-2] && a[i-2] == b[k-1] {
				d = min(d, before[k-2]+1)
			}
			row[k] = d
			best = min(best, d)
		}
		if best > edits {
			return false
		}
		before, last, row = last, row, before
	}
	return last[len(b)] <= edits
}
