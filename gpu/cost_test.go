// The total cost of telemetry: of the helper, and of the process that reads it.

//go:build linux && (amd64 || arm64)

package gpu

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvasir/gpu/nvmltest"
)

// A usage is the resources that a process has used so far.
type usage struct {
	cpu                    time.Duration // of its live threads
	reads, writes, wakeups int           // system calls; times that a thread slept and was woken
}

func (u usage) since(before usage) usage {
	return usage{u.cpu - before.cpu, u.reads - before.reads, u.writes - before.writes, u.wakeups - before.wakeups}
}

// used reads /proc, which no longer counts threads that have ended.
func used(tb testing.TB, pid int) usage {
	tb.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	u := usage{reads: counted(tb, dir+"io", "syscr:"), writes: counted(tb, dir+"io", "syscw:")}
	tasks, err := filepath.Glob(dir + "task/*")
	if err != nil || len(tasks) == 0 {
		tb.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, task := range tasks {
		u.cpu += time.Duration(counted(tb, task+"/schedstat", ""))
		u.wakeups += counted(tb, task+"/status", "voluntary_ctxt_switches:")
	}
	return u
}

// counted returns the first number after a word in a file of /proc; 0 if the thread has ended.
func counted(tb testing.TB, file, word string) int {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		if strings.Contains(file, "/task/") {
			return 0
		}
		tb.Skipf("this system does not count: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			if n, err := strconv.Atoi(strings.Fields(rest + " 0")[0]); err == nil {
				return n
			}
		}
	}
	tb.Skipf("this system does not count: %s has no %q", file, word)
	return 0
}

// A setup is telemetry of eight GPUs every 250 ms, in a separate process that does nothing else.
type setup struct{ parent, helper int }

func setUp(tb testing.TB) setup {
	tb.Helper()
	driver := nvmltest.New(tb)
	driver.Set(nvmltest.Host(8)...)
	file := filepath.Join(tb.TempDir(), "helper")
	if err := os.WriteFile(file, nvmltest.Helper(tb), 0o755); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", driver.Library(), file)
	cmd.Args[0] = "kvasir-parent"
	cmd.Env = append(os.Environ(), driver.Env()...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, 3)); err != nil { // "ok\n"
		tb.Fatal(err)
	}
	r := setup{parent: cmd.Process.Pid}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range all {
		b, _ := os.ReadFile(stat)
		_, rest, _ := strings.Cut(string(b), ") ")
		var state string
		var parent int
		if n, _ := fmt.Sscan(rest, &state, &parent); n == 2 && parent == r.parent {
			_, _ = fmt.Sscan(string(b), &r.helper)
		}
	}
	if r.helper == 0 {
		tb.Fatal("there is no helper")
	}
	return r
}

// measure returns what both processes use in a time of d, and the time it really took.
func (r setup) measure(tb testing.TB, d time.Duration) (parent, helper usage, took time.Duration) {
	tb.Helper()
	began, p, h := time.Now(), used(tb, r.parent), used(tb, r.helper)
	<-time.After(d)
	return used(tb, r.parent).since(p), used(tb, r.helper).since(h), time.Since(began)
}

// TestCost bounds system calls and wake-ups by what a round needs. They grow with other load on
// the machine, so one good run of three is enough. Processor time grows even more, so its bounds
// only catch busy loops.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes five seconds")
	}
	telemetry := setUp(t)
	best := telemetry.figures(t)
	for try := 1; try < 3 && slices.ContainsFunc(best, figure.bad); try++ {
		for i, f := range telemetry.figures(t) {
			if best[i].bad() {
				best[i] = f
			}
		}
	}
	for _, f := range best {
		if f.bad() {
			t.Errorf("%.2f %s, want %g to %g", f.n, f.what, f.from, f.to)
		}
	}
}

// A figure is a measured value and its bound.
type figure struct {
	what        string
	n, from, to float64
}

func (f figure) bad() bool { return f.n < f.from || f.n > f.to }

// figures measures for five seconds.
func (r setup) figures(t *testing.T) []figure {
	parent, helper, took := r.measure(t, 5*time.Second)
	round := func(calls int) float64 { return float64(calls) / took.Seconds() / 4 }
	share := func(u usage) float64 { return 100 * u.cpu.Seconds() / took.Seconds() }
	all := []figure{
		{"writes of the helper a round", round(helper.writes), 0.5, 1.5},
		{"wake-ups of the helper a round", round(helper.wakeups), 0.5, 12},
		{"% of a core in the helper", share(helper), 0, 0.5},
		{"reads of the parent a round", round(parent.reads), 0.5, 4},
	}
	if !raceEnabled {
		all = append(all,
			figure{"wake-ups of the parent a round", round(parent.wakeups), 0.5, 12},
			figure{"% of a core in both", share(helper) + share(parent), 0, 1})
	}
	for _, f := range all {
		t.Logf("%.2f %s", f.n, f.what)
	}
	return all
}
