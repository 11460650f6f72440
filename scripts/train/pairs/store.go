// Store: the first questions of all public pairs are stored, the second are
// asked: what is found, and what is wrongly answered.

package main

import (
	"fmt"
	"slices"

	"kvasir/classify/model"
	"kvasir/scripts/train/floors"
)

// fromStore asks every question once. One is answerable when the store holds a
// question that is the same, directly or by way of others.
func fromStore(j *judge, results []result) []figure {
	same := make(sets)
	index := make(map[string]int)
	var stored, asked []string
	seen := make(map[string]bool)
	for _, r := range results {
		if _, ok := index[r.a]; !ok {
			index[r.a] = len(stored)
			stored = append(stored, r.a)
		}
		if r.label == 1 {
			same.join(r.a, r.b)
		}
	}
	for _, r := range results {
		if _, equal := index[r.b]; !equal && !seen[r.b] {
			seen[r.b] = true
			asked = append(asked, r.b)
		}
	}
	answerable := make(map[string]bool)
	for _, t := range stored {
		answerable[same.root(t)] = true
	}
	vectors := make([]*vector, len(stored))
	for i, t := range stored {
		vectors[i] = j.known[t]
	}
	answers := make([]answer, len(asked))
	x := newIndex(vectors)
	parallel(len(asked), func() func(int) {
		return func(i int) { answers[i] = j.answer(asked[i], stored, x, same) }
	})
	can := 0
	for _, t := range asked {
		if answerable[same.root(t)] {
			can++
		}
	}
	figures := []figure{
		wrongAtMost("public store: found, by score", answers, 0.02, can),
		wrongAtMost("public store: found, by score", answers, 0.01, can),
	}
	for _, read := range []bool{true, false} {
		name, part, n := "unread half of it", []answer(nil), 0
		if read {
			name = "half that was read"
		}
		for i, t := range asked {
			if wasRead(t) != read {
				continue
			}
			part = append(part, answers[i])
			if answerable[same.root(t)] {
				n++
			}
		}
		figures = append(figures, wrongAtMost("public store, "+name+": found, by score", part, 0.01, n))
	}
	for _, t := range []float64{0.8, 0.9, 0.95} {
		right, wrong := 0, 0
		for _, a := range answers {
			if a.score >= t && a.right {
				right++
			} else if a.score >= t {
				wrong++
			}
		}
		figures = append(figures, floors.Of(fmt.Sprintf("public store: found at %.2f", t), float64(right)/float64(can), can),
			floors.Of(fmt.Sprintf("public store: wrong per query at %.2f", t), float64(wrong)/float64(len(asked)), len(asked)))
	}
	return figures
}

// wasRead says whether a question is of the half whose wrong answers were read to
// find rules. The other half was not looked at since.
func wasRead(text string) bool { return hash(text)/5%2 == 0 }

// An answer is the best that the store has for a question.
type answer struct {
	score float64
	right bool
}

func (j *judge) answer(text string, stored []string, x *index, same sets) answer {
	var best answer
	v := j.known[text]
	for _, i := range x.nearest(v, candidates) {
		similarity := float64(model.Dot(v, x.vectors[i]))
		if similarity < floor {
			continue
		}
		score, why := j.verifier.Compare([]byte(stored[i]), []byte(text), similarity)
		if why == "" && score > best.score {
			best = answer{score, same.find(stored[i]) == same.find(text)}
		}
	}
	return best
}

// wrongAtMost gives the share of the answerable questions that are found where
// the share of wrong answers per question is at most so much.
func wrongAtMost(name string, answers []answer, most float64, answerable int) figure {
	sorted := slices.Clone(answers)
	slices.SortFunc(sorted, func(a, b answer) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	right, wrong, best := 0, 0, 0
	for i, a := range sorted {
		if a.score <= 0 {
			break
		}
		if a.right {
			right++
		} else {
			wrong++
		}
		if (i+1 == len(sorted) || sorted[i+1].score < a.score) && float64(wrong) <= most*float64(len(answers)) {
			best = right
		}
	}
	return floors.Of(fmt.Sprintf("%s, wrong at most %.0f %%", name, 100*most), float64(best)/float64(answerable), answerable)
}

// sets joins texts that are the same question.
type sets map[string]string

// root returns the name of a text's set, and remembers it.
func (s sets) root(t string) string {
	r := s.find(t)
	if r != t {
		s[t] = r
	}
	return r
}

// find returns the name of a text's set.
func (s sets) find(t string) string {
	for {
		up, ok := s[t]
		if !ok || up == t {
			return t
		}
		t = up
	}
}

func (s sets) join(a, b string) {
	if x, y := s.root(a), s.root(b); x != y {
		s[x] = y
	}
}
