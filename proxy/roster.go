// The roster: what operators are shown of the workers, and how they take one out.

package proxy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"kvasir/kvroute"
	"kvasir/openai/answer"
	"kvasir/proxy/roster"
	"kvasir/wording"
)

// A tally is what is counted of one worker for people; metrics have their own.
type tally struct {
	in, out, cached     atomic.Int64 // tokens, as it counted them
	overlap             atomic.Int64 // tokens of prompts, as predicted
	failures, ejections atomic.Int64
}

func (t *tally) note(u answer.Usage) {
	t.in.Add(int64(max(u.Prompt, 0)))
	t.out.Add(int64(max(u.Completion, 0)))
	t.cached.Add(int64(max(u.Cached, 0)))
}

// tallyOverlap counts what the worker that computes the prompt is taken to hold of it.
func (x *exchange) tallyOverlap() {
	computes := x.backend
	if x.at.Prefill != nil {
		computes = x.at.Prefill.Peer.(*backend)
	}
	computes.tally.overlap.Add(int64(x.facts.placed.overlap * x.facts.placed.blockSize))
}

// Roster is every worker as of now, in the order of the configuration.
func (p *Proxy) Roster(now time.Time) []roster.Worker {
	s := p.state.Load()
	all := make([]roster.Worker, len(s.ordered))
	at := make(map[string]int, len(s.ordered))
	for i, b := range s.ordered {
		all[i] = b.seen(now, s.prices())
		at[all[i].Name] = i
	}
	fleet := p.hardware.Fleet(now)
	for g := range fleet.GPUs {
		for _, name := range fleet.GPUs[g].Workers {
			if i, known := at[name]; known {
				all[i].GPUs = append(all[i].GPUs, roster.GPUOf(&fleet.GPUs[g], name))
			}
		}
	}
	return all
}

// seen is what is shown of one worker; prices: what is under way there is followed.
func (b *backend) seen(now time.Time, prices bool) roster.Worker {
	st, engine := b.Status(now), b.Engine()
	w := roster.Worker{
		Name: b.Name(), Role: b.Role().String(), Engine: b.EngineName(), Models: []string{}, Source: b.Source(),
		State: st.State.String(), Why: st.Why, Draining: b.Draining(), TakesRequests: st.State.TakesRequests(), Since: roster.Time{Time: st.Since},
		Requests: b.Active(), Away: b.Away(), Blocks: roster.Blocks{KnownBy: "none"},
		Overlap:   b.tally.overlap.Load(),
		Ejections: b.tally.ejections.Load(), Failures: b.tally.failures.Load(), GPUs: []roster.GPU{},
	}
	if w.Source == "" {
		w.Source = "config"
	}
	if t := (roster.Tokens{In: b.tally.in.Load(), Out: b.tally.out.Load(), Cached: b.tally.cached.Load()}); t != (roster.Tokens{}) || b.Role() != kvroute.Prefill {
		w.Tokens = &t
	}
	models, _ := b.Worker.Worker.Models()
	for _, m := range models {
		w.Models = append(w.Models, m.Name)
	}
	if prices {
		load := b.Load(now)
		waiting := max(load.Requests-load.Decoding, 0)
		w.Waiting, w.Context, w.Backlog = &waiting, &load.Context, &load.Backlog
	}
	if pace, known := b.Pace(); known {
		pace = thousandths(pace)
		w.Pace = &pace
	}
	switch {
	case engine.Events:
		w.Blocks.KnownBy = "events"
		for _, rank := range b.Events() {
			w.Blocks.Held += rank.Held
		}
	case prices:
		if w.Blocks.Held = b.Guessed(); engine.BlockSize > 0 {
			w.Blocks.KnownBy = "guessed"
		}
	}
	w.Blocks.Of = engine.Blocks * max(engine.Ranks, 1)
	if h := b.Hardware(); h.Why != "" {
		w.Slow, w.Aside, w.Hardware = thousandths(h.Slow), h.Aside, h.Why
	}
	return w
}

// busy counts the requests under way, and those of them that wait for a worker.
type busy struct{ inFlight, queued atomic.Int64 }

// Busy is how many requests are under way, and how many of them wait for a worker.
func (p *Proxy) Busy() (inFlight, queued int) {
	return int(p.busy.inFlight.Load()), int(p.busy.queued.Load())
}

// ErrNoSuchWorker says that no worker has a name, and which one may have been meant.
var ErrNoSuchWorker = errors.New("there is no worker")

// mostDrained bounds how many names are remembered as drained.
const mostDrained = 10_000

// DrainWorker takes the worker of that name out of placement, or puts it back, and gives the number
// of requests under way there. A worker of that name stays drained over reloads, and when it leaves
// and comes back. Other Kvasirs hear nothing of it. The error is ErrNoSuchWorker.
func (p *Proxy) DrainWorker(name string, drains bool) (requests int, err error) {
	p.applying.Lock()
	defer p.applying.Unlock()
	s := p.state.Load()
	b := s.byName()[name]
	switch {
	case b == nil && p.drained[name]: // gone, and drained when it comes back, unless that is taken back
		if !drains {
			delete(p.drained, name)
		}
		return 0, nil
	case b == nil:
		hint := wording.DidYouMean(name, slices.Sorted(maps.Keys(s.byName())))
		return 0, fmt.Errorf("%w %s%s", ErrNoSuchWorker, wording.Quote(name), hint)
	}
	if drains {
		p.forgetDrained(s)
		if p.drained == nil {
			p.drained = map[string]bool{}
		}
		p.drained[name] = true
	} else {
		delete(p.drained, name)
	}
	if b.SetDraining(drains) {
		text := "worker is drained until it is undrained or Kvasir is started anew: it gets nothing new, what it has goes on"
		if !drains {
			text = "worker is no longer drained"
		}
		p.log.Info().Str("worker", name).Int("requests", b.Active()).Msg(text)
	}
	return b.Active(), nil
}

// forgetDrained makes room for one more name, should names of workers that are gone fill it.
func (p *Proxy) forgetDrained(s *state) {
	if len(p.drained) < mostDrained {
		return
	}
	is := s.byName()
	maps.DeleteFunc(p.drained, func(name string, _ bool) bool { return is[name] == nil })
}
