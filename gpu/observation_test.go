// Tests of observations at given times.

package gpu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kvasir/gpu/snapshot"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// states formats the states of the fleet and of its GPUs, with their ages.
func states(f *Fleet) string {
	s := string(f.State) + ":"
	for _, g := range f.GPUs {
		s += fmt.Sprintf(" %s/%d", g.State, g.Age)
	}
	return s
}

func TestSight(t *testing.T) {
	s := &observation{state: Stale, why: "telemetry is starting"}
	for _, step := range []struct {
		line any // a line of the helper, or a string: why it is gone
		at   int
		want string // states, and " BECAUSE " why of the fleet
	}{
		{nil, 0, "stale: BECAUSE telemetry is starting"},
		{&snapshot.Hello{Driver: "570", GPUs: 2}, 0, "stale: stale/0 stale/0 BECAUSE no GPU answers; GPU 0: there is no snapshot yet"},
		{&snapshot.GPU{Index: 0}, 10, "ok: ok/0 stale/0"},
		{&snapshot.GPU{Index: 1}, 200, "ok: ok/190 ok/0"},
		{nil, 1010, "ok: ok/1000 ok/810"},
		{nil, 1011, "ok: stale/1001 ok/811"},
		{nil, 1201, "stale: stale/1191 stale/1001 BECAUSE no GPU answers; GPU 0: the driver has not answered for 1s; if that lasts, look for NVRM and Xid in dmesg"},
		{&snapshot.GPU{Index: 0}, 1300, "ok: ok/0 stale/1100"},
		// A failed poll that may succeed next time leaves the last snapshot valid.
		{&snapshot.Trouble{GPU: 0, Code: "TIMEOUT"}, 1400, "ok: ok/100 stale/1200"},
		{nil, 2400, "stale: stale/1100 stale/2200 BECAUSE no GPU answers; GPU 0: the driver says TIMEOUT"},
		{&snapshot.Trouble{GPU: 0, Code: "GPU_IS_LOST"}, 2400, "stale: lost/1100 stale/2200 BECAUSE no GPU answers; GPU 1: the driver has not answered for 1s; if that lasts, look for NVRM and Xid in dmesg"},
		{&snapshot.Trouble{GPU: 1, Code: "RESET_REQUIRED"}, 2500, "lost: lost/1200 lost/2300 BECAUSE no GPU answers; GPU 0: the driver says GPU_IS_LOST: it fell off the bus or cannot be reached; look for its Xid in dmesg, then restart the host"},
		{&snapshot.GPU{Index: 1}, 2600, "ok: lost/1300 ok/0"},
		// Lost telemetry says nothing about the GPUs, but a GPU that was lost before stays lost.
		{"the helper ended", 2700, "lost: lost/1400 stale/100 BECAUSE the helper ended"},
		{&snapshot.Hello{Driver: "570", GPUs: 3}, 2800, "ok: lost/1500 ok/200 stale/0"},
		{&snapshot.GPU{Index: 0}, 2900, "ok: ok/0 ok/300 stale/0"},
		{&snapshot.Trouble{GPU: -1, Code: "NEW_ERROR", Text: "so new"}, 3000, "lost: stale/100 stale/400 stale/0 BECAUSE the driver says NEW_ERROR (so new)"},
		{&snapshot.Hello{Driver: "570", GPUs: 1}, 3100, "ok: ok/200"},
		{nil, 2000, "ok: ok/0"}, // a time before the snapshot
		{&snapshot.Hello{Driver: "570", GPUs: 0}, 3200, "ok: BECAUSE the driver runs, but it shows no GPU; is one given to this container or machine?"},
	} {
		before, now := states(s.fleet(at(step.at), time.Second)), at(step.at)
		old := s
		switch line := step.line.(type) {
		case *snapshot.Hello:
			s = s.hello(line, now)
		case *snapshot.GPU:
			s = s.polled(line, now)
		case *snapshot.Trouble:
			s = s.failed(line)
		case string:
			s = s.gone(line)
		}
		f := s.fleet(now, time.Second)
		got := states(f)
		if f.Why != "" {
			got += " BECAUSE " + f.Why
		}
		if got != step.want {
			t.Errorf("at %d after %+v: %s, want %s", step.at, step.line, got, step.want)
		}
		if again := states(old.fleet(at(step.at), time.Second)); again != before {
			t.Errorf("at %d: the observation before was changed: %s, then %s", step.at, before, again)
		}
	}
}

// TestFleetIsTheCallers: changes that one caller makes to its fleet are invisible to others.
func TestFleetIsTheCallers(t *testing.T) {
	m := &Monitor{options: Options{Interval: time.Second}}
	m.observed.Store((&observation{}).hello(&snapshot.Hello{GPUs: 1}, epoch))
	f := m.Fleet(epoch)
	f.GPUs[0].Workers = append(f.GPUs[0].Workers, "a")
	f.GPUs[0].State = OK
	if g := m.Fleet(epoch).GPUs[0]; len(g.Workers) != 0 || g.State != Stale {
		t.Errorf("the next one gets %+v", g)
	}
}

func TestEveryAdviceIsASentence(t *testing.T) {
	for code, text := range advice {
		if code != strings.ToUpper(code) || text == "" || strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", code, text)
		}
	}
}

func BenchmarkFleet(b *testing.B) {
	m := eight()
	b.ReportAllocs()
	for b.Loop() {
		m.Fleet(epoch)
	}
}

// TestFleetAllocates: only the fleet and the slice of its GPUs are allocated, whatever they
// contain.
func TestFleetAllocates(t *testing.T) {
	m := eight()
	if n := testing.AllocsPerRun(100, func() { m.Fleet(epoch) }); n > 2 {
		t.Errorf("a fleet takes %v allocations", n)
	}
}

// eight returns a monitor of eight good GPUs.
func eight() *Monitor {
	s := (&observation{}).hello(&snapshot.Hello{GPUs: 8}, epoch)
	for i := range 8 {
		s = s.polled(&snapshot.GPU{Index: i, Processes: make([]snapshot.Process, 100)}, epoch)
	}
	m := &Monitor{options: Options{Interval: time.Second}}
	m.observed.Store(s)
	return m
}

func BenchmarkLine(b *testing.B) {
	line := []byte(`{"gpu":{"index":0,"uuid":"GPU-11111111-2222-3333-4444-000000000000","name":"NVIDIA H100 80GB HBM3","pci":"00000000:07:00.0","memory_used_bytes":64424509440,"memory_total_bytes":85520809984,"sm_utilization":50,"memory_utilization":20,"power_watts":350.5,"power_limit_watts":700,"temperature_celsius":51,"sm_clock_mhz":1980,"sm_clock_max_mhz":1980,"memory_clock_mhz":2619,"memory_clock_max_mhz":2619,"throttle_reasons":[],"ecc_errors":0,"ecc_corrected_errors":3,"xid":0,"recovery_action":"none","pcie_rx_bytes_per_second":1000000,"pcie_tx_bytes_per_second":2000000,"processes":[{"pid":1000,"memory_bytes":64424509440,"sm_utilization":50}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
