// Workers that sources find: what is told of them, and what a change of the source alone does.

package proxy

import (
	"slices"
	"strings"
	"testing"

	"kvasir/discovery"
)

// TestSourcesAreReasons: a source that fails, and what sources do not agree about, make
// readiness degraded, not less.
func TestSourcesAreReasons(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Sources = func() []discovery.Status {
		return []discovery.Status{
			{Source: "file a", Workers: 2, Problem: "a.yaml:1:1: one\na.yaml:2:1: two"}, {Source: "dns b:1", Problem: "no answer in time"}, {Source: "dns c:1", Workers: 1},
		}
	}
	s.Conflicts = []string{"file a and dns c:1 do not agree"}
	p := startProxy(t, s)
	got := p.Readiness()
	want := []string{
		"discovery: file a: a.yaml:1:1: one; a.yaml:2:1: two; what it said before holds (2 workers)",
		"discovery: dns b:1: no answer in time",
		"discovery: file a and dns c:1 do not agree",
	}
	if got.Status != "degraded" || got.Code != 200 || !slices.Equal(got.Reasons, want) {
		t.Errorf("readiness is %+v, reasons should be %q", got, want)
	}
}

// TestNoneFoundYet: while sources have found no worker at all, a client is told to come back.
func TestNoneFoundYet(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Workers, s.Models = nil, nil
	s.Sources = func() []discovery.Status { return []discovery.Status{{Source: "dns b:1"}} }
	p := startProxy(t, s)
	got := p.ask(t, "/v1/chat/completions", plainChat)
	if got.StatusCode != 503 || got.Header.Get("Retry-After") == "" || !strings.Contains(got.body, "no worker has been found yet") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if r := p.Readiness(); !slices.Contains(r.Reasons, "discovery: no source has found a worker") || r.Code != 503 {
		t.Errorf("readiness is %+v", r)
	}
}

// TestAnotherSourceKeepsTheWorker: a worker that moves from one source to another, or into
// the configuration, keeps its connections and all that is known of it.
func TestAnotherSourceKeepsTheWorker(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Workers[0].Source = "file a"
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", plainChat)
	before := p.state.Load().ordered[0]
	for _, source := range []string{"dns b:1", ""} {
		next := settingsFor(w.url)
		next.Workers[0].Source = source
		judges := p.state.Load().classifier
		if err := p.ApplyWorkers(next); err != nil {
			t.Fatal(err)
		}
		if p.state.Load().classifier != judges {
			t.Error("the classifier was made anew")
		}
		if now := p.state.Load().ordered[0]; now != before || now.Source() != source || now.Conns.Count() == 0 {
			t.Errorf("from source %q: another worker %v, its source is %q, %d connections", source, now != before, now.Source(), now.Conns.Count())
		}
	}
}

// TestForgottenWorkers: what is counted for a worker ends with it, for sources find new names all the time.
func TestForgottenWorkers(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	p.metrics.workerErrors.WithLabelValues("w0", "connect").Inc()
	next := settingsFor(w.url)
	if err := p.ApplyWorkers(next); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.metricsPage(t), `kvasir_worker_failures_total{reason="connect",worker="w0"} 1`) {
		t.Error("a worker that stays lost its count")
	}
	next = settingsFor(w.url)
	next.Workers[0].Name = "another"
	if err := p.ApplyWorkers(next); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.metricsPage(t), `worker="w0"`) {
		t.Error("a worker that is gone is counted still")
	}
}
