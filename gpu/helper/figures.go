//go:build linux && cgo

// Figures: the values polled from each GPU, how often, and with which functions.

package main

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// figures are in polling order. Values that change slowly are polled rarely, because calls are
// most of a poll's cost. nvmlDeviceGetPcieThroughput is not used: it blocks for 20 ms.
var figures = []figure{
	{0, []way{
		{[]string{"nvmlDeviceGetMemoryInfo_v2"}, (*gpu).memory},
		{[]string{"nvmlDeviceGetMemoryInfo"}, (*gpu).memoryV1},
	}, func(s *snapshot.GPU) { s.MemoryTotal, s.MemoryUsed, s.MemoryFree = nil, nil, nil }},
	{0, []way{{[]string{"nvmlDeviceGetUtilizationRates"}, (*gpu).utilization}},
		func(s *snapshot.GPU) { s.SMUtilization, s.MemoryUtilization = nil, nil }},
	single(0, "nvmlDeviceGetClockInfo", func(s *snapshot.GPU) **float64 { return &s.SMClock }, clock(nvml.Device.GetClockInfo, nvml.CLOCK_SM)),
	{0, []way{
		{[]string{"nvmlDeviceGetCurrentClocksEventReasons"}, (*gpu).eventReasons},
		{[]string{"nvmlDeviceGetCurrentClocksThrottleReasons"}, (*gpu).throttleReasons},
	}, func(s *snapshot.GPU) { s.ThrottleReasons = nil }},
	{betweenRates, []way{{[]string{"nvmlDeviceGetFieldValues"}, (*gpu).counters}},
		func(s *snapshot.GPU) { s.PCIeReceived, s.PCIeSent, s.NVLinkReceived, s.NVLinkSent = nil, nil, nil, nil }},

	{time.Second, []way{
		{[]string{"nvmlDeviceGetFieldValues"}, (*gpu).power},
		{[]string{"nvmlDeviceGetPowerUsage"}, (*gpu).averagePower},
	}, func(s *snapshot.GPU) { s.Power = nil }},
	single(time.Second, "nvmlDeviceGetTemperature", func(s *snapshot.GPU) **float64 { return &s.Temperature }, temperature),
	single(time.Second, "nvmlDeviceGetClockInfo", func(s *snapshot.GPU) **float64 { return &s.MemoryClock }, clock(nvml.Device.GetClockInfo, nvml.CLOCK_MEM)),
	{time.Second, []way{{[]string{"nvmlDeviceGetComputeRunningProcesses"}, (*gpu).processes}},
		func(s *snapshot.GPU) { s.Processes = nil }},
	// After the list of processes, because it adds to that.
	{time.Second, []way{{[]string{"nvmlDeviceGetProcessUtilization"}, (*gpu).processUtilization}},
		func(s *snapshot.GPU) {
			for i := range s.Processes {
				s.Processes[i].SMUtilization = nil
			}
		}},
	single(time.Second, "nvmlDeviceGetTotalEccErrors", func(s *snapshot.GPU) **uint64 { return &s.ECCErrors }, ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
	{time.Second, []way{{[]string{"nvmlDeviceGetFieldValues"}, (*gpu).recovery}},
		func(s *snapshot.GPU) { s.Recovery = nil }},
	{time.Second, []way{{[]string{
		"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
		"nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetMemoryInfo",
	}, (*gpu).mig}},
		func(s *snapshot.GPU) { s.MIG = nil }},

	single(10*time.Second, "nvmlDeviceGetEnforcedPowerLimit", func(s *snapshot.GPU) **float64 { return &s.PowerLimit }, powerLimit),
	single(10*time.Second, "nvmlDeviceGetMaxClockInfo", func(s *snapshot.GPU) **float64 { return &s.SMClockMax }, clock(nvml.Device.GetMaxClockInfo, nvml.CLOCK_SM)),
	single(10*time.Second, "nvmlDeviceGetMaxClockInfo", func(s *snapshot.GPU) **float64 { return &s.MemoryClockMax }, clock(nvml.Device.GetMaxClockInfo, nvml.CLOCK_MEM)),
	single(10*time.Second, "nvmlDeviceGetTotalEccErrors", func(s *snapshot.GPU) **uint64 { return &s.ECCCorrected }, ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
}

// single makes a figure with one function and one value of the snapshot.
func single[T any](every time.Duration, symbol string, at func(*snapshot.GPU) **T, ask func(nvml.Device) (*T, nvml.Return)) figure {
	return figure{every, []way{{[]string{symbol}, func(g *gpu) nvml.Return {
		v, ret := ask(g.device)
		*at(&g.seen) = v
		return ret
	}}}, func(s *snapshot.GPU) { *at(s) = nil }}
}

// clock reads one of the GPU's clocks, in MHz: the present or the highest value.
func clock(get func(nvml.Device, nvml.ClockType) (uint32, nvml.Return), of nvml.ClockType) func(nvml.Device) (*float64, nvml.Return) {
	return func(d nvml.Device) (*float64, nvml.Return) {
		mhz, ret := get(d, of)
		return scaled(mhz, 1), ret
	}
}

func temperature(d nvml.Device) (*float64, nvml.Return) {
	degrees, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
	return scaled(degrees, 1), ret
}

func powerLimit(d nvml.Device) (*float64, nvml.Return) {
	milliwatts, ret := d.GetEnforcedPowerLimit()
	return scaled(milliwatts, 1000), ret
}

// ecc counts errors of a kind since the driver was loaded.
func ecc(kind nvml.MemoryErrorType) func(nvml.Device) (*uint64, nvml.Return) {
	return func(d nvml.Device) (*uint64, nvml.Return) {
		errors, ret := d.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
		return count64(errors), ret
	}
}

func (g *gpu) memory() nvml.Return {
	m, ret := g.device.GetMemoryInfo_v2()
	g.setMemory(m.Total, m.Used, m.Free)
	return ret
}

// memoryV1 counts what the driver keeps for itself as used.
func (g *gpu) memoryV1() nvml.Return {
	m, ret := g.device.GetMemoryInfo()
	g.setMemory(m.Total, m.Used, m.Free)
	return ret
}

func (g *gpu) setMemory(total, used, free uint64) {
	g.seen.MemoryTotal, g.seen.MemoryUsed, g.seen.MemoryFree = count64(total), count64(used), count64(free)
}

func (g *gpu) utilization() nvml.Return {
	u, ret := g.device.GetUtilizationRates()
	g.seen.SMUtilization, g.seen.MemoryUtilization = percent(u.Gpu), percent(u.Memory)
	return ret
}

// averagePower reads the power: since Ampere the mean of the last second, for which some drivers
// take milliseconds.
func (g *gpu) averagePower() nvml.Return {
	milliwatts, ret := g.device.GetPowerUsage()
	g.seen.Power = scaled(milliwatts, 1000)
	return ret
}

func (g *gpu) eventReasons() nvml.Return {
	bits, ret := g.device.GetCurrentClocksEventReasons()
	g.seen.ThrottleReasons = reasons(bits)
	return ret
}

// throttleReasons is the same under its name before driver 535.
func (g *gpu) throttleReasons() nvml.Return {
	bits, ret := g.device.GetCurrentClocksThrottleReasons()
	g.seen.ThrottleReasons = reasons(bits)
	return ret
}

// reasons returns the names of the set bits; nil: the value is invalid.
func reasons(bits uint64) []string {
	if blank64(bits) {
		return nil
	}
	names := []string{}
	for _, r := range snapshot.Reasons {
		if bits&r.Bit != 0 {
			names = append(names, r.Name)
		}
	}
	return names
}
