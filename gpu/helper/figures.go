//go:build linux && cgo

// Figures: what is asked of each GPU, how often, and by which functions.
package main

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// figures are in the order in which they are asked. What changes slowly is asked for seldom: of a
// poll's cost most is calls. nvmlDeviceGetPcieThroughput is not among them: it blocks for 20 ms.
var figures = []figure{
	{0, []way{
		{[]string{"nvmlDeviceGetMemoryInfo_v2"}, (*gpu).memory},
		{[]string{"nvmlDeviceGetMemoryInfo"}, (*gpu).memoryV1},
	}, func(s *snapshot.GPU) { s.MemoryTotal, s.MemoryUsed, s.MemoryFree = nil, nil, nil }},
	{0, []way{{[]string{"nvmlDeviceGetUtilizationRates"}, (*gpu).utilization}},
		func(s *snapshot.GPU) { s.SMUtilization, s.MemoryUtilization = nil, nil }},
	{0, []way{{[]string{"nvmlDeviceGetClockInfo"}, (*gpu).smClock}},
		func(s *snapshot.GPU) { s.SMClock = nil }},
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
	{time.Second, []way{{[]string{"nvmlDeviceGetTemperature"}, (*gpu).temperature}},
		func(s *snapshot.GPU) { s.Temperature = nil }},
	{time.Second, []way{{[]string{"nvmlDeviceGetClockInfo"}, (*gpu).memoryClock}},
		func(s *snapshot.GPU) { s.MemoryClock = nil }},
	{time.Second, []way{{[]string{"nvmlDeviceGetComputeRunningProcesses"}, (*gpu).processes}},
		func(s *snapshot.GPU) { s.Processes = nil }},
	// After the processes, which it adds to.
	{time.Second, []way{{[]string{"nvmlDeviceGetProcessUtilization"}, (*gpu).processUtilization}},
		func(s *snapshot.GPU) {
			for i := range s.Processes {
				s.Processes[i].SMUtilization = nil
			}
		}},
	{time.Second, []way{{[]string{"nvmlDeviceGetTotalEccErrors"}, (*gpu).eccUncorrected}},
		func(s *snapshot.GPU) { s.ECCErrors = nil }},
	{time.Second, []way{{[]string{"nvmlDeviceGetFieldValues"}, (*gpu).recovery}},
		func(s *snapshot.GPU) { s.Recovery = nil }},
	{time.Second, []way{{[]string{
		"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
		"nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetMemoryInfo",
	}, (*gpu).mig}},
		func(s *snapshot.GPU) { s.MIG = nil }},

	{10 * time.Second, []way{{[]string{"nvmlDeviceGetEnforcedPowerLimit"}, (*gpu).powerLimit}},
		func(s *snapshot.GPU) { s.PowerLimit = nil }},
	{10 * time.Second, []way{{[]string{"nvmlDeviceGetMaxClockInfo"}, (*gpu).smClockMax}},
		func(s *snapshot.GPU) { s.SMClockMax = nil }},
	{10 * time.Second, []way{{[]string{"nvmlDeviceGetMaxClockInfo"}, (*gpu).memoryClockMax}},
		func(s *snapshot.GPU) { s.MemoryClockMax = nil }},
	{10 * time.Second, []way{{[]string{"nvmlDeviceGetTotalEccErrors"}, (*gpu).eccCorrected}},
		func(s *snapshot.GPU) { s.ECCCorrected = nil }},
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

// averagePower is that of the last second since Ampere, which some drivers take milliseconds to tell.
func (g *gpu) averagePower() nvml.Return {
	milliwatts, ret := g.device.GetPowerUsage()
	g.seen.Power = scaled(milliwatts, 1000)
	return ret
}

func (g *gpu) powerLimit() nvml.Return {
	milliwatts, ret := g.device.GetEnforcedPowerLimit()
	g.seen.PowerLimit = scaled(milliwatts, 1000)
	return ret
}

func (g *gpu) temperature() nvml.Return {
	degrees, ret := g.device.GetTemperature(nvml.TEMPERATURE_GPU)
	g.seen.Temperature = scaled(degrees, 1)
	return ret
}

func (g *gpu) smClock() nvml.Return {
	mhz, ret := g.device.GetClockInfo(nvml.CLOCK_SM)
	g.seen.SMClock = scaled(mhz, 1)
	return ret
}

func (g *gpu) smClockMax() nvml.Return {
	mhz, ret := g.device.GetMaxClockInfo(nvml.CLOCK_SM)
	g.seen.SMClockMax = scaled(mhz, 1)
	return ret
}

func (g *gpu) memoryClock() nvml.Return {
	mhz, ret := g.device.GetClockInfo(nvml.CLOCK_MEM)
	g.seen.MemoryClock = scaled(mhz, 1)
	return ret
}

func (g *gpu) memoryClockMax() nvml.Return {
	mhz, ret := g.device.GetMaxClockInfo(nvml.CLOCK_MEM)
	g.seen.MemoryClockMax = scaled(mhz, 1)
	return ret
}

func (g *gpu) eventReasons() nvml.Return {
	bits, ret := g.device.GetCurrentClocksEventReasons()
	g.seen.ThrottleReasons = reasons(bits)
	return ret
}

// throttleReasons is the same by its name before driver 535.
func (g *gpu) throttleReasons() nvml.Return {
	bits, ret := g.device.GetCurrentClocksThrottleReasons()
	g.seen.ThrottleReasons = reasons(bits)
	return ret
}

func (g *gpu) eccUncorrected() nvml.Return {
	errors, ret := g.device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	g.seen.ECCErrors = count64(errors)
	return ret
}

func (g *gpu) eccCorrected() nvml.Return {
	errors, ret := g.device.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	g.seen.ECCCorrected = count64(errors)
	return ret
}

// reasons are the names of the bits; nil for a value that is none.
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
