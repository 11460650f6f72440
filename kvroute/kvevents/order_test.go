// The order of messages, step by step.

package kvevents

import "testing"

func TestOrder(t *testing.T) {
	type step struct {
		seq  uint64
		want verdict
	}
	for _, row := range []struct {
		name  string
		steps []step
	}{
		{"in order", []step{{0, take}, {1, take}, {2, take}}},
		{"without a beginning", []step{{17, take}, {18, take}}},
		{"gap", []step{{0, take}, {2, gap}, {2, gap}, {1, take}, {2, take}}},
		{"goes back", []step{{5, take}, {6, take}, {0, restart}}},
		{"the same again", []step{{5, take}, {5, restart}}},
	} {
		var o order
		for i, s := range row.steps {
			got := o.live(s.seq)
			if got != s.want {
				t.Errorf("%s, step %d: %d", row.name, i, got)
			}
			if got == take {
				o.taken(s.seq, nil)
				o.heard = o.next
			}
		}
	}
}

// What a replay gave comes again live, once each; before that the numbers may not go back.
func TestOrderAfterReplay(t *testing.T) {
	var o order
	o.taken(3, nil)
	o.heard = 4
	for seq := range uint64(4) {
		o.taken(4+seq, nil)
	}
	if got := o.live(6); got != double {
		t.Errorf("6: %d", got)
	}
	o.heard = 7
	if got := o.live(6); got != restart {
		t.Errorf("6 again: %d", got)
	}
	if got := o.live(8); got != take {
		t.Errorf("8: %d", got)
	}
	o.over()
	if got := o.live(0); got != take {
		t.Errorf("0 of the next process: %d", got)
	}
	if got := o.live(1); got != gap {
		t.Errorf("1 of the next process: %d", got)
	}
}
