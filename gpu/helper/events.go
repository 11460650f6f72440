//go:build linux && cgo

// Events: Xid errors, which the driver tells when they happen and never again.

package main

import (
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// mostEvents bounds those that are taken at once.
const mostEvents = 64

// maxXids is how many numbers of one GPU are remembered; an error of the hardware draws two or three.
const maxXids = 16

// xids are those of all GPUs by UUID; they outlive a loss of the driver.
type xids struct {
	mu  sync.Mutex
	all map[string][]snapshot.Xid // each number once, the newest at the end; a list is never changed
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

// events is a set of the driver's, and whose events are in it.
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

// register says whether the Xids of this GPU will be told.
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

// ask takes the events there are, without waiting for one: a thread that waits for them would be two
// wake-ups a second more. That a GPU or the driver is lost, its poll says.
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

// take matches by the handle, because a GPU that fell off the bus does not tell its UUID any more.
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
