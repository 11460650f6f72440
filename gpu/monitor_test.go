// Tests of the monitor with real processes: each fault of a helper, and the recovery.

//go:build linux && (amd64 || arm64)

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// quick returns bounds for tests: long, except those that the test is about.
func quick() bounds {
	b := usualBounds
	b.first, b.most, b.grace, b.settled = time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, time.Hour
	return b
}

// The usual lines of a helper.
func hello(gpus int) string {
	return fmt.Sprintf(`print {"hello":{"protocol":1,"driver":"570.86.15","gpus":%d}}`, gpus)
}

func snap(index int) string {
	return fmt.Sprintf(`print {"gpu":{"index":%d,"uuid":"GPU-%d","sm_utilization":50}}`, index, index)
}

// A scene is a monitor on a stage, and its notices.
type scene struct {
	*Monitor
	*stage
	mu   sync.Mutex
	told []string // guarded by mu
}

func watching(t *testing.T, b bounds, lines ...string) *scene {
	s := &scene{stage: newStage(t, lines...)}
	s.Monitor = start(Options{Interval: 20 * time.Millisecond, Library: s.file, Helper: self(), Notice: s.notice}, b)
	t.Cleanup(s.Close)
	return s
}

func (s *scene) notice(text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		text += " BECAUSE " + err.Error()
	}
	s.told = append(s.told, text)
}

func (s *scene) notices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// until waits for a fleet for which wanted holds.
func (s *scene) until(what string, wanted func(*Fleet) bool) *Fleet {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f := s.Fleet(time.Now())
		if wanted(f) {
			return f
		}
		if time.Now().After(end) {
			s.t.Fatalf("not %s: %+v; told %q", what, f, s.notices())
		}
	}
}

func (s *scene) untilState(want State, why string) *Fleet {
	s.t.Helper()
	r := regexp.MustCompile(why)
	return s.until(fmt.Sprintf("%s because %s", want, why), func(f *Fleet) bool { return f.State == want && r.MatchString(f.Why) })
}

func (s *scene) untilTold(want string) {
	s.t.Helper()
	r := regexp.MustCompile(want)
	s.until("told "+want, func(*Fleet) bool { return slices.ContainsFunc(s.notices(), r.MatchString) })
}

func (s *scene) untilStarted(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("started %d times", n), func(*Fleet) bool { return len(s.processes()) >= n })
}

// alive reports whether the process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestGoodHelper(t *testing.T) {
	s := watching(t, quick(), hello(2), "repeat", snap(0), snap(1))
	f := s.until("two GPUs ok", func(f *Fleet) bool { return len(f.GPUs) == 2 && f.GPUs[0].State == OK && f.GPUs[1].State == OK })
	if f.State != OK || f.Why != "" || f.Driver != "570.86.15" || s.Off() {
		t.Errorf("fleet is %+v", f)
	}
	g := f.GPUs[1]
	if g.UUID != "GPU-1" || g.SMUtilization == nil || *g.SMUtilization != 50 || g.Power != nil || g.Workers == nil || g.At.IsZero() || g.Age < 0 {
		t.Errorf("GPU 1 is %+v", g)
	}
	s.untilTold("^GPU telemetry is ok: driver 570.86.15, 2 GPUs$")
	pid := s.processes()[0]
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || !strings.HasPrefix(string(line), "kvasir-gpu\x0020ms\x00/") {
		t.Errorf("command is %q, %v", line, err)
	}
	s.Close()
	if alive(pid) {
		t.Errorf("process %d outlived Close", pid)
	}
	if f := s.Fleet(time.Now()); f.State != Off || !s.Off() || len(f.GPUs) != 0 || f.Why == "" {
		t.Errorf("closed, the fleet is %+v", f)
	}
	s.Close() // a second Close does nothing
	for _, told := range s.notices() {
		if strings.Contains(told, " lost") || strings.Contains(told, " off") {
			t.Errorf("told %q", told)
		}
	}
}

// TestOneGPUHangs: if one GPU gives no answers, only that GPU is stale, with one notice.
func TestOneGPUHangs(t *testing.T) {
	s := watching(t, quick(), hello(2), snap(0), snap(1), "repeat", snap(0))
	f := s.until("GPU 1 stale alone", func(f *Fleet) bool {
		return f.State == OK && len(f.GPUs) == 2 && f.GPUs[0].State == OK && f.GPUs[1].State == Stale && !f.GPUs[1].At.IsZero()
	})
	if f.GPUs[1].UUID != "GPU-1" || f.GPUs[1].Age < 80 || !strings.Contains(f.GPUs[1].Why, "has not answered for 80ms") {
		t.Errorf("fleet is %+v", f)
	}
	s.untilTold(`^GPU 1 \(GPU-1\) is stale BECAUSE the driver has not answered for 80ms`)
	s.plays("repeat", snap(0), snap(1))
	s.untilTold(`^GPU 1 \(GPU-1\) is ok$`)
	if n := len(s.processes()); n != 1 {
		t.Errorf("%d helpers were started", n)
	}
	s.plays("repeat", snap(0), `print {"trouble":{"gpu":1,"code":"GPU_IS_LOST","text":"GPU is lost"}}`)
	s.untilTold(`^GPU 1 \(GPU-1\) is lost BECAUSE the driver says GPU_IS_LOST \(GPU is lost\): it fell off the bus .* Xid`)
	s.until("GPU 1 lost alone", func(f *Fleet) bool { return f.State == OK && f.GPUs[1].State == Lost })
	s.plays("repeat", snap(0), snap(1))
	s.until("GPU 1 ok", func(f *Fleet) bool { return f.GPUs[1].State == OK })
}

// TestDriverLost: trouble of the driver is not trouble of a GPU, and ends with a hello.
func TestDriverLost(t *testing.T) {
	s := watching(t, quick(), "repeat", `print {"trouble":{"gpu":-1,"code":"DRIVER_NOT_LOADED","text":""}}`)
	s.untilState(Lost, "^the driver says DRIVER_NOT_LOADED: load the driver with modprobe nvidia")
	s.plays(hello(1), "repeat", snap(0))
	s.untilState(OK, "")
	s.plays(`print {"trouble":{"gpu":-1,"code":"UNKNOWN","text":"Unknown Error"}}`, "repeat")
	f := s.untilState(Lost, `^the driver says UNKNOWN \(Unknown Error\): in a container that lost its devices, start it again`)
	if f.GPUs[0].State != Stale || f.GPUs[0].UUID != "GPU-0" || f.GPUs[0].Why != f.Why {
		t.Errorf("GPU 0 is %+v", f.GPUs[0])
	}
	s.plays(hello(1), "repeat", snap(0))
	s.untilState(OK, "")
	if n := len(s.processes()); n != 1 {
		t.Errorf("%d helpers were started", n)
	}
}

func TestNoGPUs(t *testing.T) {
	b := quick()
	b.silence = time.Millisecond // no lines are expected
	s := watching(t, b, hello(0), "repeat")
	s.untilState(OK, "it shows no GPU")
	s.plays(hello(1), "repeat", snap(0))
	s.until("a GPU", func(f *Fleet) bool { return len(f.GPUs) == 1 && f.GPUs[0].State == OK })
	if n := len(s.processes()); n != 1 {
		t.Errorf("%d helpers were started", n)
	}
}

// TestBadHelpers: a helper that does anything wrong is ended with a notice and restarted, and the
// next good one makes telemetry ok.
func TestBadHelpers(t *testing.T) {
	silent := quick()
	silent.silence, silent.hello = 100*time.Millisecond, 2*time.Second
	many := slices.Repeat([]string{"print no line at all"}, badLines+1)
	for _, tt := range []struct {
		name   string
		bounds bounds
		lines  []string
		why    string
	}{
		{"dies at once", quick(), []string{"say first", "say cannot breathe", "exit 3"}, "^the NVML helper ended: exit status 3, cannot breathe; it is started again$"},
		{"dies without a word", quick(), nil, "^the NVML helper ended: exit status 0; it"},
		{"dies after its hello", quick(), []string{hello(1), snap(0), "exit 1"}, "^the NVML helper ended: exit status 1; it"},
		{"never says hello", silent, []string{"repeat"}, "^the NVML helper did not answer within 2s: .* dmesg; it"},
		{"falls silent", silent, []string{hello(1), snap(0), "repeat"}, "^the NVML helper said nothing for 160ms: .* dmesg; it"},
		{"silent and deaf", silent, []string{"deaf", hello(1), snap(0), "repeat"}, "^the NVML helper said nothing for 160ms"},
		{"writes nonsense", quick(), append(many, "repeat"), `^the NVML helper babbles: cannot read the helper's line "no line at all": invalid character`},
		{"invents GPUs", quick(), append([]string{hello(1)}, append(slices.Repeat([]string{snap(1)}, badLines+1), "repeat")...), "^the NVML helper babbles: a snapshot of GPU 1, of which there was no hello"},
		{"has no end", quick(), []string{"long 300000", "repeat"}, "^the NVML helper babbles: a line of more than 256 KiB"},
		{"floods", quick(), []string{hello(1), strings.Replace(snap(0), "print", "flood", 1)}, "^the NVML helper babbles: more than 500 lines a second"},
		{"dies, and its child does not", quick(), []string{hello(1), snap(0), "child", "exit 3"}, "^the NVML helper ended: exit status 3; it"},
		{"shouts", quick(), []string{hello(1), snap(0), "shout library"}, "^the NVML helper babbles: more than 256 KiB a second, library; it"},
		{"floods with new words", quick(), []string{`flood {"later":1}`}, "^the NVML helper babbles: more than 100 lines a second"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := watching(t, tt.bounds, tt.lines...)
			s.untilState(Lost, tt.why)
			s.untilStarted(2)
			s.plays(hello(1), "repeat", snap(0))
			s.untilState(OK, "")
			pids := s.processes()
			for _, pid := range pids[:len(pids)-1] {
				if alive(pid) {
					t.Errorf("helper %d of %v is still there", pid, pids)
				}
			}
			// However often it was started, each change gives one notice.
			s.untilTold("^GPU telemetry is ok")
			for told, i := s.notices(), 1; i < len(told); i++ {
				if strings.Fields(told[i])[3] == strings.Fields(told[i-1])[3] {
					t.Errorf("told twice in a row: %q", told)
				}
			}
		})
	}
}

// TestHalfLines: a line that comes in pieces is one line, and a few bad lines are tolerated.
func TestHalfLines(t *testing.T) {
	s := watching(t, quick(), "print the driver's library prints what it should not", `part {"hello":{"protocol":1,`, "repeat")
	s.untilStarted(1)
	s.plays(`print "driver":"1","gpus":1,"mood":"good"},"later":[]}`, "repeat", snap(0))
	s.until("ok", func(f *Fleet) bool { return f.State == OK && f.Driver == "1" })
	s.plays(`part {"gpu":{"index":0,"uuid":"GPU-half"}}`, "exit 0")
	f := s.untilState(Lost, "^the NVML helper ended")
	if f.GPUs[0].UUID != "GPU-0" {
		t.Errorf("a line without its end counts: %+v", f.GPUs[0])
	}
}

// TestHopelessHelpers: after an error that is final, the helper is not restarted.
func TestHopelessHelpers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		helper []byte
		lines  []string
		why    string
	}{
		{"other protocol", self(), []string{`print {"hello":{"protocol":2}}`, "repeat"}, "^the helper is of another build of Kvasir: it speaks protocol 2, this one 1; build both together with make build$"},
		{"old glibc", self(), []string{"say kvasir-gpu: /lib/libc.so.6: version `GLIBC_2.34' not found", "exit 1"}, "glibc is missing or too old for it .2.34 is needed.: exit status 1, .*not found"},
		{"no libc", self(), []string{"say error while loading shared libraries: libc.so.6: cannot open shared object file", "exit 127"}, "glibc is missing or too old"},
		{"no loader", withoutLoader(), nil, "^the NVML helper cannot be started: this system has no glibc"},
		{"no program", []byte("nonsense"), nil, "not a program for this machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{stage: newStage(t, tt.lines...)}
			s.Monitor = start(Options{Library: s.file, Helper: tt.helper, Notice: s.notice}, quick())
			f := s.untilState(Off, tt.why)
			if !s.Off() || len(f.GPUs) != 0 {
				t.Errorf("off is %v, fleet %+v", s.Off(), f)
			}
			<-s.done // the monitor ended by itself
			if n := len(s.processes()); n > 1 {
				t.Errorf("%d helpers were started", n)
			}
			if told := s.notices(); len(told) != 1 || !regexp.MustCompile(tt.why[1:]).MatchString(told[0]) || !strings.HasPrefix(told[0], "GPU telemetry is off BECAUSE ") {
				t.Errorf("told %q", told)
			}
			s.Close()
		})
	}
}

// withoutLoader returns a program whose loader does not exist, as in an image from scratch.
func withoutLoader() []byte {
	loader := "/lib64/ld-linux-x86-64.so.2"
	if runtime.GOARCH == "arm64" {
		loader = "/lib/ld-linux-aarch64.so.1"
	}
	return interpreted(loader[:len(loader)-1] + "9")
}

// TestUnkillable: while a helper cannot be killed, no second one is started, neither by its
// monitor nor by the next one after Close.
func TestUnkillable(t *testing.T) {
	b := quick()
	b.silence, b.grace = 50*time.Millisecond, 20*time.Millisecond
	b.kill = func(*process) {}
	s := watching(t, b, "deaf", hello(1), snap(0), "repeat")
	f := s.untilState(Lost, `^the NVML helper \(process \d+\) hangs in the driver and cannot be ended`)
	pid := s.processes()[0]
	if f.GPUs[0].State != Stale || !alive(pid) {
		t.Errorf("GPU 0 is %+v", f.GPUs[0])
	}
	s.Close()
	next := &scene{stage: s.stage}
	next.Monitor = start(Options{Interval: 20 * time.Millisecond, Library: s.file, Helper: self()}, quick())
	defer next.Close()
	next.untilState(Lost, "^an earlier NVML helper hangs in the driver and cannot be ended$")
	s.plays(hello(1), "deaf", "repeat", snap(0)) // the hung helper's output is closed, so a broken pipe ends it
	next.untilState(OK, "")
	if pids := next.processes(); len(pids) != 2 || alive(pid) {
		t.Errorf("helpers are %v, %d alive: %v", pids, pid, alive(pid))
	}
	if n := leftBehind.Load(); n != 0 {
		t.Errorf("%d helpers count as left", n)
	}
}

// TestSuccessor: a monitor that replaces another one has its snapshots, and starts no helper
// beside the old one's.
func TestSuccessor(t *testing.T) {
	s := watching(t, quick(), hello(1), "repeat", snap(0))
	s.until("GPU 0 ok", func(f *Fleet) bool { return f.State == OK && f.GPUs[0].State == OK })
	next := &scene{stage: s.stage}
	next.Monitor = start(Options{Interval: 20 * time.Millisecond, Library: s.file, Helper: self(), After: s.Monitor}, quick())
	defer next.Close()
	if f := next.Fleet(time.Now()); f.State != Stale || len(f.GPUs) != 1 || f.GPUs[0].State != Stale || f.GPUs[0].UUID != "GPU-0" || f.Driver != "570.86.15" {
		t.Errorf("at first the fleet is %+v", f)
	}
	unused := start(Options{Library: s.file, Helper: self(), After: s.Monitor}, quick())
	unused.Close() // does not wait for the earlier monitor
	last := s.Fleet(time.Now()).GPUs[0].At
	s.until("polled again", func(f *Fleet) bool { return f.GPUs[0].At.After(last.Add(200 * time.Millisecond)) })
	if pids := s.processes(); len(pids) != 1 {
		t.Errorf("helpers are %v while the monitor before is there", pids)
	}
	s.Close()
	next.until("GPU 0 ok", func(f *Fleet) bool { return f.State == OK && f.GPUs[0].State == OK })
	if pids := s.processes(); len(pids) != 2 || alive(pids[0]) {
		t.Errorf("helpers are %v", pids)
	}
}

// TestUnkillableEnds: the wait ends when the hang ends.
func TestUnkillableEnds(t *testing.T) {
	b := quick()
	b.silence, b.grace = 50*time.Millisecond, 20*time.Millisecond
	b.kill = func(*process) {}
	s := watching(t, b, "deaf", hello(1), snap(0), "repeat")
	s.untilState(Lost, "cannot be ended")
	s.plays("exit 0") // for the helper that hangs; the next helper reads the lines set after this
	s.until("gone", func(*Fleet) bool { return !alive(s.processes()[0]) })
	s.plays(hello(1), "repeat", snap(0))
	s.untilState(OK, "")
}

// TestCloseWhileStarting: Close waits only for the helper's end.
func TestCloseWhileStarting(t *testing.T) {
	for range 10 {
		s := watching(t, quick(), hello(1), "repeat", snap(0))
		s.Close()
		for _, pid := range s.processes() {
			if alive(pid) {
				t.Errorf("helper %d is still there", pid)
			}
		}
	}
}

// TestCloseDoesNotWait: Close waits neither for a line nor for the next check of the clock, which
// are a second or more away here.
func TestCloseDoesNotWait(t *testing.T) {
	took := time.Hour
	for try := 0; try < 10 && took > 700*time.Millisecond; try++ { // a busy machine may be slow at times
		s := &scene{stage: newStage(t, hello(1), snap(0), "repeat")}
		s.Monitor = start(Options{Interval: 10 * time.Second, Library: s.file, Helper: self()}, quick())
		s.until("ok", func(f *Fleet) bool { return len(f.GPUs) == 1 && f.GPUs[0].State == OK })
		began := time.Now()
		s.Close()
		took = min(took, time.Since(began))
	}
	if took > 700*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

// TestThreadsEnd: the parent-death signal comes when the thread that started the helper ends, so
// the helper must not start on a thread that another goroutine may end.
func TestThreadsEnd(t *testing.T) {
	s := watching(t, quick(), hello(1), "repeat", snap(0))
	s.untilState(OK, "")
	var locked, ended sync.WaitGroup
	end := make(chan struct{})
	for range 50 { // at once, so that every idle thread is taken
		locked.Add(1)
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			locked.Done()
			<-end
		})
	}
	locked.Wait()
	close(end)
	ended.Wait()
	last := s.Fleet(time.Now()).GPUs[0].At
	s.until("polled again", func(f *Fleet) bool { return f.GPUs[0].At.After(last.Add(100 * time.Millisecond)) })
	if n := len(s.processes()); n != 1 {
		t.Errorf("%d helpers were started; told %q", n, s.notices())
	}
}

// TestParentDies: a helper does not outlive a Kvasir that was killed.
func TestParentDies(t *testing.T) {
	s := newStage(t, hello(1), "deaf", "repeat")
	parent := exec.Command("/proc/self/exe", s.file)
	parent.Args[0] = "kvasir-parent"
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	w := &scene{stage: s, Monitor: Start(Options{Library: "/nowhere"})}
	w.untilStarted(1)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	pid := s.processes()[0]
	w.until("dead", func(*Fleet) bool { return !running(pid) })
}

// running reports whether a process is there and no zombie: whose child an orphan becomes may be
// slow to reap it.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// TestOffCostsNothing: without a library or a helper there is no goroutine.
func TestOffCostsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, tt := range []struct {
		o   Options
		why string
	}{
		{Options{Library: "/nowhere/libnvidia-ml.so.1", Helper: self()}, `^cannot find the driver's library "/nowhere/libnvidia-ml.so.1": no such file or directory$`},
		{Options{Library: newStage(t).file}, `^the driver is here \(/.*\), but this Kvasir was built without its NVML helper; build it`},
	} {
		if _, ok := Inside(); ok && tt.o.Helper == nil {
			continue
		}
		m := Start(tt.o)
		if f := m.Fleet(time.Now()); f.State != Off || !m.Off() || !regexp.MustCompile(tt.why).MatchString(f.Why) || f.GPUs == nil {
			t.Errorf("%+v: fleet is %+v", tt.o, f)
		}
		if m.done != nil || runtime.NumGoroutine() > before {
			t.Error("it has a goroutine")
		}
		m.Close()
	}
}
