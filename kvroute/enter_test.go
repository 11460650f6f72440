// A pool whose time is not the real one: Enter, Alarm and Ring.

package kvroute

import (
	"errors"
	"testing"
	"time"
)

// A request that entered is told once when it has its place: by the release that makes room, and by Ring at the moment
// that Alarm named where time alone makes room.
func TestEnterInAnotherTime(t *testing.T) {
	now := time.Now()
	var alarm time.Time
	workers := newWorkers(1, 1, "m")
	p := NewPool(PoolOptions{
		Workers: workers, MaxQueued: 2,
		Now: func() time.Time { return now }, Alarm: func(at time.Time) { alarm = at },
	})
	var told []error
	var places []Placement
	enter := func(model string) {
		p.Enter(Query{Model: model}, func(at Placement, err error) {
			told = append(told, err)
			places = append(places, at)
		})
	}
	enter("m") // has the only slot
	enter("m")
	enter("m")
	enter("m") // is one too many
	enter("x")
	if len(told) != 3 || told[0] != nil || !errors.Is(told[1], ErrQueueFull) || !errors.Is(told[2], ErrUnknownModel) {
		t.Fatalf("told %v", told)
	}
	places[0].Release()
	if len(told) != 4 || told[3] != nil || p.QueueLen("m") != 1 {
		t.Fatalf("after a release: told %v", told)
	}
	workers[0].Busy(now, time.Second)
	places[3].Release() // to the last one, though the worker is busy: there is no other
	if len(told) != 5 || told[4] != nil || !alarm.IsZero() {
		t.Fatalf("after the last release: told %v, alarm %v", told, alarm)
	}
	// Two workers, one of them ejected: its time comes while the other one is full.
	workers = newWorkers(2, 1, "m")
	for range 5 {
		workers[1].Failed(now, "reset")
	}
	p = NewPool(PoolOptions{
		Workers: workers, MaxQueued: 2,
		Now: func() time.Time { return now }, Alarm: func(at time.Time) { alarm = at },
	})
	told, places = nil, nil
	enter("m")
	enter("m")
	if want := now.Add(ejectFirst); len(told) != 1 || !alarm.Equal(want) {
		t.Fatalf("told %v, alarm at %v, want %v", told, alarm, want)
	}
	now = alarm
	p.Ring()
	if len(told) != 2 || told[1] != nil || places[1].Worker != workers[1] {
		t.Errorf("after the alarm: told %v", told)
	}
}
