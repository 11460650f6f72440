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
	Leg        *Leg // which worker is asked in it; nil: none is, or it was not told
}

// A Leg is what a step has in which a worker is asked. It is apart from Step because most steps
// have none, and each request's steps are written, read and copied.
type Leg struct {
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
	began  time.Time
	on     bool
	open   bool // the last step has not ended
	beside bool // a step may stand before one that began earlier
	steps  []Step
	legs   []*Leg // of steps, in any order, and behind them memory for more
	left   int
}

// Start begins a request that arrived at began.
func (t *Trail) Start(began time.Time) {
	t.Forget()
	t.began, t.on = began, true
}

// Forget makes the trail ready for another request.
func (t *Trail) Forget() {
	for _, l := range t.legs {
		*l = Leg{}
	}
	*t = Trail{steps: t.steps[:0], legs: t.legs[:0]}
}

// On says whether steps are taken down.
func (t *Trail) On() bool { return t.on }

// Next begins a step, and ends the one before.
func (t *Trail) Next(n Name) {
	if t.on {
		t.next(n, time.Since(t.began)) // reads one clock, where time.Now reads two
	}
}

// NextAt is Next at a time that is known.
func (t *Trail) NextAt(n Name, now time.Time) {
	if t.on {
		t.next(n, now.Sub(t.began))
	}
}

func (t *Trail) next(n Name, at time.Duration) {
	t.done(at)
	t.open = t.add(Step{Name: n, Begin: at})
}

// SetLeg tells of the worker that the step asks which has begun.
func (t *Trail) SetLeg(l Leg) {
	if !t.open {
		return
	}
	t.steps[len(t.steps)-1].Leg = t.keep(l)
}

// Leg is the worker that the step asks which has begun, and its name; nil while there is none.
func (t *Trail) Leg() (Name, *Leg) {
	if !t.open {
		return 0, nil
	}
	last := &t.steps[len(t.steps)-1]
	return last.Name, last.Leg
}

// Done ends the step that has begun.
func (t *Trail) Done() {
	if t.open {
		t.done(time.Since(t.began))
	}
}

// DoneAt is Done at a time that is known.
func (t *Trail) DoneAt(now time.Time) { t.done(now.Sub(t.began)) }

func (t *Trail) done(at time.Duration) {
	if t.open {
		t.steps[len(t.steps)-1].End = at
		t.open = false
	}
}

// Beside adds a leg that ran beside other steps, from begin to end. It goes before the step that has
// begun.
func (t *Trail) Beside(n Name, l Leg, begin, end time.Time) {
	if !t.on || !t.add(Step{Name: n, Begin: begin.Sub(t.began), End: end.Sub(t.began)}) {
		return
	}
	t.beside = true
	last := len(t.steps) - 1
	t.steps[last].Leg = t.keep(l)
	if t.open {
		t.steps[last-1], t.steps[last] = t.steps[last], t.steps[last-1]
	}
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

// keep copies l to memory of the trail's own.
func (t *Trail) keep(l Leg) *Leg {
	n := len(t.legs)
	if n == cap(t.legs) {
		t.legs = append(t.legs, new(Leg))
	} else if t.legs = t.legs[:n+1]; t.legs[n] == nil {
		t.legs[n] = new(Leg)
	}
	*t.legs[n] = l
	return t.legs[n]
}

// Steps are the steps so far, by when they began, and how many were left out. They and their legs
// are valid until the trail is started again.
func (t *Trail) Steps() (steps []Step, left int) {
	if t.beside {
		slices.SortStableFunc(t.steps, func(a, b Step) int { return int(a.Begin - b.Begin) })
	}
	return t.steps, t.left
}
