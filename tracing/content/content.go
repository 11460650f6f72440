// What a traced request asked and was answered, in the form that its span has it in.

// Package content keeps the prompt and the answer of one traced request until its span is made, as
// OpenTelemetry's conventions for generative AI have them: messages with parts, in JSON. It knows
// requests and answers as openai and openai/answer read them, and nothing of spans.
//
//	t := content.New(kind, &budget, bugs.note)
//	t.Asked(&request, &hidden) // hidden: what guards took out of the body
//	t.Begin()                  // a worker is asked; again for the next one
//	t.Event(event)             // of each event; or once t.Body(body), or t.Told(answer)
//	system, input, output := t.System, t.Input, t.Output(end)
//	t.Release()
//
// What is kept is bounded: MessageBytes of each message of the prompt, PromptBytes of all of them,
// of which the newest stay, and AnswerBytes of the answer. Where something was cut off, a mark in
// its place says so. All requests together share one Budget.
package content

import (
	"sync/atomic"

	"kvasir/openai"
)

// Bounds of what is kept of one request, in bytes of JSON.
const (
	MessageBytes = 16 << 10
	PromptBytes  = 64 << 10
	AnswerBytes  = 64 << 10
)

// BudgetBytes is how much is kept of all requests that are under way.
const BudgetBytes = 64 << 20

// Why a request's content is not in its span.
const (
	Unjudged = "unjudged"   // the guard that hides personal data could not judge it
	Full     = "too_much"   // others have used the budget up
	Unread   = "unreadable" // the answer was too long to be read, or no JSON
	Bug      = "bug"        // keeping it met one, which costs the content and not the request
)

// A Budget is what the requests under way have taken of BudgetBytes. The zero value is ready.
type Budget struct{ taken atomic.Int64 }

func (b *Budget) take(n int) bool {
	if b.taken.Add(int64(n)) > BudgetBytes {
		b.taken.Add(-int64(n))
		return false
	}
	return true
}

// Taken is how many bytes are kept now.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// A Talk is what one request asked and was answered. A nil Talk keeps nothing. It belongs to one
// goroutine.
type Talk struct {
	System  string // the instructions that stand apart from the messages, as JSON; "": none
	Input   string // the messages, as JSON; "": none are kept
	LeftOut string // why something is not kept at all; "": it is

	said   said
	budget *Budget
	taken  int
	note   func(fault any, what string)
}

// New is a Talk on a route of kind k that generates text. note is told of bugs.
func New(k openai.Kind, b *Budget, note func(fault any, what string)) *Talk {
	return &Talk{said: said{kind: k}, budget: b, note: note}
}

// bug ends a panic in here: nothing is kept.
func (t *Talk) bug() {
	if fault := recover(); fault != nil {
		t.note(fault, "keeping the content of a trace")
		t.LeaveOut(Bug)
	}
}

// LeaveOut keeps nothing of the request from now on, and says why.
func (t *Talk) LeaveOut(why string) {
	t.System, t.Input, t.LeftOut = "", "", why
	t.said.choices, t.said.shut = nil, true
}

// Asked keeps the prompt. hidden are the values that must not be seen, each with what is to stand
// there.
func (t *Talk) Asked(r *openai.Request, hidden *openai.Splices) {
	defer t.bug()
	if !t.take(PromptBytes + AnswerBytes) { // what it may come to
		t.LeaveOut(Full)
		return
	}
	system, input := promptOf(r, t.said.kind, hidden)
	t.System, t.Input = string(system), string(input)
	t.give(PromptBytes - len(t.System) - len(t.Input))
}

func (t *Talk) take(n int) bool {
	if !t.budget.take(n) {
		return false
	}
	t.taken += n
	return true
}

func (t *Talk) give(n int) {
	t.taken -= n
	t.budget.taken.Add(-int64(n))
}

// Release lets go of what the Talk has of the budget.
func (t *Talk) Release() {
	if t != nil {
		t.give(t.taken)
	}
}
