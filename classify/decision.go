// Decisions: which one follows from the signals. Signals are asked for as the
// conditions come to them, the cheap ones first.

package classify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A truth is what a condition comes to. A signal that could not be computed is
// neither: not of unknown is unknown, and a decision holds only on yes.
type truth uint8

const (
	no truth = iota
	unknown
	yes
)

func (t truth) String() string { return [...]string{"no", "unknown", "yes"}[t] }

func truly(b bool) truth {
	if b {
		return yes
	}
	return no
}

// A rule is a Decision ready to be asked.
type rule struct {
	decision *Decision
	when     condition
}

// A condition is a Condition whose names are resolved.
type condition struct {
	asks []ask // the cheapest first
	all  []condition
	any  []condition // nil: not asked
	not  *condition
}

// An ask is an Is whose names are resolved.
type ask struct {
	row    int
	values []string
	own    []int // for kinds with names: indices in Classifier.own
}

// compileDecisions makes the rules for requests that left the choice to us and
// for those that named a model, in the order in which they are asked.
func (c *Classifier) compileDecisions(o *Options) error {
	decisions := slices.Clone(o.Decisions)
	for i := range decisions {
		d := &decisions[i]
		if d.Name == "" {
			return fmt.Errorf("cannot use decision %d: it has no name", i+1)
		}
		if slices.ContainsFunc(decisions[:i], func(other Decision) bool { return other.Name == d.Name }) {
			return fmt.Errorf("cannot use decision %q: there is another one of this name", d.Name)
		}
		for _, t := range d.AllowPII {
			if err := oneOf("PII type", t, piiTypes()); err != nil {
				return fmt.Errorf("cannot use decision %q: %w", d.Name, err)
			}
		}
		when, err := c.compileCondition(&d.When, 0)
		if err != nil {
			return fmt.Errorf("cannot use decision %q: %w", d.Name, err)
		}
		c.auto = append(c.auto, rule{d, when})
	}
	if o.Priority {
		slices.SortStableFunc(c.auto, func(a, b rule) int { return cmp.Compare(b.decision.Priority, a.decision.Priority) })
	}
	for _, r := range c.auto {
		if r.decision.Explicit {
			c.explicit = append(c.explicit, r)
		}
	}
	return nil
}

// maxDepth bounds the nesting of conditions.
const maxDepth = 32

func (c *Classifier) compileCondition(w *Condition, depth int) (out condition, err error) {
	if depth == maxDepth {
		return out, fmt.Errorf("its condition is nested more than %d deep", maxDepth)
	}
	for _, is := range w.Is {
		a, err := c.compileIs(is)
		if err != nil {
			return out, err
		}
		out.asks = append(out.asks, a)
	}
	slices.SortStableFunc(out.asks, func(a, b ask) int { return cmp.Compare(c.table[a.row].cost, c.table[b.row].cost) })
	if out.all, err = c.compileList(w.All, depth); err != nil {
		return out, err
	}
	if out.any, err = c.compileList(w.Any, depth); err != nil {
		return out, err
	}
	if w.Not != nil {
		not, err := c.compileCondition(w.Not, depth+1)
		if err != nil {
			return out, err
		}
		out.not = &not
	}
	return out, nil
}

func (c *Classifier) compileList(list []Condition, depth int) (out []condition, err error) {
	for i := range list {
		one, err := c.compileCondition(&list[i], depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (c *Classifier) compileIs(is Is) (ask, error) {
	row := c.row(is.Kind)
	if row < 0 || c.table[row].is == nil && !c.table[row].made() {
		return ask{}, oneOf("kind of signal", string(is.Kind), kindNames())
	}
	if len(is.Values) == 0 {
		return ask{}, fmt.Errorf("its condition on %s names no value", is.Kind)
	}
	a := ask{row: row, values: is.Values}
	s := &c.table[row]
	for _, value := range is.Values {
		if !s.made() {
			if s.values != nil {
				if err := oneOf(string(is.Kind), value, s.values()); err != nil {
					return ask{}, err
				}
			}
			continue
		}
		i := slices.IndexFunc(c.own, func(o own) bool { return o.row == row && o.name == value })
		if i < 0 {
			return ask{}, oneOf(string(is.Kind)+" signal", value, c.namesOf(row))
		}
		a.own = append(a.own, i)
	}
	return a, nil
}

func (c *Classifier) namesOf(row int) (names []string) {
	for _, o := range c.own {
		if o.row == row {
			names = append(names, o.name)
		}
	}
	return names
}

func kindNames() (names []string) {
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return names
}

// oneOf is the error for a value that is not among those known; nil if it is.
func oneOf(what, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	if len(known) == 0 {
		return fmt.Errorf("there is no %s %q, there is none at all", what, value)
	}
	return &UnknownError{What: what, Value: value, Known: known}
}

// An UnknownError is a name in the options that nothing has. Known are those
// that would do, for a caller that can say which was meant.
type UnknownError struct {
	What  string
	Value string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no %s %q; known: %s", e.What, e.Value, strings.Join(e.Known, ", "))
}

// asking is a judging that asks decisions.
type asking struct{ *judging }

// decide asks the decisions in order and keeps the first that holds.
func (j asking) decide() {
	for i := range j.rules() {
		r := &j.rules()[i]
		if j.truth(&r.when) == yes {
			j.v.Decision = r.decision
			return
		}
	}
}

func (j asking) rules() []rule {
	if j.r.Auto {
		return j.c.auto
	}
	return j.c.explicit
}

// truth is what a condition comes to. What cannot change it is not asked.
func (j asking) truth(w *condition) truth {
	t := yes
	for i := range w.asks {
		if t = min(t, j.ask(&w.asks[i])); t == no {
			return no
		}
	}
	for i := range w.all {
		if t = min(t, j.truth(&w.all[i])); t == no {
			return no
		}
	}
	if w.not != nil {
		if t = min(t, yes-j.truth(w.not)); t == no {
			return no
		}
	}
	if w.any == nil {
		return t
	}
	some := no
	for i := range w.any {
		if some = max(some, j.truth(&w.any[i])); some == yes {
			break
		}
	}
	return min(t, some)
}

// ask is whether a signal has one of the values asked for.
func (j asking) ask(a *ask) truth {
	s := &j.c.table[a.row]
	if !s.made() {
		if j.findRow(a.row) != nil {
			return unknown
		}
		for _, value := range a.values {
			if score, ok := s.is(j.judging, value); ok {
				j.match(s.kind, value, score)
				return yes
			}
		}
		return no
	}
	some := no
	for _, i := range a.own {
		if some = max(some, j.askOwn(i)); some == yes {
			return yes
		}
	}
	return some
}

// match notes a value that a decision asked for and that holds, once.
func (j asking) match(kind Kind, name string, score float64) {
	for _, m := range j.v.Matched {
		if m.Kind == kind && m.Name == name {
			return
		}
	}
	j.v.Matched = append(j.v.Matched, Match{kind, name, score})
}
