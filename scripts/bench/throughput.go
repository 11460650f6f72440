//go:build linux

// Throughput: wrk with a 2 KB chat through each proxy in turn, ratios round by round.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// wrkScript posts the chat and prints one line that a program can read. wrk's
// latencies are in microseconds.
const wrkScript = `wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[%s]==]
done = function(s, latency, requests)
  local e = s.errors
  io.write(string.format("BENCH %%d %%d %%d %%d %%d %%d\n", s.requests, s.duration, s.bytes,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
`

// load is wrk's result of one round.
type load struct {
	requests int
	bytes    int
	perSec   float64
	p50, p99 time.Duration
	cpu      time.Duration // of the way's processes, a request; 0: it has none
}

func measureThroughput(ctx context.Context, b *bench) error {
	dir, err := b.workDir("throughput")
	if err != nil {
		return err
	}
	script := filepath.Join(dir, "chat.lua")
	if err := os.WriteFile(script, fmt.Appendf(nil, wrkScript, chat2K()), 0o644); err != nil {
		return fmt.Errorf("cannot write script of wrk: %w", err)
	}
	worker, err := startFastWorker(ctx, dir)
	if err != nil {
		return err
	}
	defer worker.stop()
	names := []string{wayDirect, wayNginx, wayBare, b.subject()}
	if b.peer {
		names = append(names, wayRouter)
	}
	ways, err := b.startWays(ctx, dir, worker.address, names...)
	if err != nil {
		return err
	}
	defer stopAll(ways)
	if b.profile != "" {
		return b.writeProfile(ctx, worker, find(ways, b.subject()), script)
	}

	wide, err := b.loadRounds(ctx, worker, ways, script, 64)
	if err != nil {
		return err
	}
	narrow, err := b.loadRounds(ctx, worker, ways, script, 1)
	if err != nil {
		return err
	}
	b.reportThroughput(ways, wide, narrow)
	return b.countAllocations(ctx, worker, find(ways, b.subject()), script)
}

// writeProfile keeps a CPU profile of the subject under load: the compiler uses it to optimise
// (make profile).
func (b *bench) writeProfile(ctx context.Context, worker, subject *way, script string) error {
	const seconds = 20
	loaded := make(chan error, 1)
	go func() {
		_, err := b.loadOnce(ctx, worker, subject, script, 64, seconds+2)
		loaded <- err
	}()
	client := http.Client{Timeout: (seconds + 10) * time.Second}
	res, err := client.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", subject.admin, seconds))
	if err != nil {
		return errors.Join(fmt.Errorf("cannot profile %s: %w", subject.name, err), <-loaded)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err == nil {
		err = os.WriteFile(b.profile, text, 0o644)
	}
	b.report.note("CPU profile", b.profile)
	return errors.Join(err, <-loaded)
}

// countAllocations reads Kvasir's own count of heap objects before and after a round: the whole
// cost of a plain request, with probes of the worker and timers.
func (b *bench) countAllocations(ctx context.Context, worker, subject *way, script string) error {
	const what = "allocations on the way of a plain request"
	if subject.admin == "" {
		b.report.note(what, "not counted: "+subject.name+" has no /metrics")
		return nil
	}
	before, err := mallocs(subject.admin)
	if err != nil {
		return err
	}
	l, err := b.loadOnce(ctx, worker, subject, script, 1, min(b.seconds, 2))
	if err != nil {
		return err
	}
	after, err := mallocs(subject.admin)
	if err != nil {
		return err
	}
	b.report.note(what, fmt.Sprintf("%.1f (over %d requests)", (after-before)/float64(l.requests), l.requests))
	return nil
}

// mallocs reads go_memstats_mallocs_total.
func mallocs(admin string) (float64, error) {
	_, page, err := get(admin, "/metrics")
	if err != nil {
		return 0, fmt.Errorf("cannot read metrics: %w", err)
	}
	for line := range strings.Lines(string(page)) {
		if value, ok := strings.CutPrefix(line, "go_memstats_mallocs_total "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("cannot read metrics: no go_memstats_mallocs_total")
}

func startFastWorker(ctx context.Context, dir string) (*way, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	w := &way{name: "worker", address: address}
	if w.proc, err = startNginx(dir, "nginx-worker", workerConfig(address)); err != nil {
		return nil, err
	}
	if err := w.accepts(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// loadRounds warms every way up once and then measures them in turn. The order rotates by one
// each round, so that no way always follows the same one.
func (b *bench) loadRounds(ctx context.Context, worker *way, ways []*way, script string, connections int) (map[string][]load, error) {
	found := map[string][]load{}
	for round := -1; round < b.rounds; round++ {
		for i := range ways {
			w := ways[(i+max(round, 0))%len(ways)]
			seconds := b.seconds
			if round < 0 {
				seconds = 1
			}
			l, err := b.loadOnce(ctx, worker, w, script, connections, seconds)
			if err != nil {
				return nil, fmt.Errorf("cannot load %s with %d connections: %w", w.name, connections, err)
			}
			if round >= 0 {
				found[w.name] = append(found[w.name], l)
				b.say("  c=%d round %d %-12s %8.0f/s p50 %s p99 %s, processor time %s", connections, round+1, w.name, l.perSec, micros(l.p50), micros(l.p99), micros(l.cpu))
			}
		}
	}
	return found, nil
}

// loadOnce runs wrk. Every request must be answered by the worker itself, with 200 and in full.
func (b *bench) loadOnce(ctx context.Context, worker, w *way, script string, connections, seconds int) (load, error) {
	wrk, err := findTool("wrk")
	if err != nil {
		return load{}, err
	}
	servedBefore, err := served(worker)
	if err != nil {
		return load{}, err
	}
	cpuBefore, err := w.cpu()
	if err != nil {
		return load{}, err
	}
	out, err := exec.CommandContext(ctx, wrk, "-t", strconv.Itoa(min(b.threads, connections)), "-c", strconv.Itoa(connections),
		"-d", strconv.Itoa(seconds), "-s", script, "http://"+w.address+"/v1/chat/completions").CombinedOutput()
	if err != nil {
		return load{}, fmt.Errorf("%w: %s", err, out)
	}
	cpuAfter, err := w.cpu()
	if err != nil {
		return load{}, err
	}
	servedAfter, err := served(worker)
	if err != nil {
		return load{}, err
	}
	l, err := parseLoad(string(out))
	if err != nil {
		return load{}, err
	}
	if l.bytes < l.requests*len(completion) {
		return load{}, fmt.Errorf("%d answers had only %d bytes in all", l.requests, l.bytes)
	}
	if servedAfter-servedBefore < l.requests {
		return load{}, fmt.Errorf("%d answers, but the worker was asked %d times", l.requests, servedAfter-servedBefore)
	}
	l.cpu = (cpuAfter - cpuBefore) / time.Duration(l.requests)
	return l, nil
}

// parseLoad reads the line of wrkScript; any failed request is an error.
func parseLoad(out string) (load, error) {
	_, line, ok := strings.Cut(out, "BENCH ")
	if !ok {
		return load{}, fmt.Errorf("cannot read what wrk printed: %s", out)
	}
	var requests, duration, bytes, failed, p50, p99 int
	if _, err := fmt.Sscan(line, &requests, &duration, &bytes, &failed, &p50, &p99); err != nil {
		return load{}, fmt.Errorf("cannot read what wrk printed: %w: %s", err, line)
	}
	if failed > 0 || requests == 0 || duration == 0 {
		return load{}, fmt.Errorf("%d of %d requests failed", failed, requests)
	}
	return load{requests: requests, bytes: bytes, perSec: float64(requests) / (float64(duration) / 1e6),
		p50: time.Duration(p50) * time.Microsecond, p99: time.Duration(p99) * time.Microsecond}, nil
}

// served returns how many requests the worker has had, from nginx's stub_status.
func served(worker *way) (int, error) {
	_, page, err := get(worker.address, "/bench/served")
	if err != nil {
		return 0, fmt.Errorf("cannot ask the worker: %w", err)
	}
	fields := strings.Fields(string(page))
	i := slices.Index(fields, "requests")
	if i < 0 || i+3 >= len(fields) {
		return 0, fmt.Errorf("cannot ask the worker: it says %q", page)
	}
	return strconv.Atoi(fields[i+3])
}

func (b *bench) reportThroughput(ways []*way, wide, narrow map[string][]load) {
	t := table{title: "Throughput, 2 KB chat completion, 1 KB answer", head: []string{"way", "c=64 req/s", "of nginx", "p50", "p99", "processor time", "of nginx", "c=1 req/s", "of nginx", "p50", "p99"},
		notes: []string{"Processor time is that of the proxy alone, a request at c=64: what others do on the machine changes it less than requests a second."}}
	for _, w := range ways {
		row := append([]string{w.name}, rateCells(wide[w.name], wide[wayNginx])...)
		cost := []string{"", ""}
		if w.proc != nil {
			cost = []string{micros(time.Duration(median(costs(wide[w.name])))), fmt.Sprintf("%.2f x", median(ratios(costs(wide[w.name]), costs(wide[wayNginx]))))}
		}
		t.rows = append(t.rows, append(append(row, cost...), rateCells(narrow[w.name], narrow[wayNginx])...))
	}
	b.report.add(t)

	mine, nginx := wide[b.subject()], wide[wayNginx]
	each := ratios(rates(mine), rates(nginx))
	b.report.judge(verdict{"throughput, c=64, against nginx proxy_pass", fmt.Sprintf("%.2f x (rounds %s)", median(each), spread(each)), ">= 0.85 x", median(each) >= 0.85})
	one := ratios(rates(narrow[b.subject()]), rates(narrow[wayNginx]))
	b.report.note("throughput, c=1, against nginx proxy_pass", fmt.Sprintf("%.2f x (rounds %s)", median(one), spread(one)))
	if !b.peer {
		b.report.missing("throughput, c=64, against vllm-router", ">= 1.15 x; p99 lower", errors.New("left out with -peer=false"))
		return
	}
	peer := wide[wayRouter]
	each = ratios(rates(mine), rates(peer))
	ours, theirs := median(latencies(mine, true)), median(latencies(peer, true))
	b.report.judge(verdict{"throughput, c=64, against vllm-router", fmt.Sprintf("%.2f x (rounds %s); p99 %s against %s", median(each), spread(each), millis(ours), millis(theirs)),
		">= 1.15 x; p99 lower", median(each) >= 1.15 && ours < theirs})
}

// rateCells are a way's requests a second, beside nginx, and its latencies.
func rateCells(mine, nginx []load) []string {
	return []string{fmt.Sprintf("%.0f", median(rates(mine))), fmt.Sprintf("%.2f x", median(ratios(rates(mine), rates(nginx)))),
		micros(median(latencies(mine, false))), micros(median(latencies(mine, true)))}
}

func spread(each []float64) string {
	return fmt.Sprintf("%.2f to %.2f", slices.Min(each), slices.Max(each))
}

func rates(loads []load) []float64 {
	out := make([]float64, len(loads))
	for i, l := range loads {
		out[i] = l.perSec
	}
	return out
}

// costs are the processor times of a request, in nanoseconds.
func costs(loads []load) []float64 {
	out := make([]float64, len(loads))
	for i, l := range loads {
		out[i] = float64(l.cpu)
	}
	return out
}

func latencies(loads []load, high bool) []time.Duration {
	out := make([]time.Duration, len(loads))
	for i, l := range loads {
		out[i] = l.p50
		if high {
			out[i] = l.p99
		}
	}
	return out
}
