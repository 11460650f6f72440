// Hand-overs between simulated engines, which check what they are sent as real ones do.

package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/sim"
)

// A simWorker is a simulated engine that serves until the test ends, or stop.
type simWorker struct {
	url  string
	stop func()
}

func startSim(t *testing.T, o sim.Options) *simWorker {
	t.Helper()
	o.Name, o.Model = "w", "m" // one name: it is in the text
	o.BlockSize = 16
	s, err := sim.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	stopped := false
	w := &simWorker{url: "http://" + ln.Addr().String()}
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(w.stop)
	return w
}

// gauge is the value of a metric of the engine's.
func (w *simWorker) gauge(t *testing.T, name string) string {
	t.Helper()
	page := fetchFrom(t, strings.TrimPrefix(w.url, "http://"), "/metrics")
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, "vllm:"+name+"{"); ok {
			_, value, _ := strings.Cut(rest, "} ")
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no metric %s", name)
	return ""
}

func (w *simWorker) idle(t *testing.T) {
	t.Helper()
	waitUntil(t, "the engine is idle", func() bool {
		return w.gauge(t, "num_requests_running") == "0.0" && w.gauge(t, "num_requests_waiting") == "0.0"
	})
}

func longChat(name, fields string) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + name + strings.Repeat(" one two three four five", 400) + `"}]` + fields + `}`
}

// A saying is an answer, whichever form it came in.
type saying struct {
	text  string
	usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func sayingOf(t *testing.T, a received) (out saying) {
	t.Helper()
	if a.StatusCode != 200 || a.err != nil {
		t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
	}
	for line := range strings.Lines(a.body) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var part struct {
			Choices []struct{ Message, Delta struct{ Content string } }
			Usage   *json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &part); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for _, c := range part.Choices {
			out.text += c.Message.Content + c.Delta.Content
		}
		if part.Usage != nil {
			if err := json.Unmarshal(*part.Usage, &out.usage); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

const withUsage = `,"max_tokens":20,"stream":true,"stream_options":{"include_usage":true}`

// Two workers say what one would have said: no token twice, none lost, and the
// same counts. A prompt that the prefill worker has seen is cached there.
func TestSimulatedHandoverSaysTheSame(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang", "trtllm"} {
		t.Run(engine, func(t *testing.T) {
			o := sim.Options{Engine: engine, Speedup: 1000}
			alone := startSim(t, o)
			o.Role = "prefill"
			from := startSim(t, o)
			o.Role = "decode"
			to := startSim(t, o)
			s := settingsFor(alone.url)
			s.Workers[0].Engine = engine
			p, one := startProxy(t, autoSettings(engine, []string{from.url}, []string{to.url})), startProxy(t, s)
			for i, fields := range []string{`,"max_tokens":20`, withUsage, `,"max_completion_tokens":7,"ignore_eos":true`} {
				body := longChat(fmt.Sprint("same", i), fields)
				want := sayingOf(t, one.ask(t, "/v1/chat/completions", body))
				got := sayingOf(t, p.ask(t, "/v1/chat/completions", body))
				if got != want || got.usage.Completion == 0 {
					t.Errorf("%s: got %+v, want %+v", fields, got, want)
				}
				if again := sayingOf(t, p.ask(t, "/v1/chat/completions", body)); again.text != want.text {
					t.Errorf("%s: the second time got %+v, want %+v", fields, again, want)
				} else if engine == "vllm" && again.usage.Details.Cached == 0 {
					t.Errorf("%s: nothing was cached the second time", fields)
				}
			}
			waitUntil(t, "all are booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="done"}`) == "6" })
			if engine != "vllm" {
				return
			}
			if got := to.gauge(t, "nixl_num_failed_transfers_total"); got != "0.0" {
				t.Errorf("%s transfers failed", got)
			}
			if got := from.gauge(t, "nixl_num_notifications_after_expiry_total"); got != "0.0" {
				t.Errorf("%s leases were betrayed", got)
			}
			from.idle(t)
			to.idle(t)
		})
	}
}

// SGLang's decode workers compute no prompts: all is handed over to them, however
// short it is, and what cannot be is refused with the reason.
func TestDecodeWorkersThatComputeNoPrompts(t *testing.T) {
	for policy, named := range map[kvroute.Policy]string{kvroute.Predict: "sglang", kvroute.RoundRobin: ""} { // by the configuration, or found out
		from, to := startSim(t, sim.Options{Engine: "sglang", Role: "prefill", Speedup: 1000}), startSim(t, sim.Options{Engine: "sglang", Role: "decode", Speedup: 1000})
		s := autoSettings("sglang", []string{from.url}, []string{to.url})
		s.Routing.Policy = policy
		for i := range s.Workers {
			s.Workers[i].Engine = named
		}
		p := startProxy(t, s)
		waitUntil(t, "the engines are known", func() bool {
			return p.backendOf(t, "w0").EngineName() == "sglang" && p.backendOf(t, "w1").NeedsPrefill()
		})
		for _, body := range []string{plainChat, plainChat, longChat("a", "")} {
			if a := p.ask(t, "/v1/chat/completions", body); a.StatusCode != 200 || a.Header.Get("x-kvasir-prefill-worker") != "w0" {
				t.Errorf("%s %s: got %d %s by %q", named, policy, a.StatusCode, a.body, a.Header.Get("x-kvasir-prefill-worker"))
			}
		}
		two := strings.Replace(plainChat, `"messages"`, `"n":2,"messages"`, 1)
		if a := p.ask(t, "/v1/chat/completions", two); a.StatusCode != 400 || !strings.Contains(a.body, `"not_handed_over"`) {
			t.Errorf("%s %s: n of 2 got %d %s", named, policy, a.StatusCode, a.body)
		}
		if got := fetchPost(t, p.admin, "/explain", two); !strings.Contains(got, "the request needs a prefill worker") {
			t.Errorf("%s %s: n of 2 is explained as %s", named, policy, got)
		}
		from.stop()
		if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 503 && (a.StatusCode != 502 || !strings.Contains(a.body, `worker \"w0\"`)) {
			t.Errorf("%s %s: without a prefill worker got %d %s", named, policy, a.StatusCode, a.body)
		}
		waitUntil(t, "the prefill worker is down", func() bool { return !p.backendOf(t, "w0").Status(time.Now()).State.TakesRequests() })
		if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 503 || !strings.Contains(a.body, "no prefill worker of the model") {
			t.Errorf("%s %s: with the prefill worker down got %d %s", named, policy, a.StatusCode, a.body)
		}
	}
}

// A request that names a prefill worker and cannot be handed over is told so. (It was served without a word.)
func TestNamedPrefillWorkerThatCannotHelp(t *testing.T) {
	from, to := startSim(t, sim.Options{Role: "prefill", Speedup: 1000}), startSim(t, sim.Options{Role: "decode", Speedup: 1000})
	s := autoSettings("vllm", []string{from.url}, []string{to.url})
	s.Routing.Overrides = true
	p := startProxy(t, s)
	two := strings.Replace(plainChat, `"messages"`, `"n":2,"messages"`, 1)
	if a := p.ask(t, "/v1/chat/completions", two, "x-prefill-instance-id: w0"); a.StatusCode != 400 || !strings.Contains(a.body, `"not_handed_over"`) {
		t.Errorf("n of 2 got %d %s", a.StatusCode, a.body)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "x-prefill-instance-id: w0"); a.StatusCode != 200 || a.Header.Get("x-kvasir-prefill-worker") != "w0" {
		t.Errorf("got %d %s by %q", a.StatusCode, a.body, a.Header.Get("x-kvasir-prefill-worker"))
	}
	if a := p.ask(t, "/v1/chat/completions", two); a.StatusCode != 200 {
		t.Errorf("n of 2 that names nobody got %d %s", a.StatusCode, a.body)
	}
}

// A client that leaves stops the engine that is at work for it.
func TestSimulatedEnginesStopForALostClient(t *testing.T) {
	for _, leg := range []string{"prefill", "decode"} {
		slow, fast := sim.Options{Speedup: 0.02}, sim.Options{Speedup: 1000}
		if leg == "decode" {
			slow, fast = fast, slow
		}
		slow.Role, fast.Role = "prefill", "decode"
		from, to := startSim(t, slow), startSim(t, fast)
		p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url}))
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, post("/v1/chat/completions", longChat("leave", withUsage)))
		at := map[string]*simWorker{"prefill": from, "decode": to}[leg]
		waitUntil(t, "the engine is at it", func() bool { return at.gauge(t, "num_requests_running") == "1.0" })
		_ = c.Close()
		from.idle(t)
		to.idle(t)
	}
}

// A prefill worker that was killed is done without.
func TestSimulatedPrefillWorkerIsKilled(t *testing.T) {
	from, to := startSim(t, sim.Options{Role: "prefill", Speedup: 1000}), startSim(t, sim.Options{Role: "decode", Speedup: 1000})
	p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url}))
	want := sayingOf(t, p.ask(t, "/v1/chat/completions", longChat("kill", withUsage)))
	from.stop()
	if got := sayingOf(t, p.ask(t, "/v1/chat/completions", longChat("kill", withUsage))); got.text != want.text {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// passOn has a worker of the test's answer with what the engine says, and
// afterwards first.
func passOn(t *testing.T, to *simWorker, then func()) *testWorker {
	return startWorker(t, func(c net.Conn, body string) bool {
		resp, err := http.Post(to.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return false
		}
		reply, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return false
		}
		then()
		_, err = io.WriteString(c, httpReply(resp.StatusCode, "application/json", string(reply)))
		return err == nil
	})
}

// A prefill worker that dies with the blocks still in it: the decode worker says
// so after a while, and then computes the prompt itself.
func TestSimulatedPrefillWorkerDiesBeforeTheTransfer(t *testing.T) {
	for _, fields := range []string{`,"max_tokens":20`, withUsage} {
		engine := startSim(t, sim.Options{Role: "prefill", Speedup: 1000})
		to := startSim(t, sim.Options{Role: "decode", Speedup: 1000, TransferTimeout: 200 * time.Millisecond})
		alone := startSim(t, sim.Options{Speedup: 1000})
		from := passOn(t, engine, engine.stop)
		p, one := startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url})), startProxy(t, settingsFor(alone.url))
		body := longChat("dies", fields)
		want := sayingOf(t, one.ask(t, "/v1/chat/completions", body))
		if got := sayingOf(t, p.ask(t, "/v1/chat/completions", body)); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := p.metric(t, `kvasir_handovers_total{result="transfer_failed"}`); got != "1" {
			t.Errorf("%q transfers failed", got)
		}
		if got := to.gauge(t, "nixl_num_failed_transfers_total"); got != "1.0" {
			t.Errorf("the decode worker counts %s failed transfers", got)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

// A lease that runs out although Kvasir is in time, since the prefill worker's
// reply was so long on its way, shows at the prefill worker alone: that is what
// its counter of late messages is watched for.
func TestSimulatedLeaseBetraysItself(t *testing.T) {
	engine := startSim(t, sim.Options{Role: "prefill", Speedup: 1000, Lease: 20 * time.Millisecond})
	to := startSim(t, sim.Options{Role: "decode", Speedup: 1000})
	from := passOn(t, engine, func() {
		waitUntil(t, "the lease has run out", func() bool { return engine.gauge(t, "nixl_num_kv_expired_reqs_total") == "1.0" })
	})
	p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url}))
	if got := sayingOf(t, p.ask(t, "/v1/chat/completions", longChat("lease", withUsage))); got.text == "" {
		t.Errorf("got %+v", got)
	}
	waitUntil(t, "it shows", func() bool { return engine.gauge(t, "nixl_num_notifications_after_expiry_total") == "1.0" })
	http.DefaultClient.CloseIdleConnections()
}

// A decode worker that dies of the request is not the last word.
func TestSimulatedDecodeWorkerDies(t *testing.T) {
	from := startSim(t, sim.Options{Role: "prefill", Speedup: 1000})
	bad, good := startSim(t, sim.Options{Role: "decode", Speedup: 1000, Faults: true}), startSim(t, sim.Options{Role: "decode", Speedup: 1000})
	p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{bad.url, good.url}))
	want := saying{}
	for i := range 4 { // round robin begins anywhere
		c := p.dial(t)
		_, _ = io.WriteString(c, post("/v1/chat/completions", longChat("dead", withUsage), "x-sim-fault: die-after=1"))
		got := sayingOf(t, receive(t, bufio.NewReader(c)))
		if i == 0 {
			want = got
		}
		if got.text != want.text || got.text == "" {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := p.metric(t, `kvasir_retries_total{reason="no_reply"}`); got == "" {
		t.Error("nothing was retried")
	}
	from.idle(t)
}
