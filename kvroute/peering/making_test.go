// Answers that others make: known while they are made, and ended by whatever ends them.

package peering

import (
	"testing"
	"time"
)

func TestMaking(t *testing.T) {
	a, b, c := newRouter(t, 1), newRouter(t, 2), newRouter(t, 3)
	meet(t, begin, a, b, c)
	over := func(e *Elsewhere) bool {
		select {
		case <-e.Done():
			return true
		default:
			return false
		}
	}
	now := begin
	flush := func(from *router) {
		t.Helper()
		hear(t, now, copies(from.x.Flush(now)), c)
	}
	for name, step := range map[string]struct {
		ends   func()
		stored bool
	}{
		"stored":     {func() { a.x.Made(7, true); flush(a) }, true},
		"not stored": {func() { a.x.Made(7, false); flush(a) }, false},
		"its end is lost": {func() {
			a.x.Made(7, true)
			a.x.Flush(now) // to nobody
			now = now.Add(2 * time.Second)
			meet(t, now, a, b, c)
		}, false},
		"its maker is silent": {func() {
			now = now.Add(2 * Silent)
			c.x.Tick(now)
			a.x.Made(7, true)
			meet(t, now, a, b, c)
		}, false},
	} {
		a.x.Making(7)
		if c.x.Elsewhere(7) != nil {
			t.Fatalf("%s: it is known before it is told", name)
		}
		flush(a)
		e := c.x.Elsewhere(7)
		if e == nil || over(e) || c.x.Elsewhere(8) != nil || a.x.Elsewhere(7) != nil {
			t.Fatalf("%s: it is not known", name)
		}
		if step.ends(); !over(e) || e.Stored() != step.stored || c.x.Elsewhere(7) != nil || c.x.Stats().Making != 0 {
			t.Errorf("%s: over %t, stored %t, %d are made", name, over(e), e.Stored(), c.x.Stats().Making)
		}
	}
	// The one whose request led has left, and an equal request there has taken over.
	a.x.Making(7)
	flush(a)
	a.x.Making(7)
	a.x.Made(7, false)
	flush(a)
	e := c.x.Elsewhere(7)
	if e == nil || over(e) {
		t.Fatal("it is over, and the next one makes it")
	}
	a.x.Made(7, true)
	if flush(a); !over(e) || !e.Stored() {
		t.Error("the next one has made it")
	}
	// Two make it: it is over when one has stored it, or both have failed.
	for _, stored := range []bool{true, false} {
		a.x.Making(7)
		b.x.Making(7)
		flush(a)
		flush(b)
		e := c.x.Elsewhere(7)
		a.x.Made(7, stored)
		flush(a)
		if over(e) != stored || (c.x.Elsewhere(7) == nil) != stored {
			t.Errorf("one of two has ended, stored %t: over %t", stored, over(e))
		}
		b.x.Made(7, false)
		flush(b)
		if !over(e) || e.Stored() != stored || c.x.Stats().Making != 0 {
			t.Errorf("both have ended, stored %t: over %t, stored %t", stored, over(e), e.Stored())
		}
	}
	// A newcomer hears of it by the snapshot; what is too much is not told.
	a.x.Making(9)
	d := newRouter(t, 4)
	now = now.Add(2 * time.Second)
	meet(t, now, a, d)
	if d.x.Elsewhere(9) == nil {
		t.Error("a newcomer does not know of it")
	}
	told := 0
	for key := range uint64(2 * maxMaking) {
		if a.x.Making(100 + key) {
			told++
		}
	}
	if hear(t, now, copies(a.x.Flush(now)), d); told != maxMaking-1 || d.x.Stats().Making != maxMaking {
		t.Errorf("%d were told, %d are known", told, d.x.Stats().Making)
	}
	a.x.Leave()
	if hear(t, now, copies(a.x.Flush(now)), d); d.x.Stats().Making != 0 || len(d.x.elsewhere.known) != 0 {
		t.Errorf("%d are left", d.x.Stats().Making)
	}
}
