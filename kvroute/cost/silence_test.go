// A mirror that nobody asked for a while.

package cost_test

import (
	"testing"
	"time"

	"kvasir/kvroute/cost"
)

// TestSilence: a long silence of an engine whose passes are short is not followed
// pass by pass: with a quiet answer under way that once took minutes, under a lock.
func TestSilence(t *testing.T) {
	m := cost.NewMirror(cost.Engine{Timing: cost.Timing{Decode: [3]float64{0.001}}})
	now := time.Unix(1, 0)
	r := m.Send(now, cost.Sent{Prompt: 16, Quiet: true})
	for _, silence := range []time.Duration{time.Millisecond, time.Hour / 20, time.Second} {
		before := m.Load(now).Streamed
		now = now.Add(silence)
		if l := m.Load(now); l.Streamed-before > 2000 {
			t.Fatalf("after %v: %d tokens more", silence, l.Streamed-before)
		}
	}
	m.End(r, now)
}
