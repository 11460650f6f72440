// Nvmltest: a fake driver library controlled by tests.

// Package nvmltest builds the fake libnvidia-ml.so.1 of gpu/testdata/nvml and the telemetry helper
// for tests. The state that the library shows is a file of lines, explained in nvml.c:
//
//	driver := nvmltest.New(t)
//	driver.Set(nvmltest.Host(2)...)                          // two healthy GPUs
//	driver.Set(append(nvmltest.Host(2), "1.lost 1")...)      // one has fallen off the bus
//
// Without a C compiler tests are skipped, and fail where KVASIR_REAL=required.
package nvmltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Driver is one fake library and its state.
type Driver struct {
	tb      testing.TB
	library string
	state   string
	writes  int64
}

// New returns a driver without a state, as on a host where no driver is loaded.
func New(tb testing.TB) *Driver { return build(tb, newLibrary) }

// NewOld returns a driver like those before R450: without fields, MIG and the newer versions of
// functions.
func NewOld(tb testing.TB) *Driver { return build(tb, oldLibrary) }

func build(tb testing.TB, compile func() ([]byte, error)) *Driver {
	tb.Helper()
	needCompiler(tb)
	program, err := compile()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	d := &Driver{tb: tb, library: filepath.Join(dir, "libnvidia-ml.so.1"), state: filepath.Join(dir, "state")}
	if err := os.WriteFile(d.library, program, 0o755); err != nil {
		tb.Fatal(err)
	}
	return d
}

// Library returns the path of libnvidia-ml.so.1; its folder has no other library.
func (d *Driver) Library() string { return d.library }

// Env returns the environment that a process needs to load the library.
func (d *Driver) Env() []string { return []string{"FAKE_NVML_STATE=" + d.state} }

// Set replaces the state atomically; if a key is there twice, the later line counts.
func (d *Driver) Set(lines ...string) {
	d.tb.Helper()
	next := d.state + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		d.tb.Fatal(err)
	}
	// The library detects changes by time, size and inode, which can be equal after two quick
	// writes.
	d.writes++
	at := time.Unix(d.writes, 0)
	if err := os.Chtimes(next, at, at); err != nil {
		d.tb.Fatal(err)
	}
	if err := os.Rename(next, d.state); err != nil {
		d.tb.Fatal(err)
	}
}

// Unload removes the state, as if the driver was unloaded.
func (d *Driver) Unload() {
	d.tb.Helper()
	if err := os.Remove(d.state); err != nil {
		d.tb.Fatal(err)
	}
}

// Host returns the state of a host with the given number of healthy, half busy H100s.
func Host(gpus int) []string {
	lines := []string{"driver 570.86.15", fmt.Sprint("gpus ", gpus)}
	for n := range gpus {
		for _, line := range []string{
			fmt.Sprintf("uuid GPU-11111111-2222-3333-4444-%012d", n),
			"name NVIDIA H100 80GB HBM3",
			fmt.Sprintf("pci 00000000:%02x:00.0", n+7),
			"memory_total 85520809984", "memory_used 64424509440", "memory_reserved 536870912",
			"sm 50", "mem 20", "power 350.5", "power_limit 700", "temperature 51",
			"sm_clock 1980", "sm_clock_max 1980", "memory_clock 2619", "memory_clock_max 2619",
			"throttle 0x0", "ecc 0", "ecc_corrected 3", "xid 0", "recovery 0",
			"pcie_rx 1000000", "pcie_tx 2000000", "nvlink_rx 3000", "nvlink_tx 4000",
			"mig 0", fmt.Sprintf("processes %d:64424509440:50", 1000+n),
		} {
			lines = append(lines, fmt.Sprintf("%d.%s", n, line))
		}
	}
	return lines
}

var (
	newLibrary = sync.OnceValues(func() ([]byte, error) { return compile() })
	oldLibrary = sync.OnceValues(func() ([]byte, error) { return compile("-DOLD_DRIVER") })
)

func compile(flags ...string) ([]byte, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	args := append(flags, "-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror")
	return output(func(file string) *exec.Cmd {
		return exec.Command(compiler(), append(args, "-o", file, filepath.Join(root, "gpu/testdata/nvml/nvml.c"))...)
	})
}

// output runs a command that writes a file, and returns its content.
func output(command func(file string) *exec.Cmd) ([]byte, error) {
	dir, err := os.MkdirTemp("", "nvmltest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "out")
	cmd := command(file)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot run %q: %w\n%s", cmd.Args, err, said)
	}
	return os.ReadFile(file)
}

// moduleRoot returns the parent folder that has the fake library's source.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "gpu/testdata/nvml/nvml.c")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find gpu/testdata/nvml/nvml.c above %q", start)
		}
	}
}
