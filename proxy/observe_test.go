// What observers are told of requests, on each way that one can take.

package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/classify"
	"kvasir/proxy/record"
	"kvasir/sim"
)

// An observer keeps the records of a proxy's requests.
type observer struct {
	mu   sync.Mutex
	seen []record.Record
}

func observe(p *testProxy) *observer {
	o := &observer{}
	p.Observe(func(r *record.Record) {
		kept := *r
		kept.Steps, kept.Placement.Candidates = slices.Clone(r.Steps), slices.Clone(r.Placement.Candidates)
		for i := range kept.Steps {
			if l := kept.Steps[i].Leg; l != nil {
				mine := *l
				kept.Steps[i].Leg = &mine
			}
		}
		kept.WorkerID = slices.Clone(r.WorkerID)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.seen = append(o.seen, kept)
	})
	return o
}

// nth waits for the n-th record.
func (o *observer) nth(t *testing.T, n int) *record.Record {
	t.Helper()
	waitUntil(t, fmt.Sprint(n, " requests are observed"), func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.seen) >= n
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	return &o.seen[n-1]
}

// stepsOf are the steps of a record in one line, and fails where they are not in order and within
// the request.
func stepsOf(t *testing.T, r *record.Record) string {
	t.Helper()
	var all []string
	var from, end time.Duration
	for _, s := range r.Steps {
		word := s.Name.String()
		if s.Leg != nil {
			word += "@" + s.Leg.Worker
			if s.Leg.Failure != "" {
				word += "!" + s.Leg.Failure
			}
		}
		all = append(all, word)
		if s.Begin < from || s.End < s.Begin || s.Name.IsLeg() != (s.Leg != nil && s.Leg.Worker != "") {
			t.Errorf("step %+v comes after %v", s, from)
		}
		from, end = s.Begin, max(end, s.End)
	}
	if end > r.Total || r.StepsLeft != 0 || r.Total <= 0 {
		t.Errorf("the steps end at %v of %v, %d left out", end, r.Total, r.StepsLeft)
	}
	return strings.Join(all, " ")
}

const toWorkers = "identify read admit judge guard reuse edit locate place "

func TestRecordsOfEachWay(t *testing.T) {
	good := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	streams := send(streamHead + chunk(roleEvent) + chunk(delta("b")) + chunk(finishEvent) + chunk(doneEvent) + "0\r\n\r\n")
	for _, tc := range []struct {
		name     string
		settings func() *Settings
		body     string
		headers  []string
		steps    string
		outcome  record.Outcome
		is       func(r *record.Record) bool
	}{
		{
			name: "plain", settings: func() *Settings { return settingsFor(good.url) }, body: plainChat, headers: []string{"X-Request-Id: mine"},
			steps: toWorkers + "decode@w0 stream@w0", outcome: record.OK,
			is: func(r *record.Record) bool {
				return r.ID == "mine" && len(r.WorkerID) == 36 && r.Route == "/v1/chat/completions" && r.Asked == "m" && r.Model == "m" && r.Worker == "w0" &&
					r.Status == 200 && !r.Streamed && r.Path == "upstream" && r.Bytes > 0 && r.FirstByte > 0 && r.FirstByte <= r.Total && !r.Began.IsZero() &&
					r.Placement.Why != "" && r.Steps[9].Leg.Status == 200
			},
		},
		{
			name: "stream", settings: func() *Settings { return settingsFor(startWorker(t, streams).url) }, body: streamChat,
			steps: toWorkers + "decode@w0 stream@w0", outcome: record.OK, is: func(r *record.Record) bool { return r.Streamed },
		},
		{
			name: "wrong key", settings: func() *Settings { return keyed(settingsFor(good.url), Key{Name: "a"}) }, body: plainChat,
			headers: []string{"Authorization: Bearer wrong"}, steps: "identify", outcome: record.Error,
			is: func(r *record.Record) bool { return r.Key == "" && r.Status == 401 },
		},
		{
			name: "its key", settings: func() *Settings { return keyed(settingsFor(good.url), Key{Name: "a", Tenant: "t"}) }, body: plainChat,
			headers: []string{"Authorization: Bearer sk-a"}, steps: toWorkers + "decode@w0 stream@w0", outcome: record.OK,
			is: func(r *record.Record) bool { return r.Key == "a" && r.Tenant == "t" },
		},
		{
			name: "no JSON", settings: func() *Settings { return settingsFor(good.url) }, body: "{", steps: "identify read", outcome: record.Error,
			is: func(r *record.Record) bool { return r.Status == 400 && r.Path == "error" },
		},
		{
			name: "no such model", settings: func() *Settings { return settingsFor(good.url) }, body: `{"model":"x","messages":[{"role":"user","content":"hi"}]}`,
			steps: strings.TrimSpace(toWorkers), outcome: record.Error, is: func(r *record.Record) bool { return r.Asked == "x" && r.Status == 404 },
		},
		{
			name: "blocked", settings: func() *Settings { return guarded(classify.Block, good.url) },
			body:  `{"model":"m","messages":[{"role":"user","content":"my card is 4111 1111 1111 1111, ok?"}]}`,
			steps: "identify read admit judge guard", outcome: record.Blocked,
			is: func(r *record.Record) bool {
				j := &r.Judgement
				return r.Path == "blocked" && j.Judged && j.Guard == "pii" && slices.Equal(j.Denied, []string{"CREDIT_CARD"}) && slices.Contains(j.Types, "CREDIT_CARD") && j.GuardJudged
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProxy(t, tc.settings())
			o := observe(p)
			p.ask(t, "/v1/chat/completions", tc.body, tc.headers...)
			r := o.nth(t, 1)
			if got := stepsOf(t, r); got != tc.steps {
				t.Errorf("steps are %q, want %q", got, tc.steps)
			}
			if r.Outcome() != tc.outcome || tc.is != nil && !tc.is(r) {
				t.Errorf("%s: %+v", r.Outcome(), *r)
			}
		})
	}
}

// A retry is two legs, of which the first says why it failed.
func TestRecordOfARetry(t *testing.T) {
	first := startWorker(t, die)
	second := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, settingsFor(first.url, second.url))
	o := observe(p)
	for n := 1; ; n++ {
		p.ask(t, "/v1/chat/completions", plainChat)
		r := o.nth(t, n)
		if r.Retries == 0 { // round robin begins anywhere
			continue
		}
		if got, want := stepsOf(t, r), toWorkers+"decode@w0!no_reply place decode@w1 stream@w1"; got != want {
			t.Errorf("steps are %q, want %q", got, want)
		}
		if r.Worker != "w1" || r.Outcome() != record.OK {
			t.Errorf("got %+v", *r)
		}
		return
	}
}

// Both legs of a hand-over are there, also where they run side by side.
func TestRecordsOfHandovers(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang", "trtllm"} {
		t.Run(engine, func(t *testing.T) {
			from := startSim(t, sim.Options{Engine: engine, Speedup: 1000, Role: "prefill"})
			to := startSim(t, sim.Options{Engine: engine, Speedup: 1000, Role: "decode"})
			p := startProxy(t, autoSettings(engine, []string{from.url}, []string{to.url}))
			o := observe(p)
			p.ask(t, "/v1/chat/completions", longChat("a", withUsage))
			r := o.nth(t, 1)
			steps := stepsOf(t, r)
			if !strings.HasPrefix(steps, toWorkers+"prefill@") || !strings.HasSuffix(steps, " stream@"+r.Worker) || strings.Count(steps, "@") != 3 {
				t.Errorf("steps are %q", steps)
			}
			if r.Prefill == "" || r.Prefill == r.Worker || r.Completion <= 0 || r.Prompt <= 0 {
				t.Errorf("got %+v", *r)
			}
			// SGLang's runs beside the other, and is stopped where the client goes with its answer.
			prefill := r.Steps[slices.IndexFunc(r.Steps, func(s record.Step) bool { return s.Name == record.Prefill })]
			if prefill.Leg.Worker != r.Prefill || prefill.Leg.Status != 200 && engine != "sglang" || prefill.End == prefill.Begin {
				t.Errorf("the prefill leg is %+v", prefill)
			}
		})
	}
}

// A placement by price has its candidates, the chosen ones first.
func TestRecordOfCandidates(t *testing.T) {
	p, _ := startPlacing(t, 3, nil)
	o := observe(p)
	p.ask(t, "/v1/chat/completions", wordy("a", 200, ""))
	r := o.nth(t, 1)
	c := r.Placement.Candidates
	if len(c) != 3 || r.Placement.LeftOut != 0 || !c[0].Chosen || c[1].Chosen || c[0].Worker != r.Worker || c[0].Parts[0].Name == "" || c[1].Cost > c[2].Cost {
		t.Errorf("candidates are %+v", c)
	}
	if r.Placement.Policy == "" || r.Placement.Blocks == 0 || r.Placement.Tokens == 0 || !r.Placement.Priced {
		t.Errorf("the placement is %+v", r.Placement)
	}
}

// A hit names its entry and no worker.
func TestRecordOfAHit(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	id := p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	o := observe(p)
	p.ask(t, "/v1/chat/completions", towerAsked)
	r := o.nth(t, 1)
	if got, want := stepsOf(t, r), "identify read admit judge guard reuse"; got != want {
		t.Errorf("steps are %q, want %q", got, want)
	}
	if r.Outcome() != record.FromCache || r.Cache.Entry != id.String() || r.Cache.Similarity < 0.99 || r.Worker != "" || r.Completion != -1 {
		t.Errorf("got %+v", *r)
	}
}

// Looking at requests costs none of them an allocation.
func TestAllocationsOfAnObservedRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	seen := 0
	observed = func(p *testProxy) { p.Observe(func(r *record.Record) { seen += len(r.Steps) }) }
	defer func() { observed = nil }()
	once, done := plainWay(t)
	defer done()
	if got, _ := allocationsOf(t, once); got > allocsPerRequest+0.5 || seen == 0 {
		t.Errorf("%.2f allocations a request, want %d; %d steps", got, allocsPerRequest, seen)
	}
}
