//go:build linux && cgo

// One GPU of go-nvml's mock servers, poll by poll.

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"kvasir/gpu/snapshot"
)

const every = 250 * time.Millisecond

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func all(string) bool { return true }

// device returns a GPU of a mock server, with the functions that the server lacks added, and a
// count of calls by function.
func device(t *testing.T, s *server.Server) (*server.Device, map[string]int) {
	t.Helper()
	d, ok := s.Devices[0].(*server.Device)
	if !ok {
		t.Fatalf("a mock device is a %T", s.Devices[0])
	}
	calls := map[string]int{}
	// The server's own total, as every driver since R510 returns it.
	total, _ := d.GetMemoryInfo()
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		calls["memory"]++
		return nvml.Memory_v2{Total: total.Total, Used: 30 << 30, Reserved: 1 << 29, Free: total.Total - 30<<30 - 1<<29}, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		calls["utilization"]++
		return nvml.Utilization{Gpu: 97, Memory: 40}, nvml.SUCCESS
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { calls["power"]++; return 401250, nvml.SUCCESS }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { calls["power limit"]++; return 700000, nvml.SUCCESS }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { calls["temperature"]++; return 66, nvml.SUCCESS }
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
		calls["clock"]++
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 990, nvml.CLOCK_MEM: 2619}[c], nvml.SUCCESS
	}
	d.GetMaxClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
		calls["max clock"]++
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1980, nvml.CLOCK_MEM: 2620}[c], nvml.SUCCESS
	}
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { calls["reasons"]++; return 0x28, nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		calls["ecc"]++
		return map[nvml.MemoryErrorType]uint64{nvml.MEMORY_ERROR_TYPE_UNCORRECTED: 2, nvml.MEMORY_ERROR_TYPE_CORRECTED: 5}[kind], nvml.SUCCESS
	}
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		calls["fields"]++
		return nvml.SUCCESS // and changes nothing
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		calls["processes"]++
		return []nvml.ProcessInfo{{Pid: 20, UsedGpuMemory: 100}, {Pid: 10, UsedGpuMemory: ^uint64(0)}}, nvml.SUCCESS
	}
	d.GetGraphicsRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{{Pid: 20, UsedGpuMemory: 150}}, nvml.SUCCESS
	}
	d.GetMPSComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		calls["mps"]++
		return nil, nvml.ERROR_NOT_SUPPORTED
	}
	d.GetProcessUtilizationFunc = func(since uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		calls["samples"]++
		return []nvml.ProcessUtilizationSample{
			{Pid: 20, TimeStamp: since + 1, SmUtil: 30}, {Pid: 20, TimeStamp: since + 2, SmUtil: 50},
			{Pid: 20, TimeStamp: since, SmUtil: 99}, {Pid: 10, TimeStamp: since + 3, SmUtil: 4000},
		}, nvml.SUCCESS
	}
	d.GetMigModeFunc = func() (int, int, nvml.Return) { calls["mig"]++; return nvml.DEVICE_MIG_DISABLE, 0, nvml.SUCCESS }
	return d, calls
}

func TestPollOfMockServers(t *testing.T) {
	for _, row := range []struct {
		server *server.Server
		name   string
		total  uint64
	}{
		{dgxa100.New(), "Mock NVIDIA A100-SXM4-40GB", 42949672960},
		{dgxh100.New(), "NVIDIA H100 80GB HBM3", 85899345920},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, _ := device(t, row.server)
			g := newGPU(0, d, every, all)
			if ret := g.identify(); ret != nvml.SUCCESS {
				t.Fatal(code(ret))
			}
			if ret := g.poll(began); ret != nvml.SUCCESS {
				t.Fatal(code(ret))
			}
			s := g.seen
			if s.Name != row.name || s.UUID != d.UUID || s.PCI != "00000000:00:00.0" {
				t.Errorf("it is %q %q at %q", s.Name, s.UUID, s.PCI)
			}
			got := fmt.Sprint(*s.MemoryTotal, *s.MemoryUsed, *s.MemoryFree, *s.SMUtilization, *s.MemoryUtilization, *s.Power, *s.PowerLimit,
				*s.Temperature, *s.SMClock, *s.SMClockMax, *s.MemoryClock, *s.MemoryClockMax, s.ThrottleReasons, *s.ECCErrors, *s.ECCCorrected)
			want := fmt.Sprint(row.total, 30<<30, row.total-30<<30-1<<29, 97, 40, 401.25, 700,
				66, 990, 1980, 2619, 2620, []string{"hw_slowdown", "sw_thermal_slowdown"}, 2, 5)
			if got != want {
				t.Errorf("figures %s\nwant    %s", got, want)
			}
			if s.PCIeSent != nil || s.Recovery != nil || s.MIG != nil {
				t.Errorf("fields that the driver passed over: %+v", s)
			}
			if len(s.Processes) != 2 || s.Processes[0].PID != 10 || s.Processes[0].Memory != nil || *s.Processes[0].SMUtilization != 0 ||
				*s.Processes[1].Memory != 150 || *s.Processes[1].SMUtilization != 40 {
				t.Errorf("processes %+v", s.Processes)
			}
		})
	}
}

// In ten seconds each figure is polled as often as its rate of change requires.
func TestHowOften(t *testing.T) {
	d, calls := device(t, dgxh100.New())
	g := newGPU(0, d, every, all)
	for at := time.Duration(0); at < 10*time.Second; at += every {
		if ret := g.poll(began.Add(at + at%7)); ret != nvml.SUCCESS {
			t.Fatal(code(ret))
		}
	}
	for name, want := range map[string]int{
		"memory": 40, "utilization": 40, "reasons": 40, "power": 10,
		"clock": 50, "temperature": 10, "processes": 10, "samples": 10, "mig": 10,
		"power limit": 1, "max clock": 2, "ecc": 11,
		"fields": 4, // twice for the counters, for NVLink's other fields; once each for the power and the recovery action; none is supported
		"mps":    1,
	} {
		if calls[name] != want {
			t.Errorf("%s asked %d times in 10 s, want %d", name, calls[name], want)
		}
	}
}

func TestUnsupportedForAMinute(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_PERMISSION} {
		d, calls := device(t, dgxh100.New())
		answer := nvml.SUCCESS
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { calls["power"]++; return 1000, answer }
		g := newGPU(0, d, every, all)
		poll := func(at time.Duration) {
			t.Helper()
			if ret := g.poll(began.Add(at)); ret != nvml.SUCCESS {
				t.Fatal(code(ret))
			}
		}
		poll(0)
		if g.seen.Power == nil {
			t.Fatal("no power")
		}
		answer = ret
		for at := time.Second; at < time.Minute; at += time.Second {
			poll(at)
		}
		if g.seen.Power != nil || calls["power"] != 2 {
			t.Errorf("%s: power %v, asked %d times, want nil and 2", code(ret), g.seen.Power, calls["power"])
		}
		answer = nvml.SUCCESS
		poll(time.Minute + time.Second)
		if g.seen.Power == nil {
			t.Errorf("%s: not asked again after a minute", code(ret))
		}
	}
}

func TestOlderWay(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_ARGUMENT_VERSION_MISMATCH }
	d.GetCurrentClocksEventReasonsFunc = nil // a call would panic
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0x80, nvml.SUCCESS }
	g := newGPU(0, d, every, func(symbol string) bool { return symbol != "nvmlDeviceGetCurrentClocksEventReasons" })
	for at := range 2 {
		if ret := g.poll(began.Add(time.Duration(at) * time.Second)); ret != nvml.SUCCESS {
			t.Fatal(code(ret))
		}
		if g.seen.MemoryTotal == nil || *g.seen.MemoryTotal != 80<<30 {
			t.Errorf("memory %v by the older function", g.seen.MemoryTotal)
		}
		if !slices.Equal(g.seen.ThrottleReasons, []string{"hw_power_brake_slowdown"}) {
			t.Errorf("throttle reasons %q by the older function", g.seen.ThrottleReasons)
		}
	}
}

// A library that has only the identity functions gets no other calls.
func TestNoFunctions(t *testing.T) {
	g := newGPU(0, dgxa100.New().Devices[0], every, func(string) bool { return false })
	if ret := g.poll(began); ret != nvml.SUCCESS {
		t.Error(code(ret))
	}
}

func TestErrorsOfOneFunction(t *testing.T) {
	for _, row := range []struct{ of, poll nvml.Return }{
		{nvml.ERROR_UNKNOWN, nvml.SUCCESS}, // from one function, it concerns only that function
		{nvml.ERROR_TIMEOUT, nvml.SUCCESS},
		{nvml.ERROR_NO_DATA, nvml.SUCCESS},
		{nvml.ERROR_GPU_IS_LOST, nvml.ERROR_GPU_IS_LOST},
		{nvml.ERROR_RESET_REQUIRED, nvml.ERROR_RESET_REQUIRED},
		{nvml.ERROR_UNINITIALIZED, nvml.ERROR_UNINITIALIZED},
	} {
		d, calls := device(t, dgxh100.New())
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { calls["power"]++; return 7, row.of }
		g := newGPU(0, d, every, all)
		for n := range 2 {
			if ret := g.poll(began.Add(time.Duration(n) * time.Second)); ret != row.poll {
				t.Errorf("power gives %s: poll %s, want %s", code(row.of), code(ret), code(row.poll))
			}
		}
		if g.seen.Power != nil {
			t.Errorf("power gives %s and %v", code(row.of), *g.seen.Power)
		}
		if calls["power"] != 2 {
			t.Errorf("after %s power was not asked again", code(row.of))
		}
	}
}

// go-nvml panics when the number of processes grows between its two calls.
func TestProcessesGrow(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	d.GetProcessUtilizationFunc = func(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
		room := make([]nvml.ProcessUtilizationSample, 1)
		return room[:len(room)+1], nvml.SUCCESS
	}
	g := newGPU(0, d, every, all)
	if ret := g.poll(began); ret != nvml.SUCCESS {
		t.Fatal(code(ret))
	}
	if p := g.seen.Processes; len(p) != 2 || p[1].SMUtilization != nil {
		t.Errorf("processes %+v", p)
	}
}

func TestManyProcesses(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		var infos []nvml.ProcessInfo
		for i := range uint32(1000) {
			infos = append(infos, nvml.ProcessInfo{Pid: 1 + i, UsedGpuMemory: uint64(i)})
		}
		return infos, nvml.SUCCESS
	}
	g := newGPU(0, d, every, all)
	if ret := g.poll(began); ret != nvml.SUCCESS {
		t.Fatal(code(ret))
	}
	if p := g.seen.Processes; len(p) != maxProcesses || p[0].PID != 745 || p[len(p)-1].PID != 1000 {
		t.Errorf("%d processes from %d to %d, want the largest", len(p), p[0].PID, p[len(p)-1].PID)
	}
}

func TestRecoveryActions(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	var action uint32
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			if values[i].FieldId == nvml.FI_DEV_GET_GPU_RECOVERY_ACTION {
				set32(&values[i], action)
			}
		}
		return nvml.SUCCESS
	}
	g := newGPU(0, d, every, all)
	for n, want := range []string{"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "bus_reset", "system_reboot", "unknown"} {
		action = uint32(n)
		if ret := g.poll(began.Add(time.Duration(n) * time.Second)); ret != nvml.SUCCESS {
			t.Fatal(code(ret))
		}
		if g.seen.Recovery == nil || *g.seen.Recovery != want {
			t.Errorf("action %d is %v, want %s", n, g.seen.Recovery, want)
		}
	}
}

func BenchmarkPoll(b *testing.B) {
	d, _ := device(&testing.T{}, dgxh100.New())
	g := newGPU(0, d, every, all)
	now := began
	var line snapshot.Line
	for b.Loop() {
		now = now.Add(every)
		g.poll(now)
		line.GPU = &g.seen
	}
}
