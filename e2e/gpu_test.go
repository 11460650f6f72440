// GPU telemetry from outside: a driver whose GPUs get into trouble, two workers on them, and what their traffic makes of it.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/gpu/nvmltest"
)

// A gpuHost is a Kvasir before two workers, one on each of the two GPUs of a made-up driver.
type gpuHost struct {
	*kvasir
	driver *nvmltest.Driver
	asked  int // requests, each with a prompt of its own
}

// onGPUs starts it, where the binary has its helper inside.
func onGPUs(t *testing.T) *gpuHost {
	t.Helper()
	if said, err := exec.Command(binary(t), "version").Output(); err != nil || !strings.Contains(string(said), "nvml helper: inside") {
		t.Skipf("SKIP real part: the binary has no NVML helper: %s", said)
	}
	h := &gpuHost{driver: nvmltest.New(t)}
	h.set()
	h.kvasir = serveIn(t, h.env(), fmt.Sprintf(`
workers:
  - {name: a, url: %q, gpus: [0]}
  - {name: b, url: %q, gpus: [GPU-11111111-2222-3333-4444-000000000001]}
cache: {store: off}
gpu: {interval: 150ms, neighbour: off}   # the GPUs are half busy with nothing
`, simulate(t).url(), simulate(t).url()), "sim")
	eventually(t, patience, "/debug/gpu says ok", func() bool { return h.page(t).State == "ok" })
	return h
}

func (h *gpuHost) env() []string {
	return append(h.driver.Env(), "LD_LIBRARY_PATH="+filepath.Dir(h.driver.Library()))
}

// set makes the driver's GPUs well but for these lines.
func (h *gpuHost) set(lines ...string) { h.driver.Set(append(nvmltest.Host(2), lines...)...) }

// A gpuPage is what GET /debug/gpu says.
type gpuPage struct {
	State, Why, Driver string
	GPUs               []gpuEntry
}

type gpuEntry struct {
	State, Why string
	Workers    []string
	SMClock    *float64 `json:"sm_clock_mhz"`
}

func (h *gpuHost) page(t *testing.T) (p gpuPage) {
	t.Helper()
	got := get(t, h.admin+"/debug/gpu")
	if err := json.Unmarshal(got.body, &p); err != nil || got.status != http.StatusOK {
		t.Fatalf("/debug/gpu: %d %s: %v", got.status, got.body, err)
	}
	return p
}

// wellAgain is how soon telemetry has to be ok after a fault ends.
const wellAgain = 5 * time.Second

func (h *gpuHost) ready(t *testing.T) string {
	t.Helper()
	return string(get(t, h.admin+"/readyz").body)
}

// ask sends n requests one after the other and counts who answered. None of their prompts was there before.
func (h *gpuHost) ask(t *testing.T, n int) map[string]int {
	t.Helper()
	by := map[string]int{}
	for range n {
		h.asked++
		got := post(t, h.url+"/v1/chat/completions", fmt.Sprintf(
			`{"model":"sim","messages":[{"role":"user","content":"%d is a number. Name another one."}],"max_tokens":2,"ignore_eos":true}`, h.asked*7919))
		if got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
		by[got.header.Get("x-kvasir-worker")]++
	}
	return by
}

// TestThrottledGPULosesTraffic: a worker whose GPU is throttled gets no requests while another one is free, and gets
// them again when its GPU is well.
func TestThrottledGPULosesTraffic(t *testing.T) {
	t.Parallel()
	h := onGPUs(t)
	if by := h.ask(t, 40); by["a"] < 5 || by["b"] < 5 {
		t.Fatalf("two workers that are well answer %v", by)
	}
	h.set("0.sm_clock 495", "0.throttle 0x48")
	reason := `worker \"a\" counts as 4.0 times slower: GPU 0: thermal slowdown, 495 of 1980 MHz`
	eventually(t, patience, "the throttling is known", func() bool { return strings.Contains(h.ready(t), reason) })
	if by := h.ask(t, 20); by["a"] != 0 {
		t.Errorf("with GPU 0 at a quarter of its clock %v answer", by)
	}
	if p := h.page(t); len(p.GPUs) != 2 || *p.GPUs[0].SMClock != 495 || fmt.Sprint(p.GPUs[0].Workers, p.GPUs[1].Workers) != "[a] [b]" {
		t.Errorf("/debug/gpu says %+v", p)
	}
	if slow := metric(t, h.admin+"/metrics", "kvasir_worker_hardware_slow"); slow != 5 {
		t.Errorf("the workers are %v times slower together, want 4 and 1", slow)
	}
	h.set()
	eventually(t, patience, "it is forgotten", func() bool { return strings.Contains(h.ready(t), `"reasons":[]`) })
	if by := h.ask(t, 40); by["a"] < 5 || by["b"] < 5 {
		t.Errorf("after it %v answer", by)
	}

	h.set("1.lost 1")
	eventually(t, patience, "the loss is known", func() bool { return strings.Contains(h.ready(t), `worker \"b\" is asked after all others: GPU 1`) })
	if by := h.ask(t, 20); by["b"] != 0 {
		t.Errorf("without GPU 1 %v answer", by)
	}
	if p := h.page(t); p.State != "ok" || p.GPUs[1].State != "lost" || p.GPUs[1].Why == "" {
		t.Errorf("/debug/gpu says %+v", p)
	}
	h.stop(t)
	said := h.output.String()
	for _, want := range []string{"GPUs are not well", "GPUs are well again"} {
		if n := strings.Count(said, want); n < 1 || n > 3 {
			t.Errorf("the log says %d times %q", n, want)
		}
	}
}

// TestBuiltInWorkersLoseTraffic: of the two workers of the built-in configuration in one process the one for prompts
// gets next to none while its GPU is throttled and none while it is lost, and gets them again after either.
func TestBuiltInWorkersLoseTraffic(t *testing.T) {
	t.Parallel()
	h := onGPUs(t)
	h.kvasir = serveIn(t, h.env(), `
simulate:
  - {name: prefill-0, role: prefill, gpus: [0]}
  - {name: decode-0, role: decode, gpus: [1]}
cache: {store: off}
classify: {pii: {action: off}, jailbreak: {action: off}}
gpu: {interval: 150ms, neighbour: off}
`, "sim")
	reasons := func(want string) {
		t.Helper()
		eventually(t, patience, want, func() bool { return strings.Contains(h.ready(t), want) })
	}
	for _, fault := range []struct {
		lines, reason string
		most          int // prompts that it may still get: slower, it is worth it where the other one is far behind
	}{
		{"0.sm_clock 495\n0.throttle 0x48", `worker \"prefill-0\" counts as 4.0 times slower`, 2},
		{"0.lost 1", `worker \"prefill-0\" is asked after all others`, 0},
	} {
		if n := h.handed(t); n == 0 {
			t.Error("the prefill worker gets no prompt while its GPU is well")
		}
		h.set(strings.Split(fault.lines, "\n")...)
		reasons(fault.reason)
		if n := h.handed(t); n > fault.most {
			t.Errorf("%s: the prefill worker gets %d of 12 prompts", fault.lines, n)
		}
		h.set()
		reasons(`"reasons":[]`)
	}
	if n := h.handed(t); n == 0 {
		t.Error("the prefill worker gets no prompt after its GPU's troubles")
	}
}

// handed sends 12 long prompts, four at a time, and counts those that a prefill worker computed.
func (h *gpuHost) handed(t *testing.T) int {
	t.Helper()
	var said [12]string // by whom each was computed, or what went wrong
	var all sync.WaitGroup
	turns := make(chan struct{}, 4)
	for i := range said {
		h.asked++
		var prompt strings.Builder
		for n := range 3000 {
			fmt.Fprintf(&prompt, "%d ", h.asked*7919+n*n)
		}
		body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}],"max_tokens":8,"ignore_eos":true}`, prompt.String())
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			got, err := http.Post(h.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				said[i] = err.Error()
				return
			}
			defer got.Body.Close()
			said[i] = got.Status + " " + got.Header.Get("x-kvasir-prefill-worker")
		})
	}
	all.Wait()
	n := 0
	for _, s := range said {
		switch s {
		case "200 OK prefill-0":
			n++
		case "200 OK ":
		default:
			t.Error(s)
		}
	}
	return n
}

// TestHungDriverDelaysNoRequest: calls of the driver hang, of one GPU and of all; requests take as long as before, and
// telemetry is ok again within 5 s after it ended.
func TestHungDriverDelaysNoRequest(t *testing.T) {
	t.Parallel()
	h := onGPUs(t)
	took := func() (slowest time.Duration) {
		for range 30 {
			begin := time.Now()
			h.ask(t, 1)
			slowest = max(slowest, time.Since(begin))
		}
		return slowest
	}
	before := took()
	for _, fault := range []string{"0.hang 1", "hang 1", "driver_lost 1"} {
		again := time.Hour
		for try := 0; try < 3 && again > wellAgain; try++ { // a busy machine may be slow at times
			h.set(fault)
			eventually(t, patience, fault+" is seen", func() bool {
				p := h.page(t)
				return slices.ContainsFunc(p.GPUs, func(g gpuEntry) bool {
					return g.State != "ok" && g.Why != ""
				})
			})
			// Generous: a request that waits for the driver waits for ever.
			if during := took(); during > 10*before+2*time.Second {
				t.Errorf("%s: the slowest of 30 requests took %v, without it %v", fault, during, before)
			}
			h.set()
			ended := time.Now()
			eventually(t, patience, "all is ok again after "+fault, func() bool {
				p := h.page(t)
				return p.State == "ok" && p.GPUs[0].State == "ok" && p.GPUs[1].State == "ok"
			})
			again = min(again, time.Since(ended))
		}
		if again > wellAgain {
			t.Errorf("after %s all is ok again after %v", fault, again)
		}
	}
	eventually(t, patience, "nothing is held against the workers", func() bool { return strings.Contains(h.ready(t), `"reasons":[]`) })
}

// TestTelemetryFollowsReload: a reload switches telemetry off and on, and the process that asks the driver goes and
// comes with it.
func TestTelemetryFollowsReload(t *testing.T) {
	t.Parallel()
	h := onGPUs(t)
	h.set("0.sm_clock 495", "0.throttle 0x48")
	eventually(t, patience, "the throttling is known", func() bool { return strings.Contains(h.ready(t), "4.0 times slower") })
	written, err := os.ReadFile(h.file)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(gpu string) {
		t.Helper()
		config := strings.Replace(string(written), "gpu: {interval: 150ms,", "gpu: {"+gpu+",", 1)
		if err := os.WriteFile(h.file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		// The file is watched, too: whoever comes second finds it as it is.
		if got := post(t, h.admin+"/reload", "", "X-Kvasir-Admin: 1"); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	before := children(t, h.cmd.Process.Pid)
	if len(before) != 1 {
		t.Errorf("the driver is asked by the processes %v, want one", before)
	}
	reload("mode: off")
	if p := h.page(t); p.State != "off" || p.Why != "gpu.mode is off" || len(p.GPUs) != 0 {
		t.Errorf("/debug/gpu says %+v", p)
	}
	if ready := h.ready(t); !strings.Contains(ready, `"reasons":[]`) {
		t.Errorf("/readyz says %s", ready)
	}
	if left := children(t, h.cmd.Process.Pid); len(left) != 0 {
		t.Errorf("the processes %v are left", left)
	}
	reload("interval: 100ms")
	eventually(t, patience, "it is known again", func() bool { return strings.Contains(h.ready(t), "4.0 times slower") })
	reload("interval: 60ms, throttle: aside")
	eventually(t, patience, "the worker is aside", func() bool { return strings.Contains(h.ready(t), `worker \"a\" is asked after all others: GPU 0`) })
	// What was seen before counts at once, and another process asks the driver from now on.
	var after []int
	eventually(t, patience, "one other process asks the driver", func() bool {
		after = children(t, h.cmd.Process.Pid)
		return len(after) == 1 && after[0] != before[0]
	})
	if by := h.ask(t, 10); by["a"] != 0 {
		t.Errorf("with a worker aside %v answer", by)
	}
	// What happened before a reload still counts; the new helper knows nothing of it.
	h.set("1.xid 94")
	const xid = `worker \"b\" is asked after all others: GPU 1: Xid 94`
	eventually(t, patience, "the Xid is known", func() bool { return strings.Contains(h.ready(t), xid) })
	reload("interval: 70ms")
	eventually(t, patience, "both GPUs are ok", func() bool {
		p := h.page(t)
		return len(p.GPUs) == 2 && p.GPUs[0].State == "ok" && p.GPUs[1].State == "ok"
	})
	if ready := h.ready(t); !strings.Contains(ready, xid) {
		t.Errorf("/readyz says %s", ready)
	}
	after = children(t, h.cmd.Process.Pid)
	h.stop(t)
	eventually(t, patience, "the helper is gone", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", after[0]))
		return err != nil
	})
}

// children are the processes that a process has started and that still run.
func children(t *testing.T, parent int) (all []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatalf("no process can be seen: %v", err)
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PARENT ..., where the name may hold anything.
		var state string
		var of, pid int
		_, rest, _ := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), " ")
		if _, err := fmt.Sscan(rest, &state, &of); err == nil && of == parent && state != "Z" {
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
			all = append(all, pid)
		}
	}
	return all
}

// TestGPUCommand: the command shows the GPUs and their workers without a running Kvasir.
func TestGPUCommand(t *testing.T) {
	t.Parallel()
	h := onGPUs(t)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(binary(t), append([]string{"gpu", "--config", h.file}, args...)...)
		var errs bytes.Buffer
		cmd.Env, cmd.Stderr = h.env(), &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kvasir gpu: %v %s", err, errs.String())
		}
		return string(out)
	}
	table := run()
	for _, want := range []string{"driver 570.86.15, 2 GPUs\n", "\n  0  H100 80GB HBM3 ", "     workers: a\n", "\n  1  ", "     workers: b\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	var shown gpuPage
	if err := json.Unmarshal([]byte(run("--json")), &shown); err != nil || len(shown.GPUs) != 2 || shown.GPUs[1].Workers[0] != "b" {
		t.Errorf("%v: %+v", err, shown)
	}
}
