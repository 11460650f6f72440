// Control: from what is needed to what is wanted: up at once, down slowly, never while a change is under way.

package planner

import (
	"fmt"
	"slices"
	"time"

	"kvasir/kvroute/replay"
)

// A Verdict is what is done about the number of workers.
type Verdict uint8

// The verdicts.
const (
	Keep     Verdict = iota // as many as are needed
	Up                      // more
	Down                    // fewer, which have been enough for long enough
	Waits                   // fewer are enough, but not for long enough yet
	Changing                // a change is under way
	Useless                 // no fleet keeps the targets, and more workers do no better
)

var verdicts = [...]string{Keep: "keep", Up: "up", Down: "down", Waits: "waits", Changing: "changing", Useless: "useless"}

func (v Verdict) String() string { return verdicts[v] }

// Verdicts are the names of all.
func Verdicts() []string { return slices.Clone(verdicts[:]) }

// A Reason says why so many workers are wanted.
type Reason struct {
	Verdict Verdict
	Needed  replay.Fleet  // what is needed now
	Since   time.Duration // Waits: for how long fewer have been enough
	After   time.Duration // Down, Waits: for how long they must have been
	Stopped bool          // the plan took too long: what is needed is what was found until then
}

func (r Reason) String() string {
	s := ""
	switch r.Verdict {
	case Keep:
		s = "as many as are needed"
	case Up:
		s = "more are needed"
	case Down:
		s = fmt.Sprintf("fewer were enough for %v", r.After)
	case Waits:
		s = fmt.Sprintf("%v are enough, for %v of %v so far", r.Needed, r.Since.Round(time.Second), r.After)
	case Changing:
		s = fmt.Sprintf("%v are needed, but a change is under way", r.Needed)
	case Useless:
		s = "no number of workers keeps the targets, and more would do no better: an idle worker is too slow for them"
	}
	if r.Stopped {
		s += "; the plan took too long and was cut short"
	}
	return s
}

// control remembers what was needed.
type control struct {
	downAfter time.Duration
	needs     []need // in order of time, those of the last downAfter and the one before them
}

type need struct {
	at    time.Duration
	fleet replay.Fleet
}

// decide says how many are wanted where so many are needed and so many are there. A role that needs more gets them at
// once. One that needs fewer gets the most that was needed over downAfter, once that is known. Each role is decided by
// itself.
func (c *control) decide(now time.Duration, fleet, needed replay.Fleet, under bool) (replay.Fleet, Reason) {
	c.remember(now, needed)
	r := Reason{Needed: needed, After: c.downAfter}
	if under {
		r.Verdict = Changing
		return fleet, r
	}
	most, known := c.most(), now-c.needs[0].at >= c.downAfter
	want := fleet
	for _, role := range []struct {
		want         *int
		needed, most int
	}{{&want.Workers, needed.Workers, most.Workers}, {&want.Prefill, needed.Prefill, most.Prefill}, {&want.Decode, needed.Decode, most.Decode}} {
		switch is := *role.want; {
		case role.needed > is:
			*role.want = role.needed
		case known && role.most < is:
			*role.want = role.most
		}
	}
	switch {
	case more(want, fleet):
		r.Verdict = Up
	case want != fleet:
		r.Verdict = Down
	case more(fleet, needed):
		r.Verdict, r.Since = Waits, c.enough(now, fleet)
	}
	return want, r
}

// more says whether a has more workers of some role than b.
func more(a, b replay.Fleet) bool {
	return a.Workers > b.Workers || a.Prefill > b.Prefill || a.Decode > b.Decode
}

// remember takes in what is needed from now on, and forgets what was over before downAfter.
func (c *control) remember(now time.Duration, needed replay.Fleet) {
	over := 0
	for over+1 < len(c.needs) && c.needs[over+1].at <= now-c.downAfter {
		over++
	}
	c.needs = append(slices.Delete(c.needs, 0, over), need{now, needed})
}

// most is the most of each role that was needed in the time that is remembered.
func (c *control) most() (m replay.Fleet) {
	for _, n := range c.needs {
		m.Workers, m.Prefill, m.Decode = max(m.Workers, n.fleet.Workers), max(m.Prefill, n.fleet.Prefill), max(m.Decode, n.fleet.Decode)
	}
	return m
}

// enough is for how long fewer of some role have been enough than there are.
func (c *control) enough(now time.Duration, fleet replay.Fleet) time.Duration {
	since := now
	for _, n := range slices.Backward(c.needs) {
		if !more(fleet, n.fleet) {
			break
		}
		since = n.at
	}
	return now - since
}
