//go:build linux && cgo

// Counters: what the driver gives as field values: bytes over PCIe and NVLink, power, the recovery action.

package main

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"kvasir/gpu/snapshot"
)

// A counter goes up with the bytes sent; the snapshot has the difference of two polls that follow each
// other, of every four seconds. Reading one takes the driver up to half a millisecond, so all polls
// would cost too much; and a pair that is further apart would say too little, because PCIe's are 32
// bits wide and wrap at 4 GiB: of two polls 250 ms apart that is above 17 GB/s.
type counter struct {
	ids   []uint32 // fields from the best to the oldest; all of one unit
	unit  float64  // bytes
	scope uint32
	into  func(*snapshot.GPU) **float64

	at   int // the id in use
	due  time.Time
	last uint64
	when int64 // of last, in microseconds since 1970; 0: there is none
}

// rates are a GPU's counters and the call that reads them all.
type rates struct {
	counters []counter
	second   bool // of the two polls
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

// betweenRates is from one pair of polls to the next.
const betweenRates = 4 * time.Second

// counters asks for all counters in one call.
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

// field asks for one; a driver that passes over a field that it does not know leaves it unsupported.
func field(id, scope uint32) nvml.FieldValue {
	return nvml.FieldValue{FieldId: id, ScopeId: scope, NvmlReturn: uint32(nvml.ERROR_NOT_SUPPORTED)}
}

// next turns to the next field, or after the last one waits.
func (c *counter) next(g *gpu) {
	*c.into(&g.seen), c.when = nil, 0
	c.at++
	if c.at == len(c.ids) {
		c.at = 0
		c.due = g.now.Add(forgetAfter)
	}
}

// count takes a counter's first value, or makes the rate from the second.
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
		if c.when != 0 && diff < math.MaxInt64 { // else it began anew
			*rate = new(float64(diff) * c.unit / (float64(when-c.when) / 1e6))
		}
	}
	c.last, c.when = value, when
}

// unsigned is the value of a field, where it is a whole number that is not blank.
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

// value asks for one field that is no counter.
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

// power is what is drawn now, in milliwatts: nvidia-smi's power.draw.instant.
func (g *gpu) power() nvml.Return {
	milliwatts, ret := g.value(nvml.FI_DEV_POWER_INSTANT)
	g.seen.Power = scaled(uint32(min(milliwatts, math.MaxUint32)), 1000)
	return ret
}

// recoveryActions are nvmlDeviceGpuRecoveryAction_t, in lower case.
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
