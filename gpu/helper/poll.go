//go:build linux && cgo

// Poll: one poll of one GPU.

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// forgetAfter is when an unsupported value is tried again: MIG can be switched on, and a driver
// updated.
const forgetAfter = time.Minute

// A gpu is one device during one session of the library, and its last values.
type gpu struct {
	device  nvml.Device
	seen    snapshot.GPU // a figure that is not polled each time keeps its value between polls
	figures []tracked
	now     time.Time     // time of the poll under way
	slack   time.Duration // how early a poll may come

	again     bool // set by a way that must run in the next poll too
	rates     rates
	lists     []processList
	samples   uint64 // time stamp of the last process samples, in microseconds since 1970
	instances instances
}

// A figure is one value to poll; a way is one method to get it from the library.
type figure struct {
	every time.Duration // time between two polls of the figure; 0: every poll
	ways  []way         // from the best to the oldest
	clear func(*snapshot.GPU)
}

type way struct {
	symbols []string // functions that the library must have
	ask     func(*gpu) nvml.Return
}

// tracked is one figure of one GPU: its possible ways, the one that works, and when it is due.
type tracked struct {
	figure
	way int
	due time.Time
}

func newGPU(index int, device nvml.Device, interval time.Duration, has func(symbol string) bool) *gpu {
	g := &gpu{
		device: device,
		seen:   snapshot.GPU{Index: index},
		slack:  interval / 2,
		rates:  newRates(),
		lists:  newProcessLists(has),
	}
	for _, f := range figures {
		f.ways = slices.DeleteFunc(slices.Clone(f.ways), func(w way) bool {
			return slices.ContainsFunc(w.symbols, func(s string) bool { return !has(s) })
		})
		if len(f.ways) > 0 {
			g.figures = append(g.figures, tracked{figure: f})
		}
	}
	return g
}

// identify reads the GPU's identity, once.
func (g *gpu) identify() nvml.Return {
	uuid, ret := g.device.GetUUID()
	if judge(ret) > unsupported {
		return ret
	}
	name, ret := g.device.GetName()
	if judge(ret) > unsupported {
		return ret
	}
	pci, ret := g.device.GetPciInfo()
	if judge(ret) > unsupported {
		return ret
	}
	g.seen.UUID, g.seen.Name, g.seen.PCI = uuid, name, cString(pci.BusId[:])
	if g.seen.PCI == "" && ret == nvml.SUCCESS { // drivers before R384 have no bus id with a 32-bit domain
		g.seen.PCI = fmt.Sprintf("%08x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	}
	return nvml.SUCCESS
}

// poll updates seen. It returns SUCCESS, or the code with which the GPU or the driver was lost;
// then seen is invalid. A GPU whose calls all fail is lost, with the code of the first error. A
// missing permission counts as an error here; an unsupported function does not.
func (g *gpu) poll(now time.Time) nvml.Return {
	g.now = now
	worked, failed := false, nvml.SUCCESS
	for i := range g.figures {
		t := &g.figures[i]
		if now.Add(g.slack).Before(t.due) {
			continue
		}
		ret := t.ask(g)
		switch judge(ret) {
		case gpuLost, driverLost:
			return ret
		case given:
			worked = true
		default:
			if ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND {
				worked = true
			} else if failed == nvml.SUCCESS {
				failed = ret
			}
		}
	}
	if !worked {
		return failed
	}
	return nvml.SUCCESS
}

// ask uses the first supported way, and sets when the figure is due again.
func (t *tracked) ask(g *gpu) nvml.Return {
	t.due = g.now.Add(t.every)
	for {
		g.again = false
		ret := t.ways[t.way].ask(g)
		if g.again {
			t.due = g.now
		}
		v := judge(ret)
		if v == given {
			return ret
		}
		t.clear(&g.seen)
		if v != unsupported {
			return ret
		}
		t.way++
		if t.way == len(t.ways) {
			t.way = 0
			t.due = g.now.Add(forgetAfter)
			return ret
		}
	}
}

func cString(chars []int8) string {
	text := make([]byte, 0, len(chars))
	for _, c := range chars {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	return string(text)
}
