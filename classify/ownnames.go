// Own names: from the labels of tokens to spans of personal data, which leave whole what rules have found.

package classify

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"kvasir/classify/encoder"
	"kvasir/classify/pii"
)

// namesOf appends the names that labels of tokens make, white space at their ends left out. A word has the label of its
// first token: many models were taught that one alone. A name's score is the mean of its words'.
func namesOf(dst []pii.Span, text []byte, labels []encoder.Label, means []tag) []pii.Span {
	for i := 0; i < len(labels); {
		t, end := means[labels[i].Label], endOfWord(text, labels, i)
		sum, words := labels[i].Score, float32(1)
		for t.kind != 0 && end < len(labels) {
			next := means[labels[end].Label]
			inside := labels[end].Start < labels[end-1].End // a character that several tokens share
			if next.kind != t.kind || next.first && !inside {
				break
			}
			sum, words = sum+labels[end].Score, words+1
			end = endOfWord(text, labels, end)
		}
		if t.kind != 0 {
			from, to := int(labels[i].Start), int(labels[end-1].End)
			from += len(text[from:to]) - len(bytes.TrimLeft(text[from:to], " \t\r\n"))
			to = from + len(bytes.TrimRight(text[from:to], " \t\r\n"))
			if from < to {
				dst = append(dst, pii.Span{Start: int32(from), End: int32(to), Type: t.kind, Score: sum / words})
			}
		}
		i = end
	}
	return dst
}

// endOfWord is the index behind the tokens of the word that begins with token i.
func endOfWord(text []byte, labels []encoder.Label, i int) int {
	for i++; i < len(labels); i++ {
		at := int(labels[i].Start)
		before, _ := utf8.DecodeLastRune(text[:at])
		here, _ := utf8.DecodeRune(text[at:])
		if labels[i].Start != labels[i-1].End || !isWord(before) || !isWord(here) || unspaced(before) || unspaced(here) {
			break
		}
	}
	return i
}

// cutAtRules cuts off of the spans behind the first rules of them what rules have found, so that a model that is wrong
// about a number, or about what stands beside it, hides none of it. Those of the rules are sorted.
func cutAtRules(spans []pii.Span, rules int) []pii.Span {
	slices.SortStableFunc(spans[rules:], func(a, b pii.Span) int { return cmp.Compare(a.Start, b.Start) })
	kept, near := spans[:rules], 0
	for _, s := range spans[rules:] {
		for near < rules && spans[near].End <= s.Start {
			near++
		}
		for _, r := range spans[near:rules] {
			if r.Start >= s.End {
				break
			}
			if r.Start <= s.Start {
				s.Start = r.End
			} else {
				s.End = r.Start
			}
		}
		if s.Start < s.End {
			kept = append(kept, s)
		}
	}
	return kept
}
