// `kvasir gpu`: the GPUs of this host as a table or as JSON, from a monitor of its own.

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"kvasir/command/serve"
	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/gpu"
	"kvasir/gpu/snapshot"
)

// Where nothing keeps the driver loaded, it takes some seconds for the first
// snapshots. Once one GPU has answered, the others answer within a moment, or
// they hang.
const (
	firstLook  = 15 * time.Second // until any GPU has answered
	othersLook = 3 * time.Second  // after that, until all have
)

func gpuCommand(p Program) *cobra.Command {
	flags := configFlags{builtIn: p.Config}
	var show gpuShow
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "Show the GPUs of this host and the workers on them",
		Long: `Asks the NVIDIA driver of this host once and shows every GPU: what it does, what
holds its clocks down, its errors, and which workers of the configuration run on
it. With --watch again and again, each gpu.interval. It needs no running Kvasir;
without a driver it says so and exits with 1. docs/gpu.md explains what is shown.`,
		Example: `  kvasir gpu
  kvasir gpu --watch
  kvasir gpu --json --config kvasir.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.load(cmd)
			if err != nil {
				return err
			}
			show.patience, show.others = firstLook, othersLook
			show.out, show.interval, show.workers = cmd.OutOrStdout(), g.Config.GPU.Interval, gpuWorkers(g)
			show.redraw = isatty.IsTerminal(os.Stdout.Fd())
			ctx, stop := signal.NotifyContext(cmd.Context(), serve.StopSignals...)
			defer stop()
			m := gpu.Start(gpu.Options{Interval: show.interval})
			defer m.Close()
			return show.run(ctx, m)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&show.watch, "watch", false, "show them again each gpu.interval, until a signal")
	cmd.Flags().BoolVar(&show.json, "json", false, "as JSON; with --watch an object a line")
	return cmd
}

// gpuWorkers are the workers that may run on this host's GPUs. Simulated ones
// have no process that could be found there, so only those count that name
// their GPUs.
func gpuWorkers(g *config.Generation) []gpu.Worker {
	workers := wiring.Settings(g).GPUWorkers()
	for _, s := range g.Config.Simulate {
		if len(s.GPUs) > 0 {
			workers = append(workers, gpu.Worker{Name: s.Name, GPUs: s.GPUs})
		}
	}
	return workers
}

// A gpuShow is one call of `kvasir gpu`.
type gpuShow struct {
	out         io.Writer
	interval    time.Duration
	workers     []gpu.Worker
	watch, json bool
	redraw      bool // out is a terminal: each table takes the place of the one before

	patience time.Duration // for the first snapshot
	others   time.Duration // for those of other GPUs after it

	owners gpu.Owners
	served gpu.Served
	found  time.Time
}

// errSignal says that a signal ended the command, which is no failure.
var errSignal = errors.New("ended by a signal")

// run shows what a monitor sees, once or until ctx ends.
func (s *gpuShow) run(ctx context.Context, m *gpu.Monitor) error {
	f, err := s.first(ctx, m)
	if errors.Is(err, errSignal) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.watch {
		return s.show(f)
	}
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		if err := s.show(f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f = m.Fleet(time.Now())
		}
	}
}

// lookAgain is how often a monitor that has just begun is looked at.
const lookAgain = 10 * time.Millisecond

// first is the fleet once every GPU has answered or failed. When patience is
// over, it is the fleet with those that have.
func (s *gpuShow) first(ctx context.Context, m *gpu.Monitor) (*gpu.Fleet, error) {
	over := time.NewTimer(s.patience)
	defer over.Stop()
	one := false // GPU at least has answered
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		f := m.Fleet(time.Now())
		switch {
		case f.State == gpu.Off:
			return nil, errors.New("no GPU telemetry: " + f.Why)
		case f.State == gpu.Lost:
			return nil, errors.New("GPU telemetry is lost: " + f.Why)
		}
		n := asked(f)
		if f.State == gpu.OK && n == len(f.GPUs) {
			return f, nil
		}
		if n > 0 && !one {
			one = true
			over.Reset(s.others)
		}
		select {
		case <-ctx.Done():
			return nil, errSignal
		case <-look.C:
		case <-over.C:
			switch {
			case f.State == gpu.OK:
				return f, nil
			case one:
				return nil, fmt.Errorf("GPU telemetry is %s: %s", f.State, f.Why)
			}
			return nil, fmt.Errorf("the NVIDIA driver has not answered within %v; look for NVRM and Xid in dmesg", s.patience)
		}
	}
}

// asked counts the GPUs that have answered, be it with an error.
func asked(f *gpu.Fleet) (n int) {
	for i := range f.GPUs {
		if f.GPUs[i].Asked {
			n++
		}
	}
	return n
}

// ownersEvery is how often the workers' GPUs are looked for.
const ownersEvery = time.Second

// show writes one fleet with its workers.
func (s *gpuShow) show(f *gpu.Fleet) error {
	if now := time.Now(); now.Sub(s.found) >= ownersEvery {
		s.served = gpu.Serving(f.GPUs, s.workers, s.owners.Find(f.GPUs, s.workers))
		s.found = now
	}
	f = f.With(s.served)
	if s.json {
		return s.showJSON(f)
	}
	text := gpuTable(f)
	switch {
	case s.watch && s.redraw:
		text = "\x1b[H\x1b[2J" + text
	case s.watch:
		text += "\n"
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// A shownFleet is the JSON of `kvasir gpu`. Only a GPU that is not well has a
// state and a reason; GET /debug/gpu says both of all.
type shownFleet struct {
	Driver string     `json:"driver"`
	GPUs   []shownGPU `json:"gpus"`
}

type shownGPU struct {
	snapshot.GPU
	State   gpu.State `json:"state,omitempty"`
	Why     string    `json:"why,omitempty"`
	Workers []string  `json:"workers"`
	Age     int64     `json:"age_ms"`
}

func (s *gpuShow) showJSON(f *gpu.Fleet) error {
	shown := shownFleet{Driver: f.Driver, GPUs: make([]shownGPU, len(f.GPUs))}
	for i, g := range f.GPUs {
		shown.GPUs[i] = shownGPU{GPU: g.GPU, Why: g.Why, Workers: g.Workers, Age: g.Age}
		if g.State != gpu.OK {
			shown.GPUs[i].State = g.State
		}
	}
	e := json.NewEncoder(s.out)
	if !s.watch {
		e.SetIndent("", "  ")
	}
	return e.Encode(shown)
}
