// Tests of what telemetry says of workers, with fleets that tests make up.

package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/gpu"
	"kvasir/kvroute"
	"kvasir/proxy/hardware/hardwaretest"
)

// onGPUs are settings of two workers, each with the GPU of its number, looked at all the time.
func onGPUs(t *testing.T, m *hardwaretest.Fleet) *Settings {
	t.Helper()
	s := settingsFor(goodWorker(t).url, goodWorker(t).url)
	s.Workers[0].GPUs, s.Workers[1].GPUs = []string{"0"}, []string{"GPU-1"}
	s.GPU = GPU{Fleet: m.Now, Interval: time.Millisecond, Effects: hardwaretest.Effects}
	return s
}

func (p *testProxy) slow(t *testing.T, worker string) float64 {
	return p.backendOf(t, worker).Hardware().Slow
}

// A throttled GPU makes its worker slow, in placement, /readyz, /debug/gpu, /metrics, the log and explain; others are
// not touched. It is told once.
func TestThrottledGPUIsTold(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, hardwaretest.Throttle)
	s := onGPUs(t, m)
	p := startProxy(t, s)
	waitUntil(t, "w0 is slow", func() bool { return p.slow(t, "w0") == 2 })
	if slow := p.slow(t, "w1"); slow != 1 {
		t.Errorf("w1 is %v times slower", slow)
	}
	seen := m.Asks.Load()
	waitUntil(t, "it was looked at again", func() bool { return m.Asks.Load() > seen+10 })
	reason := "GPU 0: thermal slowdown, 990 of 1980 MHz"
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.Contains(got, `{"status":"degraded","reasons":["worker \"w0\" counts as 2.0 times slower: `+reason+`"]}`) {
		t.Errorf("/readyz says %s", got)
	}
	var shown gpu.Fleet
	if err := json.Unmarshal([]byte(bodyOf(fetchFrom(t, p.admin, "/debug/gpu"))), &shown); err != nil || shown.State != gpu.OK || shown.Driver != "570.86.15" ||
		len(shown.GPUs) != 2 || fmt.Sprint(shown.GPUs[0].Workers, shown.GPUs[1].Workers) != "[w0] [w1]" || *shown.GPUs[0].SMClock != 990 {
		t.Errorf("/debug/gpu says %+v, %v", shown, err)
	}
	metrics := fetchFrom(t, p.admin, "/metrics")
	for _, want := range []string{
		`kvasir_worker_hardware_slow{worker="w0"} 2`, `kvasir_worker_hardware_slow{worker="w1"} 1`, `kvasir_worker_hardware_aside{worker="w0"} 0`,
		`kvasir_worker_hardware_changes_total{state="slow",worker="w0"} 1`, `kvasir_gpu_worker{UUID="GPU-1",gpu="1",worker="w1"} 1`,
		`kvasir_gpu_throttle_reason{UUID="GPU-0",gpu="0",reason="hw_thermal_slowdown"} 1`, `kvasir_gpu_telemetry{state="ok"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if n := strings.Count(p.log.String(), "GPUs are not well"); n != 1 || !strings.Contains(p.log.String(), `"worker":"w0","hardware":"slow","slow":2,"why":"`+reason+`"`) {
		t.Errorf("the log has it %d times:\n%s", n, p.log)
	}
}

// Explain shows what telemetry makes of each candidate.
func TestExplainShowsHardware(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, func(g []gpu.GPU) { hardwaretest.Throttle(g); g[1].State, g[1].Why = gpu.Lost, "it fell off the bus" })
	p, _ := startPlacing(t, 2, func(s *Settings) {
		s.Workers[0].GPUs, s.Workers[1].GPUs = []string{"0"}, []string{"1"}
		s.GPU = GPU{Fleet: m.Now, Interval: time.Millisecond, Effects: hardwaretest.Effects}
	})
	waitUntil(t, "both are told", func() bool { return p.slow(t, "w0") == 2 && p.backendOf(t, "w1").Hardware().Aside })
	got := bodyOf(fetchPost(t, p.admin, "/explain", wordy("apple", 100, "")))
	var e PlacementExplained
	if err := json.Unmarshal([]byte(got), &e); err != nil || len(e.Candidates) != 2 {
		t.Fatalf("%s: %v", got, err)
	}
	for _, c := range e.Candidates {
		switch c.Worker {
		case "w0":
			if c.Slow != 2 || c.Aside || !c.Chosen || !strings.Contains(c.Hardware, "thermal slowdown") {
				t.Errorf("w0 is %+v", c)
			}
		case "w1":
			if !c.Aside || c.Chosen || !strings.Contains(c.Hardware, "GPU 1") {
				t.Errorf("w1 is %+v", c)
			}
		}
	}
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.Contains(got, `worker \"w1\" is asked after all others: `) || !strings.Contains(got, `GPU 1 of worker w1 is lost: it fell off the bus`) {
		t.Errorf("/readyz says %s", got)
	}
}

// Telemetry that is off has no goroutine and no series, and what it said before is taken back. Reloads switch it,
// change effects, and move a worker to another GPU, and keep its connections.
func TestTelemetryFollowsSettings(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, hardwaretest.Throttle)
	p := startProxy(t, onGPUs(t, m))
	apply := func(change func(*Settings)) {
		t.Helper()
		s := *p.state.Load().settings
		s.Workers = append([]Worker(nil), s.Workers...)
		change(&s)
		if err := p.Apply(&s); err != nil {
			t.Fatal(err)
		}
	}
	before := p.backendOf(t, "w0")
	waitUntil(t, "w0 is slow", func() bool { return p.slow(t, "w0") == 2 })
	apply(func(s *Settings) { s.GPU.Effects.Throttle = gpu.EffectAside })
	waitUntil(t, "w0 is aside", func() bool { return before.Hardware().Aside && before.Hardware().Slow == 1 })
	apply(func(s *Settings) { s.Workers[0].GPUs, s.Workers[1].GPUs = []string{"1"}, []string{"0"} })
	waitUntil(t, "w1 is aside", func() bool { return p.backendOf(t, "w1").Hardware().Aside && !before.Hardware().Aside })
	if p.backendOf(t, "w0") != before {
		t.Error("another GPU made another worker of it")
	}

	apply(func(s *Settings) { s.GPU = GPU{Missing: "no driver"} })
	for _, b := range p.state.Load().backends {
		if b.Hardware() != (kvroute.Hardware{Slow: 1}) {
			t.Errorf("%s is still %+v", b.Name(), b.Hardware())
		}
	}
	if got := bodyOf(fetchFrom(t, p.admin, "/debug/gpu")); got != `{"state":"off","why":"no driver","gpus":[]}` {
		t.Errorf("/debug/gpu says %s", got)
	}
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.Contains(got, `worker \"w0\": its gpus are not looked at: no driver`) {
		t.Errorf("/readyz says %s", got)
	}
	for line := range strings.Lines(fetchFrom(t, p.admin, "/metrics")) {
		if strings.Contains(line, "DCGM") || strings.Contains(line, "kvasir_gpu") || strings.Contains(line, "hardware_slow") {
			t.Errorf("there is a series: %s", line)
		}
	}
	apply(func(s *Settings) { s.GPU = GPU{} })
	if got := bodyOf(fetchFrom(t, p.admin, "/debug/gpu")); got != `{"state":"off","why":"gpu.mode is off","gpus":[]}` {
		t.Errorf("/debug/gpu says %s", got)
	}
	if got := bodyOf(fetchFrom(t, p.admin, "/readyz")); got != `{"status":"ready","reasons":[]}` {
		t.Errorf("/readyz says %s", got)
	}
	apply(func(s *Settings) {
		s.GPU = GPU{Fleet: m.Now, Interval: time.Millisecond, Effects: hardwaretest.Effects}
	})
	waitUntil(t, "w1 is slow", func() bool { return p.slow(t, "w1") == 2 })
}

// Whoever makes up fleets may hang or have a bug: requests are answered as before.
func TestFleetThatHangsDelaysNoRequest(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, hardwaretest.Throttle)
	s := onGPUs(t, m)
	hang, hung := make(chan struct{}), make(chan struct{}, 1)
	var calls atomic.Int64
	s.GPU.Fleet = func(now time.Time) *gpu.Fleet {
		switch calls.Add(1) {
		case 1:
			panic("BUG: made up")
		case 2:
			hung <- struct{}{}
			<-hang
		}
		return m.Now(now)
	}
	p := startProxy(t, s)
	<-hung
	for range 10 {
		if r := p.ask(t, "/v1/chat/completions", plainChat); r.StatusCode != 200 {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	close(hang)
	waitUntil(t, "it goes on", func() bool { return p.slow(t, "w0") == 2 })
	if n := strings.Count(p.log.String(), "looking at GPUs ended in a panic"); n != 1 {
		t.Errorf("the bug is told %d times", n)
	}
}

// bodyOf is the body of a raw reply.
func bodyOf(reply string) string {
	_, body, found := strings.Cut(reply, "\r\n\r\n")
	if !found {
		return reply
	}
	return body
}
