// Planning: how many workers there should be, planned beside the requests and shown, or handed to a command.

package serve

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/kvroute/replay"
	"kvasir/planner"
	"kvasir/planner/keda"
	"kvasir/proxy"
)

// planning plans every interval, on one goroutine, from what the recorder has of the last requests.
type planning struct {
	log      zerolog.Logger
	config   config.Planner
	mode     string
	several  bool // Kvasirs know of each other: each plans for its part
	recorder *planner.Recorder
	sizes    func(model string) proxy.Sizes
	show     func(*planner.Report)
	scaling  *scaling // nil: nothing is done in Kubernetes

	stop context.CancelFunc
	done sync.WaitGroup

	// Of the goroutine alone.
	planner *planner.Planner // nil: no worker was seen yet
	apart   bool
	wanted  replay.Fleet // as it was said last; zero: never
	changed time.Time    // when it was said first
	began   time.Time    // when there was the first plan with requests; zero: there was none
	useless bool         // what was decided last, which is logged once
	applied replay.Fleet // what the command has been run for; zero: nothing
	said    replay.Fleet // what was logged last

	mu     sync.Mutex     // guards below
	report planner.Report // what was said last
}

// startPlanning begins to plan where the configuration asks for it; nil where not. k is told of plans, unless it is nil.
func startPlanning(log zerolog.Logger, c *config.Config, p *proxy.Proxy, k *keda.Server) *planning {
	mode := c.PlannerMode()
	if mode == "off" {
		return nil
	}
	history := planner.Back * c.Planner.Window
	g := &planning{
		log: log, config: c.Planner, mode: mode, several: c.Peers.On() && !c.Planner.Kubernetes.On(), recorder: planner.NewRecorder(int(c.Planner.Memory), history, time.Now()), sizes: p.Sizes, show: p.Planned,
		report: planner.Report{Mode: mode, Model: c.Planner.Model, State: "the first plan is made after " + c.Planner.Interval.String()},
	}
	if k != nil {
		g.show = func(r *planner.Report) {
			p.Planned(r)
			k.Tell(r)
		}
		first := g.report // the other one is written to
		k.Tell(&first)
	}
	g.scaling = newScaling(log, &g.config, mode)
	p.Record(g.recorder, c.Planner.Model)
	ctx, cancel := context.WithCancel(context.Background())
	g.stop = cancel
	g.done.Add(1)
	go g.run(ctx)
	return g
}

// close ends the planning, with the plan or the command under way.
func (g *planning) close() {
	if g != nil {
		g.stop()
		g.done.Wait()
		g.scaling.close(time.Now())
	}
}

// Report is what was said last; nil where nobody plans.
func (g *planning) Report() *planner.Report {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.report
	return &r
}

func (g *planning) run(ctx context.Context) {
	defer g.done.Done()
	every := time.NewTicker(g.config.Interval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			g.step(ctx, time.Now()) // a tick that came while the last plan was made says when that was
		}
	}
}

// step makes a plan, and sees to what follows from it.
func (g *planning) step(ctx context.Context, now time.Time) {
	r, began := g.Report(), time.Now()
	clock := func() time.Time { return now.Add(time.Since(began)) }
	r.At, r.Problem = now, ""
	err := g.plan(ctx, now, clock, r)
	if err != nil && ctx.Err() == nil {
		r.State, r.Problem = "there is no plan", err.Error()
		r.Failures[planner.PlanFailed]++
		g.log.Warn().Str("problem", err.Error()).Msg("cannot plan the number of workers")
	}
	r.Took = time.Since(began)
	r.TookMS = float64(r.Took) / float64(time.Millisecond)
	g.tell(r)
	if r.Wanted == nil || ctx.Err() != nil {
		return
	}
	if g.scaling != nil && err == nil { // what an older plan wanted is not for what is there now
		g.scaling.apply(ctx, clock(), *r.Wanted, r)
		g.tell(r)
	}
	if g.mode == "apply" && len(g.config.Command) > 0 && g.applied != *r.Wanted && g.scaling.leadsFor(g.config.CommandTimeout, clock()) {
		g.apply(ctx, *r.Wanted, r)
		g.tell(r)
	}
}

// tell shows a report, which is not changed after.
func (g *planning) tell(r *planner.Report) {
	g.mu.Lock()
	g.report = *r
	g.mu.Unlock()
	shown := *r
	g.show(&shown)
}

// plan makes one plan into the report.
func (g *planning) plan(ctx context.Context, now time.Time, clock func() time.Time, r *planner.Report) (err error) {
	defer func() {
		if fault := recover(); fault != nil { // a bug here is not to end the program
			err = fmt.Errorf("BUG: %v", fault)
		}
	}()
	there := g.sizes(g.config.Model)
	r.Up = &there.Fleet
	if ready, err := g.prepare(&there.Fleet); err != nil || !ready {
		r.State = "no worker is up, or only those of one role" // there is nothing to go on from
		return err
	}
	deadline, asked := time.Now().Add(g.config.Budget), 0
	g.planner.Engine(engineOf(&there, g.config.Pace), func() bool {
		asked++
		return asked%16 == 0 && (ctx.Err() != nil || time.Now().After(deadline))
	})
	o := g.planner.Options()
	load := g.recorder.Load(now, &o)
	if g.scaling != nil {
		before := time.Now()
		g.scaling.look(ctx, now, clock, g.planner.Rate(load), r)
		load.Others = g.scaling.group.Others
		deadline = deadline.Add(time.Since(before)) // a slow API server takes nothing of the plan's time
	}
	begins := g.goOnFrom(&there, now)
	// What is wanted is what is said to others, so it goes on from there, not from how many happen to be up.
	advice, err := g.planner.Advise(load, g.wanted, g.underWay(&there.Fleet, now))
	if err != nil || ctx.Err() != nil {
		return err
	}
	if g.began.IsZero() && advice.Forecast.Rate > 0 {
		g.began = now
	}
	if least := most(advice.Want, g.wanted); begins && advice.Want != least {
		advice.Want = least
		if advice.Reason.Verdict == planner.Down {
			advice.Reason.Verdict, advice.Reason.Since = planner.Waits, 0
			if !g.began.IsZero() {
				advice.Reason.Since = now.Sub(g.began)
			}
		}
	}
	r.Apart, r.Pace, r.Measured = g.apart, o.Engine.Pace, &load.Measured
	r.Take(advice, len(load.Done.Requests))
	if useless := advice.Reason.Verdict == planner.Useless; useless != g.useless && advice.Reason.Verdict != planner.Changing {
		if g.useless = useless; useless {
			g.log.Warn().Stringer("wanted", advice.Want).Float64("reachable", r.Reachable).Float64("predicted_share", r.Predicted.Share).
				Msg("no number of workers keeps the planner's targets, and more would do no better; raise planner.target_ttft_ms or planner.target_itl_ms")
		}
	}
	if advice.Want != g.wanted && advice.Want != g.said {
		g.log.Info().Stringer("wanted", advice.Want).Stringer("before", g.wanted).Stringer("up", there.Fleet).Stringer("formula", advice.Formula.Fleet).
			Float64("arrivals", advice.Forecast.Rate).Str("why", advice.Reason.String()).Str("mode", g.mode).Msg("another number of workers is wanted")
	}
	if advice.Want != g.wanted {
		g.wanted, g.changed = advice.Want, now
	}
	g.said = advice.Want
	return nil
}

// prepare makes a planner for the roles that there are, or that have targets. ready is false where there are none.
func (g *planning) prepare(up *replay.Fleet) (ready bool, err error) {
	apart := up.Prefill > 0 && up.Decode > 0
	ofTargets, named := g.scaling.roles()
	switch {
	case named:
		apart = ofTargets
	case g.planner == nil && up.Workers == 0 && !apart || up.Total() == 0:
		return false, nil
	case lacks(*up, g.apart):
		apart = g.apart
	}
	if g.planner != nil && apart == g.apart {
		return true, nil
	}
	o := wiring.Planner(&g.config)
	o.Apart = apart
	if o = o.WithDefaults(); o.Validate() != nil {
		return false, o.Validate()
	}
	g.planner, g.apart, g.wanted, g.applied, g.began = planner.New(o), apart, replay.Fleet{}, replay.Fleet{}, time.Time{}
	return true, nil
}

// goOnFrom sets what is wanted to what the next plan is to go on from. begins says that so little is known yet that no
// fewer are to be wanted.
func (g *planning) goOnFrom(there *proxy.Sizes, now time.Time) (begins bool) {
	// One of several would say so for all workers, and their sum would grow by what it brought about.
	begins = !g.several && (g.began.IsZero() || now.Before(g.began.Add(g.config.DownAfter)))
	switch {
	case g.scaling != nil && len(g.scaling.seen) > 0:
		if g.wanted == (replay.Fleet{}) {
			g.follow(there.Fleet) // a role without a target
		}
		g.wanted = g.scaling.seen.Fleet(g.wanted)
	case begins:
		// Those that still load their models, or were not found yet, are no fewer for that: until it is known what is
		// needed, what is wanted follows what is there.
		g.follow(most(there.Fleet, there.Known))
	case g.wanted == (replay.Fleet{}):
		g.follow(there.Fleet)
	}
	return begins
}

// underWay says whether a change of the fleet is.
func (g *planning) underWay(up *replay.Fleet, now time.Time) bool {
	if g.scaling != nil && len(g.scaling.seen) > 0 {
		return g.scaling.underWay()
	}
	return *up != g.wanted && now.Before(g.changed.Add(g.config.StartTime))
}

// follow lets what is wanted be no less than what there is. What is there needs no command, unless it is out of bounds.
func (g *planning) follow(there replay.Fleet) {
	there = most(there, g.wanted)
	if want := g.planner.Clamp(there); want != g.wanted {
		if g.applied == g.wanted { // none is pending
			g.applied = there
			if g.apart {
				g.applied.Workers = 0
			} else {
				g.applied.Prefill, g.applied.Decode = 0, 0
			}
		}
		g.wanted = want
	}
}

// most has the larger number of each role.
func most(a, b replay.Fleet) replay.Fleet {
	return replay.Fleet{Workers: max(a.Workers, b.Workers), Prefill: max(a.Prefill, b.Prefill), Decode: max(a.Decode, b.Decode)}
}

// lacks says whether a fleet has no worker of a role that it had: they are down, which is no other kind of fleet.
func lacks(f replay.Fleet, apart bool) bool { return apart && f.Workers == 0 }

// engineOf is what the replay is to play against, as far as it is known.
func engineOf(there *proxy.Sizes, pace float64) replay.Options {
	e := replay.Options{
		Policy: there.Policy.String(), Queue: there.Queue, BlockSize: there.Engine.BlockSize, Blocks: there.Engine.Blocks,
		MaxBatchedTokens: there.Engine.MaxBatchedTokens, MaxSeqs: there.Engine.MaxSeqs, Pace: pace,
	}
	if e.BlockSize > 0 && e.Blocks == 0 {
		e.Blocks = defaultPool / e.BlockSize
	}
	if e.Pace == 0 {
		e.Pace = there.Pace // 0: the default
	}
	return e
}

// defaultPool is for how many tokens an engine is taken to have KV blocks that does not say.
const defaultPool = 16384 * 64

// apply runs the user's command for a fleet.
func (g *planning) apply(ctx context.Context, want replay.Fleet, r *planner.Report) {
	ctx, cancel := context.WithTimeout(ctx, g.config.CommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.config.Command[0], g.config.Command[1:]...) //nolint:gosec // it is the user's
	cmd.Env = append(os.Environ(), "KVASIR_PLAN_WORKERS="+strconv.Itoa(want.Workers), "KVASIR_PLAN_PREFILL="+strconv.Itoa(want.Prefill),
		"KVASIR_PLAN_DECODE="+strconv.Itoa(want.Decode), "KVASIR_PLAN_MODEL="+g.config.Model)
	said := &bounded{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = said, said, commandGrace
	end := ownGroup(cmd)
	err := cmd.Run()
	if err != nil {
		end() // nothing of it goes on beside the next try
	}
	if ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("it was stopped after planner.command_timeout, %v", g.config.CommandTimeout)
	}
	if err != nil {
		r.Problem = "planner.command: " + err.Error()
		r.Failures[planner.CommandFailed]++
		g.log.Warn().Str("problem", err.Error()).Str("output", said.String()).Stringer("wanted", want).Msg("planner.command did not succeed; it is run again with the next plan")
		return
	}
	g.applied, r.Applied = want, &want
	g.log.Info().Str("output", said.String()).Stringer("wanted", want).Msg("planner.command was run")
}

// commandGrace is how long a command that is stopped may take to end, and one that has ended may leave its outputs open.
const commandGrace = time.Second

// mostSaid bounds what is kept of a command's output, in bytes.
const mostSaid = 4096

// bounded keeps the beginning of what is written. A command writes from one goroutine, for both of its outputs.
type bounded struct{ kept bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := mostSaid - b.kept.Len(); room > 0 {
		b.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (b *bounded) String() string {
	return strings.ToValidUTF8(strings.TrimSpace(b.kept.String()), "\ufffd")
}
