// Fleets that change: who gets what when, what it costs, and that a fleet that could change but does not is as one that cannot.

package replay

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// script changes the fleet at the times that it names.
func script(most int, start time.Duration, at []time.Duration, to []Fleet) *Scaling {
	return &Scaling{First: at[0], Start: start, Most: most, Want: func(now time.Duration, _ []RequestResult) (Fleet, time.Duration) {
		i := slices.Index(at, now)
		if i+1 < len(at) {
			return to[i], at[i+1]
		}
		return to[i], now
	}}
}

func TestFleetThatDoesNotChange(t *testing.T) {
	trace := conversation(t)
	for _, o := range []Options{
		{Workers: 3, Policy: "predict", Queue: true}, {Workers: 2, Policy: "round_robin"}, {Prefill: 2, Decode: 2, Policy: "predict", Queue: true},
		{Prefill: 1, Decode: 2, Policy: "kv", Bandwidth: 10},
	} {
		want := run(t, trace, o)
		o.Scaling = &Scaling{Most: 8, Want: func(now time.Duration, _ []RequestResult) (Fleet, time.Duration) {
			return Fleet{o.Workers, o.Prefill, o.Decode}, now + 7*time.Second
		}}
		got := run(t, trace, o)
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got)
		if string(a) != string(b) || !slices.Equal(want.Each, got.Each) || want.Spent != got.Spent {
			t.Errorf("%+v: asking changes the replay:\n%s\n%s", o, a, b)
		}
		if workers := o.Workers + o.Prefill + o.Decode; want.Spent != time.Duration(workers)*want.Duration {
			t.Errorf("%d workers spent %v in %v", workers, want.Spent, want.Duration)
		}
	}
}

// Worker 2 takes requests from 60 s + 20 s on; the youngest, which it is, drains from 200 s on.
func TestWorkersComeAndGo(t *testing.T) {
	trace := conversation(t)
	drains := 0
	for _, policy := range []string{"predict", "kv", "round_robin", "least_loaded"} {
		o := Options{Workers: 2, Policy: policy, Queue: policy == "predict"}
		const added, ready, drained = 20 * time.Second, 30 * time.Second, 45 * time.Second
		o.Scaling = script(3, ready-added, []time.Duration{added, drained}, []Fleet{{Workers: 3}, {Workers: 2}})
		r := run(t, trace, o)
		during, last := 0, time.Duration(0)
		for i, q := range r.Each {
			came := trace.Requests[i].Arrival
			if q.E2E == 0 {
				t.Fatalf("%s: request %d was not answered", policy, i)
			}
			if q.Worker != 2 {
				continue
			}
			// One that waited in the line came before, so who was placed there may have come at most as long before as its TTFT.
			if came+q.TTFT < ready || came >= drained {
				t.Errorf("%s: request %d came at %v to the worker of %v to %v", policy, i, came, ready, drained)
			}
			during++
			last = max(last, came+q.E2E)
		}
		if during == 0 {
			t.Errorf("%s: no request to the worker that was added", policy)
		}
		if last > drained {
			drains++
		}
		if want := 2*r.Duration + max(last, drained) - added; r.Spent != want {
			t.Errorf("%s: spent %v, want %v", policy, r.Spent, want)
		}
		if r.PerWorker[2].Requests != during || r.Requests != len(trace.Requests) {
			t.Errorf("%s: %+v", policy, r.PerWorker)
		}
	}
	if drains < 2 {
		t.Errorf("with %d policies it had something under way when it was drained", drains)
	}
}

// Fleets that change at random, both ways: every request is answered, and what is spent is what the parts are.
func TestFleetsThatChangeAtRandom(t *testing.T) {
	trace := conversation(t)
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same seed, the same test
		o := Options{Workers: 2, Policy: "predict", Queue: true, Seed: seed}
		fleet := func() Fleet { return Fleet{Workers: 1 + random.IntN(5)} }
		if seed%2 == 1 {
			o.Workers, o.Prefill, o.Decode = 0, 2, 2
			o.Bandwidth = float64(seed % 4)
			fleet = func() Fleet { return Fleet{Prefill: 1 + random.IntN(4), Decode: 1 + random.IntN(4)} }
		}
		began, changes := Fleet{o.Workers, o.Prefill, o.Decode}, 0
		o.Scaling = &Scaling{Most: 8, Start: time.Duration(random.IntN(10)) * time.Second, Want: func(now time.Duration, seen []RequestResult) (Fleet, time.Duration) {
			for i, q := range seen {
				if q.E2E > 0 && trace.Requests[i].Arrival-trace.Requests[0].Arrival+q.E2E > now {
					t.Errorf("seed %d: at %v request %d is seen done at %v", seed, now, i, trace.Requests[i].Arrival+q.E2E)
				}
			}
			changes++
			return fleet(), now + time.Duration(1+random.IntN(8000))*time.Millisecond
		}}
		r := run(t, trace, o)
		answered := 0
		for _, q := range r.Each {
			if q.TTFT > 0 && q.E2E >= q.TTFT {
				answered++
			}
		}
		if answered != len(trace.Requests) || changes < 10 || r.Spent <= 0 || r.Spent > time.Duration(24+began.Total())*r.Duration {
			t.Errorf("seed %d: %d of %d answered, %d changes, spent %v in %v", seed, answered, len(trace.Requests), changes, r.Spent, r.Duration)
		}
	}
}

// The list of the pool's workers once overwrote that of all workers: what an engine stored was told of another worker.
func TestWorkersKeepTheirPlaces(t *testing.T) {
	trace := conversation(t)
	o := Options{Prefill: 2, Decode: 2, Policy: "kv"}.WithDefaults()
	o.Scaling = script(4, 0, []time.Duration{20 * time.Second}, []Fleet{{Prefill: 1, Decode: 2}})
	f, err := newFleet(trace, &o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(); err != nil {
		t.Fatal(err)
	}
	for n, w := range f.placing.workers {
		if w.Peer != n {
			t.Errorf("the worker of engine %d is that of %v", n, w.Peer)
		}
	}
}

func TestBadChanges(t *testing.T) {
	trace := conversation(t)
	for _, c := range []struct {
		o    Options
		to   Fleet
		want string
	}{
		{Options{Workers: 2}, Fleet{}, "cannot change the fleet to 0 workers: it must keep one of each role, and have at most 8"},
		{Options{Workers: 2}, Fleet{Workers: 9}, "cannot change the fleet to 9 workers"},
		{Options{Workers: 2}, Fleet{Prefill: 1, Decode: 1}, "cannot change the fleet to 1+1 workers"},
		{Options{Prefill: 2, Decode: 1}, Fleet{Decode: 1}, "cannot change the fleet to 0+1 workers"},
		{Options{Prefill: 2, Decode: 1}, Fleet{Prefill: 2, Decode: -1}, "cannot change the fleet"},
	} {
		c.o.Scaling = script(8, 0, []time.Duration{time.Second}, []Fleet{c.to})
		if _, err := Run(trace, c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v", c.to, err)
		}
	}
	want := func(time.Duration, []RequestResult) (Fleet, time.Duration) { return Fleet{Workers: 1}, 0 }
	for _, s := range []Scaling{{Most: 4}, {Want: want, Most: 3}, {Want: want, Most: 5000}, {Want: want, Most: 4, First: -1}, {Want: want, Most: 4, Start: -1}} {
		if _, err := Run(trace, Options{Scaling: &s}); err == nil || !strings.Contains(err.Error(), "a fleet that changes") {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := Run(trace, Options{Pace: -1}); err == nil || !strings.Contains(err.Error(), "pace -1 is not between") {
		t.Error(err)
	}
}

func TestFinishedStops(t *testing.T) {
	trace := conversation(t)
	enough, told := errors.New("enough"), 0
	_, err := Run(trace, Options{Finished: func(i int, r RequestResult) error {
		if told++; r.E2E == 0 || i >= len(trace.Requests) {
			t.Errorf("request %d: %+v", i, r)
		}
		if told == 5 {
			return enough
		}
		return nil
	}})
	if !errors.Is(err, enough) || told < 5 {
		t.Errorf("%v after %d", err, told)
	}
}

// On an idle worker all passes take so much longer.
func TestPace(t *testing.T) {
	trace := &Trace{Name: "t", PieceTokens: 512, Pieces: 2, Requests: []Request{{PromptTokens: 1000, AnswerTokens: 9, Content: []uint32{0, 1}, Line: 1}}}
	one, three := run(t, trace, Options{}).Each[0], run(t, trace, Options{Pace: 3}).Each[0]
	if ratio := float64(three.TTFT) / float64(one.TTFT); ratio < 2.9999 || ratio > 3.0001 {
		t.Errorf("first token %v and %v", one.TTFT, three.TTFT)
	}
	if ratio := float64(three.E2E) / float64(one.E2E); ratio < 2.9999 || ratio > 3.0001 {
		t.Errorf("last token %v and %v", one.E2E, three.E2E)
	}
}

func TestKept(t *testing.T) {
	ms := func(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
	trace := &Trace{Requests: []Request{{AnswerTokens: 11}, {AnswerTokens: 11}, {AnswerTokens: 1}, {AnswerTokens: 11}, {AnswerTokens: 3}}}
	each := []RequestResult{
		{TTFT: ms(500), E2E: ms(1000)}, // both, just
		{TTFT: ms(501), E2E: ms(601)},  // late
		{TTFT: ms(100), E2E: ms(100)},  // one token: nothing between
		{TTFT: ms(100), E2E: ms(601)},  // slow
		{},                             // not done
	}
	targets := Targets{ms(500), ms(50)}
	got := trace.Kept(each, 0, 5, targets, 0.5)
	if want := (Kept{Requests: 4, Share: 0.5, TTFT: 300, ITL: 30, KeptTTFT: 0.75, KeptITL: 0.75}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := trace.Kept(each, 4, 5, targets, 0.5); got != (Kept{}) {
		t.Errorf("of none: %+v", got)
	}
}
