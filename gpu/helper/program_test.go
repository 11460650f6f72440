//go:build linux && cgo

// The whole program on the fake driver, with every fault that the driver can simulate.

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvasir/gpu/nvmltest"
	"kvasir/gpu/snapshot"
)

// A program is a running helper.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan snapshot.Line
	text  chan string // the same lines, as text
	done  chan struct{}
	err   error // how it ended; valid after done
}

// start starts the helper with a poll every 20 ms.
func start(t *testing.T, d *nvmltest.Driver) *program { return startEvery(t, d, "20ms") }

func startEvery(t *testing.T, d *nvmltest.Driver, interval string) *program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "helper")
	if err := os.WriteFile(file, nvmltest.Helper(t), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, lines: make(chan snapshot.Line, 1<<16), text: make(chan string, 1<<16), done: make(chan struct{})}
	p.cmd = exec.Command(file, interval, d.Library())
	p.cmd.Env = append(os.Environ(), d.Env()...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdin = in
	go p.read(out)
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case <-p.done:
		case <-time.After(unhurried):
			t.Error("the helper does not end with its input")
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	return p
}

func (p *program) read(out io.Reader) {
	defer close(p.done)
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		var line snapshot.Line
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			p.t.Errorf("line %q: %v", scanner.Text(), err)
		}
		p.lines <- line
		p.text <- scanner.Text()
	}
	close(p.lines)
	p.err = p.cmd.Wait()
}

// unhurried bounds every wait. It is generous, because twenty helpers at once on a busy machine
// may be slow. The rota's tests check on a fake clock that a fault is noticed, and overcome,
// within 5 s.
const unhurried = 30 * time.Second

// until reads lines up to the first for which `is` holds, and returns it.
func (p *program) until(what string, is func(snapshot.Line) bool) snapshot.Line {
	p.t.Helper()
	timeout := time.After(unhurried)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				p.t.Fatalf("the helper ended before %s", what)
			}
			if is(line) {
				return line
			}
		case <-timeout:
			p.t.Fatalf("no %s within %v", what, unhurried)
		}
	}
}

// forget drops what was read so far.
func (p *program) forget() {
	for len(p.lines) > 0 {
		<-p.lines
	}
}

func (p *program) hello() *snapshot.Hello {
	p.t.Helper()
	return p.until("hello", func(l snapshot.Line) bool { return l.Hello != nil }).Hello
}

func (p *program) gpu(index int) *snapshot.GPU {
	p.t.Helper()
	return p.until("snapshot of a GPU", func(l snapshot.Line) bool { return l.GPU != nil && l.GPU.Index == index }).GPU
}

func (p *program) gpuWhere(what string, is func(*snapshot.GPU) bool) *snapshot.GPU {
	p.t.Helper()
	return p.until(what, func(l snapshot.Line) bool { return l.GPU != nil && is(l.GPU) }).GPU
}

func (p *program) trouble(gpu int, code string) {
	p.t.Helper()
	p.until("trouble "+code, func(l snapshot.Line) bool {
		return l.Trouble != nil && l.Trouble.GPU == gpu && l.Trouble.Code == code
	})
}

// silent asserts that this GPU prints no line while the other GPU prints the given number of
// lines.
func (p *program) silent(gpu, other, times int) {
	p.t.Helper()
	p.forget()
	for range times {
		p.until("snapshot of the other GPU", func(l snapshot.Line) bool {
			if l.GPU != nil && l.GPU.Index == gpu {
				p.t.Errorf("GPU %d is told while it hangs", gpu)
			}
			return l.GPU != nil && l.GPU.Index == other
		})
	}
}

// hang makes GPU 0 of two hang, and waits until its last lines are read: a poll may be under way,
// and lines may wait to be read. A new value of the other GPU shows that it was polled after the
// change. It must appear twice, because that GPU may be polled before GPU 0 in the round of the
// change.
func (p *program) hang(d *nvmltest.Driver) {
	p.t.Helper()
	d.Set(host(2, "0.hang 1", "1.sm 7")...)
	for range 2 {
		p.gpuWhere("GPU 1 since the hang", func(g *snapshot.GPU) bool { return g.Index == 1 && g.SMUtilization != nil && *g.SMUtilization == 7 })
	}
}

// quiet waits until no line has come for ten polls.
func (p *program) quiet() {
	p.t.Helper()
	for timeout := time.After(unhurried); ; {
		select {
		case <-p.lines:
		case <-time.After(200 * time.Millisecond):
			return
		case <-timeout:
			p.t.Fatal("the helper goes on talking")
		}
	}
}

func host(gpus int, more ...string) []string { return append(nvmltest.Host(gpus), more...) }

func TestHealthy(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	if hello := *p.hello(); hello != (snapshot.Hello{Protocol: 1, Driver: "570.86.15", GPUs: 2}) {
		t.Errorf("hello %+v", hello)
	}
	p.gpuWhere("rates of GPU 0", func(g *snapshot.GPU) bool { return g.Index == 0 && g.NVLinkSent != nil })
	want := `{"gpu":{"index":1,"uuid":"GPU-11111111-2222-3333-4444-000000000001","name":"NVIDIA H100 80GB HBM3",` +
		`"pci":"00000000:08:00.0","memory_used_bytes":64424509440,"memory_total_bytes":85520809984,"memory_free_bytes":20559429632,` +
		`"sm_utilization":50,"memory_utilization":20,"power_watts":350.5,"power_limit_watts":700,"temperature_celsius":51,` +
		`"sm_clock_mhz":1980,"sm_clock_max_mhz":1980,"memory_clock_mhz":2619,"memory_clock_max_mhz":2619,"throttle_reasons":[],` +
		`"ecc_errors":0,"ecc_corrected_errors":3,"xid":0,"recovery_action":"none",` +
		`"nvlink_rx_bytes_per_second":0,"nvlink_tx_bytes_per_second":0,"pcie_rx_bytes_per_second":0,"pcie_tx_bytes_per_second":0,` +
		`"processes":[{"pid":1001,"memory_bytes":64424509440,"sm_utilization":50}]}}`
	p.gpu(1)
	p.gpu(1)
	for line := range p.text {
		if strings.HasPrefix(line, `{"gpu":{"index":1`) && strings.Contains(line, "nvlink_tx") {
			if line != want {
				t.Errorf("line\n%s\nwant\n%s", line, want)
			}
			break
		}
	}
}

func TestLostGPU(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	p.gpu(1)
	d.Set(host(2, "1.lost 1")...)
	p.trouble(1, "GPU_IS_LOST")
	p.silent(1, 0, 3)
	p.trouble(1, "GPU_IS_LOST") // it is still polled
	d.Set(nvmltest.Host(2)...)
	p.forget()
	p.gpu(1)
	p.gpu(0)
}

// The errors of a GPU that needs a reset, and of one whose device the container may no longer
// open.
func TestOtherLosses(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"RESET_REQUIRED", "OPERATING_SYSTEM", "UNKNOWN", "NO_PERMISSION", "INVALID_ARGUMENT"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			d := nvmltest.New(t)
			d.Set(host(2, "0.error "+code)...)
			p := start(t, d)
			p.trouble(0, code)
			d.Set(nvmltest.Host(2)...)
			p.gpu(0)
			d.Set(host(2, "0.error "+code)...) // not only when its handle is fetched
			p.trouble(0, code)
			d.Set(nvmltest.Host(2)...)
			if g := p.gpu(0); g.SMUtilization == nil || g.MemoryUsed == nil {
				t.Errorf("after it there is only %+v", g)
			}
		})
	}
}

// A GPU that appears only after a new initialisation: the number of GPUs is read there.
func TestCountAfterLoss(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	p.hello()
	p.gpu(1)
	d.Set(host(1, "1.lost 1")...) // it vanished
	if hello := p.hello(); hello.GPUs != 1 {
		t.Errorf("hello of %d GPUs, want 1", hello.GPUs)
	}
	p.gpu(0)
	d.Set(host(3, "0.lost 1")...) // others were plugged
	if hello := p.hello(); hello.GPUs != 3 {
		t.Errorf("hello of %d GPUs, want 3", hello.GPUs)
	}
	p.gpu(2)
}

func TestNoGPUs(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set("driver 570.86.15", "gpus 0")
	p := start(t, d)
	for range 2 { // it is reported again
		if hello := p.hello(); hello.GPUs != 0 {
			t.Errorf("hello of %d GPUs", hello.GPUs)
		}
	}
	d.Set(nvmltest.Host(1)...)
	p.gpu(0)
}

func TestHangingGPU(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	p.gpu(0)
	p.gpu(1)
	p.hang(d)
	p.silent(0, 1, 20)
	// Another lost GPU must not end the session, because that would wait for the one that hangs.
	d.Set(host(2, "0.hang 1", "1.lost 1")...)
	for range 4 {
		p.trouble(1, "GPU_IS_LOST")
	}
	d.Set(host(2, "0.hang 1")...)
	p.silent(0, 1, 20)
	d.Set(nvmltest.Host(2)...)
	p.gpu(0)
}

func TestHangingDriver(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(host(1, "hang 1")...) // hangs from the initialisation on
	p := start(t, d)
	d.Set(nvmltest.Host(1)...)
	p.gpu(0)
	d.Set(host(1, "hang 1")...)
	p.quiet()
	d.Set(nvmltest.Host(1)...)
	p.gpu(0)
}

// The parent handles signals to the whole process group, from Ctrl-C or a supervisor.
func TestSignals(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(1)...)
	p := start(t, d)
	p.gpu(0)
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		p.forget()
		p.gpu(0)
		p.gpu(0)
	}
}

// The end of the input ends the helper even while a call hangs; start's cleanup waits for it.
func TestEndWhileHanging(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	p.gpu(0)
	p.hang(d)
	p.silent(0, 1, 5)
}

func TestLostDriver(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(2)...)
	p := start(t, d)
	p.hello()
	p.gpu(1)
	d.Set(host(2, "driver_lost 1")...)
	p.trouble(0, "UNKNOWN")
	p.trouble(wholeDriver, "DRIVER_NOT_LOADED") // the library was shut down and cannot be initialised
	d.Set(append(nvmltest.Host(2), "driver 580.1")...)
	if hello := p.hello(); hello.Driver != "580.1" {
		t.Errorf("hello of driver %q, want that of the new one", hello.Driver)
	}
	p.gpu(0)
	p.gpu(1)

	// Even a loss that ends before it is noticed leaves a library that must be initialised again.
	d.Set(append(nvmltest.Host(2), "driver 580.1", "driver_lost 1")...)
	p.trouble(0, "UNKNOWN")
	d.Set(append(nvmltest.Host(2), "driver 580.1")...)
	p.trouble(wholeDriver, "UNINITIALIZED")
	p.hello()
	p.gpu(1)
}

func TestInitFails(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	p := start(t, d)
	p.trouble(wholeDriver, "DRIVER_NOT_LOADED")
	d.Set(host(1, "init LIB_RM_VERSION_MISMATCH")...)
	p.trouble(wholeDriver, "LIB_RM_VERSION_MISMATCH")
	d.Set(host(1, "init UNKNOWN")...)
	p.trouble(wholeDriver, "UNKNOWN")
	d.Set(nvmltest.Host(1)...)
	p.hello()
	p.gpu(0)
}

// After an update of the driver's files only a new process can load the library.
func TestReplacedLibrary(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(host(1, "init LIB_RM_VERSION_MISMATCH")...)
	p := start(t, d)
	p.trouble(wholeDriver, "LIB_RM_VERSION_MISMATCH")
	library, err := os.ReadFile(d.Library())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Library()+".new", library, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.Library()+".new", d.Library()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(unhurried):
		t.Fatal("the helper goes on with the old library")
	}
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit status 1", p.err)
	}
}

func TestNoLibrary(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(nvmltest.Host(1)...)
	library, err := os.ReadFile(d.Library())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Library(), []byte("no library"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, d)
	p.trouble(wholeDriver, "LIBRARY_NOT_FOUND")
	if err := os.WriteFile(d.Library(), library, 0o755); err != nil {
		t.Fatal(err)
	}
	p.gpu(0)
}

func TestMIG(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(host(1, "0.mig 1",
		"0.mig_devices 1:0:MIG-a:10737418240:1073741824,2:0:MIG-b:10737418240:2147483648")...)
	p := start(t, d)
	g := p.gpu(0)
	if len(g.MIG) != 2 || g.SMUtilization != nil || g.MemoryUtilization != nil {
		t.Fatalf("with MIG: %+v", g)
	}
	if second := g.MIG[1]; second.GPUInstance != 2 || second.ComputeInstance != 0 || second.UUID != "MIG-b" ||
		*second.MemoryUsed != 2147483648 || *second.MemoryTotal != 10737418240 {
		t.Errorf("the second instance: %+v", second)
	}
	if len(g.Processes) != 1 || g.Processes[0].SMUtilization != nil {
		t.Errorf("processes with MIG: %+v", g.Processes)
	}
	// An instance that was destroyed disappears from the snapshots.
	d.Set(host(1, "0.mig 1", "0.mig_devices 1:0:MIG-a:10737418240:1073741824")...)
	p.gpuWhere("GPU with one instance", func(g *snapshot.GPU) bool { return len(g.MIG) == 1 })
	d.Set(host(1, "0.mig 0")...)
	p.gpuWhere("GPU without MIG", func(g *snapshot.GPU) bool { return g.MIG == nil })
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	keys := []string{
		"memory_total", "sm", "power", "power_limit", "temperature", "sm_clock", "sm_clock_max", "memory_clock",
		"memory_clock_max", "throttle", "ecc", "ecc_corrected", "events", "recovery", "pcie_rx", "pcie_tx",
		"nvlink_rx", "nvlink_tx", "mig", "processes",
	}
	d.Set(host(1, "0.unsupported "+strings.Join(keys, ","))...)
	p := start(t, d)
	p.gpu(0)
	p.gpu(0)
	line := ""
	for line == "" || strings.Contains(line, "hello") {
		line = <-p.text
	}
	want := `{"gpu":{"index":0,"uuid":"GPU-11111111-2222-3333-4444-000000000000","name":"NVIDIA H100 80GB HBM3","pci":"00000000:07:00.0"}}`
	if line != want {
		t.Errorf("line\n%s\nwant\n%s", line, want)
	}
}

// A driver without the newer functions: they are not called, because a call would end the
// process.
func TestOldDriver(t *testing.T) {
	t.Parallel()
	d := nvmltest.NewOld(t)
	d.Set(host(1, "0.throttle 0x48", "0.xid 0")...)
	p := start(t, d)
	g := p.gpu(0)
	// The old function counts reserved memory as used.
	if *g.MemoryUsed != 64424509440+536870912 || *g.MemoryFree != 85520809984-*g.MemoryUsed {
		t.Errorf("memory: %d used, %d free", *g.MemoryUsed, *g.MemoryFree)
	}
	if !slices.Equal(g.ThrottleReasons, []string{"hw_slowdown", "hw_thermal_slowdown"}) {
		t.Errorf("throttle reasons %q", g.ThrottleReasons)
	}
	if len(g.Processes) != 1 || g.Processes[0].PID != 1000 || g.Processes[0].SMUtilization != nil {
		t.Errorf("processes %+v", g.Processes)
	}
	if g.MIG != nil || g.Recovery != nil || g.PCIeReceived != nil {
		t.Errorf("it has what it cannot have: %+v", g)
	}
	d.Set(host(1, "0.xid 79")...)
	p.gpuWhere("Xid", func(g *snapshot.GPU) bool { return *g.Xid == 79 })
	d.Set(host(1, "driver_lost 1")...)
	p.trouble(0, "UNKNOWN")
	d.Set(nvmltest.Host(1)...)
	p.gpu(0)
}

func TestXid(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(host(2, "0.xid 13")...) // happened before the start
	p := start(t, d)
	if g := p.gpu(0); *g.Xid != 0 || g.XidAt != nil {
		t.Errorf("an Xid from before: %d at %v", *g.Xid, g.XidAt)
	}
	before := time.Now().UnixMilli()
	d.Set(host(2, "0.xid 79", "0.lost 1")...) // as when a GPU falls off the bus
	p.trouble(0, "GPU_IS_LOST")
	p.trouble(0, "GPU_IS_LOST")
	d.Set(host(2, "0.xid 79")...)
	g := p.gpu(0)
	if *g.Xid != 79 || *g.XidAt < before || *g.XidAt > time.Now().UnixMilli() {
		t.Errorf("Xid %d at %d, want 79 after %d", *g.Xid, *g.XidAt, before)
	}
	if g := p.gpu(1); *g.Xid != 0 {
		t.Errorf("the other GPU has Xid %d", *g.Xid)
	}
	// The critical Xid is not hidden by those that follow it.
	d.Set(host(2, "0.xid 45")...)
	p.gpuWhere("Xid 45", func(g *snapshot.GPU) bool { return *g.Xid == 45 })
	d.Set(host(2, "0.xid 79")...)
	p.gpuWhere("Xid 45 and 79", func(g *snapshot.GPU) bool {
		return *g.Xid == 79 && len(g.Xids) == 2 && g.Xids[0].Number == 45 && g.Xids[1].Number == 79 && g.Xids[1].At == *g.XidAt
	})
	// The last Xid is remembered after the driver was lost.
	d.Set(host(2, "driver_lost 1")...)
	p.trouble(wholeDriver, "DRIVER_NOT_LOADED")
	d.Set(nvmltest.Host(2)...)
	p.hello()
	if g := p.gpu(0); *g.Xid != 79 {
		t.Errorf("Xid %d after the driver came back, want 79", *g.Xid)
	}
}

// Values that mean that there is none.
func TestBlank(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	d.Set(host(1, "0.ecc 9223372036854775794", "0.power 2147483.632", "0.sm 101", "0.memory_used 18446744073709551615",
		"0.throttle 0x7ffffffffffffff0", "0.temperature 4294967295")...)
	p := start(t, d)
	g := p.gpu(0)
	if g.ECCErrors != nil || g.Power != nil || g.SMUtilization != nil || g.MemoryUsed != nil || g.ThrottleReasons != nil || g.Temperature != nil {
		t.Errorf("blank values are told: %+v", g)
	}
	if g.MemoryUtilization == nil || g.MemoryTotal == nil {
		t.Errorf("values beside blank ones are not told: %+v", g)
	}
}

// The counters advance between polls; PCIe's wraps at 32 bits.
func TestRates(t *testing.T) {
	t.Parallel()
	d := nvmltest.New(t)
	pcie, nvlink := uint32(4294960000), uint64(1000)
	d.Set(host(1, fmt.Sprint("0.pcie_tx ", pcie), fmt.Sprint("0.nvlink_rx ", nvlink))...) // all at once, so that no rate is computed from older values
	p := startEvery(t, d, "50ms")
	timeout := time.Now().Add(unhurried)
	for time.Now().Before(timeout) {
		pcie, nvlink = pcie+4096, nvlink+4
		d.Set(host(1, fmt.Sprint("0.pcie_tx ", pcie), fmt.Sprint("0.nvlink_rx ", nvlink))...)
		g := p.gpu(0)
		if g.PCIeSent == nil || *g.PCIeSent == 0 || *g.NVLinkReceived == 0 {
			continue
		}
		if *g.PCIeSent != *g.NVLinkReceived || *g.PCIeSent > 1e9 {
			t.Errorf("%g bytes/s over PCIe, %g over NVLink: want as many", *g.PCIeSent, *g.NVLinkReceived)
		}
		return
	}
	t.Fatal("no rates")
}
