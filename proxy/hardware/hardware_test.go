// Tests of what telemetry says of workers, with fleets that tests make up.

package hardware

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
	"kvasir/kvroute"
	"kvasir/logtest"
	"kvasir/proxy/hardware/hardwaretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A watched is a Watch and what it watches over.
type watched struct {
	*Watch
	settings Settings
	workers  []Worker
	registry *prometheus.Registry
	log      *logtest.Buffer
}

// watching is a Watch over two workers, each with the GPU of its number, that looks all
// the time once it follows.
func watching(t testing.TB, m *hardwaretest.Fleet) *watched {
	w := &watched{registry: prometheus.NewRegistry(), log: &logtest.Buffer{}}
	log := zerolog.New(w.log)
	w.Watch = New(log, w.registry, func(fault any, what string) { t.Errorf("%s: %v", what, fault) })
	t.Cleanup(w.Close)
	w.settings = Settings{Fleet: m.Now, Interval: time.Millisecond, Effects: hardwaretest.Effects}
	for i, named := range []string{"0", "GPU-1"} {
		w.workers = append(w.workers, made(fmt.Sprintf("w%d", i), named))
	}
	return w
}

// made is a worker that nobody asks.
func made(name string, gpus ...string) Worker {
	url := "http://127.0.0.1:1/" + name
	return Worker{Live: kvroute.NewWorker(name, kvroute.Both, 0), Own: gpu.Worker{Name: name, GPUs: gpus, Address: "127.0.0.1:1"}, URL: url}
}

// follow follows what w has now, which is not changed after.
func (w *watched) follow() {
	s := w.settings
	w.Follow(&s, slices.Clone(w.workers))
}

func (w *watched) seen() bool { return w.shown.Load() != nil }

func (w *watched) hardware(i int) kvroute.Hardware { return w.workers[i].Live.Hardware() }

// metrics are what /metrics says.
func (w *watched) metrics() string {
	r := httptest.NewRecorder()
	promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}).ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	return r.Body.String()
}

func (w *watched) reasons() string { return strings.Join(w.Reasons(time.Now()), "\n") }

// waitUntil waits for a condition; there are no sleeps in tests besides this one.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	const patience = 25 * time.Second
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A worker is well again some seconds after its GPU, which is told once and counted.
func TestHardwareRecovers(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, nil)
	w := watching(t, m)
	w.judges = map[*kvroute.Worker]*judge{} // no goroutine runs: the test looks itself
	g := newGeneration(&w.settings, w.workers)
	now := time.Now()
	look := func(d time.Duration) float64 {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(100 * time.Millisecond)
			w.look(g, now)
		}
		return w.hardware(0).Slow
	}
	if slow := look(time.Second); slow != 1 {
		t.Errorf("a GPU that is well makes %v", slow)
	}
	m.Set(2, hardwaretest.Throttle)
	if slow := look(time.Second); slow != 2 {
		t.Errorf("a throttled GPU makes %v", slow)
	}
	m.Set(2, nil)
	if slow := look(5 * time.Second); slow != 1 {
		t.Errorf("5 s after it the worker counts as %v times slower", slow)
	}
	log := w.log.String()
	if strings.Count(log, "GPUs are not well") != 1 || strings.Count(log, "GPUs are well again") != 1 {
		t.Errorf("the log is\n%s", log)
	}
	if !strings.Contains(w.metrics(), `kvasir_worker_hardware_changes_total{state="normal",worker="w0"} 1`) {
		t.Error("that it is well again is not counted")
	}
	m.Set(2, func(g []gpu.GPU) { g[0].State, g[0].Why = gpu.Lost, "gone" })
	look(time.Second)
	if !w.hardware(0).Aside || !strings.Contains(w.log.String(), `"hardware":"aside"`) {
		t.Errorf("a lost GPU makes %+v", w.hardware(0))
	}
}

// Telemetry that is switched off leaves no goroutine, takes back what it said, and
// begins again when it is switched on.
func TestSwitchedOff(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, hardwaretest.Throttle)
	w := watching(t, m)
	w.follow()
	waitUntil(t, "w0 is slow", func() bool { return w.hardware(0).Slow == 2 })
	on := w.settings
	w.settings = Settings{Missing: "no driver"}
	w.follow()
	if w.stop != nil || w.seen() || w.hardware(0) != (kvroute.Hardware{Slow: 1}) {
		t.Errorf("somebody still looks, or w0 is still %+v", w.hardware(0))
	}
	if !strings.Contains(w.log.String(), "telemetry is off") || !strings.Contains(w.reasons(), `worker "w0": its gpus are not looked at: no driver`) {
		t.Errorf("told is %s\n%s", w.log, w.reasons())
	}
	w.settings = on
	w.follow()
	waitUntil(t, "w0 is slow again", func() bool { return w.hardware(0).Slow == 2 })
}

// What was seen of a GPU counts on when a reload has another monitor begin, and when it makes another worker of the one
// that runs on it: who counts errors would begin anew, and take them for old.
func TestErrorsOutliveReload(t *testing.T) {
	m := &hardwaretest.Fleet{}
	errors := func(n uint64) { m.Set(2, func(g []gpu.GPU) { g[0].ECCErrors = &n }) }
	errors(1)
	w := watching(t, m)
	w.follow()
	looked := func() {
		t.Helper()
		seen := m.Asks.Load()
		waitUntil(t, "it was looked at", func() bool { return m.Asks.Load() > seen+3 })
	}
	aside := func(i int) bool { return w.hardware(i).Aside }
	looked()
	errors(2)
	waitUntil(t, "w0 is aside", func() bool { return aside(0) })
	for _, f := range []gpu.Fleet{
		{State: gpu.Off},
		{State: gpu.Stale, Why: "telemetry is starting"},
		{State: gpu.Stale, GPUs: []gpu.GPU{{State: gpu.Stale}, {State: gpu.Stale, GPU: snapshot.GPU{Index: 1}}}},
	} {
		m.Is.Store(&f)
		looked()
		if !aside(0) || aside(1) {
			t.Errorf("while the fleet is %+v w0 is %+v", f, w.hardware(0))
		}
	}
	errors(2)
	looked()
	if !aside(0) {
		t.Error("another monitor has forgotten the error")
	}
	renamed := made("renamed", "0")
	renamed.URL = w.workers[0].URL
	w.workers[0] = renamed
	w.follow()
	waitUntil(t, "the one renamed is aside", func() bool { return aside(0) })
	w.workers[0] = made("renamed", "0")
	w.workers[0].URL += "/"
	w.follow()
	waitUntil(t, "the one that moved is aside", func() bool { return aside(0) })
	if n := strings.Count(w.log.String(), "GPUs are not well"); n != 1 || aside(1) {
		t.Errorf("it is told %d times", n)
	}
}

// New settings are looked at when they come, however long the interval is.
func TestReloadIsLookedAtNow(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(2, hardwaretest.Throttle)
	w := watching(t, m)
	w.settings.Interval = time.Hour
	w.follow()
	waitUntil(t, "w0 is slow", func() bool { return w.hardware(0).Slow == 2 })
	w.workers[1].Own.GPUs = []string{"0"}
	w.follow()
	waitUntil(t, "w1 is slow", func() bool { return w.hardware(1).Slow == 2 })
}

// What is not as the configuration says, and what is not known, is a reason in /readyz.
func TestReasons(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Set(1, func(g []gpu.GPU) { g[0].State, g[0].Why = gpu.Stale, "the driver does not answer" })
	f := *m.Is.Load()
	f.State, f.Why = gpu.Stale, "no GPU answers"
	m.Is.Store(&f)
	w := watching(t, m)
	w.follow()
	waitUntil(t, "it was looked at", w.seen)
	got := w.reasons()
	for _, want := range []string{"GPU telemetry is stale: no GPU answers\n" + `worker "w1": gpus: `, `GPU-1`} {
		if !strings.Contains(got, want) {
			t.Errorf("/readyz says %s, want %s", got, want)
		}
	}
}

// A driver that is out of order is no reason where no worker runs on its GPUs.
func TestBrokenDriverOfNobodyIsNoReason(t *testing.T) {
	m := &hardwaretest.Fleet{}
	m.Is.Store(&gpu.Fleet{State: gpu.Lost, Why: "the driver says DRIVER_NOT_LOADED"})
	w := watching(t, m)
	w.workers[0].Own.GPUs, w.workers[1].Own.GPUs = nil, nil
	w.follow()
	waitUntil(t, "it was looked at", w.seen)
	if got := w.reasons(); got != "" {
		t.Errorf("/readyz says %s", got)
	}
	if f := w.Fleet(time.Now()); f.State != gpu.Lost || f.Why != "the driver says DRIVER_NOT_LOADED" || len(f.GPUs) != 0 {
		t.Errorf("/debug/gpu says %+v", f)
	}
}

// BenchmarkLook is one look at a busy host: 8 GPUs with a process each and 8 workers; four a second by default.
func BenchmarkLook(b *testing.B) {
	m := &hardwaretest.Fleet{}
	m.Set(8, func(g []gpu.GPU) {
		for i := range g {
			hardwaretest.Everything(&g[i])
			g[i].Processes = []snapshot.Process{{PID: 1 << 22, Memory: hardwaretest.Some(uint64(60 << 30)), SMUtilization: hardwaretest.Some(50.0)}}
		}
	})
	w := watching(b, m)
	w.settings.Effects, w.workers = gpu.DefaultEffects(), nil
	for i := range 8 {
		one := made(fmt.Sprintf("w%d", i))
		one.Own.Address = fmt.Sprintf("127.0.0.1:%d", i+1)
		w.workers = append(w.workers, one)
	}
	w.judges = map[*kvroute.Worker]*judge{}
	g := newGeneration(&w.settings, w.workers)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(250 * time.Millisecond)
		w.look(g, now)
	}
}
