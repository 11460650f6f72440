// Degraded GPUs of `kvasir replay`: throttled or shared for a while, and what telemetry makes of them.

package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
	"kvasir/kvroute"
	"kvasir/kvroute/replay"
	"kvasir/wording"
)

// A troubleSpan is one --slow or --neighbour.
type troubleSpan struct {
	replay.Slowdown
	share float64 // of the GPU's time that a neighbour takes; 0: the GPU is throttled
}

// slowSpan reads WORKER:FROM-TO:FACTOR, such as 0:60s-180s:3.
func slowSpan(text string) (troubleSpan, error) {
	t, factor, err := readSpan(text)
	switch {
	case err != nil:
		return t, usageError(fmt.Sprintf("--slow %s: %v: want a worker, a time and a factor, such as 0:60s-180s:3", wording.Quote(text), err))
	case !(factor > 1 && factor <= 1000): // also NaN
		return t, usageError(fmt.Sprintf("--slow %s: want a factor above 1 and at most 1000, such as 0:60s-180s:3", wording.Quote(text)))
	}
	t.Slow = factor
	return t, nil
}

// neighbourSpan reads WORKER:FROM-TO:SHARE, such as 1:30s-90s:0.5.
func neighbourSpan(text string) (troubleSpan, error) {
	t, share, err := readSpan(text)
	switch {
	case err != nil:
		return t, usageError(fmt.Sprintf("--neighbour %s: %v: want a worker, a time and a share, such as 1:30s-90s:0.5", wording.Quote(text), err))
	case !(share > 0 && share <= 0.99):
		return t, usageError(fmt.Sprintf("--neighbour %s: want a share above 0 and at most 0.99, such as 1:30s-90s:0.5", wording.Quote(text)))
	}
	t.share, t.Slow = share, 1/(1-share) // the engine has what is left of the time
	return t, nil
}

// readSpan reads WORKER:FROM-TO:NUMBER.
func readSpan(text string) (t troubleSpan, number float64, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return t, 0, fmt.Errorf("%d parts between colons, not 3", len(parts))
	}
	from, to, ok := strings.Cut(parts[1], "-")
	if !ok {
		return t, 0, fmt.Errorf("%s is not from when to when", wording.Quote(parts[1]))
	}
	if t.Worker, err = strconv.Atoi(parts[0]); err != nil {
		return t, 0, fmt.Errorf("%s is not the number of a worker", wording.Quote(parts[0]))
	}
	if t.From, err = time.ParseDuration(from); err != nil {
		return t, 0, fmt.Errorf("%s is not a time", wording.Quote(from))
	}
	if t.To, err = time.ParseDuration(to); err != nil {
		return t, 0, fmt.Errorf("%s is not a time", wording.Quote(to))
	}
	if number, err = strconv.ParseFloat(parts[2], 64); err != nil {
		return t, 0, fmt.Errorf("%s is not a number", wording.Quote(parts[2]))
	}
	return t, number, nil
}

// readTroubles reads --slow and --neighbour into the options, and sees to telemetry.
func (f *replayFlags) readTroubles() error {
	var spans []troubleSpan
	for _, one := range []struct {
		texts []string
		read  func(string) (troubleSpan, error)
	}{{f.slow, slowSpan}, {f.neighbour, neighbourSpan}} {
		for _, text := range one.texts {
			span, err := one.read(text)
			if err != nil {
				return err
			}
			spans = append(spans, span)
			f.options.Slowdowns = append(f.options.Slowdowns, span.Slowdown)
		}
	}
	if f.telemetry == "on" && len(spans) > 0 { // without troubles it has nothing to say
		f.options.Telemetry = newMadeUp(spans).hardware
	}
	return nil
}

// madeUp is the telemetry of simulated GPUs: what their driver would say in such
// a trouble, and what the proxy's own judge makes of it.
type madeUp struct {
	spans  []troubleSpan
	begin  time.Time // the first moment that it was asked about
	judges map[int]*gpu.Judge
}

func newMadeUp(spans []troubleSpan) *madeUp {
	return &madeUp{spans: spans, judges: map[int]*gpu.Judge{}}
}

// Processes that a made-up GPU has.
const (
	enginePID    = 1000
	neighbourPID = 2000
)

// hardware is what telemetry says of a worker with so many requests under way.
func (m *madeUp) hardware(now time.Time, worker, active int) kvroute.Hardware {
	if m.begin.IsZero() {
		m.begin = now
	}
	judge := m.judges[worker]
	if judge == nil {
		judge = new(gpu.Judge)
		m.judges[worker] = judge
	}
	polled := gpu.GPU{GPU: m.snapshot(now.Sub(m.begin), worker, active > 0), State: gpu.OK, At: now}
	own := gpu.Owned{GPUs: []int{0}, PIDs: []int{enginePID}}
	c := judge.Judge(now, gpu.DefaultEffects(), []gpu.GPU{polled}, own, active)
	return kvroute.Hardware{Slow: c.Slow, Aside: c.Aside, Why: strings.Join(c.Reasons, "; ")}
}

// Clocks of an H100, in MHz.
const (
	fullClock = 1980.0
	idleClock = 345.0
)

// snapshot is one poll of a worker's GPU: an H100 whose clock is lower by the factor of --slow while it is hot, and
// whose time the engine and its neighbour share. An idle one clocks down by itself, and tells no throttling.
func (m *madeUp) snapshot(now time.Duration, worker int, busy bool) snapshot.GPU {
	slow, share := 1.0, 0.0
	for _, s := range m.spans {
		switch {
		case s.Worker != worker || now < s.From || now >= s.To:
		case s.share > 0:
			share = 1 - (1-share)*(1-s.share)
		default:
			slow *= s.Slow
		}
	}
	used := math.Round(100 * share)
	g := snapshot.GPU{
		Index: worker, UUID: fmt.Sprintf("GPU-%08d", worker), Name: "NVIDIA H100 80GB HBM3",
		MemoryUsed: new(uint64(72 << 30)), MemoryTotal: new(uint64(80 << 30)),
		SMClockMax: new(fullClock), ThrottleReasons: []string{}, ECCErrors: new(uint64(0)), Recovery: new("none"),
		Processes: []snapshot.Process{{PID: enginePID, SMUtilization: new(0.0)}},
	}
	clock, all := fullClock/slow, used
	switch {
	case busy:
		all = 100
		g.Processes[0].SMUtilization = new(100 - used)
	case share == 0:
		clock = idleClock
		g.ThrottleReasons = append(g.ThrottleReasons, "gpu_idle")
	}
	if slow > 1 && all > 0 {
		g.ThrottleReasons = append(g.ThrottleReasons, "hw_thermal_slowdown")
	}
	// The driver gives every process the same share, so that a neighbour with more
	// than half of the time is more than one process.
	for n := math.Ceil(share/(1-share) - 1e-9); n > 0 && len(g.Processes) <= int(n); {
		p := snapshot.Process{PID: neighbourPID + len(g.Processes), SMUtilization: new(used / n)}
		g.Processes = append(g.Processes, p)
	}
	g.SMClock, g.SMUtilization = new(clock), new(all)
	return g
}

// text says what is wrong with which worker, for people.
func (f *replayFlags) troubleText() string {
	if len(f.options.Slowdowns) == 0 {
		return ""
	}
	var all []string
	for _, t := range f.options.Slowdowns {
		all = append(all, fmt.Sprintf("worker %d takes %.4g times as long from %v to %v", t.Worker, t.Slow, t.From, t.To))
	}
	return fmt.Sprintf("%s; telemetry %s\n", strings.Join(all, ", "), f.telemetry)
}
