// What the proxy tells placement of the pace of engines.

package proxy

import (
	"encoding/json"
	"fmt"
	"testing"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/sim"
)

// predicted is the time to the first token, in milliseconds, that a leg of a prompt of 2,000 tokens is predicted to take at
// a worker with nothing to do.
func (p *testProxy) predicted(t *testing.T, worker string, leg cost.Leg) float64 {
	t.Helper()
	waitUntil(t, "nothing is under way at "+worker, func() bool { return p.backendOf(t, worker).Active() == 0 })
	var e PlacementExplained
	if err := json.Unmarshal([]byte(fetchPost(t, p.admin, "/explain", wordy("apple", 2000, ""))), &e); err != nil {
		t.Fatal(err)
	}
	for _, c := range e.Candidates {
		if c.Worker == worker && c.Leg == leg.String() {
			return c.TTFT
		}
	}
	t.Fatalf("%s is no candidate: %+v", worker, e)
	return 0
}

// Whole answers of one sequence teach the pace of an engine of a fifth of the speed. The tokens of several, which are
// counted together, would say that it is as many times faster, and those of a stream show no passes.
func TestWholeAnswersTeachThePace(t *testing.T) {
	for _, c := range []struct {
		path, members string
		taught        bool
	}{
		{"/v1/chat/completions", `"n":1,`, true},
		{"/v1/chat/completions", `"n":8,`, false},
		{"/v1/completions", `"prompt":"hi",`, true},
		{"/v1/completions", `"prompt":["hi","ho"],`, false},
		{"/v1/completions", `"prompt":"hi","n":2,`, false},
		{"/v1/chat/completions", `"n":8,"stream":true,`, false},
	} {
		t.Run(c.path+c.members, func(t *testing.T) {
			t.Parallel()
			s := placingSettings(startSim(t, sim.Options{Speedup: 0.2}).url)
			p := startProxy(t, s)
			p.waitForTokens(t)
			before := p.predicted(t, "w0", cost.Whole)
			for range 13 {
				body := `{"model":"m","max_tokens":2,` + c.members + `"temperature":1.5}`
				if c.path == "/v1/chat/completions" {
					body = wordy("berry", 20, c.members)
				}
				if a := p.ask(t, c.path, body); a.StatusCode != 200 {
					t.Fatal(a.StatusCode, a.body)
				}
			}
			if ttft := p.predicted(t, "w0", cost.Whole); c.taught && ttft < 3*before || !c.taught && ttft != before {
				t.Errorf("the first token is predicted after %v ms, before that after %v", ttft, before)
			}
		})
	}
}

// The ends of prefill legs teach the pace of prefill workers.
func TestPrefillLegsTeachThePace(t *testing.T) {
	t.Parallel()
	o := sim.Options{Engine: "vllm", Role: "prefill", Speedup: 0.4}
	from := startSim(t, o)
	o.Role = "decode"
	s := autoSettings("vllm", []string{from.url}, []string{startSim(t, o).url})
	s.Routing.Policy, s.Routing.Disaggregate = kvroute.Predict, kvroute.Always
	p := startProxy(t, s)
	p.waitForTokens(t)
	before := p.predicted(t, "w0", cost.PrefillLeg)
	for i := range 14 { // the last is not yet known to be right
		if a := p.ask(t, "/v1/chat/completions", wordy(fmt.Sprint("x", i), 4000+100*i, "")); a.StatusCode != 200 || a.Header.Get("x-kvasir-prefill-worker") != "w0" {
			t.Fatal(a.StatusCode, a.body)
		}
	}
	if ttft := p.predicted(t, "w0", cost.PrefillLeg); ttft < 2*before {
		t.Errorf("the first token is predicted after %v ms, before that after %v", ttft, before)
	}
}
