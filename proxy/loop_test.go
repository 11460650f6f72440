// A gateway that is its own worker.

package proxy

import (
	"strings"
	"testing"
	"time"
)

// TestLoop: a gateway that is its own worker, alone or by way of another one, refuses its own request
// instead of asking itself until nothing is left, or waiting for itself where requests are coalesced.
func TestLoop(t *testing.T) {
	s := settingsFor("http://127.0.0.1:1")
	s.Timeouts.FirstByte = 5 * time.Second
	p := startProxy(t, s)
	other := startProxy(t, settingsFor("http://"+p.addr))
	for _, worker := range []string{p.addr, other.addr} {
		loop := settingsFor("http://" + worker)
		loop.Retry.Attempts = 0
		if err := p.Apply(loop); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{plainChat, strings.Replace(plainChat, `"m"`, `"m","stream":true,"temperature":1.3`, 1)} {
			if a := p.ask(t, "/v1/chat/completions", body); a.StatusCode != 508 || !strings.Contains(a.body, "loop_detected") {
				t.Errorf("by way of %s: %d %s", worker, a.StatusCode, a.body)
			}
		}
	}
	if n := p.metric(t, `kvasir_requests_in_flight`); n != "0" {
		t.Errorf("%s requests are under way still", n)
	}
}

// TestVia: what a client says of the gateways on the way goes on, bounded, and once.
func TestVia(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	if a := p.ask(t, "/v1/chat/completions", plainChat, "X-Kvasir-Via: another"); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if got := w.head(0)["X-Kvasir-Via"]; len(got) != 1 || got[0] != "another, "+p.mark {
		t.Errorf("the worker was sent %q", got)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "X-Kvasir-Via: "+strings.Repeat("a", maxVia+1)); a.StatusCode != 508 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
