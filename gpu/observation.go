// Observation: what the monitor knows so far, and how much of it is still valid at a given time.

package gpu

import (
	"fmt"
	"slices"
	"time"

	"kvasir/gpu/snapshot"
)

// staleAfter is how many intervals a snapshot stays valid.
const staleAfter = 4

// An observation is everything that the helper has reported so far. It never changes: each line
// makes a new one.
type observation struct {
	state  State // Stale: no hello yet; Lost: the driver or the helper is gone
	why    string
	driver string
	gpus   []*seen   // by index
	since  time.Time // time of the last hello
}

// seen is the last report on one GPU; it never changes.
type seen struct {
	snapshot.GPU
	at      time.Time // time of the snapshot; zero: none yet
	trouble string    // why polls have failed since then; empty: they have not
	lost    bool      // the driver has given up the GPU
}

// hello returns the observation after the driver was found, for the first time or again. The last
// snapshot of a GPU stays until its next poll.
func (s *observation) hello(h *snapshot.Hello, now time.Time) *observation {
	gpus := make([]*seen, h.GPUs)
	for i := copy(gpus, s.gpus); i < len(gpus); i++ {
		gpus[i] = &seen{GPU: snapshot.GPU{Index: i}}
	}
	return &observation{state: OK, driver: h.Driver, gpus: gpus, since: now}
}

// polled returns the observation after a snapshot of a GPU that hello counted.
func (s *observation) polled(g *snapshot.GPU, now time.Time) *observation {
	return s.with(g.Index, &seen{GPU: *g, at: now})
}

// failed returns the observation after a failed poll of one GPU or of the driver.
func (s *observation) failed(t *snapshot.Trouble) *observation {
	why := explain(t)
	if t.GPU < 0 {
		return s.gone(why)
	}
	g := *s.gpus[t.GPU]
	g.trouble, g.lost = why, !noVerdict[t.Code]
	return s.with(t.GPU, &g)
}

// gone returns the observation after the helper or the driver has stopped answering.
func (s *observation) gone(why string) *observation {
	return &observation{state: Lost, why: why, driver: s.driver, gpus: s.gpus}
}

func (s *observation) with(index int, g *seen) *observation {
	next := *s
	next.gpus = slices.Clone(s.gpus)
	next.gpus[index] = g
	return &next
}

// fleet returns the part of the observation that is valid now, if a snapshot is valid for good.
func (s *observation) fleet(now time.Time, good time.Duration) *Fleet {
	f := &Fleet{State: s.state, Why: s.why, Driver: s.driver, GPUs: make([]GPU, len(s.gpus))}
	answering, stale := 0, 0
	for i, g := range s.gpus {
		f.GPUs[i] = GPU{GPU: g.GPU, Workers: []string{}, At: g.at, Asked: !g.at.IsZero() || g.trouble != ""}
		if !g.at.IsZero() {
			f.GPUs[i].Age = max(0, now.Sub(g.at)).Milliseconds()
		}
		f.GPUs[i].State, f.GPUs[i].Why = s.stateOf(g, now, good)
		switch f.GPUs[i].State {
		case OK:
			answering++
		case Stale:
			stale++
		}
	}
	switch {
	case s.state != OK || answering > 0:
	case len(s.gpus) == 0:
		f.Why = "the driver runs, but it shows no GPU; is one given to this container or machine?"
	default:
		f.State = Lost
		if stale > 0 {
			f.State = Stale
		}
		f.Why = "no GPU answers; "
		for i := range f.GPUs {
			if f.GPUs[i].State == f.State {
				f.Why += fmt.Sprintf("GPU %d: %s", i, f.GPUs[i].Why)
				break
			}
		}
	}
	return f
}

// stateOf returns the state of one GPU, and why it is not ok.
func (s *observation) stateOf(g *seen, now time.Time, good time.Duration) (State, string) {
	switch {
	case g.lost:
		return Lost, g.trouble
	case s.state != OK:
		return Stale, s.why
	case !g.at.IsZero() && now.Sub(g.at) <= good:
		return OK, ""
	case g.trouble != "":
		return Stale, g.trouble
	case g.at.IsZero():
		return Stale, "there is no snapshot yet"
	}
	return Stale, fmt.Sprintf("the driver has not answered for %v; if that lasts, look for NVRM and Xid in dmesg", good)
}
