// Clocks: a little late, never early, and never late by more than their own wait allows.

package wire

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for _, tc := range []struct {
		name               string
		before, gone, wait time.Duration // a first wait, the time after it, and the wait requested then
		moved              bool
	}{
		{"the same again, soon", 10 * time.Second, 100 * time.Millisecond, 10 * time.Second, false},
		{"the same again, late", 10 * time.Second, 2 * time.Second, 10 * time.Second, true},
		{"a shorter one", 600 * time.Second, 0, 30 * time.Second, true},
		{"a shorter one, near the end of a longer", 600 * time.Second, 575 * time.Second, 30 * time.Second, true},
		{"a short one after a quiet connection", 120 * time.Second, 119 * time.Second, time.Second, true},
		{"one moment, from read to read", 60 * time.Second, 10 * time.Second, 50 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var k Clock
			var rings time.Time
			moves := 0
			set := func(at time.Time) error {
				rings = at
				moves++
				return nil
			}
			now := time.Unix(1000, 0)
			_ = k.Wind(set, now, tc.before)
			now = now.Add(tc.gone)
			_ = k.Wind(set, now, tc.wait)
			if got := rings.Sub(now); got < tc.wait || got > tc.wait+tc.wait/4 {
				t.Errorf("a wait of %v rings after %v", tc.wait, got)
			}
			if (moves == 2) != tc.moved {
				t.Errorf("the deadline was set %d times", moves)
			}
		})
	}
}
