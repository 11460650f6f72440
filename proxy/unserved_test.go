// Names of models that no worker serves: what says so, and what auto does then.

package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/classify"
	"kvasir/kvroute"
)

func TestUnserved(t *testing.T) {
	s := &Settings{
		Models: []Model{{Name: "qwen", Default: true, Fallback: []string{"qwen-smal", "other"}}, {Name: "lora-of-tomorrow"}},
		Keys:   []Key{{Name: "k", Models: []string{"auto", "MoM", "other", "gone"}}},
	}
	s.Classify.Decisions = []classify.Decision{{Name: "maths", Model: "gone"}, {Name: "brief"}}
	tell := func(served ...string) (told []string) {
		all := s.Unserved(served)
		for i := range all {
			told = append(told, fmt.Sprint(&all[i], all[i].Standard))
		}
		return told
	}
	for _, row := range []struct {
		served, want []string
	}{
		{[]string{"gone", "other", "qwen", "qwen-smal"}, nil},
		{[]string{"other", "qwen-small"}, []string{
			`model "qwen" (the default) is served by no worker; served: other, qwen-small false`,
			`model "qwen-smal" (a fallback of "qwen") is served by no worker, did you mean "qwen-small"? false`,
			`model "gone" (of decision "maths") is served by no worker; served: other, qwen-small false`,
			`model "gone" (of key "k") is served by no worker; served: other, qwen-small false`,
		}},
	} {
		if got := tell(row.served...); !slices.Equal(got, row.want) {
			t.Errorf("with %q:\n%s", row.served, strings.Join(got, "\n"))
		}
	}
}

// TestUnservedIsTold: the default model that nobody serves makes readiness fail, any other degrades
// it, and each is logged once; while a worker has yet to say what it serves nothing is said.
func TestUnservedIsTold(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Models = []Model{{Name: "m", Default: true, Fallback: []string{"n"}}}
	p := startProxy(t, s)
	const lost = `model "n" (a fallback of "m") is served by no worker, did you mean "m"?`
	if r := p.Readiness(); r.Status != "degraded" || r.Code != 200 || !slices.Contains(r.Reasons, lost) {
		t.Errorf("readiness is %+v", r)
	}
	next := settingsFor(w.url)
	next.Models = []Model{{Name: "wrong", Default: true, Fallback: []string{"m"}}}
	if err := p.Apply(next); err != nil {
		t.Fatal(err)
	}
	if r := p.Readiness(); r.Status != "degraded" || r.Code != 200 {
		t.Errorf("with a fallback that is served readiness is %+v", r)
	}
	next = settingsFor(w.url)
	next.Models = []Model{{Name: "wrong", Default: true}}
	for range 2 {
		if err := p.Apply(next); err != nil {
			t.Fatal(err)
		}
	}
	if r := p.Readiness(); r.Status != "the default model is not served" || r.Code != 503 {
		t.Errorf("readiness is %+v", r)
	}
	if n := strings.Count(p.log.String(), `model \"wrong\" (the default) is served by no worker; served: m`); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	got := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"auto"`, 1))
	if got.StatusCode != 404 || !strings.Contains(got.body, `\"auto\" stands for the model \"wrong\" here, which no worker serves`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	mute := settingsFor(w.url)
	mute.Models = next.Models
	mute.Workers = append(mute.Workers, Worker{Name: "mute", URL: "http://127.0.0.1:1"})
	if err := p.Apply(mute); err != nil {
		t.Fatal(err)
	}
	if r := p.Readiness(); strings.Contains(strings.Join(r.Reasons, "\n"), "served by no worker") {
		t.Errorf("readiness is %+v", r)
	}
}

// TestDecidedModelFallsBack: a decision's model that is down, or that nobody serves, gives way to the
// default one if the client left the choice to us.
func TestDecidedModelFallsBack(t *testing.T) {
	for _, decided := range []string{"dead", "nobody"} {
		w := goodWorker(t)
		s := settingsFor(w.url)
		s.Workers = append(s.Workers, Worker{Name: "dead", URL: "http://127.0.0.1:1", Models: []string{"dead"}})
		s.Classify.Signals = []classify.SignalOptions{{Name: "k", Kind: classify.KindKeyword, Keywords: []string{"hi"}}}
		s.Classify.Decisions = []classify.Decision{{
			Name: "d", Explicit: true, Model: decided, When: classify.Condition{Is: []classify.Is{{Kind: classify.KindKeyword, Values: []string{"k"}}}},
		}}
		alone := *s
		alone.Models = append([]Model{{Name: decided, Fallback: []string{}}}, s.Models...)
		if a := startProxy(t, &alone).ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"auto"`, 1)); a.StatusCode == 200 {
			t.Errorf("%s, which has no fallback: answered by %q", decided, a.Header.Get("x-kvasir-fallback"))
		}
		p := startProxy(t, s)
		if a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"auto"`, 1)); a.StatusCode != 200 || a.Header.Get("x-kvasir-fallback") != "m" {
			t.Errorf("%s: %d %s, fallback %q", decided, a.StatusCode, a.body, a.Header.Get("x-kvasir-fallback"))
		}
		if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode == 200 {
			t.Errorf("%s: a client that named its model was answered by %q", decided, a.Header.Get("x-kvasir-fallback"))
		}
	}
}

// TestAutoIsServed: without a default model auto is one that a worker which is well serves, not the first by name whose
// workers are down; and asking for it allocates nothing.
func TestAutoIsServed(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Models = nil
	s.Workers = append([]Worker{{Name: "dead", URL: "http://127.0.0.1:1", Models: []string{"a-dead-one"}}}, s.Workers...)
	p := startProxy(t, s)
	dead := p.state.Load().byName()["dead"]
	waitUntil(t, "the dead worker is known as such", func() bool { return dead.Status(time.Now()).State == kvroute.Down })
	if a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"auto"`, 1)); a.StatusCode != 200 {
		t.Errorf("auto is answered with %d %s", a.StatusCode, a.body)
	}
	state := p.state.Load()
	if n := testing.AllocsPerRun(100, func() { state.defaultModel() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
