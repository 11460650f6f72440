//go:build linux && cgo

// Counters: the driver's field values: bytes over PCIe and NVLink, power, the recovery action.

package main

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// A counter counts transferred bytes. The snapshot has the difference between two successive
// polls, taken every four seconds. The driver takes up to half a millisecond to read one, so
// reading it in every poll would cost too much. A pair of polls further apart would be useless,
// because PCIe's counters have 32 bits and wrap at 4 GiB: with 250 ms between two polls that
// happens above 17 GB/s.
type counter struct {
	ids   []uint32 // fields from the best to the oldest, all in the same unit
	unit  float64  // bytes per count
	scope uint32
	into  func(*snapshot.GPU) **float64

	at   int // index in ids of the field in use
	due  time.Time
	last uint64
	when int64 // time of last, in microseconds since 1970; 0: none
}

// rates are a GPU's counters and the call that reads them all.
type rates struct {
	counters []counter
	second   bool // the next poll is the second of a pair
	asked    []*counter
	values   []nvml.FieldValue
}

const allLinks = math.MaxUint32 // the scope that adds up a GPU's NVLinks

func newRates() rates {
	return rates{counters: []counter{
		{ids: []uint32{nvml.FI_DEV_PCIE_COUNT_TX_BYTES}, unit: 1,
			into: func(s *snapshot.GPU) **float64 { return &s.PCIeSent }},
		{ids: []uint32{nvml.FI_DEV_PCIE_COUNT_RX_BYTES}, unit: 1,
			into: func(s *snapshot.GPU) **float64 { return &s.PCIeReceived }},
		{ids: []uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.FI_DEV_NVLINK_THROUGHPUT_RAW_TX}, unit: 1024, scope: allLinks,
			into: func(s *snapshot.GPU) **float64 { return &s.NVLinkSent }},
		{ids: []uint32{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, nvml.FI_DEV_NVLINK_THROUGHPUT_RAW_RX}, unit: 1024, scope: allLinks,
			into: func(s *snapshot.GPU) **float64 { return &s.NVLinkReceived }},
	}}
}

// betweenRates is the time from one pair of polls to the next.
const betweenRates = 4 * time.Second

// counters reads all counters in one call.
func (g *gpu) counters() nvml.Return {
	r := &g.rates
	second := r.second
	r.second, g.again = !second, !second
	r.asked, r.values = r.asked[:0], r.values[:0]
	for i := range r.counters {
		c := &r.counters[i]
		if g.now.Before(c.due) {
			continue
		}
		r.asked = append(r.asked, c)
		r.values = append(r.values, field(c.ids[c.at], c.scope))
	}
	if len(r.values) == 0 {
		return nvml.ERROR_NOT_SUPPORTED
	}
	if ret := g.device.GetFieldValues(r.values); ret != nvml.SUCCESS {
		return ret
	}
	for i, c := range r.asked {
		v := &r.values[i]
		ret := nvml.Return(v.NvmlReturn)
		switch judge(ret) {
		case gpuLost, driverLost:
			return ret
		case given:
			c.count(g, v, second)
		case unsupported:
			c.next(g)
		default:
			*c.into(&g.seen), c.when = nil, 0
		}
	}
	return nvml.SUCCESS
}

// field returns the request for one field. It starts as unsupported, because a driver skips
// fields that it does not know.
func field(id, scope uint32) nvml.FieldValue {
	return nvml.FieldValue{FieldId: id, ScopeId: scope, NvmlReturn: uint32(nvml.ERROR_NOT_SUPPORTED)}
}

// next switches to the next field; after the last one it waits before it starts again.
func (c *counter) next(g *gpu) {
	*c.into(&g.seen), c.when = nil, 0
	c.at++
	if c.at == len(c.ids) {
		c.at = 0
		c.due = g.now.Add(forgetAfter)
	}
}

// count stores a counter's first value, or computes the rate from the second.
func (c *counter) count(g *gpu, v *nvml.FieldValue, second bool) {
	value, ok := unsigned(v)
	if !ok {
		c.next(g)
		return
	}
	when := v.Timestamp
	if when <= 0 {
		when = g.now.UnixMicro()
	}
	if c.when != 0 && when <= c.when {
		return // the driver has no newer value: the rate stays
	}
	if second {
		diff := value - c.last
		if v.ValueType == uint32(nvml.VALUE_TYPE_UNSIGNED_INT) {
			diff = uint64(uint32(diff)) // it wrapped
		}
		rate := c.into(&g.seen)
		*rate = nil
		if c.when != 0 && diff < math.MaxInt64 { // else the counter was reset
			*rate = new(float64(diff) * c.unit / (float64(when-c.when) / 1e6))
		}
	}
	c.last, c.when = value, when
}

// unsigned returns the value of a field, if it is a whole number and not blank.
func unsigned(v *nvml.FieldValue) (uint64, bool) {
	switch int(v.ValueType) {
	case int(nvml.VALUE_TYPE_UNSIGNED_INT):
		return uint64(binary.NativeEndian.Uint32(v.Value[:])), true
	case int(nvml.VALUE_TYPE_SIGNED_INT):
		n := binary.NativeEndian.Uint32(v.Value[:])
		return uint64(n), !blank32(n)
	case int(nvml.VALUE_TYPE_UNSIGNED_SHORT):
		return uint64(binary.NativeEndian.Uint16(v.Value[:])), true
	case int(nvml.VALUE_TYPE_UNSIGNED_LONG), int(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), int(nvml.VALUE_TYPE_SIGNED_LONG_LONG):
		n := binary.NativeEndian.Uint64(v.Value[:])
		return n, !blank64(n)
	}
	return 0, false
}

// value reads one field that is not a counter.
func (g *gpu) value(id uint32) (uint64, nvml.Return) {
	values := []nvml.FieldValue{field(id, 0)}
	if ret := g.device.GetFieldValues(values); ret != nvml.SUCCESS {
		return 0, ret
	}
	if ret := nvml.Return(values[0].NvmlReturn); ret != nvml.SUCCESS {
		return 0, ret
	}
	n, ok := unsigned(&values[0])
	if !ok {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	return n, nvml.SUCCESS
}

// power reads the present power draw, in milliwatts: nvidia-smi's power.draw.instant.
func (g *gpu) power() nvml.Return {
	milliwatts, ret := g.value(nvml.FI_DEV_POWER_INSTANT)
	g.seen.Power = scaled(uint32(min(milliwatts, math.MaxUint32)), 1000)
	return ret
}

// recoveryActions are the names of nvmlDeviceGpuRecoveryAction_t, in lower case.
var recoveryActions = []string{
	"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset",
	"recover_imex_domain", "bus_reset", "system_reboot",
}

func (g *gpu) recovery() nvml.Return {
	action, ret := g.value(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
	name := "unknown"
	if action < uint64(len(recoveryActions)) {
		name = recoveryActions[action]
	}
	g.seen.Recovery = &name
	return ret
}
