// Suggestions: the known word that somebody most likely meant.
package main

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean is `, did you mean "x"?` for the nearest candidate, or "".
func didYouMean(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}

// nearest is the candidate with the fewest edits from word, if they are few
// enough for a slip: one in three letters. Ties go to the first.
func nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return "" // no slip, and the distance costs its square
	}
	word = plain(word)
	best, fewest := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(word, plain(c)); d < fewest {
			best, fewest = c, d
		}
	}
	return best
}

// plain takes out what people vary without meaning it: case, and - for _.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

// distance counts insertions, deletions, substitutions and swaps of
// neighbours between a and b (Damerau-Levenshtein, optimal string alignment).
func distance(a, b string) int {
	before := make([]int, len(b)+1) // the row for a[:i-2]
	last := make([]int, len(b)+1)   // for a[:i-1]
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// unknownHint says what was probably meant: a sibling with a slip in it, or
// the same key at another place.
func unknownHint(k *knownKey, name string) string {
	if hint := didYouMean(name, childNames(k)); hint != "" {
		return hint
	}
	for _, sibling := range childNames(k) {
		if slices.Contains(strings.Split(sibling, "_"), plain(name)) {
			return fmt.Sprintf(", did you mean %q?", sibling)
		}
	}
	var elsewhere []string
	knownKeys.all(func(other *knownKey) {
		same := other.name == plain(name) || other.name == plain(name)+"s"
		if same && len(elsewhere) < 4 {
			elsewhere = append(elsewhere, other.path)
		}
	})
	if len(elsewhere) > 0 {
		return ", did you mean " + words(elsewhere, "or") + "?"
	}
	names := slices.Sorted(slices.Values(childNames(k)))
	return "; known here: " + strings.Join(names, ", ")
}

func childNames(k *knownKey) []string {
	names := make([]string, len(k.children))
	for i, c := range k.children {
		names[i] = c.name
	}
	return names
}
