// Explain: why each decision holds or not.

package classify

import (
	"fmt"
	"strings"
)

// A Reason says what one decision came to.
type Reason struct {
	Decision string
	Taken    bool
	Holds    string  // yes, no; unknown: a signal that it needs could not be computed
	Why      string  // of one that holds and is not taken
	Asked    []Asked // its condition, part by part
}

// Asked is one part of a condition.
type Asked struct {
	Depth int    // of nesting
	What  string // what was asked: `category is math or physics`, `any of`, `not`
	Found string // what the request has: `math 0.93`
	Holds string // yes, no, unknown
}

// Explain judges like Judge, and then asks every decision everything, in the
// order in which they are asked. The verdict is the caller's until Release.
func (c *Classifier) Explain(r *Request) (v *Verdict, reasons []Reason) {
	v = c.verdict()
	j := c.acquire(r, c.patience)
	if j == nil {
		v.cut(ErrBusy)
		return v, nil
	}
	defer func() { c.release(j, recover()) }()
	j.judge(r, v, c.deadline())
	for i := range c.auto {
		reasons = append(reasons, asking{j}.reason(&c.auto[i]))
	}
	return v, reasons
}

func (j asking) reason(r *rule) Reason {
	matched := len(j.v.Matched)
	out := Reason{Decision: r.decision.Name, Taken: j.v.Decision == r.decision}
	holds := j.explain(&r.when, 0, &out.Asked)
	out.Holds = holds.String()
	switch guard := j.v.Blocked(); {
	case holds != yes || out.Taken:
	case !j.r.Auto && !r.decision.Explicit:
		out.Why = "the client named its model, which it does not concern"
	case guard != Passed:
		out.Why = "the request is refused: " + guard.String()
	case j.v.Decision != nil:
		out.Why = "another one comes first"
	}
	j.v.Matched = j.v.Matched[:matched] // those of the verdict, not of asking on
	return out
}

// explain is truth without leaving anything out.
func (j asking) explain(w *condition, depth int, asked *[]Asked) truth {
	t := yes
	for i := range w.asks {
		a := &w.asks[i]
		holds := j.ask(a)
		*asked = append(*asked, Asked{depth, j.whatAsked(a), j.whatFound(a), holds.String()})
		t = min(t, holds)
	}
	for i := range w.all {
		t = min(t, j.explain(&w.all[i], depth, asked))
	}
	if w.not != nil {
		at := j.part("not", depth, asked)
		holds := yes - j.explain(w.not, depth+1, asked)
		(*asked)[at].Holds = holds.String()
		t = min(t, holds)
	}
	if w.any != nil {
		at := j.part("any of", depth, asked)
		some := no
		for i := range w.any {
			if len(w.any[i].asks)+len(w.any[i].all)+len(w.any[i].any) == 1 && w.any[i].not == nil {
				some = max(some, j.explain(&w.any[i], depth+1, asked))
				continue
			}
			at := j.part("all of", depth+1, asked)
			holds := j.explain(&w.any[i], depth+2, asked)
			(*asked)[at].Holds = holds.String()
			some = max(some, holds)
		}
		(*asked)[at].Holds = some.String()
		t = min(t, some)
	}
	return t
}

// part begins a nested part; what it comes to is filled in after.
func (j asking) part(what string, depth int, asked *[]Asked) (at int) {
	*asked = append(*asked, Asked{Depth: depth, What: what})
	return len(*asked) - 1
}

func (j asking) whatAsked(a *ask) string {
	return fmt.Sprintf("%s is %s", j.c.table[a.row].kind, strings.Join(a.values, " or "))
}

func (j asking) whatFound(a *ask) string {
	s := &j.c.table[a.row]
	if !s.made() {
		if err := j.done[a.row].err; err != nil {
			return err.Error()
		}
		return s.found(j.judging)
	}
	var found []string
	for _, i := range a.own {
		at := &j.own[i]
		switch {
		case at.err != nil:
			found = append(found, j.c.own[i].name+": "+at.err.Error())
		case at.done:
			found = append(found, fmt.Sprintf("%s %s", j.c.own[i].name, scored(at.score)))
		}
	}
	return strings.Join(found, ", ")
}

// scored writes a score or a count.
func scored(x float64) string {
	if x == float64(int(x)) {
		return fmt.Sprintf("%d", int(x))
	}
	return fmt.Sprintf("%.2f", x)
}
