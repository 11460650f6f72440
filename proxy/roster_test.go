// Tests of what operators are shown of workers, and of draining one.

package proxy

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/gpu"
	"kvasir/kvroute"
	"kvasir/proxy/hardware/hardwaretest"
	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

// shown is one worker of the roster.
func (p *testProxy) shown(t testing.TB, name string) roster.Worker {
	t.Helper()
	for _, w := range p.Roster(time.Now()) {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("the roster has no worker %q", name)
	return roster.Worker{}
}

// TestRoster: tokens and failures as they were, load where it is followed, and nothing of what is
// not known.
func TestRoster(t *testing.T) {
	good := goodWorker(t)
	bad := startWorker(t, func(net.Conn, string) bool { return false })
	s := settingsFor(good.url, bad.url)
	s.Retry.Budget = 1
	fleet := &hardwaretest.Fleet{}
	fleet.Set(1, func(g []gpu.GPU) { hardwaretest.Everything(&g[0]); hardwaretest.Throttle(g) })
	s.Workers[0].GPUs, s.GPU = []string{"0"}, GPU{Fleet: fleet.Now, Interval: time.Millisecond, Effects: gpu.DefaultEffects()}
	p := startProxy(t, s)
	waitUntil(t, "GPUs were looked at", func() bool { return len(p.shown(t, "w0").GPUs) == 1 })
	for range 20 {
		if r := p.ask(t, "/v1/chat/completions", plainChat); r.StatusCode != 200 {
			t.Fatal(r.StatusCode, r.body)
		}
	}
	// A client has its answer before the request has ended.
	waitUntil(t, "all have ended", func() bool { w := p.shown(t, "w0"); return w.Requests == 0 && w.Tokens.In == 20*7 })
	w := p.shown(t, "w0")
	if w.Tokens.In != 20*7 || w.Tokens.Out != 20*2 || w.State != "up" || !w.TakesRequests || w.Engine != "vllm" || w.Source != "config" || w.Failures != 0 || w.Requests != 0 {
		t.Errorf("the good one is %+v", w)
	}
	if w.Waiting != nil || w.Context != nil || w.Pace != nil || w.Blocks.KnownBy != "none" {
		t.Errorf("without prices it shows %+v", w)
	}
	if g := w.GPUs[0]; g.Name == "" || g.Utilization == nil || *g.Utilization > 1 || len(g.Throttled) == 0 || len(g.Others) != 0 {
		t.Errorf("its GPU is %+v", g)
	}
	if w := p.shown(t, "w1"); w.State != "ejected" || w.TakesRequests || w.Why == "" || w.Failures < 5 || w.Ejections != 1 || len(w.GPUs) != 0 {
		t.Errorf("the bad one is %+v", w)
	}
	s.Routing.Policy = kvroute.Predict
	priced := startProxy(t, s)
	if w := priced.shown(t, "w0"); w.Waiting == nil || *w.Waiting != 0 || w.Context == nil || w.Backlog == nil {
		t.Errorf("with prices it shows %+v", w)
	}
}

// TestDrainWorker: a stream that is under way ends well, new requests go elsewhere, over a reload
// that makes the worker anew, and one that leaves and comes back.
func TestDrainWorker(t *testing.T) {
	release := make(chan struct{})
	slow := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = c.Write([]byte(streamHead + chunk(roleEvent)))
		_, _ = c.Write([]byte(chunk(delta("a"))))
		<-release
		_, err := c.Write([]byte(chunk(finishEvent) + chunk(doneEvent) + chunk("")))
		return err == nil
	})
	s := settingsFor(slow.url)
	p := startProxy(t, s)
	answered := make(chan received, 1)
	go func() { answered <- p.ask(t, "/v1/chat/completions", streamChat) }()
	waitUntil(t, "the stream is under way", func() bool { return p.shown(t, "w0").Requests == 1 })
	if _, err := p.DrainWorker("w1", true); !errors.Is(err, ErrNoSuchWorker) || !strings.Contains(err.Error(), `"w1", did you mean "w0"?`) {
		t.Errorf("a name that is mistyped: %v", err)
	}
	if n, err := p.DrainWorker("w0", true); n != 1 || err != nil {
		t.Errorf("drained: %d, %v", n, err)
	}
	if r := p.ask(t, "/v1/chat/completions", plainChat); r.StatusCode != 503 || !strings.Contains(r.body, "no worker of the model") {
		t.Errorf("a new one gets %d %s", r.StatusCode, r.body)
	}
	if r := p.Readiness(); r.Code != 503 || r.Up != 0 || !strings.Contains(strings.Join(r.Reasons, "\n"), `worker "w0" is draining`) {
		t.Errorf("ready is %+v", r)
	}
	close(release)
	if r := <-answered; r.err != nil || !strings.HasSuffix(r.body, doneEvent) {
		t.Errorf("the stream ended with %v behind %q", r.err, r.body)
	}

	other := goodWorker(t)
	changed := settingsFor(other.url, slow.url) // w0 is another server, and stays drained by its name
	if err := p.Apply(changed); err != nil {
		t.Fatal(err)
	}
	if !p.shown(t, "w0").Draining || p.shown(t, "w1").Draining {
		t.Error("the reload has put it back, or drained the other one")
	}
	without := settingsFor(other.url, slow.url)
	without.Workers = without.Workers[1:]
	for _, next := range []*Settings{without, changed} {
		if err := p.Apply(next); err != nil {
			t.Fatal(err)
		}
	}
	if !p.shown(t, "w0").Draining {
		t.Error("it left and came back, and is drained no more")
	}
	for _, drains := range []bool{true, false} { // while it is away
		for _, next := range []*Settings{without, changed} {
			if err := p.Apply(next); err != nil {
				t.Fatal(err)
			}
			if next == changed {
				continue
			}
			if n, err := p.DrainWorker("w0", drains); n != 0 || err != nil {
				t.Errorf("away, draining %v: %d, %v", drains, n, err)
			}
		}
		if p.shown(t, "w0").Draining != drains {
			t.Errorf("told %v while it was away, it comes back as the opposite", drains)
		}
	}
	if _, err := p.DrainWorker("w0", true); err != nil {
		t.Fatal(err)
	}
	if n, err := p.DrainWorker("w0", false); n != 0 || err != nil {
		t.Errorf("undrained: %d, %v", n, err)
	}
	p.waitForProbes(t)
	waitUntil(t, "it answers again", func() bool {
		r := p.ask(t, "/v1/chat/completions", plainChat)
		return r.StatusCode == 200 && r.Header.Get("x-kvasir-worker") == "w0"
	})
}

// TestForgetDrained: names of workers that are gone do not fill the memory.
func TestForgetDrained(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	p.drained = map[string]bool{}
	for i := range mostDrained {
		p.drained["gone-"+strconv.Itoa(i)] = true
	}
	if _, err := p.DrainWorker("w0", true); err != nil || len(p.drained) != 1 || !p.drained["w0"] {
		t.Errorf("%d names, %v", len(p.drained), err)
	}
}

// TestExplainRecord says of a request what POST /explain says, with its signals.
func TestExplainRecord(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Routing.Policy = kvroute.Predict
	p := startProxy(t, s)
	p.backendOf(t, "w0").SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 1024})
	r := p.explainedRecord(t, plainChat)
	if r.Model != "m" || r.Placement.Why != "predict" || len(r.Placement.Candidates) != 1 || !r.Placement.Candidates[0].Chosen || r.Placement.LeftOut != 0 || r.End != "" {
		t.Errorf("it is %+v", r)
	}
	if r := p.explainedRecord(t, `{"model":"nobody","messages":[{"role":"user","content":"hi"}]}`); r.End == "" || r.Placement.Why != "" {
		t.Errorf("of a model that nobody serves it is %+v", r)
	}
	if _, err := p.DrainWorker("w0", true); err != nil {
		t.Fatal(err)
	}
	if r := p.explainedRecord(t, plainChat); !strings.Contains(r.End, "no worker") {
		t.Errorf("with all workers drained it is %+v", r)
	}
}

// explainedRecord asks for what would become of a body.
func (p *testProxy) explainedRecord(t testing.TB, body string) *record.Record {
	t.Helper()
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.Header.SetContentType("application/json")
	ctx.Request.SetBodyString(body)
	r, err := p.ExplainRecord(ctx, "/v1/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
