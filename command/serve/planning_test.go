// Tests of planning beside requests, with workers and times that are made up.

package serve

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/config"
	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
	"kvasir/kvroute/replay"
	"kvasir/planner"
	"kvasir/proxy"
)

// rehearsal is planning without its goroutine.
type rehearsal struct {
	planning
	there proxy.Sizes
	log   bytes.Buffer
	shown *planner.Report
	now   time.Time
}

func rehearse(mode string, c config.Planner) *rehearsal {
	r := &rehearsal{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.Share, c.TargetTTFT, c.TargetITL, c.Max, c.Window, c.Interval, c.StartTime, c.DownAfter = 0.95, 500, 50, 20, 2*time.Minute, time.Minute, time.Minute, 2*time.Minute
	c.Min, c.MostPlayed = 1, 500
	if c.Budget == 0 {
		c.Budget = time.Minute
	}
	r.planning = planning{
		log: zerolog.New(&r.log), config: c, mode: mode, recorder: planner.NewRecorder(1<<20, planner.Back*c.Window, r.now),
		sizes: func(string) proxy.Sizes { return r.there }, show: func(p *planner.Report) { r.shown = p },
	}
	r.there = proxy.Sizes{Policy: kvroute.Predict, Queue: true}
	return r
}

// minute lets a minute pass in which so many requests a second come, and plans.
func (r *rehearsal) minute(rate int) *planner.Report {
	for i := range 60 * rate {
		at := r.now.Add(time.Duration(i) * time.Second / time.Duration(rate))
		r.recorder.Done(r.recorder.Came(at, []kvindex.Name{1}), planner.Done{PromptTokens: 3000, AnswerTokens: 20, TTFT: 70 * time.Millisecond, E2E: 300 * time.Millisecond, Streamed: true})
	}
	r.now = r.now.Add(time.Minute)
	r.step(context.Background(), r.now)
	return r.shown
}

func TestPlanning(t *testing.T) {
	r := rehearse("advise", config.Planner{})
	if p := r.minute(5); p.Wanted != nil || !strings.HasPrefix(p.State, "no worker is up") || p.Failures != [4]uint64{} {
		t.Fatalf("without workers: %+v", p)
	}
	r.there.Fleet = replay.Fleet{Decode: 2}
	if p := r.minute(5); p.Wanted != nil {
		t.Fatalf("with decode workers alone: %+v", p)
	}
	r.there.Fleet = replay.Fleet{Workers: 2}
	p := r.minute(40)
	if p.Wanted == nil || p.Wanted.Workers < 3 || p.Replay == nil || p.FormulaSays == nil || p.Predicted.Share < 0.95 || p.Decisions[planner.Up] != 1 || p.Measured.Requests == 0 {
		t.Fatalf("many came: %+v", p)
	}
	want := *p.Wanted
	// They start; nothing else is wanted meanwhile.
	if p := r.minute(40); *p.Wanted != want && p.Decisions[planner.Changing] == 0 || p.Apart {
		t.Errorf("while they start: %+v", p)
	}
	want = *r.shown.Wanted
	// One is down for a moment: that is no reason to want fewer.
	r.there.Fleet.Workers = want.Workers - 1
	if p := r.minute(40); p.Wanted.Workers < want.Workers {
		t.Errorf("one is down: %v wanted, of %v", p.Wanted, want)
	}
	r.there.Fleet = *r.shown.Wanted
	for range 6 {
		p = r.minute(1)
	}
	if p.Wanted.Workers >= want.Workers || p.Decisions[planner.Down] == 0 {
		t.Errorf("few come: %+v", p)
	}
	if said := r.log.String(); !strings.Contains(said, "another number of workers is wanted") || strings.Contains(said, "cannot plan") {
		t.Error(said)
	}
	// Other kinds of workers are another plan; to lack one kind for a moment is not.
	r.there.Fleet = replay.Fleet{Prefill: 1, Decode: 1}
	if p := r.minute(1); !p.Apart || p.Wanted.Workers != 0 || p.Wanted.Prefill < 1 {
		t.Errorf("apart: %+v", p)
	}
	r.there.Fleet = replay.Fleet{Decode: 1}
	if p := r.minute(1); !p.Apart || p.Wanted.Prefill < 1 {
		t.Errorf("without its prefill worker: %+v", p)
	}
}

// After a start workers still load their models: that only one of them is up yet is no reason to want fewer.
func TestPlanningAfterAStart(t *testing.T) {
	r := rehearse("apply", config.Planner{Command: []string{"false"}, CommandTimeout: time.Minute})
	r.there.Fleet, r.there.Known = replay.Fleet{Workers: 1}, replay.Fleet{Workers: 3, Prefill: 1}
	wants := func(rate, want int) {
		t.Helper()
		if p := r.minute(rate); p.Wanted == nil || *p.Wanted != (replay.Fleet{Workers: want}) || p.Failures[planner.CommandFailed] != 0 {
			t.Errorf("%+v, want %d", p, want)
		}
	}
	for range 5 {
		wants(0, 3) // nobody came: nothing is known
	}
	r.there.Fleet.Workers, r.there.Known.Workers = 4, 5
	wants(1, 5)
	r.there.Fleet.Workers, r.there.Known.Workers = 3, 3
	wants(1, 5)
	r.config.Command[0] = "true"
	if p := r.minute(1); p.Wanted.Workers >= 5 || p.Decisions[planner.Down] == 0 {
		t.Errorf("after down_after: %+v", p)
	}
}

// One of several does not follow all workers: a sum of what each wants would grow by what it brought about.
func TestPlanningOfSeveralAfterAStart(t *testing.T) {
	r := rehearse("advise", config.Planner{})
	r.several = true
	r.there.Fleet, r.there.Known = replay.Fleet{Workers: 2}, replay.Fleet{Workers: 6}
	for range 4 {
		if p := r.minute(1); p.Wanted == nil || p.Wanted.Workers > 2 {
			t.Errorf("%+v", p)
		}
		r.there.Fleet.Workers = 6 // the others' as well
	}
}

func TestPlanningIsBounded(t *testing.T) {
	r := rehearse("advise", config.Planner{Budget: 1})
	r.there.Fleet = replay.Fleet{Workers: 4}
	p := r.minute(20)
	if p.Failures[planner.PlanStopped] != 1 || p.Wanted.Workers < 4 || !strings.Contains(p.State, "cut short") {
		t.Errorf("%+v", p)
	}
	gone, stop := context.WithCancel(context.Background())
	stop()
	r.step(gone, r.now.Add(time.Minute)) // it ends, and says nothing of that
	if r.log.Len() > 0 && strings.Contains(r.log.String(), "cannot") {
		t.Error(r.log.String())
	}
	// A bug costs the plan, not the program.
	r.sizes = func(string) proxy.Sizes { panic("BUG: made up") }
	if p := r.minute(1); p.Failures[planner.PlanFailed] != 1 || !strings.Contains(p.Problem, "BUG: made up") {
		t.Errorf("%+v", p)
	}
}

func TestCommandIsBounded(t *testing.T) {
	r := rehearse("apply", config.Planner{Command: []string{"sh", "-c", "yes | head -c 100000; echo $KVASIR_PLAN_WORKERS >&2; exec sleep 60"}, CommandTimeout: 300 * time.Millisecond})
	r.there.Fleet = replay.Fleet{Workers: 1}
	p := r.minute(30)
	if p.Failures[planner.CommandFailed] != 1 || !strings.Contains(p.Problem, "it was stopped after planner.command_timeout, 300ms") || p.Applied != nil {
		t.Errorf("%+v", p)
	}
	if r.log.Len() > 4*mostSaid {
		t.Errorf("the log has %d bytes", r.log.Len())
	}
	r.config.Command = []string{"no such program"}
	if p := r.minute(30); p.Failures[planner.CommandFailed] != 2 || !strings.Contains(p.Problem, "executable file not found") {
		t.Errorf("%+v", p)
	}
	r.config.Command = []string{"true"}
	if p := r.minute(30); p.Failures[planner.CommandFailed] != 2 || p.Problem != "" || p.Applied == nil || *p.Applied != *p.Wanted {
		t.Errorf("%+v", p)
	}
}
