// Planning: from the load of the last minutes to the number of workers that it takes, and why.

// Package planner says how many workers it takes to keep targets: first tokens and the ones after them in time, for a
// share of the requests.
//
//	p := planner.New(planner.Options{Targets: replay.Targets{TTFT: 500 * time.Millisecond, ITL: 50 * time.Millisecond}})
//	advice, err := p.Advise(load, fleet)
//
// It forecasts how many requests come, plays the ones that came lately at that rate against fleets of different sizes
// (kvroute/replay), and takes the smallest that keeps the targets; a formula is shown beside it. What is decided from
// that goes up at once and down slowly. The package does no I/O and reads no clock: records in, advice out.
package planner

import (
	"errors"
	"fmt"
	"time"

	"kvasir/kvroute/replay"
)

// Options say what is to be kept and within which bounds. Zero fields have their defaults.
type Options struct {
	Targets replay.Targets // default 500 ms, 50 ms
	Share   float64        // of the requests, that are to keep both; default 0.95
	Apart   bool           // prefill and decode have workers of their own

	Min, Max int // workers; Apart: of each of the two roles. Default 1 and 64

	Window    time.Duration // of the requests that are looked at; default 10 min
	Interval  time.Duration // between two pieces of advice; default 1 min
	Start     time.Duration // from when a worker is wanted until it takes requests; default 60 s
	DownAfter time.Duration // fewer workers must have been enough for so long; default 5 min

	MostPlayed int // requests that a plan plays at most, the last ones; default 5,000

	// By says whose number is decided by: the replay's, or the formula's, to compare with.
	By By

	// Engine says what the fleet is made of, as replay.Options do; how many workers there are in it does not count.
	Engine replay.Options

	// Stop ends a plan, if not nil, that takes longer than it may: it is asked for each request that is played.
	Stop func() bool
}

// By is what a number of workers is found by.
type By uint8

// The ways.
const (
	ByReplay By = iota
	ByFormula
)

// WithDefaults returns the options with the defaults of the fields that are zero.
func (o Options) WithDefaults() Options {
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&o.Targets.TTFT, 500 * time.Millisecond}, {&o.Targets.ITL, 50 * time.Millisecond}, {&o.Window, 10 * time.Minute},
		{&o.Interval, time.Minute}, {&o.Start, time.Minute}, {&o.DownAfter, 5 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	if o.Share == 0 {
		o.Share = 0.95
	}
	if o.Min == 0 {
		o.Min = 1
	}
	if o.MostPlayed == 0 {
		o.MostPlayed = 5_000
	}
	if o.Max == 0 {
		o.Max = max(64, o.Min)
	}
	if o.Engine.Policy == "" {
		o.Engine.Policy, o.Engine.Queue = "predict", true
	}
	o.Engine = o.Engine.WithDefaults()
	o.Engine.Workers, o.Engine.Prefill, o.Engine.Decode, o.Engine.Brief = 0, 0, 0, true
	return o
}

// Validate reports the first option that is out of its bounds, on options with their defaults.
func (o *Options) Validate() error {
	for _, d := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"target of the first token", o.Targets.TTFT, time.Millisecond, time.Hour},
		{"target between tokens", o.Targets.ITL, time.Microsecond, time.Hour},
		{"window", o.Window, 10 * time.Second, 24 * time.Hour},
		{"interval", o.Interval, time.Second, 24 * time.Hour},
		{"start of a worker", o.Start, 0, 24 * time.Hour},
		{"time before fewer workers", o.DownAfter, 0, 7 * 24 * time.Hour},
	} {
		if d.value < d.least || d.value > d.most {
			return fmt.Errorf("%s %v is not between %v and %v", d.name, d.value, d.least, d.most)
		}
	}
	if !(o.Share > 0 && o.Share < 1) { // also NaN
		return fmt.Errorf("share %v is not above 0 and below 1", o.Share)
	}
	if o.MostPlayed < 1 {
		return fmt.Errorf("%d requests to be played: at least 1", o.MostPlayed)
	}
	if o.Min < 1 || o.Max < o.Min || o.fleet(o.Max, o.Max).Total() > replay.MaxWorkers {
		return fmt.Errorf("between %d and %d workers: at least 1, and at most %d together", o.Min, o.Max, replay.MaxWorkers)
	}
	return nil
}

// fleet is one of so many workers that do both or, apart, of so many of each role.
func (o *Options) fleet(first, decode int) replay.Fleet {
	if o.Apart {
		return replay.Fleet{Prefill: first, Decode: decode}
	}
	return replay.Fleet{Workers: first}
}

// counts are the numbers that fleet takes.
func (o *Options) counts(f replay.Fleet) (first, decode int) {
	if o.Apart {
		return f.Prefill, f.Decode
	}
	return f.Workers, 0
}

// clamp puts a fleet between the bounds.
func (o *Options) clamp(f replay.Fleet) replay.Fleet {
	first, decode := o.counts(f)
	return o.fleet(min(max(first, o.Min), o.Max), min(max(decode, o.Min), o.Max))
}

// A Load is what is known of the requests at one moment.
type Load struct {
	Now   time.Duration // since any moment; arrivals count from the same
	Since time.Duration // from when on requests are known

	// Arrivals are how many requests came, in spans of Bucket of which the last one ends at Now.
	Arrivals []int

	// Done are requests that are done, by arrival, of the last Back windows. It is a trace so that it can be played.
	// Settled is up to when they are nearly all of those that came.
	Done    *replay.Trace
	Settled time.Duration

	// Others are requests a second that come to others, which the advice is for as well: they are taken to be like ours.
	Others float64

	// Measured is how those did that were done in the last interval; Requests 0: none was.
	Measured Measured
}

// Bucket is the span that arrivals are counted in.
const Bucket = 15 * time.Second

// Measured are means over some requests that are done.
type Measured struct {
	Requests int           `json:"requests"`
	TTFT     time.Duration `json:"-"`
	ITL      time.Duration `json:"-"`
	TTFTms   float64       `json:"ttft_ms"`
	ITLms    float64       `json:"itl_ms"`
	Share    float64       `json:"share"` // of them, that kept both targets
}

// Advice is how many workers there should be, and why.
type Advice struct {
	Forecast Forecast
	Formula  Formula       // what the formula says, Fleet within the bounds
	Replay   *Answer       // what the replay says; nil: there was nothing to play
	Needed   replay.Fleet  // what is needed, by Options.By
	Want     replay.Fleet  // what is wanted after hysteresis
	Reason   Reason        // of Want
	Ran      time.Duration // virtual time that was played
}

// A Planner remembers what it advised.
type Planner struct {
	options Options
	control control
	last    replay.Fleet // the replay's last answer, where the next search begins; zero: none
}

// New returns a planner. The options must be valid.
func New(o Options) *Planner {
	o = o.WithDefaults()
	return &Planner{options: o, control: control{downAfter: o.DownAfter}}
}

// Options are the planner's, with their defaults.
func (p *Planner) Options() Options { return p.options }

// Engine says what the fleet is made of from now on, as Options.Engine does, and when a plan is to be stopped.
func (p *Planner) Engine(e replay.Options, stop func() bool) {
	p.options.Engine, p.options.Stop = e, stop
	p.options = p.options.WithDefaults()
}

// Clamp puts a fleet between the bounds, with the roles that are planned.
func (p *Planner) Clamp(f replay.Fleet) replay.Fleet { return p.options.clamp(f) }

// ErrStopped is Advise's error when Options.Stop ended it: the formula's answer is all there is.
var ErrStopped = errors.New("it took longer than it may")

// Advise says how many workers there should be. fleet are those that there are, the ones included that are starting;
// under says that a change of it is under way.
func (p *Planner) Advise(l *Load, fleet replay.Fleet, under bool) (*Advice, error) {
	o := &p.options
	sample := l.sample(o.Window, o.MostPlayed)
	a := &Advice{Forecast: o.forecast(l).with(l.Others), Needed: o.clamp(replay.Fleet{})}
	a.Formula = o.formula(sample.trace, a.Forecast.Rate, fleet, l.Measured)
	var err error
	switch {
	case a.Forecast.Rate == 0: // nobody came: as few as may be
	case len(sample.trace.Requests) == 0:
		// They came and none was answered, or none was counted: no time to have fewer.
		a.Needed = o.clamp(atLeast(a.Formula.Fleet, fleet))
	case o.By == ByFormula:
		a.Needed = a.Formula.Fleet
	default:
		a.Replay, err = o.search(sample, a.Forecast.Rate, p.guess(a.Formula.Fleet), fleet)
		if errors.Is(err, ErrStopped) && a.Replay == nil {
			// Nothing is known but what the formula says, which is no reason to have fewer.
			a.Needed = o.clamp(atLeast(a.Formula.Fleet, fleet))
			break
		}
		if err != nil && !errors.Is(err, ErrStopped) {
			return nil, err
		}
		a.Needed, p.last = a.Replay.Fleet, a.Replay.Fleet // after ErrStopped enough, if perhaps not the fewest
		if errors.Is(err, ErrStopped) && !a.Replay.Enough {
			a.Needed = o.clamp(fleet) // stopped before it was known whether more would do better
		}
	}
	a.Want, a.Reason = p.control.decide(l.Now, fleet, a.Needed, under)
	a.Reason.Stopped = errors.Is(err, ErrStopped)
	if a.Replay != nil && a.Replay.Useless && a.Reason.Verdict != Changing && a.Want == fleet {
		a.Reason.Verdict = Useless
	}
	return a, nil
}

// Rate is how many requests a second come now.
func (p *Planner) Rate(l *Load) float64 { return p.options.forecast(l).Window }

// atLeast has the larger number of each role.
func atLeast(a, b replay.Fleet) replay.Fleet {
	return replay.Fleet{Workers: max(a.Workers, b.Workers), Prefill: max(a.Prefill, b.Prefill), Decode: max(a.Decode, b.Decode)}
}

// guess is where a search begins.
func (p *Planner) guess(formula replay.Fleet) replay.Fleet {
	if p.last != (replay.Fleet{}) {
		return p.options.clamp(p.last)
	}
	return formula
}
