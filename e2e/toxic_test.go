// Toxiproxy between Kvasir and a worker: what a client sees of a bad network behind it.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A toxin is one way for a network to be bad, in toxiproxy's words.
type toxin struct {
	kind       string
	direction  string // downstream: what the worker sends; upstream: what Kvasir sends
	attributes string // JSON
}

// A wire is a toxiproxy in front of a worker.
type wire struct {
	*toxiproxy.Proxy
	t *testing.T
}

func newWire(t *testing.T, upstream string) wire {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	w := wire{toxiproxy.NewProxy(server, t.Name(), freeAddress(t), upstream), t}
	if err := w.Start(); err != nil {
		t.Fatalf("cannot start a toxiproxy: %v", err)
	}
	t.Cleanup(w.Stop)
	return w
}

// poison makes the wire bad from the next connection on; connections that are kept are closed, as
// some toxins need to be there from the start.
func (w wire) poison(bad toxin) {
	w.t.Helper()
	spec := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, bad.kind, bad.direction, bad.attributes)
	if _, err := w.Toxics.AddToxicJson(strings.NewReader(spec)); err != nil {
		w.t.Fatalf("cannot add the toxin %s: %v", spec, err)
	}
	w.Stop()
	// On a busy machine its old listener may be there a little longer than Stop says.
	eventually(w.t, patience, "toxiproxy listens again", func() bool { return w.Start() == nil })
}

// behind is a configuration with short clocks and these workers, by name, and without guards or
// cache: what is tested is the way of the bytes.
func behind(workers map[string]string) string {
	config := `
server:
  timeouts: {connect: 1s, first_byte: 2s, idle: 2s}
  drain: {delay: 0s, timeout: 5s}
  retry: {attempts: 2, budget: 1.0}
routing: {policy: round_robin}
classify: {jailbreak: {action: "off"}, pii: {action: "off"}}
cache: {store: "off"}
log: {level: debug, format: json}
workers:
`
	for name, url := range workers {
		config += fmt.Sprintf("  - {name: %s, url: %q}\n", name, url)
	}
	return config
}

// alone is Kvasir with one worker, behind a wire.
func alone(t *testing.T) (*kvasir, *worker, wire) {
	t.Helper()
	far := simulate(t)
	w := newWire(t, far.address)
	return serve(t, behind(map[string]string{"far": "http://" + w.Listen}), "sim"), far, w
}

// Faults that come before the first byte of a reply.
var beforeReply = map[string]struct {
	toxin
	status int // of the reply when no other worker is there
}{
	"reset_peer":            {toxin{"reset_peer", "downstream", `{"timeout":0}`}, http.StatusBadGateway},
	"reset_peer upstream":   {toxin{"reset_peer", "upstream", `{"timeout":0}`}, http.StatusBadGateway},
	"cut in the reply head": {toxin{"limit_data", "downstream", `{"bytes":20}`}, http.StatusBadGateway},
	"cut in the request":    {toxin{"limit_data", "upstream", `{"bytes":20}`}, http.StatusBadGateway},
	"timeout":               {toxin{"timeout", "downstream", `{"timeout":0}`}, http.StatusGatewayTimeout},
	"timeout upstream":      {toxin{"timeout", "upstream", `{"timeout":0}`}, http.StatusGatewayTimeout},
}

func TestNoReplyAndNoOtherWorker(t *testing.T) {
	t.Parallel()
	for name, fault := range beforeReply {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _, w := alone(t)
			w.poison(fault.toxin)
			for _, stream := range []bool{false, true} {
				wantError(t, post(t, k.url+"/v1/chat/completions", chat(stream, 8)), fault.status)
			}
		})
	}
}

func TestNoReplyIsRetriedOnAnotherWorker(t *testing.T) {
	t.Parallel()
	for name, fault := range beforeReply {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far, near := simulate(t), simulate(t)
			w := newWire(t, far.address)
			k := serve(t, behind(map[string]string{"far": "http://" + w.Listen, "near": near.url()}), "sim")
			k.waitWorkers(t, "far", "near")
			w.poison(fault.toxin)
			for i := range 4 {
				got := post(t, k.url+"/v1/chat/completions", chat(i%2 == 0, 8))
				if from := got.header.Get("X-Kvasir-Worker"); from != "near" {
					t.Errorf("answered by %q, want near", from)
				}
				wantFinished(t, got)
			}
			wantRetried(t, k)
		})
	}
}

// wantRetried: one of the requests at least was sent a second time.
func wantRetried(t *testing.T, k *kvasir) {
	t.Helper()
	eventually(t, patience, "a retry is in the log", func() bool { return strings.Contains(k.output.String(), `"retries":1`) })
}

// TestRefusedConnection: nothing listens any more.
func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	k, _, w := alone(t)
	w.Stop()
	for _, stream := range []bool{false, true} {
		got := post(t, k.url+"/v1/chat/completions", chat(stream, 8))
		if got.status != http.StatusServiceUnavailable { // known to be down by then
			wantError(t, got, http.StatusBadGateway)
		}
	}
}

// TestCutInMidStream: content has gone out, so another worker is no help any more.
func TestCutInMidStream(t *testing.T) {
	t.Parallel()
	far, near := simulate(t), simulate(t)
	w := newWire(t, far.address)
	k := serve(t, behind(map[string]string{"far": "http://" + w.Listen, "near": near.url()}), "sim")
	k.waitWorkers(t, "far", "near")
	w.poison(toxin{"limit_data", "downstream", `{"bytes":4000}`})
	k.untilFrom(t, "far", func() reply { return post(t, k.url+"/v1/chat/completions", chat(true, 200)) }, func(got reply) {
		wantInterrupted(t, got)
	})
}

// TestCutInBody: a reply that is not streamed is held until it is whole (up to 64 KiB), so one that
// ends early is no answer at all, and another worker may give it.
func TestCutInBody(t *testing.T) {
	t.Parallel()
	cut := toxin{"limit_data", "downstream", `{"bytes":1000}`}
	ask := chat(false, 200) // about 1.5 KB, 0.5 s
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		k, _, w := alone(t)
		w.poison(cut)
		wantError(t, post(t, k.url+"/v1/chat/completions", ask), http.StatusBadGateway)
	})
	t.Run("another worker", func(t *testing.T) {
		t.Parallel()
		far, near := simulate(t), simulate(t)
		w := newWire(t, far.address)
		k := serve(t, behind(map[string]string{"far": "http://" + w.Listen, "near": near.url()}), "sim")
		k.waitWorkers(t, "far", "near")
		w.poison(cut)
		for range 2 {
			got := post(t, k.url+"/v1/chat/completions", ask)
			if from := got.header.Get("X-Kvasir-Worker"); from != "near" {
				t.Errorf("answered by %q, want near", from)
			}
			wantFinished(t, got)
		}
		wantRetried(t, k)
	})
}

// TestSilenceInMidStream: the idle clock ends a stream in which nothing comes any more, and the
// worker is let go.
func TestSilenceInMidStream(t *testing.T) {
	t.Parallel()
	k, far, w := alone(t)
	stream := open(t, k.url+"/v1/chat/completions", chat(true, 4000))
	seen := stream.skip(t, 5)
	if _, err := w.Toxics.AddToxicJson(strings.NewReader(`{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan reply, 1)
	go func() { ended <- stream.rest() }()
	select {
	case got := <-ended:
		got.body = append(seen, got.body...)
		wantInterrupted(t, got)
	case <-time.After(patience):
		t.Fatal("the stream hangs although the idle clock is 2s")
	}
	eventually(t, patience, "the worker is free", func() bool { return far.running(t) == 0 })
}

// Networks that are slow and right: the reply is whole.
func TestSlowButRight(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]struct {
		toxin
		least, most time.Duration
	}{
		"latency":          {toxin{"latency", "downstream", `{"latency":300,"jitter":50}`}, 250 * time.Millisecond, patience},
		"latency upstream": {toxin{"latency", "upstream", `{"latency":300}`}, 300 * time.Millisecond, patience},
		"bandwidth":        {toxin{"bandwidth", "downstream", `{"rate":20}`}, 0, patience},
		// The end of a reply is in its framing: nobody waits for a connection to close.
		"slow_close": {toxin{"slow_close", "downstream", `{"delay":60000}`}, 0, 15 * time.Second},
		"slicer":     {toxin{"slicer", "downstream", `{"average_size":3,"size_variation":2,"delay":10}`}, 0, patience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, _, w := alone(t)
			w.poison(slow.toxin)
			for _, stream := range []bool{false, true} {
				begin := time.Now()
				wantFinished(t, post(t, k.url+"/v1/chat/completions", chat(stream, 50)))
				if took := time.Since(begin); took < slow.least || took > slow.most {
					t.Errorf("stream %t took %v, want %v to %v", stream, took, slow.least, slow.most)
				}
			}
			if slow.kind == "slow_close" {
				w.Stop() // else the cleanup waits for the close
			}
		})
	}
}

// waitWorkers waits until each of the workers has answered a request.
func (k *kvasir) waitWorkers(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		k.untilFrom(t, name, func() reply { return post(t, k.url+"/v1/chat/completions", chat(false, 1)) }, func(reply) {})
	}
}

// untilFrom asks until the named worker has answered, and hands that reply on.
func (k *kvasir) untilFrom(t *testing.T, worker string, ask func() reply, then func(reply)) {
	t.Helper()
	var got reply
	eventually(t, patience, "a reply from worker "+worker, func() bool {
		got = ask()
		return got.header.Get("X-Kvasir-Worker") == worker
	})
	then(got)
}

// wantFinished: a whole answer with a clean end, streamed or not.
func wantFinished(t *testing.T, got reply) {
	t.Helper()
	end := []byte(`"finish_reason":"length"`)
	if strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") && !bytes.HasSuffix(got.body, []byte("data: [DONE]\n\n")) {
		t.Errorf("the stream ends with %q", tail(string(got.body), 300))
	}
	if got.status != http.StatusOK || got.end != nil || !bytes.Contains(got.body, end) {
		t.Errorf("status %d, end %v, body ...%q", got.status, got.end, tail(string(got.body), 300))
	}
}

// wantInterrupted: content, then the error event, then a broken end; no invented [DONE].
func wantInterrupted(t *testing.T, got reply) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(string(got.body), "\n\n"), "\n\n")
	last := events[len(events)-1]
	var event struct {
		Error struct {
			Message, Type, Code string
		}
	}
	err := json.Unmarshal([]byte(strings.TrimPrefix(last, "data: ")), &event)
	if err != nil || event.Error.Code != "stream_interrupted" || event.Error.Message == "" {
		t.Errorf("the last event is %q (%v), want the error stream_interrupted", last, err)
	}
	if got.status != http.StatusOK || len(events) < 3 || strings.Contains(string(got.body), "[DONE]") {
		t.Errorf("status %d, %d events, body ...%q", got.status, len(events), tail(string(got.body), 300))
	}
	if got.end == nil {
		t.Error("an interrupted stream has a clean end")
	}
}

// wantError: this status with an error in OpenAI's shape.
func wantError(t *testing.T, got reply, status int) {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type *string
			Param         any
			Code          any
		}
	}
	err := json.Unmarshal(got.body, &body)
	if err != nil || body.Error.Message == nil || *body.Error.Message == "" || body.Error.Type == nil {
		t.Errorf("body %q (%v), want an error in OpenAI's shape", tail(string(got.body), 500), err)
	}
	if got.status != status || got.end != nil || !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
		t.Errorf("status %d, want %d; end %v; headers %v; body %q", got.status, status, got.end, got.header, tail(string(got.body), 500))
	}
}
