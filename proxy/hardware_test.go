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
	"kvasir/gpu/snapshot"
	"kvasir/kvroute"
)

// A madeFleet is a fleet as a test wants it, every snapshot fresh.
type madeFleet struct {
	now  atomic.Pointer[gpu.Fleet]
	asks atomic.Int64
}

func (m *madeFleet) Fleet(now time.Time) *gpu.Fleet {
	m.asks.Add(1)
	f := *m.now.Load()
	f.GPUs = append([]gpu.GPU(nil), f.GPUs...)
	for i := range f.GPUs {
		if f.GPUs[i].State == gpu.OK {
			f.GPUs[i].At = now
		}
	}
	return &f
}

// set makes it a fleet of n well GPUs, changed.
func (m *madeFleet) set(n int, change func([]gpu.GPU)) {
	f := &gpu.Fleet{State: gpu.OK, Driver: "570.86.15"}
	for i := range n {
		f.GPUs = append(f.GPUs, gpu.GPU{State: gpu.OK, GPU: snapshot.GPU{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: "NVIDIA H100 80GB HBM3", PCI: fmt.Sprintf("00000000:%02x:00.0", i+7),
			MemoryUsed: some(uint64(60 << 30)), MemoryTotal: some(uint64(80 << 30)), SMUtilization: some(50.0),
			SMClock: some(1980.0), SMClockMax: some(1980.0), ThrottleReasons: []string{},
		}})
	}
	if change != nil {
		change(f.GPUs)
	}
	m.now.Store(f)
}

func some[T any](v T) *T { return &v }

// throttle holds the clocks of GPU 0 down by half.
func throttle(g []gpu.GPU) {
	g[0].SMClock, g[0].ThrottleReasons = some(990.0), []string{"hw_slowdown", "hw_thermal_slowdown"}
}

// noNeighbour: the made-up GPUs are busy without a request of ours.
var noNeighbour = gpu.Effects{Throttle: gpu.EffectCost, Errors: gpu.EffectAside}

// onGPUs are settings of two workers, each with the GPU of its number, looked at all the time.
func onGPUs(t *testing.T, m *madeFleet) *Settings {
	t.Helper()
	s := settingsFor(goodWorker(t).url, goodWorker(t).url)
	s.Workers[0].GPUs, s.Workers[1].GPUs = []string{"0"}, []string{"GPU-1"}
	s.GPU = GPU{Fleet: m.Fleet, Interval: time.Millisecond, Effects: noNeighbour}
	return s
}

func (p *testProxy) slow(t *testing.T, worker string) float64 {
	return p.backendOf(t, worker).Hardware().Slow
}

// A throttled GPU makes its worker slow, in placement, /readyz, /debug/gpu, /metrics, the log and explain; others are
// not touched. It is told once.
func TestThrottledGPUIsTold(t *testing.T) {
	m := &madeFleet{}
	m.set(2, throttle)
	s := onGPUs(t, m)
	p := startProxy(t, s)
	waitUntil(t, "w0 is slow", func() bool { return p.slow(t, "w0") == 2 })
	if slow := p.slow(t, "w1"); slow != 1 {
		t.Errorf("w1 is %v times slower", slow)
	}
	seen := m.asks.Load()
	waitUntil(t, "it was looked at again", func() bool { return m.asks.Load() > seen+10 })
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
	m := &madeFleet{}
	m.set(2, func(g []gpu.GPU) { throttle(g); g[1].State, g[1].Why = gpu.Lost, "it fell off the bus" })
	p, _ := startPlacing(t, 2, func(s *Settings) {
		s.Workers[0].GPUs, s.Workers[1].GPUs = []string{"0"}, []string{"1"}
		s.GPU = GPU{Fleet: m.Fleet, Interval: time.Millisecond, Effects: noNeighbour}
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

// A worker is well again some seconds after its GPU, which is told once and counted.
func TestHardwareRecovers(t *testing.T) {
	m := &madeFleet{}
	m.set(2, nil)
	s := onGPUs(t, m)
	s.GPU.Interval = time.Hour // the test looks itself
	p := startProxy(t, s)
	waitUntil(t, "it was looked at", func() bool { return p.hardware.shown.Load() != nil })
	h := &hardware{p: p.Proxy, judges: map[*kvroute.Worker]*judge{}}
	now := time.Now()
	look := func(d time.Duration) float64 {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(100 * time.Millisecond)
			h.look(p.state.Load(), now)
		}
		return p.slow(t, "w0")
	}
	if slow := look(time.Second); slow != 1 {
		t.Errorf("a GPU that is well makes %v", slow)
	}
	m.set(2, throttle)
	if slow := look(time.Second); slow != 2 {
		t.Errorf("a throttled GPU makes %v", slow)
	}
	m.set(2, nil)
	if slow := look(5 * time.Second); slow != 1 {
		t.Errorf("5 s after it the worker counts as %v times slower", slow)
	}
	log := p.log.String()
	if strings.Count(log, "GPUs are not well") != 1 || strings.Count(log, "GPUs are well again") != 1 {
		t.Errorf("the log is\n%s", log)
	}
	if metrics := fetchFrom(t, p.admin, "/metrics"); !strings.Contains(metrics, `kvasir_worker_hardware_changes_total{state="normal",worker="w0"} 1`) {
		t.Error("that it is well again is not counted")
	}
	m.set(2, func(g []gpu.GPU) { g[0].State, g[0].Why = gpu.Lost, "gone" })
	look(time.Second)
	if !p.backendOf(t, "w0").Hardware().Aside || !strings.Contains(p.log.String(), `"hardware":"aside"`) {
		t.Errorf("a lost GPU makes %+v", p.backendOf(t, "w0").Hardware())
	}
}

// Telemetry that is off has no goroutine and no series, and what it said before is taken back. Reloads switch it,
// change effects, and move a worker to another GPU, and keep its connections.
func TestTelemetryFollowsSettings(t *testing.T) {
	m := &madeFleet{}
	m.set(2, throttle)
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
	if p.hardware.stop != nil || p.hardware.shown.Load() != nil {
		t.Error("somebody still looks")
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
		s.GPU = GPU{Fleet: m.Fleet, Interval: time.Millisecond, Effects: noNeighbour}
	})
	waitUntil(t, "w1 is slow", func() bool { return p.slow(t, "w1") == 2 })
}

// What was seen of a GPU counts on when a reload has another monitor begin, and when it makes another worker of the one
// that runs on it: who counts errors would begin anew, and take them for old.
func TestErrorsOutliveReload(t *testing.T) {
	m := &madeFleet{}
	errors := func(n uint64) { m.set(2, func(g []gpu.GPU) { g[0].ECCErrors = &n }) }
	errors(1)
	p := startProxy(t, onGPUs(t, m))
	looked := func() {
		t.Helper()
		seen := m.asks.Load()
		waitUntil(t, "it was looked at", func() bool { return m.asks.Load() > seen+3 })
	}
	aside := func(worker string) bool { return p.backendOf(t, worker).Hardware().Aside }
	looked()
	errors(2)
	waitUntil(t, "w0 is aside", func() bool { return aside("w0") })
	for _, f := range []gpu.Fleet{
		{State: gpu.Off},
		{State: gpu.Stale, Why: "telemetry is starting"},
		{State: gpu.Stale, GPUs: []gpu.GPU{{State: gpu.Stale}, {State: gpu.Stale, GPU: snapshot.GPU{Index: 1}}}},
	} {
		m.now.Store(&f)
		looked()
		if !aside("w0") || aside("w1") {
			t.Errorf("while the fleet is %+v w0 is %+v", f, p.backendOf(t, "w0").Hardware())
		}
	}
	errors(2)
	looked()
	if !aside("w0") {
		t.Error("another monitor has forgotten the error")
	}
	change := func(change func(*Worker)) {
		t.Helper()
		s := *p.state.Load().settings
		s.Workers = append([]Worker(nil), s.Workers...)
		change(&s.Workers[0])
		if err := p.Apply(&s); err != nil {
			t.Fatal(err)
		}
	}
	change(func(w *Worker) { w.Name = "renamed" })
	waitUntil(t, "the one renamed is aside", func() bool { return aside("renamed") })
	change(func(w *Worker) { w.URL += "/" })
	waitUntil(t, "the one that moved is aside", func() bool { return aside("renamed") })
	if n := strings.Count(p.log.String(), "GPUs are not well"); n != 1 || aside("w1") {
		t.Errorf("it is told %d times", n)
	}
}

// New settings are looked at when they come, however long the interval is.
func TestReloadIsLookedAtNow(t *testing.T) {
	m := &madeFleet{}
	m.set(2, throttle)
	s := onGPUs(t, m)
	s.GPU.Interval = time.Hour
	p := startProxy(t, s)
	waitUntil(t, "w0 is slow", func() bool { return p.slow(t, "w0") == 2 })
	next := *s
	next.Workers = append([]Worker(nil), s.Workers...)
	next.Workers[1].GPUs = []string{"0"}
	if err := p.Apply(&next); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "w1 is slow", func() bool { return p.slow(t, "w1") == 2 })
}

// What is not as the configuration says, and what is not known, is a reason in /readyz.
func TestHardwareReasons(t *testing.T) {
	m := &madeFleet{}
	m.set(1, func(g []gpu.GPU) { g[0].State, g[0].Why = gpu.Stale, "the driver does not answer" })
	f := *m.now.Load()
	f.State, f.Why = gpu.Stale, "no GPU answers"
	m.now.Store(&f)
	p := startProxy(t, onGPUs(t, m))
	waitUntil(t, "it was looked at", func() bool { return p.hardware.shown.Load() != nil })
	got := bodyOf(fetchFrom(t, p.admin, "/readyz"))
	for _, want := range []string{`{"status":"degraded","reasons":["GPU telemetry is stale: no GPU answers","worker \"w1\": gpus: `, `GPU-1`} {
		if !strings.Contains(got, want) {
			t.Errorf("/readyz says %s, want %s", got, want)
		}
	}
}

// A driver that is out of order is no reason where no worker runs on its GPUs.
func TestBrokenDriverOfNobodyIsNoReason(t *testing.T) {
	m := &madeFleet{}
	m.now.Store(&gpu.Fleet{State: gpu.Lost, Why: "the driver says DRIVER_NOT_LOADED"})
	s := onGPUs(t, m)
	s.Workers[0].GPUs, s.Workers[1].GPUs = nil, nil
	p := startProxy(t, s)
	waitUntil(t, "it was looked at", func() bool { return p.hardware.shown.Load() != nil })
	if got := bodyOf(fetchFrom(t, p.admin, "/readyz")); got != `{"status":"ready","reasons":[]}` {
		t.Errorf("/readyz says %s", got)
	}
	if got := bodyOf(fetchFrom(t, p.admin, "/debug/gpu")); got != `{"state":"lost","why":"the driver says DRIVER_NOT_LOADED","gpus":[]}` {
		t.Errorf("/debug/gpu says %s", got)
	}
}

// Whoever makes up fleets may hang or have a bug: requests are answered as before.
func TestFleetThatHangsDelaysNoRequest(t *testing.T) {
	m := &madeFleet{}
	m.set(2, throttle)
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
		return m.Fleet(now)
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

// BenchmarkLook is one look at a busy host: 8 GPUs with a process each and 8 workers; four a second by default.
func BenchmarkLook(b *testing.B) {
	m := &madeFleet{}
	m.set(8, func(g []gpu.GPU) {
		for i := range g {
			everything(&g[i])
			g[i].Processes = []snapshot.Process{{PID: 1 << 22, Memory: some(uint64(60 << 30)), SMUtilization: some(50.0)}}
		}
	})
	s := settingsFor()
	for i := range 8 {
		s.Workers = append(s.Workers, Worker{Name: fmt.Sprintf("w%d", i), URL: fmt.Sprintf("http://127.0.0.1:%d", i+1), Models: []string{"m"}})
	}
	s.GPU = GPU{Fleet: m.Fleet, Interval: time.Hour, Effects: gpu.DefaultEffects()}
	p := startProxy(b, s)
	waitUntil(b, "it was looked at", func() bool { return p.hardware.shown.Load() != nil })
	h := &hardware{p: p.Proxy, judges: map[*kvroute.Worker]*judge{}}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(250 * time.Millisecond)
		h.look(p.state.Load(), now)
	}
}
