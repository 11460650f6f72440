// The walk: a trace from its beginning to its end, planned window by window by what came before, and played with the
// fleet that follows.

package planner

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvasir/kvroute/replay"
)

// A Step is one piece of advice of a walk.
type Step struct {
	At       time.Duration // since the trace began
	Arrivals int           // requests that came in the interval before
	Measured Measured      // of those that were done in it
	Fleet    replay.Fleet  // workers there were, those included that were starting
	Advice   *Advice
	Kept     replay.Kept // how the requests did that came until the next step
}

// A Walk is what came of it. What counts begins with the first step: what was before it is the past that the first
// advice is given by, on a fleet of the size that it needed.
type Walk struct {
	Steps   []Step
	First   replay.Fleet  // that it begins with
	Begin   time.Duration // when what counts begins
	From    int           // first request that counts
	Kept    replay.Kept   // of those
	Spent   time.Duration // by all workers together since Begin
	Mean    float64       // workers, over the time
	Changes int           // how often the fleet changed
	Trace   *replay.Trace // what was played: times of arrival in its own time
}

// Times returns a trace whose requests arrive speed times as fast, the first one at 0.
func Times(t *replay.Trace, speed float64) *replay.Trace {
	scaled := *t
	scaled.Requests = slices.Clone(t.Requests)
	for i := range scaled.Requests {
		r := &scaled.Requests[i]
		r.Arrival = time.Duration(math.Round(float64(r.Arrival-t.Requests[0].Arrival) / speed))
	}
	return &scaled
}

// ErrShort is wrapped by Walk's error for a trace that ends before there is anything to plan by.
var ErrShort = fmt.Errorf("the trace is too short to be planned by its past")

// mostSteps bounds the plans of a walk: of a trace with a gap of years there would be millions.
const mostSteps = 100_000

// Play walks through a trace whose first request arrives at 0. progress, if not nil, is told how many requests are done.
func (o Options) Play(t *replay.Trace, progress func(done int)) (*Walk, error) {
	o = o.WithDefaults()
	r := t.Requests
	if last := r[len(r)-1].Arrival; last < o.Window+o.Interval {
		return nil, fmt.Errorf("%w: it lasts %v, a window and an interval are %v: give a shorter --window", ErrShort,
			last.Round(time.Second), o.Window+o.Interval)
	}
	if last := r[len(r)-1].Arrival; (last-o.Window)/o.Interval >= mostSteps {
		return nil, fmt.Errorf("cannot plan every %v of %v: more than %d plans; give a longer --interval, or cut gaps out of the trace", o.Interval,
			last.Round(time.Second), mostSteps)
	}
	w := &walker{options: o, planner: New(o), Walk: Walk{Trace: t, Begin: o.Window}}
	w.From = search(len(r), func(i int) bool { return r[i].Arrival >= o.Window })
	if err := w.first(); err != nil {
		return nil, err
	}
	e := o.Engine
	e.Workers, e.Prefill, e.Decode = w.First.Workers, w.First.Prefill, w.First.Decode
	e.Progress = progress
	e.Finished = func(int, replay.RequestResult) error { return w.err }
	e.Scaling = &replay.Scaling{First: o.Window, Start: o.Start, Most: o.fleet(o.Max, o.Max).Total(), Want: w.want}
	result, err := replay.Run(t, e)
	if err != nil {
		return nil, err
	}
	w.finish(result)
	return &w.Walk, nil
}

// Average is the fleet of the mean size over the time, each role rounded.
func (w *Walk) Average(round func(float64) float64) replay.Fleet {
	var sum replay.Fleet
	for _, s := range w.Steps {
		f := s.Advice.Want
		sum.Workers, sum.Prefill, sum.Decode = sum.Workers+f.Workers, sum.Prefill+f.Prefill, sum.Decode+f.Decode
	}
	// The share of a role is that of what was wanted; the size is that of what was there, which drains a while longer.
	mean := func(n int) int {
		return int(round(w.Mean * float64(n) / float64(max(sum.Total(), 1))))
	}
	return replay.Fleet{Workers: mean(sum.Workers), Prefill: mean(sum.Prefill), Decode: mean(sum.Decode)}
}

type walker struct {
	Walk
	options Options
	planner *Planner
	fleet   replay.Fleet
	under   time.Duration // until when a change is under way
	err     error
}

// first finds the fleet that the walk begins with: what its first window needs. Nothing that counts is planned by it.
func (w *walker) first() error {
	o := &w.options
	t := *w.Trace
	t.Requests = t.Requests[:w.From]
	w.fleet = o.clamp(replay.Fleet{})
	if len(t.Requests) > 0 {
		s := sample{trace: &t, rate: float64(len(t.Requests)) / o.Window.Seconds()}
		needed := o.formula(&t, s.rate, w.fleet, Measured{}).Fleet
		if o.By == ByReplay {
			a, err := o.search(s, s.rate, needed, replay.Fleet{})
			if err != nil {
				return err
			}
			needed = a.Fleet
		}
		w.fleet = needed
	}
	w.First = w.fleet
	return nil
}

// want is asked while the trace plays.
func (w *walker) want(now time.Duration, seen []replay.RequestResult) (replay.Fleet, time.Duration) {
	o := &w.options
	l, arrivals := w.load(now, seen)
	advice, err := w.planner.Advise(l, w.fleet, now < w.under)
	if err != nil {
		w.err = fmt.Errorf("cannot plan at %v: %w", now, err)
		return w.fleet, now
	}
	w.Steps = append(w.Steps, Step{At: now, Arrivals: arrivals, Measured: l.Measured, Fleet: w.fleet, Advice: advice})
	if advice.Want != w.fleet {
		if more(advice.Want, w.fleet) {
			w.under = now + o.Start
		}
		w.fleet = advice.Want
		w.Changes++
	}
	return w.fleet, now + o.Interval
}

// load is what is known of the requests at now: nothing of what is not done but that it came.
func (w *walker) load(now time.Duration, seen []replay.RequestResult) (*Load, int) {
	o := &w.options
	r := w.Trace.Requests
	low := search(len(r), func(i int) bool { return r[i].Arrival >= now-Back*o.Window })
	high := search(len(r), func(i int) bool { return r[i].Arrival >= now })
	done := *w.Trace
	done.Requests = make([]replay.Request, 0, high-low)
	var came, took []time.Duration
	var results []Outcome
	arrivals := 0
	for i := low; i < high; i++ {
		if r[i].Arrival >= now-o.Window {
			came = append(came, r[i].Arrival)
		}
		if r[i].Arrival >= now-o.Interval {
			arrivals++
		}
		q := seen[i]
		if q.E2E == 0 || r[i].Arrival+q.E2E > now {
			continue
		}
		done.Requests = append(done.Requests, r[i])
		if r[i].Arrival >= now-o.Window {
			took = append(took, q.E2E)
		}
		if r[i].Arrival+q.E2E > now-o.Interval {
			results = append(results, Outcome{TTFT: q.TTFT, E2E: q.E2E, Answer: r[i].AnswerTokens})
		}
	}
	return &Load{
		Now: now, Since: max(now-o.Window, 0), Arrivals: buckets(came, max(now-o.Window, 0), now), Done: &done,
		Settled: now - settles(took), Measured: measured(results, o.Targets),
	}, arrivals
}

// settles is how long most requests take: of those that came before, nearly all are done.
func settles(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*9/10]
}

// An Outcome is what was measured of a request that is done.
type Outcome struct {
	TTFT, E2E time.Duration
	Answer    int // tokens
}

func measured(outcomes []Outcome, targets replay.Targets) Measured {
	var m Measured
	var ttft, itl time.Duration
	kept, answers := 0, 0
	for _, q := range outcomes {
		between := time.Duration(0)
		if q.Answer > 1 {
			between = (q.E2E - q.TTFT) / time.Duration(q.Answer-1)
			itl += between
			answers++
		}
		ttft += q.TTFT
		if q.TTFT <= targets.TTFT && between <= targets.ITL {
			kept++
		}
	}
	if m.Requests = len(outcomes); m.Requests == 0 {
		return m
	}
	m.TTFT, m.Share = ttft/time.Duration(m.Requests), float64(kept)/float64(m.Requests)
	if answers > 0 {
		m.ITL = itl / time.Duration(answers)
	}
	m.TTFTms, m.ITLms = float64(m.TTFT)/float64(time.Millisecond), float64(m.ITL)/float64(time.Millisecond)
	return m
}

// finish sums up how it went.
func (w *walker) finish(result *replay.Result) {
	o := &w.options
	r := w.Trace.Requests
	for i := range w.Steps {
		from := search(len(r), func(k int) bool { return r[k].Arrival >= w.Steps[i].At })
		to := len(r)
		if i+1 < len(w.Steps) {
			to = search(len(r), func(k int) bool { return r[k].Arrival >= w.Steps[i+1].At })
		}
		w.Steps[i].Kept = w.Trace.Kept(result.Each, from, to, o.Targets, o.Share)
	}
	w.Kept = w.Trace.Kept(result.Each, w.From, len(r), o.Targets, o.Share)
	w.Spent = result.Spent - time.Duration(w.First.Total())*w.Begin
	w.Mean = w.Spent.Seconds() / (result.Duration - w.Begin).Seconds()
}

// Fixed plays the trace of a walk against a fleet that does not change, and says how the requests did that count, and
// what the workers spent since Begin.
func (w *Walk) Fixed(o Options, fleet replay.Fleet, progress func(done int)) (replay.Kept, time.Duration, error) {
	o = o.WithDefaults()
	e := o.Engine
	e.Workers, e.Prefill, e.Decode, e.Progress = fleet.Workers, fleet.Prefill, fleet.Decode, progress
	result, err := replay.Run(w.Trace, e)
	if err != nil {
		return replay.Kept{}, 0, err
	}
	return w.Trace.Kept(result.Each, w.From, len(w.Trace.Requests), o.Targets, o.Share),
		result.Spent - time.Duration(fleet.Total())*w.Begin, nil
}

// Whole is the smallest fleet that keeps the targets over a whole trace without a change, from its first request to its
// last. progress, if not nil, is told of each request that is played.
func (o Options) Whole(t *replay.Trace, progress func()) (*Answer, Formula, error) {
	o = o.WithDefaults()
	s := sample{trace: t}
	rate := 0.0
	if span := t.Requests[len(t.Requests)-1].Arrival - t.Requests[0].Arrival; span > 0 {
		rate = float64(len(t.Requests)) / span.Seconds()
	}
	if progress != nil {
		o.Stop = func() bool { progress(); return false }
	}
	f := o.formula(t, rate, replay.Fleet{}, Measured{})
	a, err := o.search(s, rate, f.Fleet, replay.Fleet{})
	return a, f, err
}
