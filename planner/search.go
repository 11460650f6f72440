// The search: the smallest fleet that keeps the targets when the requests of the window are played against it.

package planner

import (
	"errors"
	"fmt"
	"time"

	"kvasir/kvroute/replay"
)

// An Answer is what the replay says.
type Answer struct {
	Fleet     replay.Fleet
	Kept      replay.Kept // predicted for that fleet
	Goal      float64     // share of the requests that was to keep both targets
	Reachable float64     // share of them that an idle worker would have answered in time
	Enough    bool        // Fleet keeps the goal; false: the most that may be do not
	Useless   bool        // not Enough, and more workers than Fleet would change nothing: Fleet are those that there are
	Played    int         // fleets that were played
}

// warmUp is the part of a sample that is played for the caches and what is under way, and not counted.
const warmUp = 0.25

// A sample is what is played: requests of the window, and how fast they came.
type sample struct {
	trace *replay.Trace
	rate  float64 // requests a second
	from  int     // the first one that counts
}

// fewRequests is how many a sample should have at least: what a share of fewer of them is says little. Where the
// window has less it is made longer, up to Back windows: how long prompts are changes slower than how many come.
const (
	fewRequests = 1500
	Back        = 3
)

// sample cuts the requests of the window out of a load, the last ones where there are more than most.
func (l *Load) sample(window time.Duration, most int) sample {
	r := l.Done.Requests
	after := func(at time.Duration) int { return search(len(r), func(i int) bool { return r[i].Arrival >= at }) }
	high := after(min(l.Settled, l.Now))
	low := min(after(l.Now-window), max(high-fewRequests, after(l.Now-Back*window)))
	t := *l.Done
	t.Requests = r[max(min(low, high), high-most):high]
	s := sample{trace: &t}
	if n := len(t.Requests); n > 1 {
		if span := t.Requests[n-1].Arrival - t.Requests[0].Arrival; span > 0 {
			s.rate = float64(n-1) / span.Seconds()
			counted := t.Requests[0].Arrival + time.Duration(warmUp*float64(span))
			s.from = search(n, func(i int) bool { return t.Requests[i].Arrival >= counted })
		}
	}
	return s
}

// search is the first of n for which is holds, of an order in which it holds from some one on.
func search(n int, is func(int) bool) int {
	low, high := 0, n
	for low < high {
		if i := (low + high) / 2; is(i) {
			high = i
		} else {
			low = i + 1
		}
	}
	return low
}

// mostSpeed bounds how much faster than they came requests are played.
const mostSpeed = 1000

// play plays a sample at a rate against a fleet.
func (o *Options) play(s sample, rate float64, fleet replay.Fleet) (replay.Kept, error) {
	e := o.Engine
	e.Workers, e.Prefill, e.Decode, e.Speed = fleet.Workers, fleet.Prefill, fleet.Decode, 1
	if s.rate > 0 {
		e.Speed = min(max(rate/s.rate, 1e-3), mostSpeed)
	}
	if o.Stop != nil {
		e.Finished = func(int, replay.RequestResult) error {
			if o.Stop() {
				return ErrStopped
			}
			return nil
		}
	}
	r, err := replay.Run(s.trace, e)
	if err != nil {
		return replay.Kept{}, err
	}
	return s.trace.Kept(r.Each, s.from, len(r.Each), o.Targets, o.Share), nil
}

// worthwhile is by how much more of the requests the most workers must keep the targets than those that there are, where
// neither keep the goal: for less they are not wanted.
const worthwhile = 0.01

// search finds the smallest fleet that keeps the targets, from guess on. there are the workers that there are: where no
// fleet keeps the targets, and more do no better, they are the answer.
func (o *Options) search(s sample, rate float64, guess, there replay.Fleet) (*Answer, error) {
	a := &Answer{Reachable: o.reachable(s)}
	a.Goal = goal(o.Share, a.Reachable)
	first, decode := o.counts(guess)
	b := bounds{o.Min, o.Max}
	var at place
	var err error
	try := &trials{goal: a.Goal, play: func(p place) (replay.Kept, error) { return o.play(s, rate, o.fleet(p.first, p.decode)) }}
	var stay place
	stay.first, stay.decode = o.counts(o.clamp(there))
	switch {
	case a.Reachable == 0: // every fleet keeps a goal of nothing, which says nothing
		at, a.Useless = stay, true
		try.holds(at)
		err = try.err
	case o.Apart:
		at, err = try.apart(b, place{first, decode})
	default:
		at, err = try.alone(b, first)
	}
	if err != nil && (at == place{} || !errors.Is(err, ErrStopped)) {
		return nil, fmt.Errorf("cannot play the last requests: %w", err)
	}
	a.Enough = !a.Useless && try.known[at].Share >= a.Goal
	if err == nil && !a.Enough && at != stay {
		try.holds(stay)
		if err = try.err; err == nil && try.known[at].Share < try.known[stay].Share+worthwhile {
			at, a.Useless = stay, true
		}
	}
	if err != nil && !errors.Is(err, ErrStopped) {
		return nil, fmt.Errorf("cannot play the last requests: %w", err)
	}
	a.Played = len(try.known)
	a.Fleet, a.Kept = o.fleet(at.first, at.decode), try.known[at]
	return a, err
}

// goal is the share that a fleet is to keep, of the requests, where so many could be kept by any fleet at all. A target
// that some prompts exceed by themselves asks for no more workers than it would of the others: where the fleet is left
// less than half of what may miss it, share is taken of those that can be kept.
func goal(share, reachable float64) float64 {
	if 1-reachable <= (1-share)/2 {
		return share
	}
	return share * reachable
}

// reachable is the share of the requests that count whose prompts an idle worker computes in time, with all of them in
// its cache that came before, and whose answers it then makes in time with nothing beside them.
func (o *Options) reachable(s sample) float64 {
	all, kept := 0, 0
	extra := time.Duration(0)
	if o.Apart {
		extra = o.decodeTime(0) // the token that the decode worker makes first
	}
	s.trace.Cached(o.Engine.BlockSize, func(i, cached int) {
		if i < s.from {
			return
		}
		all++
		r := &s.trace.Requests[i]
		least := o.prefillTime(r.PromptTokens-cached) + extra
		if o.Apart && o.Engine.Bandwidth > 0 {
			least += time.Duration(float64(r.PromptTokens) * float64(o.Engine.BytesPerToken) / o.Engine.Bandwidth)
		}
		// A target between tokens that one pass alone exceeds is kept by answers of one token.
		alone := o.decodeTime(float64(r.PromptTokens) + float64(r.AnswerTokens)/2)
		if least <= o.Targets.TTFT && (r.AnswerTokens < 2 || alone <= o.Targets.ITL) {
			kept++
		}
	})
	if all == 0 {
		return 1
	}
	return float64(kept) / float64(all)
}

// A place is a fleet as the search sees it.
type place struct{ first, decode int }

type bounds struct{ least, most int }

// trials are the fleets that were played.
type trials struct {
	goal  float64
	play  func(place) (replay.Kept, error)
	known map[place]replay.Kept
	err   error
}

// holds plays a fleet, once, and says whether it keeps the goal.
func (t *trials) holds(p place) bool {
	if k, ok := t.known[p]; ok {
		return k.Share >= t.goal
	}
	if t.err != nil {
		return false
	}
	k, err := t.play(p)
	if err != nil {
		t.err = err
		return false
	}
	if t.known == nil {
		t.known = map[place]replay.Kept{}
	}
	t.known[p] = k
	return k.Share >= t.goal
}

// least finds the smallest number between bounds for which holds, beginning at guess and in steps that double; the
// largest one where none does. More workers are taken to be no worse.
func least(b bounds, guess int, holds func(int) bool) int {
	guess = min(max(guess, b.least), b.most)
	low, high := b.least-1, b.most+1 // low does not hold, high does
	if holds(guess) {
		high = guess
		for step := 1; high > b.least; step *= 2 {
			n := max(high-step, b.least)
			if !holds(n) {
				low = n
				break
			}
			high = n
		}
	} else {
		low = guess
		for step := 1; low < b.most; step *= 2 {
			n := min(low+step, b.most)
			if holds(n) {
				high = n
				break
			}
			low = n
		}
	}
	for high-low > 1 {
		if n := (low + high) / 2; holds(n) {
			high = n
		} else {
			low = n
		}
	}
	return min(high, b.most)
}

// alone finds the number of workers that do both.
func (t *trials) alone(b bounds, guess int) (place, error) {
	n := least(b, guess, func(n int) bool { return t.holds(place{first: n}) })
	return t.best(place{first: n})
}

// best is the answer p, or after an error the smallest fleet that is known to hold, if there is one.
func (t *trials) best(p place) (place, error) {
	if t.err == nil {
		return p, nil
	}
	found := place{}
	for q, k := range t.known {
		if k.Share >= t.goal && (found == place{} || q.first+q.decode < found.first+found.decode) {
			found = q
		}
	}
	return found, t.err
}

// apart finds how many for prefill and decode hold with the fewest together: up from guess, by the role whose target
// more requests miss, until it holds; then down, by one role at a time, and by exchanging two of one for one of the
// other, until nothing smaller beside it holds.
func (t *trials) apart(b bounds, at place) (place, error) {
	at = place{min(max(at.first, b.least), b.most), min(max(at.decode, b.least), b.most)}
	for step := 1; !t.holds(at) && t.err == nil; step *= 2 {
		if at == (place{b.most, b.most}) {
			return at, nil
		}
		k := t.known[at]
		prefill := at.first < b.most && (k.KeptTTFT <= k.KeptITL || at.decode == b.most)
		if prefill {
			at.first = min(at.first+step, b.most)
		} else {
			at.decode = min(at.decode+step, b.most)
		}
	}
	for t.err == nil {
		before := at
		at.first = least(bounds{b.least, at.first}, at.first, func(n int) bool { return t.holds(place{n, at.decode}) })
		at.decode = least(bounds{b.least, at.decode}, at.decode, func(n int) bool { return t.holds(place{at.first, n}) })
		for _, next := range []place{{at.first - 2, at.decode + 1}, {at.first + 1, at.decode - 2}} {
			if at == before && min(next.first, next.decode) >= b.least && max(next.first, next.decode) <= b.most && t.holds(next) {
				at = next
			}
		}
		if at == before {
			break
		}
	}
	return t.best(at)
}
