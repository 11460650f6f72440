// What the proxy learns of simulated engines and hears from them, over HTTP and ZeroMQ.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// A simulated is an engine on loopback that publishes its events.
type simulated struct {
	*sim.Server
	web, events, replay string // host:port
	serving             sync.WaitGroup
}

// startSimulated starts an engine of the model m; at picks its addresses, in the order of the fields, if it is not nil.
func startSimulated(t testing.TB, o sim.Options, at *simulated) *simulated {
	t.Helper()
	o.Model, o.Speedup = "m", 1000
	server, err := sim.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulated{Server: server}
	addresses := [3]string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}
	if at != nil {
		addresses = [3]string{at.web, at.events, at.replay}
	}
	if o.Events {
		s.events = s.serve(t, addresses[1], server.ServeEvents)
		s.replay = s.serve(t, addresses[2], server.ServeReplay)
		waitUntil(t, "it says where its events are", func() bool { return strings.Count(fetchFrom(t, s.serveOnce(t), "/kv_event_sources"), "tcp://") == 2 })
	}
	s.web = s.serve(t, addresses[0], server.Serve)
	t.Cleanup(s.stop)
	return s
}

// serveOnce is an address of the engine's that nobody else knows.
func (s *simulated) serveOnce(t testing.TB) string { return s.serve(t, "127.0.0.1:0", s.Serve) }

func (s *simulated) serve(t testing.TB, address string, serve func(net.Listener) error) string {
	t.Helper()
	var ln net.Listener
	waitUntil(t, "the address is free", func() (free bool) { // one that is used again may be another's for a moment
		var err error
		if ln, err = net.Listen("tcp", address); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.serving.Go(func() {
		if err := serve(ln); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func (s *simulated) stop() {
	_ = s.Close()
	s.serving.Wait()
}

// complete asks the engine itself for an answer to a prompt of n tokens.
func (s *simulated) complete(t testing.TB, n int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tokens := strings.Trim(fmt.Sprint(sequence(n)), "[]")
	resp, err := client.Post("http://"+s.web+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":3,"prompt":[`+strings.ReplaceAll(tokens, " ", ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, string(body))
	}
}

func sequence(n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(97 + i%26)
	}
	return tokens
}

func (p *testProxy) backendOf(t testing.TB, name string) *backend {
	t.Helper()
	for _, b := range p.state.Load().backends {
		if b.Name() == name {
			return b
		}
	}
	t.Fatalf("there is no worker %q", name)
	return nil
}

// holds says how many leading blocks of a prompt the index has for a worker.
func holds(b *backend, tokens []uint32, size int) func(want int) bool {
	return func(want int) bool {
		cache := b.Cache(0)
		return cache != nil && cache.BlockSize() == size && cache.Held() >= want && b.Engine().Events
	}
}

// A worker that publishes is found, asked what it is, and heard; a reload that names it as before does not disturb that;
// one that names it no longer ends it.
func TestEventsAreFoundAndHeard(t *testing.T) {
	e := startSimulated(t, sim.Options{Name: "w0", BlockSize: 32, Blocks: 2000, Events: true}, nil)
	quiet := startSimulated(t, sim.Options{Name: "w1"}, nil)
	p := startProxy(t, settingsFor("http://"+e.web, "http://"+quiet.web))
	b := p.backendOf(t, "w0")
	e.complete(t, 200)
	waitUntil(t, "the blocks are known", func() bool { return holds(b, sequence(200), 32)(6) })
	want := kvroute.EngineFacts{BlockSize: 32, Blocks: 2000, Ranks: 1, Events: true}
	if f := b.Engine(); f != want {
		t.Errorf("the engine is %+v, want %+v", f, want)
	}
	other := p.backendOf(t, "w1")
	waitUntil(t, "the one without events is known, too", func() bool { return other.Engine().Blocks == 16384 })
	if f := other.Engine(); f.Events || f.BlockSize != 16 || len(other.listening.facts()) != 0 {
		t.Errorf("the engine without events is %+v", f)
	}
	waitUntil(t, "the blocks are counted", func() bool { // behind their coming into the index
		return p.metric(t, `kvasir_kv_events_total{kind="stored",worker="w0"}`) != "0"
	})
	scrape := fetchFrom(t, p.admin, "/metrics")
	for _, line := range []string{
		`kvasir_kv_events_connected{worker="w0"} 1`, `kvasir_kv_events_sources{worker="w0"} 1`, `kvasir_kv_events_sources{worker="w1"} 0`,
		`kvasir_kv_blocks_held{worker="w0"} 6`, `kvasir_kv_index_blocks{by="events"} 6`, `kvasir_kv_index_blocks{by="predicted"} 0`, `kvasir_kv_block_tokens{worker="w0"} 32`, `kvasir_kv_block_tokens_mismatch{worker="w0"} 0`,
		`kvasir_kv_events_total{kind="stored",worker="w0"} 6`, `kvasir_kv_messages_total{how="lost",worker="w0"} 0`,
		`kvasir_kv_clears_total{why="engine restarted",worker="w0"} 0`, `kvasir_kv_transfers_late_total{worker="w0"} 0`,
	} {
		if !strings.Contains(scrape, line+"\n") {
			t.Errorf("/metrics lack %s, and have\n%s", line, scrape)
		}
	}
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.Contains(got, `{"status":"ready","reasons":[]}`) {
		t.Errorf("/readyz says %s", got)
	}

	if err := p.Apply(settingsFor("http://"+e.web, "http://"+quiet.web)); err != nil {
		t.Fatal(err)
	}
	if f := b.listening.facts(); p.backendOf(t, "w0") != b || len(f) != 1 || f[0].Connections != 1 || f[0].Held != 6 {
		t.Errorf("after a reload: %+v", f)
	}
	gone := settingsFor("http://" + quiet.web)
	gone.Workers[0].Name = "w1"
	if err := p.Apply(gone); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "nobody listens any more", func() bool { return len(b.listening.facts()) == 0 })
}

// Addresses of the configuration are taken as they are, whatever the engine says or is; their block size comes from the
// first event.
func TestConfiguredEvents(t *testing.T) {
	e := startSimulated(t, sim.Options{Name: "w0", BlockSize: 8, Events: true}, nil)
	s := settingsFor("http://" + e.web)
	s.Workers[0].Engine = "dynamo"
	s.Workers[0].KVEvents, s.Workers[0].KVReplay = "tcp://"+e.events, "tcp://"+e.replay
	p := startProxy(t, s)
	b := p.backendOf(t, "w0")
	e.complete(t, 100)
	waitUntil(t, "the blocks are known", func() bool { return holds(b, sequence(100), 8)(12) })
	waitUntil(t, "so is their size", func() bool { return b.Engine().BlockSize == 8 })
	moved := *s
	moved.Workers = slices.Clone(s.Workers)
	moved.Workers[0].KVReplay = ""
	if err := p.Apply(&moved); err != nil {
		t.Fatal(err)
	}
	if p.backendOf(t, "w0") == b {
		t.Error("a worker whose events come from elsewhere is the same")
	}
}

// unasked is a worker that no goroutine asks: the test does.
func unasked(t *testing.T, w Worker) (prober, *backend, *syncBuffer) {
	t.Helper()
	log := &syncBuffer{}
	p, err := New(zerolog.New(log), "test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBackend(w, settingsFor().Timeouts)
	if err != nil {
		t.Fatal(err)
	}
	kvroute.NewPool(kvroute.PoolOptions{Workers: []*kvroute.Worker{b.Worker}}).Start()
	t.Cleanup(func() {
		b.listening.close()
		b.conns.CloseIdle()
		_ = p.Close()
	})
	return prober{p}, b, log
}

func (p prober) learnNow(b *backend) {
	b.listening.asked = time.Time{}
	p.learn(context.Background(), b, nil)
}

// What events say of blocks is right: another size than the engine's figures is corrected, said once, and stays.
func TestWrongBlockSize(t *testing.T) {
	e := startSimulated(t, sim.Options{Name: "w0", BlockSize: 16, Events: true}, nil)
	p, b, log := unasked(t, Worker{Name: "w0", URL: "http://" + e.web, Engine: "dynamo", KVEvents: "tcp://" + e.events, KVReplay: "tcp://" + e.replay})
	b.SetEngine(kvroute.EngineFacts{BlockSize: 32})
	b.listening.learnt.BlockSize = 32
	wrong := func() { // as an engine would say
		p.follow(b, engineFacts{EngineFacts: kvroute.EngineFacts{BlockSize: 32}}, mustSources(t, b))
	}
	wrong()
	for n := range 4 {
		e.complete(t, 64+20*n)
	}
	waitUntil(t, "the size is corrected and all is learnt anew", func() bool { return holds(b, sequence(100), 16)(7) })
	wrong()
	if f := b.Engine(); f.BlockSize != 16 || !holds(b, sequence(100), 16)(7) {
		t.Errorf("the engine's figure has won: %+v", f)
	}
	const text = "its KV blocks have 16 tokens, 32 were assumed"
	if n := strings.Count(log.String(), text); n != 1 || !strings.Contains(log.String(), `"level":"error"`) {
		t.Errorf("the log says it %d times: %s", n, log)
	}
}

func mustSources(t *testing.T, b *backend) []holdings.Source {
	t.Helper()
	sources, err := configuredSources(b.settings, 1)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// An engine that was started anew is found out by its start time where events do not say so, and once.
func TestRestartIsFound(t *testing.T) {
	e := startSimulated(t, sim.Options{Name: "w0"}, nil)
	p, b, log := unasked(t, Worker{Name: "w0", URL: "http://" + e.web, Engine: "vllm"})
	p.learnNow(b)
	began := b.listening.learnt.started
	if began == 0 {
		t.Fatal("it does not say when it was started")
	}
	cache := b.Cache(0)
	if err := cache.Store(kvindex.Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 16), BlockSize: 16}); err != nil {
		t.Fatal(err)
	}
	p.learnNow(b)
	if b.Cache(0).Held() != 1 {
		t.Error("the same process is taken for another")
	}
	b.listening.learnt.started -= 5
	p.learnNow(b)
	if b.Cache(0) == cache || b.Cache(0).Held() != 0 || b.listening.restarts.Load() != 1 || !strings.Contains(log.String(), "started anew") {
		t.Errorf("%d blocks of the process before are held: %s", b.Cache(0).Held(), log)
	}
	p.learnNow(b)
	if b.listening.restarts.Load() != 1 {
		t.Error("a restart is found twice")
	}
}

// An engine that its events say was started anew is not forgotten a second time when its start time is read.
func TestRestartIsNotFoundTwice(t *testing.T) {
	o := sim.Options{Name: "w0", Events: true}
	e := startSimulated(t, o, nil)
	p, b, _ := unasked(t, Worker{Name: "w0", URL: "http://" + e.web, Engine: "vllm"})
	p.learnNow(b)
	e.complete(t, 100)
	waitUntil(t, "the blocks are known", func() bool { return holds(b, nil, 16)(6) })
	e.stop()
	again := startSimulated(t, o, e)
	again.complete(t, 40)
	waitUntil(t, "the events have said so", func() bool { return b.listening.restarts.Load() == 1 && holds(b, nil, 16)(2) })
	before := b.Cache(0)
	p.learnNow(b)
	if b.listening.restarts.Load() != 1 || b.Cache(0) != before {
		t.Error("the restart was found twice")
	}
}

// What is wrong with events is among the reasons of /readyz, for as long as it matters.
func TestReasonsOfEvents(t *testing.T) {
	const nobody = "127.0.0.1:1" // a port that was free a moment ago may be another test's
	p, b, log := unasked(t, Worker{Name: "a", URL: "http://" + nobody, Engine: "dynamo", KVEvents: "tcp://" + nobody})
	p.learnNow(b)
	waitUntil(t, "it is in the log", func() bool { return strings.Contains(log.String(), "trouble with KV events") })
	now := time.Now()
	if why := b.listening.reasons(b, now.Add(reasonWaits/2)); len(why) != 0 {
		t.Errorf("at once: %q", why)
	}
	why := b.listening.reasons(b, now.Add(time.Minute))
	if len(why) != 1 || !strings.HasPrefix(why[0], `worker "a": its KV events of rank 0 are not heard for `) || !strings.Contains(why[0], "connection refused") {
		t.Errorf("after a minute: %q", why)
	}
	b.settings.KVEvents = "ipc:///nowhere"
	if _, err := configuredSources(b.settings, 2); err == nil {
		t.Error("a second rank of an address without a port is no error")
	}
}

// Counters that should stay 0 are told when they grow, and are a reason for a while; what was counted before is no news.
func TestLateTransfers(t *testing.T) {
	p, b, log := unasked(t, Worker{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	now := time.Now()
	p.noteTransfers(b, engineFacts{late: 5, expired: 7})
	p.noteTransfers(b, engineFacts{late: 5, expired: 7})
	if strings.Contains(log.String(), "wrong text") {
		t.Errorf("what was counted before is news: %s", log)
	}
	p.noteTransfers(b, engineFacts{late: 6, expired: 9})
	if got := log.String(); !strings.Contains(got, "wrong text") || !strings.Contains(got, "nobody had fetched") {
		t.Errorf("the log says %s", got)
	}
	late := func(at time.Time) bool {
		return slices.ContainsFunc(b.listening.reasons(b, at), func(s string) bool { return strings.Contains(s, "answers may have wrong text") })
	}
	if !late(now.Add(time.Second)) || late(now.Add(time.Hour)) {
		t.Error("fetches that came too late are no reason, or for ever")
	}
	if n := b.listening.late.last.Load(); n != 6 {
		t.Errorf("the metric is %d", n)
	}
}

// Engines that keep their figures and events to themselves are no trouble; others are told once.
func TestEnginesThatDoNotSay(t *testing.T) {
	for _, c := range []struct {
		name, reply, problem string
	}{
		{"not there", httpReply(404, "text/plain", "no"), ""},
		{"not for us", httpReply(403, "text/plain", "no"), ""},
		{"ill", httpReply(500, "text/plain", "no"), "/metrics answers 500"},
		{"nonsense", httpReply(200, "text/plain", "no"), "cannot read where KV events come from"},
		{"gone", "", "cannot ask /metrics: EOF"},
	} {
		p, b, log := unasked(t, Worker{Name: "a", URL: rawWorker(t, c.reply), Engine: "vllm"})
		p.learnNow(b)
		p.learnNow(b)
		said := strings.Count(log.String(), "cannot learn what the engine is")
		if c.problem == "" && said != 0 || c.problem != "" && (said != 1 || !strings.Contains(log.String(), c.problem)) {
			t.Errorf("%s: the log says %s", c.name, log)
		}
		if b.Engine().Events {
			t.Errorf("%s: it is said to have events", c.name)
		}
	}
}

// Prompts and events are named from the same seeds.
func TestSeeds(t *testing.T) {
	o := prober{}.listenerOptions(&backend{})
	for _, c := range []struct {
		model      servedModel
		salt, lora string
	}{
		{servedModel{name: "qwen"}, "", ""},
		{servedModel{name: "an alias"}, "s", ""},
		{servedModel{name: "poet", parent: "qwen"}, "", "poet"},
		{servedModel{name: "poet", parent: "qwen"}, "s", "poet"},
	} {
		if seedOf(c.model, c.salt) != o.Seed(c.lora, c.salt) {
			t.Errorf("%+v with salt %q: prompts and events have different seeds", c.model, c.salt)
		}
	}
	if seedOf(servedModel{name: "poet", parent: "qwen"}, "") == seedOf(servedModel{name: "poet"}, "") {
		t.Error("an adapter shares blocks with its model")
	}
}

// An event that contradicts itself is told the first, second, fourth time.
func TestReporter(t *testing.T) {
	p, b, log := unasked(t, Worker{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	report := p.reporter(b)
	for range 100 {
		report(0, kvindex.ErrShape)
	}
	report(0, errors.New("something else"))
	if n := strings.Count(log.String(), "makes no sense"); n != 7 || !strings.Contains(log.String(), "something else") {
		t.Errorf("told %d times: %s", n, log)
	}
}

// A publisher whose every message is trouble does not fill the log. (Gaps, reused hashes, block sizes that take turns
// and restarts had a line each.)
func TestStormsAreHushed(t *testing.T) {
	p, b, log := unasked(t, Worker{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	report := p.reporter(b)
	for i := range 1000 {
		report(0, fmt.Errorf("lost %d messages", i))
		report(0, &kvindex.BlockSizeError{Want: 16, Got: 32 + i%2})
		p.restarted(b, "its KV events count from 0 again")
	}
	if n := strings.Count(log.String(), "\n"); n != hushLines {
		t.Errorf("%d lines: %.2000s", n, log)
	}
	b.listening.quiet.since = time.Now().Add(-hushFor)
	report(0, errors.New("after a minute"))
	if got := log.String(); !strings.Contains(got, "after a minute") || !strings.Contains(got, `"untold":2990`) {
		t.Errorf("what was not told is not counted: %s", got)
	}
	if n := b.listening.restarts.Load(); n != 1000 {
		t.Errorf("%d restarts are counted", n)
	}
}
