// What is learnt of simulated engines and heard from them, over HTTP and ZeroMQ.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvindex"
	"kvasir/logtest"
	"kvasir/sim"
	"kvasir/sim/simtest"
)

// unasked is a worker that no goroutine asks: the test does.
func unasked(t *testing.T, s Settings) (*watch, *logtest.Buffer) {
	t.Helper()
	log := &logtest.Buffer{}
	w, err := NewWorker(s, testTimeouts)
	if err != nil {
		t.Fatal(err)
	}
	kvroute.NewPool(kvroute.PoolOptions{Workers: []*kvroute.Worker{w.Worker}}).Start()
	a := &watch{w: w, h: &Hooks{Log: zerolog.New(log), Bug: func(fault any, what string) { t.Errorf("%s: %v", what, fault) }}}
	t.Cleanup(func() {
		a.close()
		w.Conns.CloseIdle()
	})
	return a, log
}

func (t *watch) learnNow() {
	t.learned = time.Time{}
	t.learn(context.Background(), nil)
}

// holds says how many leading blocks of a prompt the index has for a worker.
func holds(w *Worker, tokens []uint32, size int) func(want int) bool {
	return func(want int) bool {
		cache := w.Cache(0)
		return cache != nil && cache.BlockSize() == size && cache.Held() >= want && w.Engine().Events
	}
}

// What events say of blocks is right: another size than the engine's figures is corrected, said once, and stays.
func TestWrongBlockSize(t *testing.T) {
	e := simtest.Start(t, sim.Options{Name: "w0", BlockSize: 16, Events: true}, nil)
	a, log := unasked(t, Settings{Name: "w0", URL: "http://" + e.Web, Engine: "dynamo", KVEvents: "tcp://" + e.Events, KVReplay: "tcp://" + e.Replay})
	a.w.SetEngine(kvroute.EngineFacts{BlockSize: 32})
	a.facts.BlockSize = 32
	wrong := func() { // as an engine would say
		a.follow(facts{EngineFacts: kvroute.EngineFacts{BlockSize: 32}}, mustSources(t, a.w))
	}
	wrong()
	for n := range 4 {
		e.Complete(t, 64+20*n)
	}
	waitUntil(t, "the size is corrected and all is learnt anew", func() bool { return holds(a.w, simtest.Sequence(100), 16)(7) })
	wrong()
	if f := a.w.Engine(); f.BlockSize != 16 || !holds(a.w, simtest.Sequence(100), 16)(7) {
		t.Errorf("the engine's figure has won: %+v", f)
	}
	const text = "its KV blocks have 16 tokens, 32 were assumed"
	if n := strings.Count(log.String(), text); n != 1 || !strings.Contains(log.String(), `"level":"error"`) {
		t.Errorf("the log says it %d times: %s", n, log)
	}
}

func mustSources(t *testing.T, w *Worker) []holdings.Source {
	t.Helper()
	sources, err := configuredSources(w.Settings, 1)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// An engine that was started anew is found out by its start time where events do not say so, and once.
func TestRestartIsFound(t *testing.T) {
	e := simtest.Start(t, sim.Options{Name: "w0"}, nil)
	a, log := unasked(t, Settings{Name: "w0", URL: "http://" + e.Web, Engine: "vllm"})
	a.learnNow()
	began := a.facts.started
	if began == 0 {
		t.Fatal("it does not say when it was started")
	}
	cache := a.w.Cache(0)
	if err := cache.Store(kvindex.Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 16), BlockSize: 16}); err != nil {
		t.Fatal(err)
	}
	a.learnNow()
	if a.w.Cache(0).Held() != 1 {
		t.Error("the same process is taken for another")
	}
	a.facts.started -= 5
	a.learnNow()
	if a.w.Cache(0) == cache || a.w.Cache(0).Held() != 0 || a.w.heard.restarts.Load() != 1 || !strings.Contains(log.String(), "started anew") {
		t.Errorf("%d blocks of the process before are held: %s", a.w.Cache(0).Held(), log)
	}
	a.learnNow()
	if a.w.heard.restarts.Load() != 1 {
		t.Error("a restart is found twice")
	}
}

// An engine that its events say was started anew is not forgotten a second time when its start time is read.
func TestRestartIsNotFoundTwice(t *testing.T) {
	o := sim.Options{Name: "w0", Events: true}
	e := simtest.Start(t, o, nil)
	a, _ := unasked(t, Settings{Name: "w0", URL: "http://" + e.Web, Engine: "vllm"})
	a.learnNow()
	e.Complete(t, 100)
	waitUntil(t, "the blocks are known", func() bool { return holds(a.w, nil, 16)(6) })
	e.Stop()
	again := simtest.Start(t, o, e)
	again.Complete(t, 40)
	waitUntil(t, "the events have said so", func() bool { return a.w.heard.restarts.Load() == 1 && holds(a.w, nil, 16)(2) })
	before := a.w.Cache(0)
	a.learnNow()
	if a.w.heard.restarts.Load() != 1 || a.w.Cache(0) != before {
		t.Error("the restart was found twice")
	}
}

// What is wrong with events is among the reasons of /readyz, for as long as it matters.
func TestReasonsOfEvents(t *testing.T) {
	const nobody = "127.0.0.1:1" // a port that was free a moment ago may be another test's
	a, log := unasked(t, Settings{Name: "a", URL: "http://" + nobody, Engine: "dynamo", KVEvents: "tcp://" + nobody})
	a.learnNow()
	waitUntil(t, "it is in the log", func() bool { return strings.Contains(log.String(), "trouble with KV events") })
	now := time.Now()
	if why := a.w.EventReasons(now.Add(reasonWaits / 2)); len(why) != 0 {
		t.Errorf("at once: %q", why)
	}
	why := a.w.EventReasons(now.Add(time.Minute))
	if len(why) != 1 || !strings.HasPrefix(why[0], `worker "a": its KV events of rank 0 are not heard for `) || !strings.Contains(why[0], "connection refused") {
		t.Errorf("after a minute: %q", why)
	}
	a.w.Settings.KVEvents = "ipc:///nowhere"
	if _, err := configuredSources(a.w.Settings, 2); err == nil {
		t.Error("a second rank of an address without a port is no error")
	}
}

// Counters that should stay 0 are told when they grow, and are a reason for a while; what was counted before is no news.
func TestLateTransfers(t *testing.T) {
	a, log := unasked(t, Settings{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	now := time.Now()
	a.noteTransfers(facts{late: 5, expired: 7})
	a.noteTransfers(facts{late: 5, expired: 7})
	if strings.Contains(log.String(), "wrong text") {
		t.Errorf("what was counted before is news: %s", log)
	}
	a.noteTransfers(facts{late: 6, expired: 9})
	if got := log.String(); !strings.Contains(got, "wrong text") || !strings.Contains(got, "nobody had fetched") {
		t.Errorf("the log says %s", got)
	}
	late := func(at time.Time) bool {
		return slices.ContainsFunc(a.w.EventReasons(at), func(s string) bool { return strings.Contains(s, "answers may have wrong text") })
	}
	if !late(now.Add(time.Second)) || late(now.Add(time.Hour)) {
		t.Error("fetches that came too late are no reason, or for ever")
	}
	if n := a.w.Counts().Late; n != 6 {
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
		a, log := unasked(t, Settings{Name: "a", URL: rawWorker(t, c.reply), Engine: "vllm"})
		a.learnNow()
		a.learnNow()
		said := strings.Count(log.String(), "cannot learn what the engine is")
		if c.problem == "" && said != 0 || c.problem != "" && (said != 1 || !strings.Contains(log.String(), c.problem)) {
			t.Errorf("%s: the log says %s", c.name, log)
		}
		if a.w.Engine().Events {
			t.Errorf("%s: it is said to have events", c.name)
		}
	}
}

// Prompts and events are named from the same seeds.
func TestSeeds(t *testing.T) {
	o := (&watch{w: &Worker{}}).listenerOptions()
	for _, c := range []struct {
		model      Listed
		salt, lora string
	}{
		{Listed{Name: "qwen"}, "", ""},
		{Listed{Name: "an alias"}, "s", ""},
		{Listed{Name: "poet", Parent: "qwen"}, "", "poet"},
		{Listed{Name: "poet", Parent: "qwen"}, "s", "poet"},
	} {
		if SeedOf(c.model, c.salt) != o.Seed(c.lora, c.salt) {
			t.Errorf("%+v with salt %q: prompts and events have different seeds", c.model, c.salt)
		}
	}
	if SeedOf(Listed{Name: "poet", Parent: "qwen"}, "") == SeedOf(Listed{Name: "poet"}, "") {
		t.Error("an adapter shares blocks with its model")
	}
}

// An event that contradicts itself is told the first, second, fourth time.
func TestReporter(t *testing.T) {
	a, log := unasked(t, Settings{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	report := a.reporter()
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
	a, log := unasked(t, Settings{Name: "a", URL: "http://127.0.0.1:1", Engine: "vllm"})
	report := a.reporter()
	for i := range 1000 {
		report(0, fmt.Errorf("lost %d messages", i))
		report(0, &kvindex.BlockSizeError{Want: 16, Got: 32 + i%2})
		a.restarted("its KV events count from 0 again")
	}
	if n := strings.Count(log.String(), "\n"); n != hushLines {
		t.Errorf("%d lines: %.2000s", n, log)
	}
	a.w.Quiet.since = time.Now().Add(-hushFor)
	report(0, errors.New("after a minute"))
	if got := log.String(); !strings.Contains(got, "after a minute") || !strings.Contains(got, `"untold":2990`) {
		t.Errorf("what was not told is not counted: %s", got)
	}
	if n := a.w.heard.restarts.Load(); n != 1000 {
		t.Errorf("%d restarts are counted", n)
	}
}
