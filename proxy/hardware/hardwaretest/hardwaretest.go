// Fleets that tests make up.

// Package hardwaretest makes up the GPUs that tests have workers run on.
//
//	fleet := &hardwaretest.Fleet{}
//	fleet.Set(2, hardwaretest.Throttle)
//	settings := hardware.Settings{Fleet: fleet.Now, Interval: time.Millisecond, Effects: hardwaretest.Effects}
package hardwaretest

import (
	"fmt"
	"sync/atomic"
	"time"

	"kvasir/gpu"
	"kvasir/gpu/snapshot"
)

// Effects are for made-up GPUs, which are busy without a request of ours: that is no
// neighbour.
var Effects = gpu.Effects{Throttle: gpu.EffectCost, Errors: gpu.EffectAside}

// A Fleet is as a test wants it, every snapshot fresh. It is changed while others ask.
type Fleet struct {
	Is   atomic.Pointer[gpu.Fleet] // before snapshots are made fresh
	Asks atomic.Int64              // calls of Now
}

// Now is the fleet at a time.
func (m *Fleet) Now(now time.Time) *gpu.Fleet {
	m.Asks.Add(1)
	f := *m.Is.Load()
	f.GPUs = append([]gpu.GPU(nil), f.GPUs...)
	for i := range f.GPUs {
		if f.GPUs[i].State == gpu.OK {
			f.GPUs[i].At = now
		}
	}
	return &f
}

// Set makes it a fleet of n GPUs that are well, changed by change unless that is nil.
func (m *Fleet) Set(n int, change func([]gpu.GPU)) {
	f := &gpu.Fleet{State: gpu.OK, Driver: "570.86.15"}
	for i := range n {
		f.GPUs = append(f.GPUs, gpu.GPU{State: gpu.OK, GPU: snapshot.GPU{
			Index: i, UUID: fmt.Sprintf("GPU-%d", i), Name: "NVIDIA H100 80GB HBM3", PCI: fmt.Sprintf("00000000:%02x:00.0", i+7),
			MemoryUsed: Some(uint64(60 << 30)), MemoryTotal: Some(uint64(80 << 30)), SMUtilization: Some(50.0),
			SMClock: Some(1980.0), SMClockMax: Some(1980.0), ThrottleReasons: []string{},
		}})
	}
	if change != nil {
		change(f.GPUs)
	}
	m.Is.Store(f)
}

// Some is a pointer to a value.
func Some[T any](v T) *T { return &v }

// Throttle holds the clocks of GPU 0 down by half.
func Throttle(g []gpu.GPU) {
	g[0].SMClock, g[0].ThrottleReasons = Some(990.0), []string{"hw_slowdown", "hw_thermal_slowdown"}
}

// Everything gives a GPU every field that there is.
func Everything(g *gpu.GPU) {
	g.MemoryFree = Some(uint64(19 << 30))
	g.MemoryUtilization, g.Power, g.PowerLimit, g.Temperature = Some(20.0), Some(350.5), Some(700.0), Some(51.0)
	g.MemoryClock, g.MemoryClockMax, g.Recovery = Some(2619.0), Some(2619.0), Some("none")
	g.ECCErrors, g.ECCCorrected, g.Xid = Some(uint64(2)), Some(uint64(3)), Some(uint64(79))
	g.NVLinkReceived, g.NVLinkSent, g.PCIeReceived, g.PCIeSent = Some(3.0), Some(4.0), Some(1.0), Some(2.0)
	g.ThrottleReasons = []string{"gpu_idle", "hw_thermal_slowdown"}
	for n, uuid := range []string{"MIG-1", "MIG-2"} { // two compute instances of one GPU instance, whose memory it is
		g.MIG = append(g.MIG, snapshot.Instance{
			GPUInstance: 7, ComputeInstance: n, UUID: uuid, Name: "NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb",
			MemoryUsed: Some(uint64(1 << 30)), MemoryTotal: Some(uint64(10 << 30)),
		})
	}
}
