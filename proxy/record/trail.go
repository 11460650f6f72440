// The steps of a request, taken down while it is under way.

package record

import (
	"slices"
	"time"

	"kvasir/tracing/traceparent"
)

// A Name says which step of the way it is.
type Name uint8

// The steps, in the order of the way.
const (
	Identify Name = iota // whose API key it is
	Read                 // the body is unpacked and parsed
	Admit                // may the key have the model and tokens now
	Judge                // signals of its texts, and the decision
	Guard                // what must not pass is answered
	Reuse                // an answer is looked up
	Follow               // an equal request's answer is waited for
	Edit                 // changes of the body
	Locate               // tokens of the prompt, and names of its blocks
	Place                // a worker is chosen
	Queue                // every good worker is full
	Prefill              // a worker computes the prompt for another one: a leg
	Decode               // a worker is asked, until its first byte: a leg
	Stream               // its answer is passed on: the same leg
	numNames
)

var names = [numNames]string{
	Identify: "identify", Read: "read", Admit: "admit", Judge: "judge", Guard: "guard", Reuse: "reuse", Follow: "follow", Edit: "edit",
	Locate: "locate", Place: "place", Queue: "queue", Prefill: "prefill", Decode: "decode", Stream: "stream",
}

func (n Name) String() string { return names[n] }

// IsLeg says whether a worker is asked in the step.
func (n Name) IsLeg() bool { return n >= Prefill }

// A Step is one step, timed from the request's arrival. Where a request is sent again its steps
// come again.
type Step struct {
	Name       Name
	Begin, End time.Duration

	// Of legs.
	Worker  string
	Engine  string // of the worker; "": not known yet
	Address string // host:port of the worker
	Model   string // that it was asked for
	Rank    int    // data-parallel; -1: none is named
	Status  int    // of the worker's reply; 0: there was none
	Failure string // the reason that metrics give; "": it went well

	Span traceparent.SpanID // under which the worker goes on with the trace; zero: there is none
}

// maxSteps bounds the steps of one request: 14 and 4 for each further attempt.
const maxSteps = 64

// A Trail takes down the steps of one request. The zero value, and one that was not started,
// takes nothing down and costs nothing. It belongs to one goroutine.
type Trail struct {
	began time.Time
	on    bool
	open  bool // the last step has not ended
	steps []Step
	left  int
}

// Start begins a request that arrived at began.
func (t *Trail) Start(began time.Time) {
	t.began, t.on, t.open, t.steps, t.left = began, true, false, t.steps[:0], 0
}

// Forget makes the trail ready for another request.
func (t *Trail) Forget() {
	clear(t.steps)
	*t = Trail{steps: t.steps[:0]}
}

// On says whether steps are taken down.
func (t *Trail) On() bool { return t.on }

// Next begins a step, and ends the one before.
func (t *Trail) Next(n Name) {
	if t.on {
		t.NextAt(n, time.Now())
	}
}

// NextAt is Next at a time that is known.
func (t *Trail) NextAt(n Name, now time.Time) {
	if !t.on {
		return
	}
	t.DoneAt(now)
	t.open = t.add(Step{Name: n, Begin: now.Sub(t.began), Rank: -1})
}

// Leg is the step that has begun, to be told of its worker; nil while none is taken down.
func (t *Trail) Leg() *Step {
	if !t.open {
		return nil
	}
	return &t.steps[len(t.steps)-1]
}

// Done ends the step that has begun.
func (t *Trail) Done() {
	if t.open {
		t.DoneAt(time.Now())
	}
}

// DoneAt is Done at a time that is known.
func (t *Trail) DoneAt(now time.Time) {
	if t.open {
		t.steps[len(t.steps)-1].End = now.Sub(t.began)
		t.open = false
	}
}

// Beside adds a step that ran beside others, from begin to end. It goes before the step that has
// begun.
func (t *Trail) Beside(s Step, begin, end time.Time) {
	if !t.on {
		return
	}
	s.Begin, s.End = begin.Sub(t.began), end.Sub(t.began)
	if !t.add(s) || !t.open {
		return
	}
	last := len(t.steps) - 1
	t.steps[last-1], t.steps[last] = t.steps[last], t.steps[last-1]
}

func (t *Trail) add(s Step) bool {
	if len(t.steps) == maxSteps {
		t.left++
		return false
	}
	if t.steps == nil {
		t.steps = make([]Step, 0, 16)
	}
	t.steps = append(t.steps, s)
	return true
}

// Steps are the steps so far, by when they began, and how many were left out. They are valid until
// the trail is started again.
func (t *Trail) Steps() (steps []Step, left int) {
	slices.SortStableFunc(t.steps, func(a, b Step) int { return int(a.Begin - b.Begin) })
	return t.steps, t.left
}
