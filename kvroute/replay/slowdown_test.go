// Engines in trouble, and what it is worth to be told.

package replay

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute"
)

// told is telemetry that knows the slowdowns, and says so for some time longer, as hysteresis makes it.
func told(slowdowns []Slowdown, longer time.Duration) func(time.Time, int, int) kvroute.Hardware {
	return func(now time.Time, worker, _ int) kvroute.Hardware {
		h := kvroute.Hardware{Slow: 1}
		for _, t := range slowdowns {
			if at := now.Sub(epoch); t.Worker == worker && t.From <= at && at < t.To+longer {
				h.Slow = t.Slow
			}
		}
		return h
	}
}

// inTurn are slowdowns that go from worker to worker.
func inTurn(workers, first int, length time.Duration, slow float64) (all []Slowdown) {
	for i := range 40 {
		all = append(all, Slowdown{(first + i) % workers, time.Duration(i) * length, time.Duration(i+1) * length, slow})
	}
	return all
}

// A pass that begins in a span takes as much longer, on that worker only.
func TestSlowdownSlowsItsWorker(t *testing.T) {
	trace := &Trace{Name: "t", PieceTokens: 512, Pieces: 2, Requests: []Request{
		{PromptTokens: 1000, AnswerTokens: 1, Content: []uint32{0, 1}, Line: 1},
		{PromptTokens: 1000, AnswerTokens: 1, Content: []uint32{0, 1}, Line: 2, Arrival: time.Second},
		{PromptTokens: 1000, AnswerTokens: 1, Content: []uint32{0, 1}, Line: 3, Arrival: 9 * time.Second},
	}}
	const prefill = 4.209989e-07*1e6 + 1.518344e-02*1e3 + 1.650142e+01
	r := run(t, trace, Options{Workers: 2, Blocks: 100, Policy: "round_robin", Slowdowns: []Slowdown{{0, 0, 5 * time.Second, 3}, {0, 0, time.Second, 2}}})
	if got := millis(r.Each[0].TTFT); math.Abs(got-6*prefill) > 1e-5 {
		t.Errorf("in two slowdowns the first token takes %v ms, want %v", got, 6*prefill)
	}
	if got := millis(r.Each[1].TTFT); math.Abs(got-prefill) > 1e-5 {
		t.Errorf("the worker beside it takes %v ms, want %v", got, prefill)
	}
	if got := millis(r.Each[2].TTFT); got > prefill {
		t.Errorf("after it the first token takes %v ms, want less than %v", got, prefill)
	}
}

// So many slowdowns at once that nobody would see the end are refused.
func TestSlowdownWithoutEnd(t *testing.T) {
	many := slices.Repeat([]Slowdown{{0, 0, never, mostSlow}}, 6)
	_, err := Run(conversation(t), Options{Workers: 1, Slowdowns: many})
	if err == nil || !strings.Contains(err.Error(), "or less trouble") {
		t.Errorf("six slowdowns: %v", err)
	}
}

// Slowdowns that make a replay so long that telemetry would be asked for minutes are refused, and before it is: arrivals alone
// do not tell.
func TestTelemetryWithoutEnd(t *testing.T) {
	asked := 0
	o := Options{Workers: 1, Policy: "predict", Slowdowns: slices.Repeat([]Slowdown{{0, 0, time.Hour, mostSlow}}, 3),
		Telemetry: func(time.Time, int, int) kvroute.Hardware { asked++; return kvroute.Hardware{} }}
	_, err := Run(first(conversation(t), 1), o)
	if err == nil || !strings.Contains(err.Error(), "telemetry of 1 workers would be asked") || !strings.Contains(err.Error(), "do without telemetry") {
		t.Error(err)
	}
	if asked > 1000 {
		t.Errorf("telemetry is asked %d times before", asked)
	}
	o.Telemetry = nil
	run(t, first(conversation(t), 1), o)
}

// Two of four workers four times slower, others every ten seconds: what is learned of them comes late each time, what is
// told does not. The policies without prices take it to tell equals apart only. (The figures of whole traces are in docs/routing.md.)
func TestTelemetryGains(t *testing.T) {
	trace := conversation(t)
	slowdowns := append(inTurn(4, 0, 10*time.Second, 4), inTurn(4, 2, 10*time.Second, 4)...)
	for policy, least := range map[string]float64{"predict": 1.4, "kv": 1.3} {
		o := Options{Workers: 4, Speed: 1.5, Policy: policy, Queue: policy == "predict", Slowdowns: slowdowns}
		without := run(t, trace, o)
		o.Telemetry = told(slowdowns, 2*time.Second)
		with := run(t, trace, o)
		gain := without.TTFT.Mean / with.TTFT.Mean
		t.Logf("%s: %.0f ms without, %.0f with: %.2f x", policy, without.TTFT.Mean, with.TTFT.Mean, gain)
		if gain < least {
			t.Errorf("%s: told of the slowdowns, the mean time to first token is %.0f ms, without %.0f: %.2f x, want %.2f x",
				policy, with.TTFT.Mean, without.TTFT.Mean, gain, least)
		}
	}
}

// toldOf are the variants that are told of slowdowns in one way each.
var toldOf = []string{"round_robin", "least_loaded", "kv", "predict queue", "predict 2p2d", "random 2p2d"}

// Telemetry that says nothing changes nothing, to the last digit.
func TestTelemetryOfNothing(t *testing.T) {
	trace := first(conversation(t), 100)
	for _, name := range toldOf {
		o := variant(name)
		without := run(t, trace, o)
		asked := 0
		o.Telemetry = func(time.Time, int, int) kvroute.Hardware {
			asked++
			return kvroute.Hardware{Why: "all is well"}
		}
		if with := run(t, trace, o); !reflect.DeepEqual(with, without) {
			t.Errorf("%s: with telemetry that says nothing\n%+v\nwithout\n%+v", name, with, without)
		}
		if asked == 0 {
			t.Errorf("%s: telemetry is not asked", name)
		}
	}
}

// Who is aside gets nothing that another one can do; where all of a kind are, they work as ever.
func TestAside(t *testing.T) {
	trace := first(conversation(t), 60)
	for _, name := range toldOf {
		o := variant(name)
		o.Telemetry = func(now time.Time, worker, _ int) kvroute.Hardware { return kvroute.Hardware{Aside: worker == 0} }
		r := run(t, trace, o)
		if n := r.PerWorker[0].Requests; n > 0 {
			t.Errorf("%s: %d requests at a worker that is aside", name, n)
		}
		o.Telemetry = func(now time.Time, worker, _ int) kvroute.Hardware { return kvroute.Hardware{Aside: true} }
		if got, want := run(t, trace, o), run(t, trace, variant(name)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: with all aside\n%+v\nwith none\n%+v", name, got, want)
		}
	}
}

// What telemetry is asked about is who has requests under way, and when.
func TestTelemetryIsAsked(t *testing.T) {
	for _, o := range []Options{{Workers: 2}, {Prefill: 1, Decode: 1}} {
		last, most := map[int]time.Time{}, map[int]int{}
		o.Policy, o.Speed = "least_loaded", 3
		o.Telemetry = func(now time.Time, worker, active int) kvroute.Hardware {
			if before, again := last[worker]; again && now.Sub(before) != TelemetryEvery {
				t.Errorf("worker %d is asked about after %v", worker, now.Sub(before))
			}
			if active < 0 {
				t.Fatalf("worker %d has %d requests", worker, active)
			}
			last[worker], most[worker] = now, max(most[worker], active)
			return kvroute.Hardware{}
		}
		run(t, first(conversation(t), 100), o)
		if len(most) != 2 || most[0] < 2 || most[1] < 2 {
			t.Errorf("%d prefill workers: at most %v requests under way", o.Prefill, most)
		}
	}
}

func TestBadSlowdowns(t *testing.T) {
	for want, bad := range map[string]Slowdown{
		"trouble of worker 2: there are workers 0 to 1": {2, 0, time.Second, 2},
		"trouble of worker -1":                          {-1, 0, time.Second, 2},
		"it must begin at 0s or later":                  {0, time.Second, time.Second, 2},
		"from -1s to 1s":                                {0, -time.Second, time.Second, 2},
		"0.5 times as long":                             {0, 0, time.Second, 0.5},
		"NaN times as long":                             {0, 0, time.Second, math.NaN()},
		"1e+06 times as long":                           {0, 0, time.Second, 1e6},
	} {
		if _, err := Run(conversation(t), Options{Workers: 2, Slowdowns: []Slowdown{bad}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
	o := Options{Workers: 4096, Speed: 1e-4, Policy: "predict", Telemetry: told(nil, 0)}
	if _, err := Run(conversation(t), o); err == nil || !strings.Contains(err.Error(), "telemetry of 4096 workers would be asked") {
		t.Errorf("endless telemetry: %v", err)
	}
}
