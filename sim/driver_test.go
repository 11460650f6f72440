// The engine in real time, on a fake clock.

package sim

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// Tokens come when the timing model says, however long the engine has been idle before, and the
// engine sleeps between them.
func TestDriverKeepsTheEnginesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDriver(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { d.run(ctx); close(over) }()
		time.Sleep(time.Hour)

		begin := time.Now()
		c := &completion{stream: true, choices: 1, prompts: [][]uint32{make([]uint32, 10000)},
			answers: []answer{{tokens: make([]uint32, 3), reason: "length"}}}
		requests := c.requests(Options{}.withDefaults())
		job := prepare(c, requests)
		if err := d.submit(job, 0, requests); err != nil {
			t.Fatal(err)
		}
		// 10,000 tokens are two chunks of a prompt; then two passes of decode
		first := prefillMillis(1, 8192, 0) + prefillMillis(1, 10000, 8192)
		second := first + decodeMillis(10001, 16384*16)
		third := second + decodeMillis(10002, 16384*16)
		for i, want := range []float64{first, second, third} {
			<-job.wake
			if got := millis(time.Since(begin)); got < want-1e-5 || got > want+1e-5 {
				t.Errorf("token %d after %.5f ms, want %.5f", i+1, got, want)
			}
			if got := int(job.tickets[0].visible.Load()); got != i+1 {
				t.Errorf("%d tokens are visible, want %d", got, i+1)
			}
		}
		d.leave(job)
		cancel()
		<-over
	})
}

// A pass too long for time.Duration ends in the far future, not in the past.
func TestPassWithoutEnd(t *testing.T) {
	for _, millis := range []float64{1e15, 1e300, math.Inf(1)} {
		if got := passLength(millis, 1); got < 100*365*24*time.Hour {
			t.Errorf("%v ms are %v", millis, got)
		}
	}
}
