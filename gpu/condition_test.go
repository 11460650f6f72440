// Tests of conditions: testdata/condition_*.txt contain snapshots of a worker's GPUs and the
// conditions that follow; -update writes the answers.

package gpu

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/gpu/snapshot"
	"kvasir/transcripttest"
)

// retell plays transcripts, each in a time of its own. What tell answers ends its line.
func retell(t *testing.T, pattern string, begin func(t *testing.T) (tell func(words []string) string)) {
	t.Helper()
	transcripttest.Run(t, pattern, func(t *testing.T, text string) (got string) {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			tell := begin(t)
			got = transcripttest.Replay(text,
				func(line string) { said.WriteString(tell(strings.Fields(line))) },
				func() string { defer said.Reset(); return said.String() })
		})
		return got
	})
}

func TestConditions(t *testing.T) {
	t.Parallel()
	retell(t, "testdata/condition_*.txt", func(t *testing.T) func([]string) string {
		begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		return (&telemetry{t: t, begin: begin, now: begin, effects: DefaultEffects()}).tell
	})
}

// telemetry is the state behind one transcript.
type telemetry struct {
	t          *testing.T
	begin, now time.Time
	effects    Effects
	judge      Judge
	own        Owned
	active     int
	fields     []map[string]json.RawMessage // by GPU
	polled     []time.Time
	last       string
}

const interval = 250 * time.Millisecond

func (s *telemetry) tell(words []string) (answer string) {
	switch words[0] {
	case "effects": // KIND=EFFECT ... headroom=MIB
		for _, w := range words[1:] {
			s.effect(w)
		}
	case "own": // PID ... or a MIG device's UUID
		s.own = Owned{}
		for _, w := range words[1:] {
			if pid, err := strconv.Atoi(w); err == nil {
				s.own.PIDs = append(s.own.PIDs, pid)
			} else {
				s.own.instances = append(s.own.instances, w)
			}
		}
	case "active":
		s.active, _ = strconv.Atoi(words[1])
	case "gpu": // POSITION FIELD=JSON ...; a field without a value is absent from now on
		s.set(words[1], words[2:])
	case "gpus": // only the first N
		n, _ := strconv.Atoi(words[1])
		s.fields, s.polled = s.fields[:n], s.polled[:n]
	case "poll": // for this long; prints each change of the condition
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		for end := s.now.Add(d); s.now.Before(end); {
			s.now = s.now.Add(interval)
			answer += s.poll()
		}
	case "again": // a new judge
		s.judge, s.last = Judge{}, ""
	default:
		s.t.Fatalf("no command %q", words)
	}
	return answer
}

func (s *telemetry) effect(word string) {
	name, value, _ := strings.Cut(word, "=")
	if name == "headroom" {
		n, _ := strconv.Atoi(value)
		s.effects.Headroom = uint64(n) << 20
		return
	}
	e, err := ParseEffect(value)
	if err != nil {
		s.t.Fatal(err)
	}
	*map[string]*Effect{
		"throttle": &s.effects.Throttle, "neighbour": &s.effects.Neighbour,
		"memory": &s.effects.Memory, "errors": &s.effects.Errors,
	}[name] = e
}

func (s *telemetry) set(position string, words []string) {
	n, _ := strconv.Atoi(position)
	for len(s.fields) <= n {
		s.fields = append(s.fields, map[string]json.RawMessage{
			"index": json.RawMessage(strconv.Itoa(len(s.fields))), "state": json.RawMessage(`"ok"`),
		})
		s.polled = append(s.polled, time.Time{})
	}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if value == "" {
			delete(s.fields[n], name)
		} else {
			s.fields[n][name] = json.RawMessage(value)
		}
	}
}

func (s *telemetry) poll() string {
	gpus := make([]GPU, len(s.fields))
	for i, fields := range s.fields {
		text, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(text, &gpus[i])
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if gpus[i].State == OK {
			s.polled[i] = s.now
		}
		gpus[i].At = s.polled[i]
	}
	c := s.judge.Judge(s.now, s.effects, gpus, s.own, s.active)
	text := fmt.Sprintf("%.2f x", c.Slow)
	if c.Aside {
		text += ", aside"
	}
	if len(c.Reasons) > 0 {
		text += ": " + strings.Join(c.Reasons, "; ")
	}
	if text == s.last {
		return ""
	}
	s.last = text
	return fmt.Sprintf("%v %s\n", s.now.Sub(s.begin), text)
}

// TestJudgeAllocatesNothing: Judge is called for each worker four times a second.
func TestJudgeAllocatesNothing(t *testing.T) {
	gpus, own := busyGPUs(8)
	var j Judge
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	c := j.Judge(now, DefaultEffects(), gpus, own, 3)
	if c.Slow < 2 || len(c.Reasons) != 8 {
		t.Fatalf("nothing to tell: %+v", c)
	}
	allocs := testing.AllocsPerRun(100, func() {
		now = now.Add(interval)
		for i := range gpus {
			gpus[i].At = now
		}
		j.Judge(now, DefaultEffects(), gpus, own, 3)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkJudge(b *testing.B) {
	gpus, own := busyGPUs(8)
	var j Judge
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		now = now.Add(interval)
		j.Judge(now, DefaultEffects(), gpus, own, 3)
	}
}

// busyGPUs returns n throttled GPUs of one worker.
func busyGPUs(n int) (gpus []GPU, own Owned) {
	for i := range n {
		var g GPU
		text := fmt.Sprintf(`{"index":%d,"uuid":"GPU-%d","sm_utilization":97,"sm_clock_mhz":660,"sm_clock_max_mhz":1980,
			"throttle_reasons":["hw_slowdown","hw_thermal_slowdown"],"memory_used_bytes":80000000000,"memory_total_bytes":85000000000,
			"ecc_errors":0,"xid":0,"recovery_action":"none","processes":[{"pid":%d,"sm_utilization":97}],"state":"ok"}`, i, i, 100+i)
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			panic("BUG: " + err.Error())
		}
		gpus, own.PIDs = append(gpus, g), append(own.PIDs, 100+i)
	}
	return gpus, own
}

func TestParseEffect(t *testing.T) {
	t.Parallel()
	for _, e := range []Effect{EffectOff, EffectCost, EffectAside} {
		if got, err := ParseEffect(e.String()); got != e || err != nil {
			t.Errorf("%v is read as %v, %v", e, got, err)
		}
	}
	if _, err := ParseEffect("Aside"); err == nil || err.Error() != `must be off, cost or aside, not "Aside"` {
		t.Errorf("Aside gives %v", err)
	}
}

// A GPU leaves its worker when the engine dies of an error on it. When it comes back, its errors
// still count, but not for ever.
func TestJudgeKnowsGPUThatComesBack(t *testing.T) {
	t.Parallel()
	var j Judge
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	gpus, own := busyGPUs(2)
	aside := func(later time.Duration, ecc uint64, gpus ...GPU) bool {
		now = now.Add(later)
		for i := range gpus {
			gpus[i].At, gpus[i].ECCErrors = now, &ecc
		}
		return j.Judge(now, DefaultEffects(), gpus, own, 1).Aside
	}
	if aside(0, 1, gpus[0]) || aside(time.Second, 1) {
		t.Error("an old error counts")
	}
	if !aside(time.Minute, 2, gpus[0]) || aside(time.Second, 2, gpus[1]) || !aside(time.Second, 2, gpus[0]) {
		t.Error("an error that happened meanwhile does not count, or for another GPU")
	}
	if aside(time.Second, 2) || aside(2*holdError, 3) || aside(time.Second, 3, gpus[1]) || aside(time.Second, 3, gpus[0]) {
		t.Error("what was long ago counts")
	}
	for i := range 200 {
		aside(time.Millisecond, 3, GPU{State: OK, GPU: snapshot.GPU{Index: i, UUID: strconv.Itoa(i)}})
	}
	if len(j.left) > mostLeft {
		t.Errorf("%d GPUs that have left are remembered", len(j.left))
	}
}
