//go:build linux

// Replay: `kvasir replay` over the open traces, policy by policy, beside Dynamo's own replay where that is installed.

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed replay.py
var dynamoReplay string

// points are the loads to replay, at which a fleet is busy but stable: a trace, a number of
// workers, and how much faster than in the trace requests arrive.
var points = []struct {
	trace   string
	workers int
	speed   float64
}{
	{"conversation", 8, 4}, {"conversation", 8, 6}, {"conversation", 16, 12}, {"conversation", 16, 16},
	{"synthetic", 8, 4}, {"synthetic", 8, 6}, {"synthetic", 8, 8}, {"synthetic", 16, 12}, {"synthetic", 16, 16},
}

// replayed are the figures that both replays print.
type replayed struct {
	TTFT     struct{ Mean, P50, P99 float64 } `json:"ttft_ms"`
	ITL      struct{ Mean float64 }           `json:"itl_ms"`
	E2E      struct{ Mean float64 }           `json:"e2e_ms"`
	Reuse    float64
	Requests int
	took     time.Duration // processor time, because other programs may use the machine
}

func measureReplay(ctx context.Context, b *bench) error {
	if _, err := os.Stat(b.traces); errors.Is(err, fs.ErrNotExist) {
		b.report.note("replay", "no traces in "+b.traces+" (-traces)")
		return nil
	}
	dir, err := b.workDir("replay")
	if err != nil {
		return err
	}
	script := filepath.Join(dir, "replay.py")
	if err := os.WriteFile(script, []byte(dynamoReplay), 0o644); err != nil {
		return fmt.Errorf("cannot write %q: %w", script, err)
	}
	_, err = exec.LookPath(b.dynamo)
	peer := err == nil
	t := table{
		title: "Replay of the open Mooncake traces",
		head:  []string{"trace", "workers x speed", "who", "first token ms, mean / p50 / p99", "between tokens ms", "end to end s", "reuse", "CPU time"},
		notes: []string{"Engines, clock and trace are the same; only who is placed where differs. Dynamo breaks ties at random."},
	}
	if !peer {
		t.notes = append(t.notes, "Dynamo was not replayed: there is no "+b.dynamo+" (-dynamo; docs/performance.md says how to get it).")
	}
	var gains gains
	for _, p := range points {
		path := filepath.Join(b.traces, "mooncake_"+p.trace+".jsonl")
		workers, speed := strconv.Itoa(p.workers), strconv.FormatFloat(p.speed, 'g', -1, 64)
		by := map[string]replayed{}
		for _, way := range []string{"round_robin", "kv", "predict", "dynamo round_robin", "dynamo kv_router"} {
			argv := []string{b.kvasir, "replay", "--json", "--trace", path, "--workers", workers, "--speed", speed, "--policy", way}
			if mode, ok := strings.CutPrefix(way, "dynamo "); ok {
				if !peer {
					continue
				}
				argv = []string{b.dynamo, script, path, workers, speed, mode}
			}
			r, err := replayOnce(ctx, argv)
			if err != nil {
				return err
			}
			by[way] = r
			t.rows = append(t.rows, []string{p.trace, workers + "x" + speed, way,
				fmt.Sprintf("%.0f / %.0f / %.0f", r.TTFT.Mean, r.TTFT.P50, r.TTFT.P99), fmt.Sprintf("%.1f", r.ITL.Mean),
				fmt.Sprintf("%.1f", r.E2E.Mean/1e3), fmt.Sprintf("%.3f", r.Reuse), fmt.Sprintf("%.1f s", r.took.Seconds())})
		}
		gains.add(by, peer)
	}
	b.report.add(t)
	gains.judge(b.report, peer)
	return nil
}

// replayOnce runs one replay to its end.
func replayOnce(ctx context.Context, argv []string) (r replayed, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("cannot replay with %q: %w", argv, err)
	}
	r.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("cannot read the figures of %q: %w", argv, err)
	}
	return r, nil
}

// gains collects ratios over the points: sums of logarithms, to average them, and worst cases.
type gains struct {
	ttft, p99, itl, e2e float64
	points              int
	exact, kv           float64 // largest relative difference in the mean time to the first token
	slowest             time.Duration
}

func (g *gains) add(by map[string]replayed, peer bool) {
	g.points++
	if r := by["round_robin"]; r.Requests > 5000 {
		g.slowest = max(g.slowest, r.took)
	}
	if !peer {
		return
	}
	ours, base := by["predict"], by["dynamo kv_router"]
	g.ttft += math.Log(base.TTFT.Mean / ours.TTFT.Mean)
	g.p99 += math.Log(base.TTFT.P99 / ours.TTFT.P99)
	g.itl += math.Log(base.ITL.Mean / ours.ITL.Mean)
	g.e2e += math.Log(base.E2E.Mean / ours.E2E.Mean)
	g.exact = max(g.exact, math.Abs(by["round_robin"].TTFT.Mean/by["dynamo round_robin"].TTFT.Mean-1))
	g.kv = max(g.kv, math.Abs(by["kv"].TTFT.Mean/base.TTFT.Mean-1))
}

func (g *gains) judge(r *report, peer bool) {
	r.judge(verdict{"replay of 6,015 requests, round robin, CPU time of the whole process", g.slowest.Round(time.Millisecond).String(), "< 1 s", g.slowest < time.Second})
	if !peer {
		return
	}
	mean := func(sum float64) float64 { return math.Exp(sum / float64(g.points)) }
	r.judge(verdict{"replay, round robin against dynamo.replay: mean of the first token", fmt.Sprintf("differs by %.4f %% at most", 100*g.exact), "0.01 %", g.exact <= 1e-4})
	r.judge(verdict{"replay, policy kv against dynamo.replay's", fmt.Sprintf("differs by %.1f %% at most", 100*g.kv), "15 %", g.kv <= 0.15})
	for _, v := range []struct {
		what     string
		sum, min float64
	}{{"mean of the first token", g.ttft, 1.8}, {"p99 of the first token", g.p99, 1.28}, {"between tokens", g.itl, 1.38}, {"end to end", g.e2e, 1.38}} {
		gain := mean(v.sum)
		r.judge(verdict{"replay, predict against Dynamo's default, " + v.what, fmt.Sprintf("%.2f x (geometric mean of %d points)", gain, g.points), fmt.Sprintf("%.2f x", v.min), gain >= v.min})
	}
}
