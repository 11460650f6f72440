// Field: who could take a request, before anybody looks at load or prices.

package kvroute

import (
	"fmt"
	"slices"
	"time"

	"kvasir/kvroute/cost"
)

// Disaggregate says when a prefill worker computes a prompt for a worker of role
// Decode. A worker of role Both never needs one.
type Disaggregate uint8

// The modes.
const (
	Auto   Disaggregate = iota // when it pays; never without a prefill worker that is up
	Always                     // ErrNoPrefill without one
	Never                      // decode workers prefill themselves
)

var disaggregateNames = [...]string{Auto: "auto", Always: "always", Never: "never"}

func (d Disaggregate) String() string { return disaggregateNames[d] }

// ParseDisaggregate reads auto, always or never; empty means auto.
func ParseDisaggregate(s string) (Disaggregate, error) {
	if s == "" {
		return Auto, nil
	}
	for d, name := range disaggregateNames {
		if s == name {
			return Disaggregate(d), nil
		}
	}
	return Auto, fmt.Errorf("cannot read disaggregate %q: want auto, always or never", s)
}

// A field is who could take a request: by model, by role, by what the request
// asks for itself.
type field struct {
	served   *served
	workers  []*Worker
	prefills []*Worker // that could compute its prompt; empty: nobody does but the worker itself

	must   bool // Decode workers take it with a prefill worker only
	some   bool // some of the workers do, being Helped
	helpAt bool // the prefill worker is named, and helps a worker of any role
}

// field returns who could take the request.
func (p *Pool) field(s *served, q *Query) (field, error) {
	f := field{served: s, workers: s.workers}
	if q.Pin.Worker != "" || q.Pin.Ranked {
		var err error
		if f.workers, err = pinned(s.workers, q.Model, cost.Whole, q.Pin.Worker, q.Pin.Ranked, q.Pin.Rank); err != nil {
			return field{}, err
		}
	}
	f.some = s.decodes && !q.NoPrompt && slices.ContainsFunc(f.workers, (*Worker).Helped)
	if q.Aggregate {
		return f.byThemselves()
	}
	if q.Pin.Prefill != "" || q.Pin.PrefillRanked {
		var err error
		f.prefills, err = pinned(s.prefills, q.Model, cost.PrefillLeg, q.Pin.Prefill, q.Pin.PrefillRanked, q.Pin.PrefillRank)
		f.must, f.helpAt = true, true
		return f, err
	}
	if p.disaggregate == Never || !s.decodes {
		return f.byThemselves()
	}
	f.prefills, f.must = s.prefills, p.disaggregate == Always
	return f, nil
}

// byThemselves is the field without workers that are Helped.
func (f field) byThemselves() (field, error) {
	if !f.some {
		return f, nil
	}
	err := f.alone(ErrNoPrefill)
	return f, err
}

// pinned returns those of the workers that the request names.
func pinned(workers []*Worker, model string, leg cost.Leg, name string, ranked bool, rank int) ([]*Worker, error) {
	e := &PinError{Leg: leg, Worker: name, Rank: -1, Model: model}
	var found []*Worker
	for _, w := range workers {
		e.Known = append(e.Known, w.name)
		if name == "" || w.name == name {
			found = append(found, w)
		}
	}
	if len(found) == 0 {
		return nil, e
	}
	if !ranked {
		return found, nil
	}
	e.Rank, e.Ranks = rank, found[0].Engine().Ranks
	found = slices.DeleteFunc(found, func(w *Worker) bool {
		ranks := w.Engine().Ranks
		return rank < 0 || ranks > 0 && rank >= ranks
	})
	if len(found) == 0 {
		return nil, e
	}
	return found, nil
}

// whole says whether w may take prompt and answer.
func (f *field) whole(w *Worker) bool {
	if f.some && w.Helped() {
		return false
	}
	return !f.must || w.role == Both && !f.helpAt
}

// helped says whether w may answer after a prefill worker.
func (f *field) helped(w *Worker) bool { return w.role == Decode || f.helpAt }

// alone is the field without prefill workers, after none of them could be had
// for the reason given: an error where nobody is left.
func (f *field) alone(why error) error {
	f.prefills = nil
	if !f.must && !f.some {
		return nil
	}
	f.workers = slices.DeleteFunc(slices.Clone(f.workers), func(w *Worker) bool { return !f.whole(w) })
	if len(f.workers) == 0 {
		return why
	}
	return nil
}

// why says why a worker was chosen that nothing spoke against.
func (f *field) why(policy string, q *Query) string {
	if q.Pin.Worker != "" {
		return "pinned"
	}
	return policy
}

// open says whether w is one that nothing speaks against.
func open(w *Worker, tried []*Worker, now time.Time) bool {
	return w.free() && w.usable(now) && (len(tried) == 0 || !slices.Contains(tried, w))
}
