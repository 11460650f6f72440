// Candidates: who could take a request, before anybody looks at load or prices.

package kvroute

import (
	"fmt"
	"slices"

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

// DisaggregateNames returns the names of all modes.
func DisaggregateNames() []string { return slices.Clone(disaggregateNames[:]) }

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

// candidates are the workers that could take a request, by their models and roles and
// by what the request itself asks for. How they are at the moment is looked at after:
// those that nothing speaks against now are eligible. With prices each rank of a worker
// becomes a candidate of its own (placer.go).
type candidates struct {
	served   *served
	workers  []*Worker
	prefills []*Worker // that could compute its prompt; empty: nobody does but the worker itself

	must    bool // Decode workers take it with a prefill worker only
	some    bool // some of the workers do (Worker.NeedsPrefill)
	anyRole bool // the request names the prefill worker: a worker of any role answers after it
}

// candidates returns who could take the request.
func (p *Pool) candidates(s *served, q *Query) (candidates, error) {
	c := candidates{served: s, workers: s.workers}
	if len(s.drained) > 0 && (slices.Contains(s.drained, q.Pin.Worker) || slices.Contains(s.drained, q.Pin.Prefill)) {
		return candidates{}, ErrNoWorker
	}
	if q.Pin.Worker != "" || q.Pin.Ranked {
		var err error
		if c.workers, err = pinned(s.workers, q.Model, cost.Whole, q.Pin.Worker, q.Pin.Ranked, q.Pin.Rank); err != nil {
			return candidates{}, err
		}
	}
	c.some = s.decodes && !q.NoPrompt && slices.ContainsFunc(c.workers, (*Worker).NeedsPrefill)
	if q.Aggregate {
		return c.byThemselves()
	}
	if q.Pin.Prefill != "" || q.Pin.PrefillRanked {
		var err error
		c.prefills, err = pinned(s.prefills, q.Model, cost.PrefillLeg, q.Pin.Prefill, q.Pin.PrefillRanked, q.Pin.PrefillRank)
		c.must, c.anyRole = true, true
		return c, err
	}
	if p.options.Disaggregate == Never || !s.decodes {
		return c.byThemselves()
	}
	c.prefills, c.must = s.prefills, p.options.Disaggregate == Always
	return c, nil
}

// byThemselves are the candidates without workers that need a prefill worker.
func (c candidates) byThemselves() (candidates, error) {
	if !c.some {
		return c, nil
	}
	err := c.alone(ErrNoPrefill)
	return c, err
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
func (c *candidates) whole(w *Worker) bool {
	if c.some && w.NeedsPrefill() {
		return false
	}
	return !c.must || w.role == Both && !c.anyRole
}

// answersAfter says whether w may answer after a prefill worker.
func (c *candidates) answersAfter(w *Worker) bool { return w.role == Decode || c.anyRole }

// alone are the candidates without prefill workers, after none of them could be had
// for the reason given: an error where nobody is left.
func (c *candidates) alone(why error) error {
	c.prefills = nil
	if !c.must && !c.some {
		return nil
	}
	c.workers = slices.DeleteFunc(slices.Clone(c.workers), func(w *Worker) bool { return !c.whole(w) })
	if len(c.workers) == 0 {
		return why
	}
	return nil
}

// why says why a worker was picked that nothing spoke against.
func (c *candidates) why(policy string, q *Query) string {
	if q.Pin.Worker != "" {
		return "pinned"
	}
	return policy
}
