// Tests of the last resort: how long the end may take, in time that is not waited for.

package serve

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/config"
)

// forced sends the signals, half a second apart, to a process that does not stop. It returns how long after the
// first one it was ended, and with which code.
func forced(t *testing.T, drain *config.Drain, signals ...os.Signal) (after time.Duration, code int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan os.Signal)
		exits := make(chan int, 1)
		e := newShutdown(heard)
		e.exit = func(code int) { exits <- code }
		e.drain.Store(drain)
		begin := time.Now()
		for i, sig := range signals {
			if i > 0 {
				time.Sleep(500 * time.Millisecond)
			}
			heard <- sig
		}
		code = <-exits
		after = time.Since(begin)
		<-e.ended
	})
	return after, code
}

func TestStopIsForced(t *testing.T) {
	drain := &config.Drain{Delay: 2 * time.Second, Timeout: 10 * time.Second}
	for name, c := range map[string]struct {
		drain       *config.Drain
		signals     []os.Signal
		least, most time.Duration
		code        int
	}{
		"no configuration yet":     {nil, []os.Signal{syscall.SIGTERM}, 500 * time.Millisecond, time.Second, 1},
		"drained in vain":          {drain, []os.Signal{syscall.SIGTERM}, 12 * time.Second, 13 * time.Second, 1},
		"a second signal":          {drain, []os.Signal{syscall.SIGTERM, syscall.SIGINT}, time.Second, 1500 * time.Millisecond, 0},
		"a third one adds no time": {drain, []os.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGINT}, time.Second, 1500 * time.Millisecond, 0},
		"a reload is no end":       {drain, []os.Signal{syscall.SIGHUP, syscall.SIGTERM}, 12500 * time.Millisecond, 13500 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			after, code := forced(t, c.drain, c.signals...)
			if after < c.least || after > c.most || code != c.code {
				t.Errorf("ended after %v with code %d, want %v to %v and %d", after, code, c.least, c.most, c.code)
			}
		})
	}
}
