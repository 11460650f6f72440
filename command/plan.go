// `kvasir plan`: how many workers a trace needs, as it goes on, to keep targets.

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvasir/kvroute/replay"
	"kvasir/planner"
)

// planFlags are the flags of the command: those of replay's engines, and its own.
type planFlags struct {
	replayFlags
	apart, whole bool
	engineArgs   string // the flags of the engine that were given, for a command that confirms
	gpus         float64
	options      planner.Options
}

func planCommand() *cobra.Command {
	f := planFlags{replayFlags: replayFlags{telemetry: "on", apartBy: "--apart"}}
	cmd := &cobra.Command{
		Use:   "plan --trace F",
		Short: "Say how many workers a trace needs to keep targets",
		Long: `Says how many workers it takes so that a share of the requests gets its first
token, and the ones after it, within the targets: once for the whole trace with
a fixed fleet, and once for a fleet that follows the load.

To follow the load, it walks through the trace. At each step it forecasts the
rate of requests from those that came so far, plays the last ones at that rate
against fleets of different sizes (as kvasir replay does), and takes the
smallest that keeps the targets. It adds workers at once and removes them after
a while. Then it plays the whole trace with that fleet, whose workers take time
to start, and beside it with a fixed fleet of the same mean size and with the
formula of Dynamo's planner. No step sees what comes after it.

A trace has the forms that kvasir replay reads.`,
		Example: `  kvasir plan --trace conversation.jsonl --target-ttft 2s
  kvasir plan --trace day.csv --target-ttft 500ms --target-itl 50ms --share 0.95 --interval 2m --start-time 90s
  kvasir plan --trace day.jsonl --apart --max 16 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return f.run(cmd.OutOrStdout(), os.Stderr)
		},
	}
	o, fs := &f.options, cmd.Flags()
	standard := planner.Options{}.WithDefaults()
	fs.StringVar(&f.trace, "trace", "", "`file` with the trace")
	f.targets.addTargets(fs)
	fs.BoolVar(&f.apart, "apart", false, "plan separate workers for prompts and for answers")
	fs.IntVar(&o.Min, "min", standard.Min, "fewest workers; with --apart of each role")
	fs.IntVar(&o.Max, "max", standard.Max, "most workers; with --apart of each role")
	fs.DurationVar(&o.Window, "window", standard.Window, "how much of the past a plan looks at")
	fs.DurationVar(&o.Interval, "interval", standard.Interval, "time between two plans")
	fs.DurationVar(&o.Start, "start-time", standard.Start, "`time` that a new worker takes to start")
	fs.DurationVar(&o.DownAfter, "down-after", standard.DownAfter, "`time` for which fewer workers must have been enough")
	fs.IntVar(&o.MostPlayed, "most-played", standard.MostPlayed, "most requests that a plan replays, the last ones")
	fs.Float64Var(&f.gpus, "gpus", 1, "GPUs of a worker, for the GPU hours")
	fs.BoolVar(&f.whole, "whole-only", false, "print only the fixed fleet that keeps the targets over the whole trace")
	f.addEngine(cmd)
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// ownFlags are those that replay has too, and a command that confirms is given anyway.
var ownFlags = []string{"trace", "target-ttft", "target-itl", "share", "start-time", "json"}

// check reads the flags into the options.
func (f *planFlags) check(cmd *cobra.Command) error {
	e := &f.replayFlags.options
	if e.Workers = 1; f.apart {
		e.Workers, e.Prefill, e.Decode = 0, 1, 1
	}
	if err := f.replayFlags.check(cmd); err != nil {
		return err
	}
	if !(f.gpus > 0 && f.gpus <= 1024) { // also NaN
		return usageError(fmt.Sprintf("--gpus: %v is not above 0 and at most 1024", f.gpus))
	}
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if replayCommand().Flags().Lookup(given.Name) != nil && !slices.Contains(ownFlags, given.Name) {
			f.engineArgs += " --" + given.Name + " " + given.Value.String()
		}
	})
	o := &f.options
	// 0 would stand for a default there.
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"window", o.Window}, {"interval", o.Interval}, {"start-time", o.Start}, {"down-after", o.DownAfter}} {
		if d.value <= 0 {
			return usageError(fmt.Sprintf("--%s: %v is not above 0", d.flag, d.value))
		}
	}
	if o.Min < 1 || o.Max < 1 || o.MostPlayed < 1 {
		return usageError("--min, --max and --most-played must be at least 1")
	}
	o.Targets, o.Share, o.Apart, o.Engine = f.targets.targets(), f.targets.share, f.apart, *e
	o.Engine.Speed = 1
	*o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// planned is what the command prints as JSON.
type planned struct {
	Trace    string      `json:"trace"`
	Requests int         `json:"requests"`
	Seconds  float64     `json:"seconds"` // of arrivals
	Targets  planTargets `json:"targets"`
	Whole    planWhole   `json:"whole"`
	Windows  []planStep  `json:"windows"`
	Fleets   []planFleet `json:"fleets"`
	Note     string      `json:"note,omitempty"`
}

type planTargets struct {
	TTFT  float64 `json:"ttft_ms"`
	ITL   float64 `json:"itl_ms"`
	Share float64 `json:"share"`
}

// planWhole is the fleet for the whole trace.
type planWhole struct {
	Fleet     replay.Fleet    `json:"fleet"`
	Enough    bool            `json:"enough"`
	Goal      float64         `json:"goal"`
	Reachable float64         `json:"reachable"`
	Kept      replay.Kept     `json:"kept"`
	Formula   replay.Fleet    `json:"formula"`
	Means     planner.Formula `json:"formula_means"`
	Confirm   string          `json:"confirm"`
}

// planStep is one row of the table.
type planStep struct {
	At        float64          `json:"at_s"`
	Arrivals  int              `json:"arrivals"`
	Measured  planner.Measured `json:"measured"`
	Forecast  planner.Forecast `json:"forecast"`
	Fleet     replay.Fleet     `json:"fleet"`
	Formula   replay.Fleet     `json:"formula"`
	Replay    *replay.Fleet    `json:"replay,omitempty"`
	Predicted *replay.Kept     `json:"predicted,omitempty"`
	Goal      float64          `json:"goal,omitempty"`
	Enough    bool             `json:"enough"`
	Want      replay.Fleet     `json:"want"`
	Verdict   string           `json:"verdict"`
	Reason    string           `json:"reason"`
	Kept      replay.Kept      `json:"kept"` // of the requests until the next row, as it went
}

// planFleet is one fleet that the whole was played with.
type planFleet struct {
	Name    string      `json:"name"`
	Kept    replay.Kept `json:"kept"`
	Hours   float64     `json:"gpu_hours"`
	Mean    float64     `json:"mean_workers"`
	Changes int         `json:"changes"`
	Confirm string      `json:"confirm"`
}

// run plans and prints. Progress goes to a terminal only.
func (f *planFlags) run(out io.Writer, terminal *os.File) error {
	trace, err := replay.Read(f.trace)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	speed := f.replayFlags.options.Speed
	trace = planner.Times(trace, speed)
	r := trace.Requests
	p := &planned{
		Trace: trace.Name, Requests: len(r), Seconds: r[len(r)-1].Arrival.Seconds(),
		Targets: planTargets{millisOf(f.targets.ttft), millisOf(f.targets.itl), f.targets.share},
	}
	bar := &progressBar{to: io.Discard, all: len(r)}
	if isatty.IsTerminal(terminal.Fd()) {
		bar.to = terminal
	}
	err = f.fill(p, trace, bar)
	bar.clear()
	if err != nil {
		return err
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(p)
	} else {
		err = f.print(out, p)
	}
	if err != nil {
		return fmt.Errorf("cannot write the plan: %w", err)
	}
	return nil
}

// fill makes the plan: for the whole trace, then step by step, then what to compare with.
func (f *planFlags) fill(p *planned, trace *replay.Trace, bar *progressBar) error {
	played := 0
	a, formula, err := f.options.Whole(trace, func() { played++; bar.set(played % bar.all) })
	if err != nil {
		return err
	}
	p.Whole = planWhole{
		Fleet: a.Fleet, Enough: a.Enough, Goal: a.Goal, Reachable: a.Reachable, Kept: a.Kept, Formula: formula.Fleet, Means: formula,
		Confirm: f.confirm(a.Fleet, ""),
	}
	p.Windows, p.Fleets = []planStep{}, []planFleet{}
	if f.whole {
		return nil
	}
	walk, err := f.options.Play(trace, bar.set)
	if errors.Is(err, planner.ErrShort) {
		p.Note = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	p.steps(walk)
	p.Fleets = append(p.Fleets, f.played("planned", walk))

	byFormula := f.options
	byFormula.By = planner.ByFormula
	other, err := byFormula.Play(trace, bar.set)
	if err != nil {
		return err
	}
	fixed := []replay.Fleet{walk.Average(math.Floor), walk.Average(math.Ceil)}
	for i, fleet := range fixed {
		if i > 0 && fleet == fixed[0] || fleet.Workers+fleet.Prefill < 1 || f.apart && fleet.Decode < 1 {
			continue
		}
		kept, spent, err := walk.Fixed(f.options, fleet, bar.set)
		if err != nil {
			return err
		}
		p.Fleets = append(p.Fleets, planFleet{
			Name: "fixed " + fleet.String(), Kept: kept, Hours: spent.Hours() * f.gpus, Mean: float64(fleet.Total()),
			Confirm: f.confirm(fleet, " --target-from "+walk.Begin.String()),
		})
	}
	p.Fleets = append(p.Fleets, f.played("formula", other))
	return nil
}

func (p *planned) steps(w *planner.Walk) {
	for _, s := range w.Steps {
		a := s.Advice
		row := planStep{
			At: s.At.Seconds(), Arrivals: s.Arrivals, Measured: s.Measured, Forecast: a.Forecast, Fleet: s.Fleet, Formula: a.Formula.Fleet,
			Want: a.Want, Verdict: a.Reason.Verdict.String(), Reason: a.Reason.String(), Kept: s.Kept,
		}
		if a.Replay != nil {
			row.Replay, row.Predicted, row.Goal, row.Enough = &a.Replay.Fleet, &a.Replay.Kept, a.Replay.Goal, a.Replay.Enough
		}
		p.Windows = append(p.Windows, row)
	}
}

// played is the row of a walk.
func (f *planFlags) played(name string, w *planner.Walk) planFleet {
	row := planFleet{Name: name, Kept: w.Kept, Hours: w.Spent.Hours() * f.gpus, Mean: w.Mean, Changes: w.Changes}
	var scale []string
	for _, s := range w.Steps {
		if s.Advice.Want != s.Fleet {
			scale = append(scale, s.At.String()+":"+s.Advice.Want.String())
		}
	}
	more := " --target-from " + w.Begin.String()
	if len(scale) > 0 {
		more += " --scale " + strings.Join(scale, ",") + " --start-time " + f.options.Start.String()
	}
	row.Confirm = f.confirm(w.First, more)
	return row
}

// confirm is the command that plays a fleet, and says how many requests keep the targets.
func (f *planFlags) confirm(fleet replay.Fleet, more string) string {
	s := "kvasir replay --trace " + f.trace + " --workers " + strconv.Itoa(fleet.Workers)
	if f.apart {
		s = fmt.Sprintf("kvasir replay --trace %s --prefill %d --decode %d", f.trace, fleet.Prefill, fleet.Decode)
	}
	s += fmt.Sprintf(" --target-ttft %v --target-itl %v --share %v%s", f.targets.ttft, f.targets.itl, f.targets.share, more)
	return s + f.engineArgs
}

func millisOf(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// print prints the plan for people.
func (f *planFlags) print(out io.Writer, p *planned) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d requests in %.1f s at speed %g\n", p.Trace, p.Requests, p.Seconds, f.replayFlags.options.Speed)
	fmt.Fprintf(&b, "targets: first token within %v, %v between tokens, for %v %% of the requests\n\n", f.targets.ttft, f.targets.itl, 100*f.targets.share)
	w := &p.Whole
	if w.Reachable > 0 && w.Goal < f.targets.share {
		fmt.Fprintf(&b, "%.1f %% of the requests take longer than that by themselves: the goal is %v %% of the others, %.1f %% of all\n",
			100*(1-w.Reachable), 100*f.targets.share, 100*w.Goal)
	}
	verb := "keep"
	if !w.Enough {
		verb = "do not keep"
	}
	if w.Reachable == 0 {
		b.WriteString("no number of workers keeps the targets: an idle one takes longer for each of the requests\n")
	}
	fmt.Fprintf(&b, "the whole trace without a change: %v workers %s the goal: %.2f %% (first token %.1f ms, between tokens %.1f ms)\n",
		w.Fleet, verb, 100*w.Kept.Share, w.Kept.TTFT, w.Kept.ITL)
	fmt.Fprintf(&b, "the formula says %v (prefill %.2f, decode %.2f, by means of %.0f and %.0f tokens)\n", w.Formula, w.Means.Prefill, w.Means.Decode, w.Means.Prompt, w.Means.Answer)
	fmt.Fprintf(&b, "confirmed by %s\n", w.Confirm)
	if p.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", p.Note)
	}
	if len(p.Windows) > 0 {
		printSteps(&b, p.Windows)
		printFleets(&b, p.Fleets)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func printSteps(b *strings.Builder, steps []planStep) {
	b.WriteString("\nforecast and arrivals a second; predicted: at the share asked for, ms\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "at\tarrivals\tforecast\tformula\treplay\tfirst token\tbetween\tpredicted\tfleet\twanted\tkept\t why")
	before := 0.0
	for i, s := range steps {
		answer, ttft, itl, kept := "", "", "", ""
		if s.Replay != nil {
			answer, ttft, itl = s.Replay.String(), fmt.Sprintf("%.0f", s.Predicted.TTFT), fmt.Sprintf("%.1f", s.Predicted.ITL)
			kept = fmt.Sprintf("%.1f %%", 100*s.Predicted.Share)
		}
		if i+1 < len(steps) {
			before = steps[i+1].At - s.At
		}
		fmt.Fprintf(table, "%v\t%.2f\t%.2f\t%v\t%s\t%s\t%s\t%s\t%v\t%v\t%.1f %%\t %s\n", time.Duration(s.At*float64(time.Second)).Round(time.Second),
			float64(s.Arrivals)/max(before, 1), s.Forecast.Rate, s.Formula, answer, ttft, itl, kept, s.Fleet, s.Want, 100*s.Kept.Share, s.Reason)
	}
	_ = table.Flush() // to a strings.Builder
}

func printFleets(b *strings.Builder, fleets []planFleet) {
	b.WriteByte('\n')
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "fleet\tkept\tfirst token\tbetween\tGPU hours\tmean\tchanges\t")
	for _, r := range fleets {
		fmt.Fprintf(table, "%s\t%.2f %%\t%.1f\t%.1f\t%.2f\t%.2f\t%d\t\n", r.Name, 100*r.Kept.Share, r.Kept.TTFT, r.Kept.ITL, r.Hours, r.Mean, r.Changes)
	}
	_ = table.Flush()
	fmt.Fprintf(b, "\nconfirmed by\n")
	for _, r := range fleets {
		fmt.Fprintf(b, "%s: %s\n", r.Name, r.Confirm)
	}
}
