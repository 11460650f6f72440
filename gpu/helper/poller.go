//go:build linux && cgo

// Poller: polls one GPU of a session and prints the result.

package main

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// A poller is one GPU of a session.
type poller struct {
	index    int
	lib      *library
	events   *events
	xids     *xids
	out      *printer
	interval time.Duration

	gpu  *gpu // nil: its handle must be fetched
	told bool // the driver reports its Xids
}

// ask polls once and prints the result.
func (p *poller) ask(now time.Time) nvml.Return {
	ret := p.once(now)
	switch {
	case ret == nvml.SUCCESS:
		p.tell()
	case judge(ret) != driverLost:
		p.gpu = nil
		p.out.trouble(p.index, ret)
	}
	return ret
}

// once performs one poll, and fetches the handle first if needed.
func (p *poller) once(now time.Time) nvml.Return {
	if p.gpu == nil {
		device, ret := p.lib.DeviceGetHandleByIndex(p.index)
		if ret != nvml.SUCCESS {
			return ret
		}
		g := newGPU(p.index, device, p.interval, p.lib.has)
		if ret := g.identify(); ret != nvml.SUCCESS {
			return ret
		}
		p.told = p.events.register(device, g.seen.UUID)
		p.gpu = g
	}
	return p.gpu.poll(now)
}

func (p *poller) tell() {
	seen := &p.gpu.seen
	seen.Xid, seen.XidAt, seen.Xids = nil, nil, nil
	if p.told {
		seen.Xid, seen.Xids = new(uint64(0)), p.xids.of(seen.UUID)
		if n := len(seen.Xids); n > 0 {
			seen.Xid, seen.XidAt = &seen.Xids[n-1].Number, &seen.Xids[n-1].At
		}
	}
	p.out.add(snapshot.Line{GPU: seen})
}
