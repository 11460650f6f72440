// Sight: what the monitor has seen so far, and what that is worth at a moment.

package gpu

import (
	"fmt"
	"slices"
	"time"

	"kvasir/gpu/snapshot"
)

// staleAfter is how many intervals a snapshot is good for.
const staleAfter = 4

// A sight is never changed: each line of the helper makes a new one.
type sight struct {
	state  State // Stale: no hello yet; Lost: the driver or the helper is gone
	why    string
	driver string
	gpus   []*seen   // by index
	since  time.Time // of the last hello
}

// seen is the last of one GPU, never changed.
type seen struct {
	snapshot.GPU
	at      time.Time // zero: there was no snapshot yet
	trouble string    // why polls have failed since; empty: they have not
	lost    bool      // the driver has given up the GPU
}

// hello is the sight after the driver was found, for the first time or again.
// What was known of a GPU stays until it is polled anew.
func (s *sight) hello(h *snapshot.Hello, now time.Time) *sight {
	gpus := make([]*seen, h.GPUs)
	for i := copy(gpus, s.gpus); i < len(gpus); i++ {
		gpus[i] = &seen{GPU: snapshot.GPU{Index: i}}
	}
	return &sight{state: OK, driver: h.Driver, gpus: gpus, since: now}
}

// polled is the sight after a snapshot of a GPU that hello counted.
func (s *sight) polled(g *snapshot.GPU, now time.Time) *sight {
	return s.with(g.Index, &seen{GPU: *g, at: now})
}

// failed is the sight after a poll of one GPU, or of the driver, failed.
func (s *sight) failed(t *snapshot.Trouble) *sight {
	why := explain(t)
	if t.GPU < 0 {
		return s.gone(why)
	}
	g := *s.gpus[t.GPU]
	g.trouble, g.lost = why, !noVerdict[t.Code]
	return s.with(t.GPU, &g)
}

// gone is the sight after nobody answers any more.
func (s *sight) gone(why string) *sight {
	return &sight{state: Lost, why: why, driver: s.driver, gpus: s.gpus}
}

func (s *sight) with(index int, g *seen) *sight {
	next := *s
	next.gpus = slices.Clone(s.gpus)
	next.gpus[index] = g
	return &next
}

// fleet is the sight as of now, where a snapshot is good for that long.
func (s *sight) fleet(now time.Time, good time.Duration) *Fleet {
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

// stateOf is the state of one GPU and why it is not ok.
func (s *sight) stateOf(g *seen, now time.Time, good time.Duration) (State, string) {
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
