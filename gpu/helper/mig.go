//go:build linux && cgo

// MIG: the instances into which a GPU is divided.

package main

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// relistAfter is how long a list of instances is reused; their memory is polled each time.
const relistAfter = 10 * time.Second

// instances are a GPU's MIG devices as last listed.
type instances struct {
	devices []nvml.Device
	known   []snapshot.Instance
	due     time.Time
}

// mig sets the list of instances. While MIG is off it is nil, not an empty list.
func (g *gpu) mig() nvml.Return {
	mode, _, ret := g.device.GetMigMode()
	if ret != nvml.SUCCESS {
		return ret
	}
	if mode != nvml.DEVICE_MIG_ENABLE {
		g.seen.MIG, g.instances = nil, instances{}
		return nvml.SUCCESS
	}
	if !g.now.Before(g.instances.due) {
		if ret := g.list(); ret != nvml.SUCCESS {
			return ret
		}
	}
	g.seen.MIG = append([]snapshot.Instance{}, g.instances.known...)
	for i, device := range g.instances.devices {
		m, ret := device.GetMemoryInfo()
		switch judge(ret) {
		case given:
			g.seen.MIG[i].MemoryUsed, g.seen.MIG[i].MemoryTotal = count64(m.Used), count64(m.Total)
		case gpuLost, driverLost:
			return ret
		default:
			g.instances.due = g.now // an instance may be gone
		}
	}
	return nvml.SUCCESS
}

func (g *gpu) list() nvml.Return {
	most, ret := g.device.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return ret
	}
	found := instances{due: g.now.Add(relistAfter)}
	for i := range most {
		device, ret := g.device.GetMigDeviceHandleByIndex(i)
		if v := judge(ret); v > passing {
			return ret
		} else if v != given {
			continue // no instance has this number: NOT_FOUND, with some drivers INVALID_ARGUMENT
		}
		found.devices = append(found.devices, device)
		found.known = append(found.known, describe(device))
	}
	g.instances = found
	return nvml.SUCCESS
}

func describe(device nvml.Device) snapshot.Instance {
	of := snapshot.Instance{GPUInstance: -1, ComputeInstance: -1}
	if id, ret := device.GetGpuInstanceId(); ret == nvml.SUCCESS {
		of.GPUInstance = id
	}
	if id, ret := device.GetComputeInstanceId(); ret == nvml.SUCCESS {
		of.ComputeInstance = id
	}
	if uuid, ret := device.GetUUID(); ret == nvml.SUCCESS {
		of.UUID = uuid
	}
	if name, ret := device.GetName(); ret == nvml.SUCCESS {
		of.Name = name
	}
	return of
}
