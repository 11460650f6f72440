// How messages quote, count and list things, and say what was probably meant.

// Package wording has the phrases that messages share, so that errors in a configuration file and
// on the command line read alike.
//
//	wording.Quote("a\x1b[31m")                      // "a\x1b[31m", in quotes
//	wording.List([]string{"a", "b", "c"}, "or")     // a, b or c
//	wording.DidYouMean("lisen", []string{"listen"}) // , did you mean "listen"?
package wording

import (
	"fmt"
	"strconv"
	"strings"

	"kvasir/typo"
)

// DidYouMean returns `, did you mean "x"?` for the Nearest candidate, or "".
func DidYouMean(word string, candidates []string) string {
	if best := Nearest(word, candidates); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}

// Nearest returns the candidate with the fewest edits from word, if they are few enough for a
// typing error: one in three letters. Ties go to the first. It returns "" if no candidate is
// near, or word has more than 64 bytes.
func Nearest(word string, candidates []string) string {
	if len(word) > 64 {
		return "" // not a typing error, and the cost of the distance is quadratic
	}
	letters := []rune(Plain(word))
	best, edits := "", max(1, len(letters)/3)
	for _, c := range candidates {
		for other := []rune(Plain(c)); edits >= 0 && typo.Within(letters, other, edits); edits-- {
			best = c
		}
	}
	return best
}

// Plain removes differences without meaning: capitals, and - for _.
func Plain(s string) string {
	return strings.ReplaceAll(strings.ToLower(s), "-", "_")
}

// Quote makes untrusted text safe for a message: in quotes, with control characters escaped, and
// at most 80 bytes of it.
func Quote(text string) string {
	if len(text) > 80 {
		return strconv.Quote(strings.ToValidUTF8(text[:80], "")) + "..."
	}
	return strconv.Quote(text)
}

// List joins a list for a sentence: "a, b or c" if last is "or".
func List(list []string, last string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	n := len(list) - 1
	return strings.Join(list[:n], ", ") + " " + last + " " + list[n]
}

// Count returns a number with its noun, in the plural unless it is 1: 1 worker, 2 workers.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
