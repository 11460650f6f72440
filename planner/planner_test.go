// Loads of which the right answer is known.

package planner

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute/replay"
)

// arrive makes requests of one kind that come at rate(t) a second, regularly or, with a seed, as chance has it.
func arrive(lasts time.Duration, prompt, answer int, seed uint64, rate func(t float64) float64) *replay.Trace {
	t := &replay.Trace{Name: "made up", PieceTokens: 512}
	random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the same seed, the same test
	for at := 0.0; ; {
		gap := 1.0
		if seed > 0 {
			gap = random.ExpFloat64()
		}
		at += gap / rate(at)
		if at >= lasts.Seconds() {
			return t
		}
		r := replay.Request{Arrival: time.Duration(at * 1e9), PromptTokens: prompt, AnswerTokens: answer, Line: len(t.Requests) + 1}
		for k := 0; k < prompt; k += t.PieceTokens {
			r.Content = append(r.Content, uint32(t.Pieces))
			t.Pieces++
		}
		t.Requests = append(t.Requests, r)
	}
}

func constant(rate float64) func(float64) float64 { return func(float64) float64 { return rate } }

// loadOf is the load at the end of a trace all of which is done.
func loadOf(t *replay.Trace, now time.Duration) *Load {
	var came []time.Duration
	for _, r := range t.Requests {
		came = append(came, r.Arrival)
	}
	return &Load{Now: now, Arrivals: buckets(came, 0, now), Done: t, Settled: now}
}

func advise(t *testing.T, o Options, l *Load, fleet replay.Fleet) *Advice {
	t.Helper()
	a, err := New(o).Advise(l, fleet, false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const minute = time.Minute

// Twice as many requests need twice as many workers, or one less, since more of them even each other out.
func TestTwiceTheArrivals(t *testing.T) {
	o := Options{Window: 2 * minute}
	for _, kind := range []struct{ prompt, answer int }{{3000, 20}, {400, 300}} {
		needs := map[float64]int{}
		for _, rate := range []float64{12, 24, 48} {
			a := advise(t, o, loadOf(arrive(2*minute, kind.prompt, kind.answer, 1, constant(rate)), 2*minute), replay.Fleet{Workers: 1})
			if a.Replay == nil || !a.Replay.Enough || a.Replay.Kept.Share < 0.95 || a.Want != a.Replay.Fleet || a.Reason.Verdict == Down {
				t.Fatalf("%v a second: %+v", rate, a)
			}
			needs[rate] = a.Want.Workers
		}
		for _, rate := range []float64{12, 24} {
			if one, two := needs[rate], needs[2*rate]; two > 2*one || 2*two < 3*one-2 {
				t.Errorf("prompts of %d, answers of %d: %d workers for %v a second, %d for twice as many", kind.prompt, kind.answer, one, rate, two)
			}
		}
		if needs[48] < 2 {
			t.Errorf("prompts of %d, answers of %d: %d workers say nothing", kind.prompt, kind.answer, needs[48])
		}
	}
}

func TestNobodyCame(t *testing.T) {
	for _, apart := range []bool{false, true} {
		o := Options{Window: 2 * minute, Min: 2, Apart: apart}
		least := replay.Fleet{Workers: 2}
		if apart {
			least = replay.Fleet{Prefill: 2, Decode: 2}
		}
		for _, now := range []time.Duration{0, 2 * minute} {
			a := advise(t, o, &Load{Now: now, Arrivals: make([]int, int(now/Bucket)), Done: &replay.Trace{PieceTokens: 512}, Settled: now}, least)
			if a.Want != least || a.Reason.Verdict != Keep || a.Replay != nil {
				t.Errorf("at %v: %+v", now, a)
			}
		}
		// What came before, and is over, is no reason for more; those that are there go when that has lasted.
		p, more := New(o), replay.Fleet{Workers: 6, Prefill: 0}
		if apart {
			more = replay.Fleet{Prefill: 6, Decode: 5}
		}
		trace := arrive(2*minute, 1000, 10, 0, constant(20))
		for now := 10 * minute; ; now += minute {
			l := loadOf(trace, now)
			a, err := p.Advise(l, more, false)
			if err != nil {
				t.Fatal(err)
			}
			if a.Want == least {
				if now != 15*minute || a.Reason.Verdict != Down {
					t.Errorf("at %v: %v", now, a.Reason)
				}
				break
			}
			if a.Want != more || a.Reason.Verdict != Waits || now > 15*minute {
				t.Fatalf("at %v: %+v", now, a)
			}
		}
	}
}

// Requests that come and are not answered are no reason to have fewer workers.
func TestNobodyIsAnswered(t *testing.T) {
	p := New(Options{Window: 2 * minute})
	l := loadOf(arrive(2*minute, 1000, 10, 0, constant(20)), 2*minute)
	l.Done = &replay.Trace{PieceTokens: 512}
	for l.Now = 2 * minute; l.Now < 12*minute; l.Now += minute {
		a, err := p.Advise(l, replay.Fleet{Workers: 7}, false)
		if err != nil || a.Want.Workers != 7 || a.Reason.Verdict != Keep {
			t.Fatalf("at %v: %+v %v", l.Now, a, err)
		}
	}
}

// Whatever comes, and whatever there is, what is wanted stays within the bounds, and while a change is under way as it is.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // the same seed, the same test
	for range 30 {
		o := Options{Window: minute, Min: 1 + random.IntN(3), By: By(random.IntN(2)), Apart: random.IntN(2) == 0, MostPlayed: 300}
		o.Max = o.Min + random.IntN(4)
		trace := arrive(minute, 1+random.IntN(8000), 1+random.IntN(200), 5, constant(0.5+30*random.Float64()))
		p := New(o)
		draw := func() int { return o.Min + random.IntN(o.Max-o.Min+1) }
		fleet := p.options.fleet(draw(), draw())
		under := random.IntN(3) == 0
		a, err := p.Advise(loadOf(trace, minute), fleet, under)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []replay.Fleet{a.Want, a.Needed, a.Formula.Fleet} {
			if f != p.options.clamp(f) {
				t.Errorf("%+v: %v is out of bounds", o, f)
			}
		}
		if under && (a.Want != fleet || a.Reason.Verdict != Changing) {
			t.Errorf("a change is under way: %v becomes %v, %v", fleet, a.Want, a.Reason)
		}
		if a.Replay != nil && !a.Replay.Enough && a.Replay.Fleet != p.options.fleet(o.Max, o.Max) {
			t.Errorf("%v are not enough, and not the most: %+v", a.Replay.Fleet, a.Replay)
		}
	}
}

// Prompts that take longer than the target by themselves ask for no workers.
func TestTargetsOutOfReach(t *testing.T) {
	o := Options{Window: 2 * minute}
	some := arrive(2*minute, 2000, 10, 1, constant(8))
	for i := range some.Requests {
		if r := &some.Requests[i]; i%5 == 0 { // 40,000 tokens take 0.8 s
			r.PromptTokens, r.Content = 40_000, slices.Repeat(r.Content[:1], 79)
		}
	}
	a := advise(t, o, loadOf(some, 2*minute), replay.Fleet{Workers: 1})
	if r := a.Replay; r == nil || math.Abs(r.Reachable-0.8) > 0.01 || math.Abs(r.Goal-0.95*r.Reachable) > 1e-9 || !r.Enough || r.Fleet.Workers < 2 || r.Fleet.Workers > 32 {
		t.Errorf("%+v", a.Replay)
	}
	all := arrive(2*minute, 60_000, 10, 1, constant(0.2))
	if a := advise(t, o, loadOf(all, 2*minute), replay.Fleet{Workers: 1}); a.Replay.Reachable != 0 || a.Want.Workers != 1 {
		t.Errorf("%+v", a.Replay)
	}
	for _, c := range []struct{ share, reachable, want float64 }{{0.95, 1, 0.95}, {0.95, 0.98, 0.95}, {0.95, 0.97, 0.9215}, {0.5, 0.8, 0.5}, {0.5, 0.5, 0.25}} {
		if got := goal(c.share, c.reachable); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("goal(%v, %v) is %v, want %v", c.share, c.reachable, got, c.want)
		}
	}
}

// A plan that takes too long goes by what it found, and never to fewer workers for it.
func TestStopped(t *testing.T) {
	o := Options{Window: 2 * minute}
	load := loadOf(arrive(2*minute, 4000, 20, 1, constant(20)), 2*minute)
	whole := advise(t, o, load, replay.Fleet{Workers: 1})
	for _, after := range []int{0, 500, 3000, 6000, 9000} {
		left := after
		o.Stop = func() bool { left--; return left < 0 }
		for _, fleet := range []replay.Fleet{{Workers: 1}, {Workers: 30}} {
			left = after
			p := New(o)
			a, err := p.Advise(load, fleet, false)
			if err != nil {
				t.Fatal(err)
			}
			if !a.Reason.Stopped {
				if a.Needed != whole.Needed {
					t.Errorf("%v without being stopped, %v", a.Needed, whole.Needed)
				}
				continue
			}
			if a.Replay == nil && (more(fleet, a.Needed) || more(a.Formula.Fleet, a.Needed)) || a.Replay != nil && !a.Replay.Enough {
				t.Errorf("stopped after %d requests, of %v: %+v", after, fleet, a)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Options){
		"target of the first token": func(o *Options) { o.Targets.TTFT = 1 }, "target between tokens": func(o *Options) { o.Targets.ITL = 2 * time.Hour },
		"window": func(o *Options) { o.Window = time.Second }, "interval": func(o *Options) { o.Interval = 1 }, "start": func(o *Options) { o.Start = -1 },
		"fewer": func(o *Options) { o.DownAfter = -1 }, "share": func(o *Options) { o.Share = math.NaN() }, "share 1": func(o *Options) { o.Share = 1 },
		"bounds": func(o *Options) { o.Max = o.Min - 1 }, "most": func(o *Options) { o.Max = 5000 }, "played": func(o *Options) { o.MostPlayed = -1 },
		"apart": func(o *Options) { o.Max, o.Apart = 3000, true },
	} {
		bad := good
		if change(&bad); bad.Validate() == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// What comes later changes no step before it, and the same trace gives the same walk.
func TestWalkSeesNoFuture(t *testing.T) {
	o := Options{Window: 2 * minute, Interval: 30 * time.Second, Start: 20 * time.Second, DownAfter: minute, MostPlayed: 500}
	turn := 300.0
	swing := func(after float64) *replay.Trace {
		return arrive(8*minute, 3000, 30, 2, func(t float64) float64 {
			if t < turn {
				return 6 + t/60
			}
			return after
		})
	}
	for _, by := range []By{ByReplay, ByFormula} {
		o.By = by
		var walks []*Walk
		for _, after := range []float64{3, 20, 20} {
			w, err := o.Play(swing(after), nil)
			if err != nil {
				t.Fatal(err)
			}
			walks = append(walks, w)
		}
		same := 0
		for i, s := range walks[0].Steps {
			if s.At.Seconds() <= turn {
				other := walks[1].Steps[i]
				same++
				if *s.Advice.Replay0() != *other.Advice.Replay0() || s.Fleet != other.Fleet || s.Advice.Want != other.Advice.Want || s.Advice.Forecast != other.Advice.Forecast || s.Measured != other.Measured {
					t.Errorf("by %d at %v: %+v with one future, %+v with another", by, s.At, s.Advice, other.Advice)
				}
			}
		}
		if last := walks[1].Steps[len(walks[1].Steps)-1]; same < 5 || by == ByReplay && !more(last.Fleet, walks[0].Steps[same-1].Fleet) {
			t.Errorf("by %d: %d steps before the turn, and %v after it", by, same, last.Fleet)
		}
		if a, b := walks[1], walks[2]; a.Kept != b.Kept || a.Spent != b.Spent || len(a.Steps) != len(b.Steps) {
			t.Errorf("by %d: the same trace gives %+v and %+v", by, a.Kept, b.Kept)
		}
	}
}

// Replay0 is the replay's answer, or none.
func (a *Advice) Replay0() *Answer {
	if a.Replay == nil {
		return &Answer{}
	}
	return a.Replay
}

// Chance alone moves the fleet little while the rate stays as it is.
func TestNoFlapping(t *testing.T) {
	o := Options{Window: 4 * minute, MostPlayed: 1000}
	for seed := uint64(1); seed <= 2; seed++ {
		w, err := o.Play(arrive(25*minute, 2500, 60, seed, constant(9)), nil)
		if err != nil {
			t.Fatal(err)
		}
		low, high := 1000, 0
		for _, s := range w.Steps {
			low, high = min(low, s.Advice.Want.Workers), max(high, s.Advice.Want.Workers)
		}
		if w.Changes > 4 || high-low > 1 {
			t.Errorf("seed %d: %d changes between %d and %d workers", seed, w.Changes, low, high)
		}
		if w.Kept.Share < 0.95 {
			t.Errorf("seed %d: %.3f kept", seed, w.Kept.Share)
		}
	}
}

// The size that is named for a whole trace keeps the targets when it is played, and one worker less does not.
func TestWholeIsConfirmed(t *testing.T) {
	for _, apart := range []bool{false, true} {
		o := Options{Apart: apart, Max: 12}.WithDefaults()
		trace := Times(arrive(90*time.Second, 3000, 60, 4, constant(14)), 1)
		a, formula, err := o.Whole(trace, nil)
		if err != nil {
			t.Fatal(err)
		}
		play := func(f replay.Fleet) float64 {
			e := o.Engine
			e.Workers, e.Prefill, e.Decode = f.Workers, f.Prefill, f.Decode
			r, err := replay.Run(trace, e)
			if err != nil {
				t.Fatal(err)
			}
			return trace.Kept(r.Each, 0, len(r.Each), o.Targets, o.Share).Share
		}
		if got := play(a.Fleet); got != a.Kept.Share || got < 0.95 || formula.Fleet.Total() < 1 {
			t.Errorf("%v are said to keep %v, and keep %v", a.Fleet, a.Kept.Share, got)
		}
		// The slow twin tries all.
		best := 1000
		for p := 1; p <= a.Fleet.Total(); p++ {
			if !apart && play(replay.Fleet{Workers: p}) >= 0.95 {
				best = min(best, p)
			}
			for d := 1; apart && p+d < a.Fleet.Total(); d++ {
				if play(replay.Fleet{Prefill: p, Decode: d}) >= 0.95 {
					best = min(best, p+d)
				}
			}
		}
		if best < a.Fleet.Total() {
			t.Errorf("%d workers are enough, the search found %v", best, a.Fleet)
		}
	}
}

func TestShortTrace(t *testing.T) {
	_, err := Options{}.Play(arrive(5*minute, 100, 10, 0, constant(2)), nil)
	if !errors.Is(err, ErrShort) {
		t.Error(err)
	}
}

// Targets that an idle worker misses, and what no number of workers improves, are no reason for the most of them.
func TestOutOfReach(t *testing.T) {
	for _, apart := range []bool{false, true} {
		there := replay.Fleet{Workers: 3}
		if apart {
			there = replay.Fleet{Prefill: 3, Decode: 3}
		}
		o := Options{Window: 2 * minute, Apart: apart, Max: 12, Targets: replay.Targets{TTFT: minute}, Engine: replay.Options{Pace: 10}}
		l := loadOf(arrive(2*minute, 400, 20, 1, constant(2)), 2*minute)
		a := advise(t, o, l, there)
		if a.Want != there || a.Reason.Verdict != Useless || a.Replay.Reachable != 0 || a.Replay.Enough || a.Replay.Fleet != there {
			t.Errorf("apart %v: %v wanted, %v: %+v", apart, a.Want, a.Reason, a.Replay)
		}
		// A pass of the engine itself takes 5.74 ms.
		o.Engine.Pace, o.Targets.ITL = 1, 5600*time.Microsecond
		if a := advise(t, o, l, there); a.Replay.Reachable != 0 {
			t.Errorf("apart %v: %+v", apart, a.Replay)
		}
		// An answer of one token has nothing between.
		o.Targets.ITL = time.Millisecond
		if a := advise(t, o, loadOf(arrive(2*minute, 400, 1, 1, constant(2)), 2*minute), there); !a.Replay.Enough || a.Replay.Reachable != 1 {
			t.Errorf("apart %v: %+v", apart, a.Replay)
		}
	}
	// Far more come than the most that may be can do, which does next to nothing for what is kept.
	o := Options{Window: 2 * minute, Min: 4, Max: 5, Targets: replay.Targets{TTFT: 200 * time.Millisecond}}
	a := advise(t, o, loadOf(arrive(2*minute, 3000, 2, 1, constant(200)), 2*minute), replay.Fleet{Workers: 4})
	if a.Want.Workers != 4 || a.Reason.Verdict != Useless || a.Replay.Enough || a.Replay.Reachable < 0.9 {
		t.Errorf("%v wanted, %v: %+v", a.Want, a.Reason, a.Replay)
	}
}

// A gap of years in a trace is not planned minute by minute.
func TestHugeGap(t *testing.T) {
	trace := arrive(3*time.Second, 400, 2, 0, constant(1))
	trace.Requests[len(trace.Requests)-1].Arrival = 900_000_000 * time.Second
	if w, err := (Options{}).Play(trace, nil); err == nil || !strings.Contains(err.Error(), "give a longer --interval") {
		t.Errorf("%v %v", w != nil, err)
	}
	o := Options{Interval: 24 * time.Hour}
	if w, err := o.Play(trace, nil); err != nil || len(w.Steps) < 10_000 {
		t.Errorf("%v", err)
	}
}
