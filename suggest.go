// Suggestions: the known word that somebody most likely meant.
package main

import (
	"fmt"
	"slices"
	"strings"

	"kvasir/typo"
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
	letters := []rune(plain(word))
	best, edits := "", max(1, len(letters)/3)
	for _, c := range candidates {
		for other := []rune(plain(c)); edits >= 0 && typo.Within(letters, other, edits); edits-- {
			best = c
		}
	}
	return best
}

// plain takes out what people vary without meaning it: case, and - for _.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
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
