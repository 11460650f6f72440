// Tests of `kvasir gpu` before a fake driver: table, JSON, and what is said where nothing can be shown.

package command

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvasir/gpu"
	"kvasir/gpu/nvmltest"
	"kvasir/gpu/snapshot"
)

// fakeDriver is a driver whose library monitors of this process load; these tests run alone, as its state is told by
// the environment.
func fakeDriver(t *testing.T, lines ...string) *nvmltest.Driver {
	t.Helper()
	d := nvmltest.New(t)
	d.Set(lines...)
	for _, e := range d.Env() {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	return d
}

// showing runs a gpuShow with a monitor of its own and gives what it wrote.
func showing(ctx context.Context, t *testing.T, d *nvmltest.Driver, s *gpuShow) (string, error) {
	t.Helper()
	var out strings.Builder
	err := showTo(ctx, t, d, s, &out)
	return out.String(), err
}

func showTo(ctx context.Context, t *testing.T, d *nvmltest.Driver, s *gpuShow, out io.Writer) error {
	t.Helper()
	s.out, s.interval = out, 250*time.Millisecond // a snapshot is stale after four of them, which a busy machine takes
	if s.patience == 0 {
		s.patience, s.others = patience, patience
	}
	m := gpu.Start(gpu.Options{Interval: s.interval, Library: d.Library(), Helper: nvmltest.Helper(t)})
	defer m.Close()
	return s.run(ctx, m)
}

func TestGPUTable(t *testing.T) {
	d := fakeDriver(t, append(nvmltest.Host(3), "0.sm_clock 990", "0.throttle 0x49", "0.ecc 1", "0.xid 79", "0.recovery 1",
		"1.unsupported power,temperature,sm", "2.lost 1")...)
	long := strings.Repeat("w", 30)
	s := &gpuShow{workers: []gpu.Worker{{Name: "a", GPUs: []string{"0", "1"}}, {Name: long + "1", GPUs: []string{"0"}}, {Name: long + "2", GPUs: []string{"0"}},
		{Name: long + "3", GPUs: []string{"0"}}, {Name: "elsewhere", Address: "192.0.2.1:8000"}}}
	got, err := showing(t.Context(), t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	got = strings.Replace(got, "; Xid 79", "", 1) // an event, which may come with a later poll
	want := `driver 570.86.15, 3 GPUs
GPU  NAME                  STATE   SM%  MEM%             MEMORY        POWER   TEMP       SM CLOCK
  0  H100 80GB HBM3        ok       50    20      60.0/79.6 GiB    350/700 W   51 C   990/1980 MHz
     workers: a, wwwwwwwwwwwwwwwwwwwwwwwwwwwwww1, wwwwwwwwwwwwwwwwwwwwwwwwwwwwww2,
     wwwwwwwwwwwwwwwwwwwwwwwwwwwwww3
     clocks held down by hw_slowdown, hw_thermal_slowdown; 1 uncorrected ECC error; the driver asks
     for gpu_reset
  1  H100 80GB HBM3        ok        -     -      60.0/79.6 GiB            -      -  1980/1980 MHz
     workers: a
  2  -                     lost      -     -                  -            -      -              -
     the driver says GPU_IS_LOST: it fell off the bus or cannot be reached; look for its Xid in
     dmesg, then restart the host
`
	if got != want {
		t.Errorf("the table is\n%swant\n%s", got, want)
	}
}

// Nothing of a table is wider than 100 columns, however large the figures are.
func TestGPUTableWidth(t *testing.T) {
	t.Parallel()
	big, most := uint64(1023)<<30, 9999.0
	g := gpu.GPU{State: gpu.OK, Workers: []string{strings.Repeat("x", 128)}, GPU: snapshot.GPU{
		Index: 255, Name: strings.Repeat("N", 96), MemoryUsed: &big, MemoryTotal: &big, Power: new(9999.0), PowerLimit: new(9999.0), Temperature: new(100.0),
		SMUtilization: new(100.0), MemoryUtilization: new(100.0), SMClock: new(9999.0), SMClockMax: &most, Recovery: new("drain_and_reset"),
		MIG: []snapshot.Instance{{GPUInstance: 13, Name: "1g.10gb", MemoryUsed: &big}},
	}}
	for _, reason := range snapshot.Reasons {
		g.ThrottleReasons = append(g.ThrottleReasons, reason.Name)
	}
	for line := range strings.Lines(gpuTable(&gpu.Fleet{State: gpu.Lost, Why: strings.Repeat("why ", 100), GPUs: []gpu.GPU{g}})) {
		if n := len(strings.TrimRight(line, "\n")); n > tableWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// The JSON has the keys that scripts read, and none for what the driver does not give.
func TestGPUJSON(t *testing.T) {
	d := fakeDriver(t, append(nvmltest.Host(2), "1.unsupported power,power_limit,ecc,throttle,processes")...)
	got, err := showing(t.Context(), t, d, &gpuShow{json: true, workers: []gpu.Worker{{Name: "a", GPUs: []string{"1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Driver string
		GPUs   []map[string]any
	}
	var top map[string]any
	if err := json.Unmarshal([]byte(got), &shown); err != nil || json.Unmarshal([]byte(got), &top) != nil || len(top) != 2 || shown.Driver != "570.86.15" || len(shown.GPUs) != 2 {
		t.Fatalf("%v: %s", err, got)
	}
	first, second := shown.GPUs[0], shown.GPUs[1]
	for key, want := range map[string]any{
		"index": 0.0, "uuid": "GPU-11111111-2222-3333-4444-000000000000", "name": "NVIDIA H100 80GB HBM3", "pci": "00000000:07:00.0",
		"memory_used_bytes": 64424509440.0, "memory_total_bytes": 85520809984.0, "sm_utilization": 50.0, "memory_utilization": 20.0,
		"power_watts": 350.5, "power_limit_watts": 700.0, "temperature_celsius": 51.0, "ecc_errors": 0.0, "xid": 0.0,
	} {
		if first[key] != want {
			t.Errorf("%s is %v, want %v", key, first[key], want)
		}
	}
	if list, ok := first["throttle_reasons"].([]any); !ok || len(list) != 0 {
		t.Errorf("throttle_reasons is %v", first["throttle_reasons"])
	}
	if list, ok := first["processes"].([]any); !ok || len(list) != 1 || list[0].(map[string]any)["pid"] != 1000.0 || list[0].(map[string]any)["memory_bytes"] != 64424509440.0 {
		t.Errorf("processes is %v", first["processes"])
	}
	if _, ok := first["age_ms"].(float64); !ok || len(first["workers"].([]any)) != 0 || second["workers"].([]any)[0] != "a" {
		t.Errorf("%v\n%v", first, second)
	}
	for _, key := range []string{"power_watts", "power_limit_watts", "ecc_errors", "throttle_reasons", "processes", "state", "why"} {
		if v, ok := second[key]; ok {
			t.Errorf("%s is %v, want it absent of %v", key, v, slices.Sorted(maps.Keys(second)))
		}
	}
}

// With --watch there is table after table, until a signal.
func TestGPUWatch(t *testing.T) {
	d := fakeDriver(t, nvmltest.Host(1)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &stopAfter{text: "driver 570", times: 3, stop: stop}
	if err := showTo(ctx, t, d, &gpuShow{watch: true}, out); err != nil || !strings.Contains(out.all.String(), "MHz\n\ndriver") {
		t.Errorf("%v: %q", err, out.all.String())
	}
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	out = &stopAfter{text: "\x1b[H\x1b[2Jdriver", times: 2, stop: stop}
	if err := showTo(ctx, t, d, &gpuShow{watch: true, redraw: true}, out); err != nil {
		t.Error(err)
	}
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	out = &stopAfter{text: `{"driver":"570.86.15","gpus":[{`, times: 2, stop: stop}
	if err := showTo(ctx, t, d, &gpuShow{watch: true, json: true}, out); err != nil {
		t.Error(err)
	}
}

// A stopAfter ends a context once a text was written some times.
type stopAfter struct {
	all   strings.Builder
	text  string
	times int
	stop  func()
}

func (w *stopAfter) Write(b []byte) (int, error) {
	w.all.Write(b)
	if strings.Count(w.all.String(), w.text) >= w.times {
		w.stop()
	}
	return len(b), nil
}

// What cannot be shown is said in one sentence.
func TestGPUFailures(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		state      []string
	}{
		{"no driver", "GPU telemetry is lost: the driver says DRIVER_NOT_LOADED", []string{"init DRIVER_NOT_LOADED"}},
		{"driver lost", "GPU telemetry is lost: the driver says", append(nvmltest.Host(1), "driver_lost 1")},
		{"not allowed", "GPU telemetry is stale: no GPU answers; GPU 0: the driver says NO_PERMISSION: let Kvasir's user open", append(nvmltest.Host(1), "0.error NO_PERMISSION")},
		{"all hang", "the NVIDIA driver has not answered within 300ms; look for NVRM and Xid in dmesg", append(nvmltest.Host(1), "hang 1")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := fakeDriver(t, tt.state...)
			show := &gpuShow{patience: patience, others: 50 * time.Millisecond}
			if tt.name == "all hang" {
				show.patience = 300 * time.Millisecond
			}
			got, err := showing(t.Context(), t, d, show)
			if err == nil || got != "" || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, and shows %q; want %s", err, got, tt.want)
			}
		})
	}
}

// One GPU that hangs keeps nobody from seeing the others.
func TestGPUShowsOthersThanThatWhichHangs(t *testing.T) {
	d := fakeDriver(t, append(nvmltest.Host(2), "1.hang 1")...)
	got, err := showing(t.Context(), t, d, &gpuShow{patience: patience, others: 300 * time.Millisecond})
	if err != nil || !strings.Contains(got, "  0  H100 80GB HBM3        ok ") || !strings.Contains(got, "  1  -                     stale ") {
		t.Errorf("%v:\n%s", err, got)
	}
}

// The command itself, where there is no driver and where there is one but nothing that can ask it.
func TestGPUCommandWithoutDriver(t *testing.T) {
	t.Parallel()
	cmd := command(t, []string{"LD_LIBRARY_PATH="}, "gpu")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("there is a driver here")
	}
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || out.Len() != 0 || !strings.HasPrefix(errs.String(), "kvasir: no GPU telemetry: no NVIDIA driver: ") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("%v, %q, %q", cmd.ProcessState, out.String(), errs.String())
	}
	if _, inside := gpu.Inside(); inside {
		return
	}
	d := nvmltest.New(t)
	cmd = command(t, append(d.Env(), "LD_LIBRARY_PATH="+filepath.Dir(d.Library())), "gpu")
	errs.Reset()
	cmd.Stderr = &errs
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "built without its NVML helper") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("%v, %q", cmd.ProcessState, errs.String())
	}
}
