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
	well := func() (f *Fleet, took time.Duration) {
		t.Helper()
		began := time.Now()
		f = s.until("well again", func(f *Fleet) bool {
			return f.State == OK && len(f.GPUs) == 2 && f.GPUs[0].State == OK && f.GPUs[1].State == OK
		})
		return f, time.Since(began)
	}
	if f, _ := well(); f.Driver != "570.86.15" || f.GPUs[1].Name != "NVIDIA H100 80GB HBM3" || *f.GPUs[1].Power != 350.5 {
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
		took := time.Hour
		for try := 0; try < 3 && took > 5*time.Second; try++ { // a busy machine may be slow at times
			driver.Set(append(nvmltest.Host(2), fault.line)...)
			s.until(fault.line+", of GPU 1 alone where it is one GPU's", func(f *Fleet) bool {
				return f.State == fault.state && f.GPUs[1].State != OK && strings.Contains(f.GPUs[1].Why, fault.why) &&
					(fault.state != OK || f.GPUs[0].State == OK)
			})
			driver.Set(nvmltest.Host(2)...)
			_, again := well()
			took = min(took, again)
		}
		if took > 5*time.Second {
			t.Errorf("after %s it is well again after %v", fault.line, took)
		}
	}
}
