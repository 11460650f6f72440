//go:build linux && cgo

// Events: Xid errors, which the driver reports once, when they happen.

package main

import (
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// mostEvents bounds the events taken at once.
const mostEvents = 64

// maxXids is how many Xid numbers are remembered for one GPU; a hardware error causes two or
// three.
const maxXids = 16

// xids holds the Xids of all GPUs by UUID. They survive a loss of the driver.
type xids struct {
	mu  sync.Mutex
	all map[string][]snapshot.Xid // each number once, the newest at the end; a list is never modified
}

func (x *xids) of(uuid string) []snapshot.Xid {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all[uuid]
}

func (x *xids) set(uuid string, number uint64, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(x.all[uuid]), func(o snapshot.Xid) bool { return o.Number == number })
	x.all[uuid] = append(others[max(0, len(others)-maxXids+1):], snapshot.Xid{Number: number, At: at.UnixMilli()})
}

// events is one event set of the driver, and the GPUs registered in it.
type events struct {
	set   nvml.EventSet
	mu    sync.Mutex
	uuids map[nvml.Device]string
	xids  *xids
}

// newEvents returns nil where the driver has no events.
func newEvents(lib *library, x *xids) *events {
	for _, symbol := range []string{
		"nvmlEventSetCreate", "nvmlEventSetFree", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents",
		"nvmlEventSetWait",
	} {
		if !lib.has(symbol) {
			return nil
		}
	}
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil
	}
	return &events{set: set, uuids: map[nvml.Device]string{}, xids: x}
}

// register asks the driver to report the Xids of this GPU, and returns whether it will.
func (e *events) register(device nvml.Device, uuid string) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	_, is := e.uuids[device]
	e.uuids[device] = uuid
	e.mu.Unlock()
	if is {
		return true
	}
	types, ret := device.GetSupportedEventTypes()
	if ret == nvml.SUCCESS && types&nvml.EventTypeXidCriticalError != 0 &&
		device.RegisterEvents(nvml.EventTypeXidCriticalError, e.set) == nvml.SUCCESS {
		return true
	}
	e.mu.Lock()
	delete(e.uuids, device)
	e.mu.Unlock()
	return false
}

// ask takes the pending events without waiting: a thread that waits for events would cost two
// more wake-ups a second. If a GPU or the driver is lost, the GPU's poll reports it.
func (e *events) ask(time.Time) nvml.Return {
	for range mostEvents {
		event, ret := e.set.Wait(0)
		if ret != nvml.SUCCESS {
			break
		}
		e.take(event)
	}
	return nvml.SUCCESS
}

// free may be called on nil.
func (e *events) free() {
	if e != nil {
		e.set.Free()
	}
}

// take finds the GPU by its handle, because a GPU that fell off the bus no longer returns its
// UUID.
func (e *events) take(event nvml.EventData) {
	if event.EventType&nvml.EventTypeXidCriticalError == 0 {
		return
	}
	e.mu.Lock()
	uuid, ok := e.uuids[event.Device]
	e.mu.Unlock()
	if ok {
		e.xids.set(uuid, event.EventData, time.Now())
	}
}
