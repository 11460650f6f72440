// Requests of which another router says how they fare.

package cost

import (
	"testing"
	"time"
)

// What is heard late, or never, leaves the sums as they should be.
func TestHeard(t *testing.T) {
	m := NewMirror(known())
	now := start
	a := m.Send(now, Sent{Prompt: 1000, Quiet: true})
	b := m.Send(now, Sent{Prompt: 2000, Quiet: true})
	m.Heard(a, now, 0) // no news
	if l := m.Load(now); l.Requests != 2 || l.Decoding != 0 {
		t.Fatalf("%+v", l)
	}
	// Its first token is there before its pass was predicted to end: that of b is, too, which was in the same pass.
	m.Load(now)
	now = now.Add(time.Millisecond)
	m.Heard(a, now, 1)
	if l := m.Load(now); l.Decoding != 2 || l.Backlog+l.InPass != 0 || l.Streamed < 1 || l.Unproven != 2000 {
		t.Fatalf("%+v", l)
	}
	now = now.Add(time.Second)
	m.Heard(a, now, 257)
	m.Heard(b, now, 300)
	if l := m.Load(now); l.Streamed != 557 || l.Context != 3557 || l.Unproven != 0 {
		t.Fatalf("%+v", l)
	}
	m.Heard(b, now, 290) // it was predicted to be longer than it is
	if l := m.Load(now); l.Streamed != 547 {
		t.Fatalf("%+v", l)
	}
	m.End(a, now)
	m.Heard(a, now, 400)
	m.End(b, now)
	if l := m.Load(now); l.Requests != 0 || l.Streamed != 0 || l.Context != 0 || l.Outstanding != 0 || l.Prefilling != 0 || l.Backlog != 0 {
		t.Fatalf("%+v", l)
	}
}

// News keeps a request from being taken for lost.
func TestHeardKeeps(t *testing.T) {
	m := NewMirror(known())
	a, b := m.Send(start, Sent{Prompt: 10, Quiet: true}), m.Send(start, Sent{Prompt: 10, Quiet: true})
	m.Heard(a, start.Add(Stale), 3)
	m.Load(start.Add(Stale + time.Second))
	if m.Lost() != 1 || m.requests != 1 {
		t.Errorf("%d lost, %d left", m.Lost(), m.requests)
	}
	m.End(a, start)
	m.End(b, start)
}
