// Tests of trails: order, bounds, and what is not taken down.

package record

import (
	"reflect"
	"testing"
	"time"
)

func TestTrail(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var tr Trail
	tr.NextAt(Read, at(1))
	tr.SetLeg(Leg{Worker: "w"})
	tr.Beside(Prefill, Leg{}, at(1), at(2))
	tr.DoneAt(at(3))
	if steps, left := tr.Steps(); len(steps) != 0 || left != 0 || tr.On() {
		t.Fatalf("one that was not started has %v, %d left out", steps, left)
	}
	for range 2 { // its memory is used again
		tr.Start(start)
		tr.NextAt(Read, at(1))
		tr.NextAt(Decode, at(4))
		tr.SetLeg(Leg{Worker: "w", Rank: -1})
		tr.Beside(Prefill, Leg{Worker: "p"}, at(2), at(9))
		n, l := tr.Leg()
		if n != Decode || l == nil {
			t.Fatalf("the step that has begun is %s, %+v", n, l)
		}
		l.Status = 200
		tr.DoneAt(at(7))
		tr.DoneAt(at(8)) // nothing has begun
		steps, left := tr.Steps()
		want := []Step{
			{Name: Read, Begin: time.Millisecond, End: 4 * time.Millisecond},
			{Name: Prefill, Begin: 2 * time.Millisecond, End: 9 * time.Millisecond, Leg: &Leg{Worker: "p"}},
			{Name: Decode, Begin: 4 * time.Millisecond, End: 7 * time.Millisecond, Leg: &Leg{Worker: "w", Rank: -1, Status: 200}},
		}
		if len(steps) != len(want) || left != 0 {
			t.Fatalf("got %+v, %d left out", steps, left)
		}
		for i := range want {
			if !reflect.DeepEqual(steps[i], want[i]) {
				t.Errorf("step %d is %+v, want %+v", i, steps[i], want[i])
			}
		}
		tr.Forget()
	}
	tr.Start(start)
	for i := range maxSteps + 5 {
		tr.NextAt(Place, at(i))
	}
	if steps, left := tr.Steps(); len(steps) != maxSteps || left != 5 || steps[maxSteps-1].End != maxSteps*time.Millisecond {
		t.Errorf("%d steps, %d left out, the last is %+v", len(steps), left, steps[len(steps)-1])
	}
}

func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		r    Record
		want Outcome
	}{
		{Record{Status: 200, Path: "upstream"}, OK},
		{Record{Status: 200, Path: "upstream", End: "interrupted"}, Error},
		{Record{Status: 499, Path: "error", End: "client_gone"}, Cancelled},
		{Record{Status: 200, Path: "blocked", End: "blocked"}, Blocked},
		{Record{Status: 400, Path: "blocked", End: "blocked"}, Blocked},
		{Record{Status: 200, Path: "cache", Cache: Cache{Result: "hit"}}, FromCache},
		{Record{Status: 200, Path: "upstream", Cache: Cache{Result: "wait"}}, FromCache},
		{Record{Status: 200, Path: "upstream", Cache: Cache{Result: "miss"}}, OK},
		{Record{Status: 503, Path: "error", Cache: Cache{Result: "miss"}}, Error},
	} {
		if got := tc.r.Outcome(); got != tc.want {
			t.Errorf("%+v is %s, want %s", tc.r, got, tc.want)
		}
	}
}
