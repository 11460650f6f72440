//go:build linux && cgo

// Processes: the processes with a context on the GPU, their memory and their share of the SMs.

package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// maxProcesses bounds the processes in a line; those with the most memory are kept.
const maxProcesses = 256

// A processList is one of the driver's lists. The list of compute processes has neither MPS
// clients nor graphics processes.
type processList struct {
	ask func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)
	due time.Time
}

func newProcessLists(has func(symbol string) bool) []processList {
	lists := []processList{{ask: nvml.Device.GetComputeRunningProcesses}}
	if has("nvmlDeviceGetGraphicsRunningProcesses") {
		lists = append(lists, processList{ask: nvml.Device.GetGraphicsRunningProcesses})
	}
	if has("nvmlDeviceGetMPSComputeRunningProcesses") {
		lists = append(lists, processList{ask: nvml.Device.GetMPSComputeRunningProcesses})
	}
	return lists
}

// processes reads all lists. If the first one, of compute processes, is missing, the others are
// useless.
func (g *gpu) processes() nvml.Return {
	found := []snapshot.Process{}
	for i := range g.lists {
		list := &g.lists[i]
		if g.now.Before(list.due) {
			continue
		}
		infos, ret := list.ask(g.device)
		switch v := judge(ret); {
		case v == given:
			found = add(found, infos)
		case i == 0 || v > passing:
			return ret
		case v == unsupported:
			list.due = g.now.Add(forgetAfter)
		}
	}
	if len(found) > maxProcesses {
		slices.SortStableFunc(found, func(a, b snapshot.Process) int { return cmp.Compare(bytesOf(b), bytesOf(a)) })
		found = found[:maxProcesses]
	}
	slices.SortFunc(found, func(a, b snapshot.Process) int { return cmp.Compare(a.PID, b.PID) })
	g.seen.Processes = found
	return nvml.SUCCESS
}

// add merges a list into found. A process can be on several lists (compute and graphics), and
// once for each MIG instance that it uses.
func add(found []snapshot.Process, infos []nvml.ProcessInfo) []snapshot.Process {
	for _, info := range infos {
		p := snapshot.Process{PID: int(info.Pid), Memory: count64(info.UsedGpuMemory)}
		at := slices.IndexFunc(found, func(f snapshot.Process) bool { return f.PID == p.PID })
		if at < 0 {
			found = append(found, p)
		} else if p.Memory != nil && bytesOf(found[at]) < *p.Memory {
			found[at].Memory = p.Memory
		}
	}
	return found
}

func bytesOf(p snapshot.Process) uint64 {
	if p.Memory == nil {
		return 0
	}
	return *p.Memory
}

// processUtilization sets each process's share of the SMs: the mean of its samples since the last
// call. The driver has samples only of busy processes, so a process without a sample used
// nothing.
func (g *gpu) processUtilization() nvml.Return {
	if g.samples == 0 {
		g.samples = uint64(g.now.Add(-time.Second).UnixMicro())
	}
	samples, ret := processSamples(g.device, g.samples)
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_FOUND {
		return ret
	}
	type sum struct{ share, samples float64 }
	sums := map[uint32]sum{}
	newest := g.samples
	for _, s := range samples {
		// Stale entries of the driver's buffer, some with invalid values.
		if s.TimeStamp <= g.samples || s.SmUtil > 100 {
			continue
		}
		newest = max(newest, s.TimeStamp)
		of := sums[s.Pid]
		sums[s.Pid] = sum{of.share + float64(s.SmUtil), of.samples + 1}
	}
	g.samples = newest
	for i := range g.seen.Processes {
		p := &g.seen.Processes[i]
		share := 0.0
		if of := sums[uint32(p.PID)]; of.samples > 0 {
			share = of.share / of.samples
		}
		p.SMUtilization = &share
	}
	return nvml.SUCCESS
}

// processSamples wraps GetProcessUtilization. go-nvml first asks for the number of samples, and
// panics if there are more a moment later; if the number is 0 it returns a wrong size instead of
// an error.
func processSamples(device nvml.Device, since uint64) (samples []nvml.ProcessUtilizationSample, ret nvml.Return) {
	defer func() {
		if recover() != nil {
			samples, ret = nil, nvml.ERROR_INSUFFICIENT_SIZE
		}
	}()
	samples, ret = device.GetProcessUtilization(since)
	if ret == nvml.ERROR_INSUFFICIENT_SIZE && len(samples) == 0 {
		ret = nvml.ERROR_NOT_FOUND
	}
	return samples, ret
}
