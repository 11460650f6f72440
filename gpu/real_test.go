// Tests of the monitor with the real helper on a fake driver.

//go:build linux && (amd64 || arm64)

package gpu

import (
	"strings"
	"testing"
	"time"

	"kvasir/gpu/nvmltest"
)

func TestRealHelper(t *testing.T) {
	helper, driver := nvmltest.Helper(t), nvmltest.New(t)
	for _, v := range driver.Env() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	driver.Set(nvmltest.Host(2)...)
	b := quick()
	b.silence, b.hello = time.Second, 2*time.Second
	s := &scene{stage: &stage{t: t}}
	s.Monitor = start(Options{Interval: 50 * time.Millisecond, Library: driver.Library(), Helper: helper, Notice: s.notice}, b)
	t.Cleanup(s.Close)
	well := func() *Fleet {
		t.Helper()
		began := time.Now()
		f := s.until("well again", func(f *Fleet) bool {
			return f.State == OK && len(f.GPUs) == 2 && f.GPUs[0].State == OK && f.GPUs[1].State == OK
		})
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		return f
	}
	if f := well(); f.Driver != "570.86.15" || f.GPUs[1].Name != "NVIDIA H100 80GB HBM3" || *f.GPUs[1].Power != 350.5 {
		t.Errorf("fleet is %+v", f)
	}
	for _, fault := range []struct {
		line  string
		state State // of the fleet
		why   string
	}{
		{"1.lost 1", OK, "the driver says GPU_IS_LOST"},
		{"1.hang 1", OK, "has not answered for 200ms"},
		{"driver_lost 1", Lost, "the driver says"},
		{"hang 1", Lost, "a call hangs in the driver"},
	} {
		driver.Set(append(nvmltest.Host(2), fault.line)...)
		f := s.until(fault.line, func(f *Fleet) bool {
			return f.State == fault.state && f.GPUs[1].State != OK && strings.Contains(f.GPUs[1].Why, fault.why)
		})
		if fault.state == OK && f.GPUs[0].State != OK {
			t.Errorf("%s: GPU 0 is %+v", fault.line, f.GPUs[0])
		}
		driver.Set(nvmltest.Host(2)...)
		well()
	}
}
