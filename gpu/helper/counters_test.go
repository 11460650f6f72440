//go:build linux && cgo

// Counters: the rates computed from values that drivers return.

package main

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
)

func set32(v *nvml.FieldValue, value uint32) {
	v.NvmlReturn, v.ValueType = uint32(nvml.SUCCESS), uint32(nvml.VALUE_TYPE_UNSIGNED_INT)
	binary.NativeEndian.PutUint32(v.Value[:], value)
}

func set64(v *nvml.FieldValue, value uint64) {
	v.NvmlReturn, v.ValueType = uint32(nvml.SUCCESS), uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
	binary.NativeEndian.PutUint64(v.Value[:], value)
}

// pair returns the time of poll n, counting only polls that read counters.
func pair(n int) time.Time {
	return began.Add(time.Duration(n/2)*(betweenRates+every) + time.Duration(n%2)*every)
}

func TestCounterRows(t *testing.T) {
	type value struct {
		seconds float64 // its time stamp; 0: none
		wide    bool    // 64 bits
		n       uint64
		ret     nvml.Return
		want    float64 // -1: absent
	}
	ok := nvml.SUCCESS
	for _, row := range []struct {
		name   string
		values []value
	}{
		{"goes up", []value{{1, true, 100, ok, -1}, {2, true, 300, ok, 200}, {6, true, 700, ok, 200}, {8, true, 900, ok, 100}}},
		{"stays", []value{{1, true, 100, ok, -1}, {2, true, 100, ok, 0}}},
		{"wraps in 32 bits", []value{{1, false, 0xffffff00, ok, -1}, {2, false, 0x100, ok, 0x200}}},
		{"begins anew in 64", []value{{1, true, 1000, ok, -1}, {2, true, 10, ok, -1}, {3, true, 20, ok, -1}, {4, true, 40, ok, 20}}},
		{"no newer value", []value{{1, true, 100, ok, -1}, {2, true, 300, ok, 200}, {6, true, 400, ok, 200}, {6, true, 400, ok, 200}, {10, true, 500, ok, 200}, {11, true, 600, ok, 100}}},
		{"no time stamp", []value{{0, true, 100, ok, -1}, {0, true, 300, ok, 800}}},
		{"blank", []value{{1, true, 9223372036854775794, ok, -1}}},
		{"a gap", []value{{1, true, 100, ok, -1}, {2, true, 0, nvml.ERROR_NO_DATA, -1}, {3, true, 900, ok, -1}, {4, true, 901, ok, 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d, _ := device(t, dgxh100.New())
			var now value
			d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
				for i := range values {
					v := &values[i]
					if v.FieldId != nvml.FI_DEV_PCIE_COUNT_TX_BYTES {
						continue
					}
					v.Timestamp = int64(now.seconds * 1e6)
					if now.wide {
						set64(v, now.n)
					} else {
						set32(v, uint32(now.n))
					}
					v.NvmlReturn = uint32(now.ret)
				}
				return nvml.SUCCESS
			}
			g := newGPU(0, d, every, all)
			for i, v := range row.values {
				now = v
				if ret := g.poll(pair(i)); ret != nvml.SUCCESS {
					t.Fatal(code(ret))
				}
				got := -1.0
				if g.seen.PCIeSent != nil {
					got = *g.seen.PCIeSent
				}
				if got != v.want {
					t.Errorf("value %d: rate %g, want %g", i, got, v.want)
				}
			}
		})
	}
}

// NVLink's data bytes are preferred over its raw bytes, and those over nothing.
func TestNVLinkFields(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	n := uint64(0)
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			v := &values[i]
			if v.FieldId == nvml.FI_DEV_NVLINK_THROUGHPUT_RAW_RX {
				if v.ScopeId != allLinks {
					t.Errorf("asked for link %d alone", v.ScopeId)
				}
				set64(v, n)
			}
		}
		n += 10
		return nvml.SUCCESS
	}
	g := newGPU(0, d, every, all)
	for at := range 4 {
		if ret := g.poll(pair(at)); ret != nvml.SUCCESS {
			t.Fatal(code(ret))
		}
	}
	if g.seen.NVLinkReceived == nil || g.seen.NVLinkSent != nil {
		t.Fatalf("received %v, sent %v, want the first only", g.seen.NVLinkReceived, g.seen.NVLinkSent)
	}
}

func TestLostInAField(t *testing.T) {
	d, _ := device(t, dgxh100.New())
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		values[0].NvmlReturn = uint32(nvml.ERROR_GPU_IS_LOST)
		return nvml.SUCCESS
	}
	if ret := newGPU(0, d, every, all).poll(began); ret != nvml.ERROR_GPU_IS_LOST {
		t.Errorf("poll %s", code(ret))
	}
}
