// `kvasir replay`: a trace of requests against simulated workers in virtual time, to compare ways of placing them.

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/kvroute/replay"
	"kvasir/wording"
)

// replayFlags are the flags of the command, those apart that have to be
// translated into options.
type replayFlags struct {
	trace, queue, engine, disaggregate, telemetry string
	sync                                          string
	spread                                        time.Duration
	apartBy                                       string // what makes prefill and decode apart
	slow, neighbour                               []string
	prefillLoadScale, overlapCredit               float64
	asJSON                                        bool
	options                                       replay.Options
	targets                                       targetFlags
	plot                                          plotFlags
}

func replayCommand() *cobra.Command {
	f := replayFlags{apartBy: "--prefill and --decode"}
	cmd := &cobra.Command{
		Use:   "replay --trace F",
		Short: "Play a trace against simulated workers, to compare policies",
		Long: `Plays a trace of requests against simulated workers in virtual time and says how
long they waited. The proxy's own code places the requests: its index of blocks,
its prices, its queue. Only engines and clock are simulated. The
engines schedule as vLLM does, with the timing that Dynamo's mocker has for an
H100. The same trace, flags and seed give the same figures.

A trace is a file of Mooncake's JSON lines (timestamp in ms, input_length,
output_length, hash_ids of 512-token blocks), of Azure's CSV
(TIMESTAMP,ContextTokens,GeneratedTokens), or the JSON log of Kvasir's own
requests (log.format: json). The last two only have lengths, so their prompts
share nothing.`,
		Example: `  kvasir replay --trace conversation.jsonl --workers 8 --speed 6
  kvasir replay --trace conversation.jsonl --workers 8 --speed 6 --policy round_robin
  kvasir replay --trace conversation.jsonl --workers 8 --speed 6 --policy kv --prefill-load-scale 40 --overlap-credit 7
  kvasir replay --trace conversation.jsonl --prefill 4 --decode 4 --speed 4 --json
  kvasir replay --trace conversation.jsonl --workers 8 --speed 6 --spread 3s --replicas 4 --sync 5ms
  kvasir replay --trace conversation.jsonl --workers 8 --speed 6 --slow 0:60s-180s:3 --telemetry off
  kvasir replay --trace conversation.jsonl --workers 8 --speed 6 --plot replay.svg --beside round_robin,kv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if err := f.plot.check(f.options.Policy); err != nil {
				return err
			}
			if err := f.targets.readScale(&f.options, cmd.Flags().Changed); err != nil {
				return err
			}
			return f.run(cmd.OutOrStdout(), os.Stderr)
		},
	}
	o, fs := &f.options, cmd.Flags()
	fs.StringVar(&f.trace, "trace", "", "`file` with the trace")
	fs.IntVar(&o.Workers, "workers", 4, "number of workers")
	fs.IntVar(&o.Prefill, "prefill", 0, "with --decode, instead of --workers: number of workers that compute prompts")
	fs.IntVar(&o.Decode, "decode", 0, "with --prefill: number of workers that answer")
	f.targets.add(fs)
	f.addEngine(cmd)
	fs.StringArrayVar(&f.slow, "slow", nil, "`W:FROM-TO:N`: from FROM to TO the GPU of worker W (from 0) is hot and N times slower; may be repeated")
	fs.StringArrayVar(&f.neighbour, "neighbour", nil, "`W:FROM-TO:S`: from FROM to TO somebody else takes the share S of its time; may be repeated")
	fs.StringVar(&f.telemetry, "telemetry", "on", "on: placement learns of --slow and --neighbour what GPU telemetry would report; off: nothing")
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	f.plot.add(cmd, fs)
	_ = cmd.RegisterFlagCompletionFunc("telemetry", cobra.FixedCompletions([]string{"on", "off"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// addEngine adds the flags that say what is played against, but for how many workers there are.
func (f *replayFlags) addEngine(cmd *cobra.Command) {
	o, fs := &f.options, cmd.Flags()
	fs.StringVar(&o.Policy, "policy", "predict", "`policy`: "+wording.List(replay.Policies(), "or"))
	fs.DurationVar(&f.spread, "spread", 0, "requests with the same time in the trace are spread over this `time`; use 3s for Mooncake's conversations, which are stamped every 3 s")
	fs.IntVar(&o.Replicas, "replicas", 1, "number of routers before the workers; each request comes to a random one")
	fs.StringVar(&f.sync, "sync", "5ms", "with --replicas: `time` until the other routers know of a placement; off: they never do")
	fs.StringVar(&f.queue, "queue", "auto", "auto: with policy predict, requests wait at the router while no worker has room; off: never")
	fs.StringVar(&f.disaggregate, "disaggregate", "auto", "with --prefill: auto: with policy predict the decode worker computes a prompt itself if that is faster; always: a prefill worker computes every prompt")
	fs.StringVar(&f.engine, "engine", "vllm", "`engine` whose scheduler is simulated: vllm")
	fs.IntVar(&o.BlockSize, "block-size", 64, "`tokens` in a KV block")
	fs.IntVar(&o.Blocks, "blocks", 16384, "KV blocks of a worker")
	fs.IntVar(&o.MaxBatchedTokens, "max-batched-tokens", 8192, "most `tokens` in a pass")
	fs.IntVar(&o.MaxSeqs, "max-seqs", 256, "most sequences of a worker at once")
	fs.Float64Var(&o.Speed, "speed", 1, "2: requests arrive twice as fast as in the trace")
	fs.Uint64Var(&o.Seed, "seed", 0, "`number` that seeds random choices")
	standard := cost.DefaultKV()
	fs.Float64Var(&f.prefillLoadScale, "prefill-load-scale", standard.PrefillLoadScale, "policy kv: `weight` of prompt tokens to compute against blocks in use")
	fs.Float64Var(&f.overlapCredit, "overlap-credit", standard.DeviceCredit, "policy kv: `credit` for a block that a worker already holds")
	fs.Float64Var(&o.Temperature, "temperature", 0, "policies kv and predict: above 0 dearer workers are sometimes chosen, as by a softmax")
	fs.Float64Var(&o.Bandwidth, "kv-bandwidth", 0, "with --prefill: `GB/s` at which a prompt's blocks go from worker to worker; 0: they take no time")
	fs.IntVar(&o.BytesPerToken, "kv-bytes-per-token", 131072, "with --prefill: `bytes` of KV of one token")
	fs.Float64Var(&o.Pace, "pace", 1, "2: passes take twice as long as on the simulated engine")
	_ = cmd.MarkFlagFilename("trace", "jsonl", "csv", "log")
	for name, values := range map[string][]string{
		"policy": replay.Policies(), "queue": {"auto", "off"}, "disaggregate": {"auto", "always"}, "engine": {"vllm"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// check reads the flags into the options.
func (f *replayFlags) check(cmd *cobra.Command) error {
	if f.trace == "" {
		return usageError("--trace is missing: name the file to play")
	}
	for _, one := range []struct {
		flag, value string
		of          []string
	}{
		{"policy", f.options.Policy, replay.Policies()}, {"queue", f.queue, []string{"auto", "off"}},
		{"disaggregate", f.disaggregate, []string{"auto", "always"}}, {"engine", f.engine, []string{"vllm"}},
		{"telemetry", f.telemetry, []string{"on", "off"}},
	} {
		if !slices.Contains(one.of, one.value) {
			return usageError(fmt.Sprintf("--%s: %s is not %s%s", one.flag, wording.Quote(one.value), wording.List(one.of, "or"), wording.DidYouMean(one.value, one.of)))
		}
	}
	changed := cmd.Flags().Changed
	policy, err := kvroute.ParsePolicy(f.options.Policy)
	if err != nil {
		return err
	}
	for _, name := range []string{"prefill-load-scale", "overlap-credit"} {
		if changed(name) && !policy.Weighed() {
			weighed := policiesThat(kvroute.Policy.Weighed)
			return usageError(fmt.Sprintf("--%s is a weight of policy %s: add --policy %s", name, weighed, weighed))
		}
	}
	if changed("temperature") && !policy.Priced() {
		return usageError(fmt.Sprintf("--temperature is of the choice by price, policy %s has none: add --policy %s", policy, policiesThat(kvroute.Policy.Priced)))
	}
	for _, name := range []string{"disaggregate", "kv-bandwidth", "kv-bytes-per-token"} {
		if changed(name) && f.options.Prefill == 0 && f.options.Decode == 0 {
			return usageError(fmt.Sprintf("--%s is of prompts computed by other workers: add %s", name, f.apartBy))
		}
	}
	if f.options.Prefill > 0 || f.options.Decode > 0 {
		if changed("workers") {
			return usageError("--workers beside --prefill and --decode: give one or the other")
		}
		f.options.Workers = 0
	}
	f.options.Queue = f.queue == "auto" && policy.Queues()
	if f.disaggregate == "always" {
		f.options.Disaggregate = kvroute.Always
	}
	f.options.KV = cost.DefaultKV()
	f.options.KV.PrefillLoadScale, f.options.KV.DeviceCredit = f.prefillLoadScale, f.overlapCredit
	if err := f.readTroubles(); err != nil {
		return err
	}
	if f.spread < 0 || f.spread > maxSpread {
		return usageError(fmt.Sprintf("--spread: %v is not between 0s and %v", f.spread, maxSpread))
	}
	if err := f.readSync(changed("sync")); err != nil {
		return err
	}
	if err := f.targets.read(cmd.Flags().Changed); err != nil {
		return err
	}
	return f.bounds()
}

// maxSpread bounds --spread.
const maxSpread = time.Hour

// readSync reads --sync, which is of several routers.
func (f *replayFlags) readSync(changed bool) error {
	if changed && f.options.Replicas == 1 {
		return usageError("--sync is of what several routers tell each other: add --replicas")
	}
	if f.options.Sync = -1; f.sync == "off" {
		return nil
	}
	delay, err := time.ParseDuration(f.sync)
	if err != nil || delay < 0 {
		return usageError(fmt.Sprintf("--sync: %s is not a time, as 5ms, nor off", wording.Quote(f.sync)))
	}
	f.options.Sync = delay
	return nil
}

// policiesThat lists the policies of which a property holds, for a sentence.
func policiesThat(holds func(kvroute.Policy) bool) string {
	names := kvroute.PoliciesThat(holds)
	slices.Sort(names)
	return wording.List(names, "or")
}

// mostNumber bounds weights: an infinite one would make prices that are NaN.
const mostNumber = 1e9

// bounds checks numbers; 0 would stand for a default in replay.Options.
func (f *replayFlags) bounds() error {
	o := &f.options
	for _, n := range []struct {
		flag  string
		value float64
		least float64
	}{
		{"replicas", float64(o.Replicas), 1}, {"block-size", float64(o.BlockSize), 1}, {"blocks", float64(o.Blocks), 1}, {"max-seqs", float64(o.MaxSeqs), 1},
		{"max-batched-tokens", float64(o.MaxBatchedTokens), 1}, {"kv-bytes-per-token", float64(o.BytesPerToken), 1},
		{"prefill-load-scale", f.prefillLoadScale, 0}, {"overlap-credit", f.overlapCredit, 0}, {"speed", o.Speed, 1e-6}, {"pace", o.Pace, 1e-3},
	} {
		if !(n.value >= n.least) { // also NaN
			return usageError(fmt.Sprintf("--%s: %v is less than %v", n.flag, n.value, n.least))
		}
		if n.value > mostNumber {
			return usageError(fmt.Sprintf("--%s: %v is more than %v", n.flag, n.value, mostNumber))
		}
	}
	if o.Workers < 1 && o.Prefill+o.Decode == 0 {
		return usageError("--workers: it takes at least 1")
	}
	if err := o.Validate(); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// run plays the trace. Progress goes to a terminal only.
func (f *replayFlags) run(out io.Writer, terminal *os.File) error {
	trace, err := replay.Read(f.trace)
	if err != nil {
		return err
	}
	if f.spread > 0 {
		trace.Spread(f.spread, f.options.Seed)
	}
	// A replay is short, and most of what it allocates is in use to its end.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	result, err := playShowing(trace, f.options, terminal)
	if err != nil {
		return err
	}
	result.Targets = f.targets.kept(trace, result, f.options.Speed)
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(result)
	} else {
		err = printReplay(out, trace, result, f.troubleText())
	}
	if err != nil {
		return fmt.Errorf("cannot write the figures: %w", err)
	}
	if f.plot.file == "" {
		return nil
	}
	others, err := f.plot.others(f.options, f.queue == "auto")
	if err != nil {
		return err
	}
	results := []*replay.Result{result}
	for _, o := range others {
		other, err := playShowing(trace, o, terminal)
		if err != nil {
			return fmt.Errorf("policy %s: %w", o.Policy, err)
		}
		results = append(results, other)
	}
	return f.plot.write(trace, results)
}

// playShowing plays the trace and shows on a terminal how far it is.
func playShowing(trace *replay.Trace, o replay.Options, terminal *os.File) (*replay.Result, error) {
	bar := &progressBar{to: io.Discard, all: len(trace.Requests)}
	if isatty.IsTerminal(terminal.Fd()) {
		bar.to = terminal
		o.Progress = bar.set
	}
	defer bar.clear()
	return replay.Run(trace, o)
}

// printReplay prints figures for people.
func printReplay(out io.Writer, t *replay.Trace, r *replay.Result, trouble string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d requests in %.1f s at speed %g, %d workers, policy %s\n", t.Name, r.Requests, r.Duration.Seconds(), r.Speed, r.Workers, r.Policy)
	b.WriteString(trouble)
	if t.Left > 0 {
		fmt.Fprintf(&b, "%d lines left out: no served request whose tokens were counted\n", t.Left)
	}
	b.WriteByte('\n')
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ms\tmean\tp50\tp90\tp99\t")
	for _, row := range []struct {
		name string
		s    replay.Spread
	}{{"first token", r.TTFT}, {"between tokens", r.ITL}, {"end to end", r.E2E}} {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", row.name, row.s.Mean, row.s.P50, row.s.P90, row.s.P99)
	}
	_ = table.Flush() // to a strings.Builder
	fmt.Fprintf(&b, "\nprompt tokens cached  %.1f %% (one cache without bounds: %.1f %%)\n", 100*r.Reuse, 100*r.Ceiling)
	fmt.Fprintf(&b, "output                %.0f tokens/s\n", r.OutputTokensPerSec)
	fmt.Fprintf(&b, "imbalance             %.2f (busiest worker over the mean, in tokens computed)\n", r.Imbalance)
	fmt.Fprintf(&b, "preemptions           %d\n", r.Preemptions)
	if s := r.Replicas; s != nil && s.SyncMS >= 0 {
		fmt.Fprintf(&b, "between %-2d routers    %.2f messages and %.0f bytes a request, %v ms on their way\n", s.Routers, s.Messages, s.Bytes, s.SyncMS)
	} else if s != nil {
		fmt.Fprintf(&b, "between %-2d routers    nothing\n", s.Routers)
	}
	printKept(&b, r)
	if r.Refused > 0 {
		fmt.Fprintf(&b, "not indexed           %d blocks that workers had, and no request found\n", r.Refused)
	}
	b.WriteByte('\n')
	table = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "worker\trole\trequests\tprompt tokens\tcached\toutput tokens\tbusy\tpreemptions\t")
	for _, w := range r.PerWorker {
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%.1f %%\t%d\t%.0f %%\t%d\t\n",
			w.Worker, w.Role, w.Requests, w.PromptTokens, 100*w.Reuse, w.OutputTokens, 100*w.Busy, w.Preemptions)
	}
	_ = table.Flush()
	_, err := io.WriteString(out, b.String())
	return err
}
