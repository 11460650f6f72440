//go:build linux

// Command bench measures Kvasir on this machine, beside nginx, vllm-router and
// a bare TCP relay in the same run, and prints one table of ratios.
//
//	go run ./scripts/bench                  everything, about eight minutes
//	go run ./scripts/bench throughput start only these
//
// go run ./scripts/bench -under nginx     a second nginx in Kvasir's place, to see what the
// method itself costs
//
// Everything runs on loopback, each part in its own process, on free ports. docs/performance.md
// says what is compared and how to read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags: how long and how much to measure, and what is under test.
type options struct {
	kvasir  string // path of the kvasir binary
	under   string // kvasir or nginx
	dir     string // directory of configs, logs and reports
	peer    bool   // measure vllm-router too
	rounds  int
	seconds int // length of one throughput round
	threads int // of wrk
	events  int // of one stream
	passes  int // streams per way, in turn
	samples int // lost clients per situation
	streams int // idle streams
	readers int // readers that stop reading
	starts  int
	strict  bool // a missed target gives exit code 1
	profile string
	traces  string
	dynamo  string // a Python that has Dynamo installed
}

// measurement is one part of the table. They run in this order.
type measurement struct {
	name string
	what string
	run  func(context.Context, *bench) error
}

var measurements = []measurement{
	{"throughput", "2 KB POST at c=64 and c=1, allocations a request", measureThroughput},
	{"signals", "all signals on against all features off, c=64", measureSignals},
	{"cache", "hits through the proxy, the same text and in other words", measureCache},
	{"stream", "added latency of each streamed event", measureStream},
	{"lost", "client lost -> worker's connection closed", measureLost},
	{"idle", "memory of idle streams", measureIdle},
	{"readers", "memory while readers have stopped", measureReaders},
	{"placement", "choosing a worker by the prompt, beside round robin", measurePlacement},
	{"replay", "kvasir replay over the open traces, beside Dynamo's", measureReplay},
	{"start", "start to first 200, idle memory, binary", measureStart},
}

// bench is one run: its options and its results so far.
type bench struct {
	options
	report *report
}

func main() {
	if len(os.Args) > 1 {
		// The helper processes are this binary again, with a subcommand.
		switch os.Args[1] {
		case "worker":
			exit(runWorker(os.Args[2:]))
		case "bare":
			exit(runBare(os.Args[2:]))
		case "relay":
			exit(runRelay(os.Args[2:]))
		}
	}
	exit(run(os.Args[1:], os.Stdout))
}

func exit(err error) {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("run with -h for the usage")

func run(args []string, out io.Writer) error {
	b := &bench{}
	chosen, err := b.parse(args)
	if err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := raiseFileLimit(); err != nil {
		return err
	}
	if b.report, err = newReport(ctx, b); err != nil {
		return err
	}
	var broken []error
	for _, m := range chosen {
		b.say("%s: %s", m.name, m.what)
		if err := m.run(ctx, b); err != nil {
			// The other measurements go on, but the run has failed.
			broken = append(broken, fmt.Errorf("cannot measure %s: %w", m.name, err))
			b.report.missing(m.name, "", err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(broken, b.finish(out))...)
}

// finish prints the report, keeps a copy of it and judges it if asked to.
func (b *bench) finish(out io.Writer) error {
	if err := b.report.close(); err != nil {
		return err
	}
	text := b.report.markdown()
	name := filepath.Join(b.dir, "report-"+time.Now().Format("20060102-150405")+".md")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write report: %w", err)
	}
	fmt.Fprint(out, text)
	b.say("written to %s", name)
	if n := b.report.missed(); b.strict && n > 0 {
		return fmt.Errorf("%d targets were missed", n)
	}
	return nil
}

func (b *bench) parse(args []string) ([]measurement, error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&b.kvasir, "kvasir", "bin/kvasir", "the binary under test; make build makes it")
	f.StringVar(&b.under, "under", "kvasir", "what is measured: kvasir, or nginx to see what the method itself costs")
	f.StringVar(&b.dir, "dir", ".cache/bench", "where configs, logs, the vllm-router and reports go")
	f.BoolVar(&b.peer, "peer", true, "measure vllm-router too")
	f.IntVar(&b.rounds, "rounds", 5, "throughput rounds, each proxy once a round")
	f.IntVar(&b.seconds, "seconds", 5, "seconds of one throughput round")
	f.IntVar(&b.threads, "threads", 1, "threads of wrk")
	f.IntVar(&b.events, "events", 100, "events of one stream, one each 2 ms")
	f.IntVar(&b.passes, "passes", 40, "streams through each way, in turn")
	f.IntVar(&b.samples, "samples", 200, "lost clients in each situation")
	f.IntVar(&b.streams, "streams", 10000, "idle streams")
	f.IntVar(&b.readers, "readers", 200, "readers that stop")
	f.IntVar(&b.starts, "starts", 10, "starts timed")
	f.StringVar(&b.traces, "traces", "../shared/data/traces", "where mooncake_conversation.jsonl and mooncake_synthetic.jsonl are")
	f.StringVar(&b.dynamo, "dynamo", ".cache/dynamo/venv/bin/python", "a Python that has ai-dynamo 1.6.1; without it Kvasir is replayed alone")
	f.StringVar(&b.profile, "profile", "", "write a CPU profile of kvasir under load here, instead of measuring throughput")
	f.BoolVar(&b.strict, "strict", false, "exit 1 when a target is missed")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: bench [flags] [measurement ...]\n\nmeasurements, all of them by default:\n")
		for _, m := range measurements {
			fmt.Fprintf(f.Output(), "  %-11s %s\n", m.name, m.what)
		}
		fmt.Fprintf(f.Output(), "\nflags:\n")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return choose(f.Args())
}

// choose finds the named measurements, in the order of the table.
func choose(names []string) ([]measurement, error) {
	if len(names) == 0 {
		return measurements, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var chosen []measurement
	for _, m := range measurements {
		if wanted[m.name] {
			chosen = append(chosen, m)
			delete(wanted, m.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("%w: no measurement %q", errUsage, name)
	}
	return chosen, nil
}

// check lists everything that is missing before anything is started.
func (b *bench) check() error {
	if b.under != "kvasir" && b.under != "nginx" {
		return fmt.Errorf("%w: -under %q is neither kvasir nor nginx", errUsage, b.under)
	}
	for name, n := range map[string]int{"rounds": b.rounds, "seconds": b.seconds, "threads": b.threads, "events": b.events,
		"passes": b.passes, "samples": b.samples, "streams": b.streams, "readers": b.readers, "starts": b.starts} {
		if n < 1 {
			return fmt.Errorf("%w: -%s must be at least 1", errUsage, name)
		}
	}
	var missing []string
	for _, tool := range []string{"nginx", "wrk"} {
		if _, err := findTool(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s; get it with: apt-get install %s", strings.Join(missing, ", "), strings.Join(missing, " "))
	}
	if b.under == "kvasir" {
		if _, err := os.Stat(b.kvasir); err != nil {
			return fmt.Errorf("cannot find kvasir (make build makes it): %w", err)
		}
	}
	var err error
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	return os.MkdirAll(b.dir, 0o755)
}

// say writes one line of progress; the report itself goes to standard output.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
