// Connectors: how two workers are brought to hand a request over.

package upstream

import (
	"time"

	"kvasir/openai"
)

// A Connector is one way to have one worker compute a prompt and another one answer.
// An engine may have several (vLLM has NIXL, and others that are not spoken here), and
// two workers hand over only by the same one. It says what both requests hold; who
// sends them, and when one of them has failed, is not its concern.
type Connector struct {
	Name string // as the engine calls it
	Ask  Order

	// able says whether this prefill worker can be named to a decode worker; nil: every
	// one can.
	able func(from *Worker) bool

	// begin writes into both drafts what is known before a worker is asked.
	begin func(*Legs)

	// tell writes into the decode worker's draft what the prefill worker has answered.
	// What it adds may be a part of the call's payload. Only with Before.
	tell func(*Legs, *Call) Told

	// Good is how long what the prefill worker has said may be used: less than its engine
	// keeps the blocks for the decode worker. Only with Before.
	Good time.Duration

	// aborted says that a prefill worker's reply of status 200 is none: it has given the
	// prompt up; nil: there is no such reply.
	aborted func(reply []byte) bool

	// unfetched says that a prefill worker's error is its word for blocks that did not
	// come over to the other worker; nil: it has none.
	unfetched func(reply []byte) bool
}

// An Order is when the prefill worker is asked.
type Order uint8

// The orders.
const (
	Before Order = iota // and its reply is read before the decode worker is asked
	Beside              // at the same time as the decode worker
	Never               // by us: the decode worker's side does it
)

// Legs are the two requests of a hand-over while they are written.
type Legs struct {
	From    *Worker     // the prefill worker
	Rank    int         // its data-parallel rank; -1: none is named
	Kind    openai.Kind // of the route
	Prefill *openai.Draft
	Decode  *openai.Draft
	Lines   string // header lines for the decode worker, each with its CRLF

	id []byte // names the hand-over in both requests
}

// Told is what a prefill worker's reply means for the decode worker.
type Told struct {
	Missing  string // what the decode worker would have to be told is not there, by name; "": all is well
	Answered bool   // the reply is the whole answer: the decode worker is not asked
	Unused   bool   // there is nothing to fetch: the decode worker computes the prompt
}

// Between is how two workers hand requests over; nil: they do not, or it is not known
// yet what they are.
func Between(from, to *Worker) *Connector {
	c := from.connector()
	if c == nil || c != to.connector() || c.able != nil && !c.able(from) {
		return nil
	}
	return c
}

// connector is the one that the worker runs; nil: none. No engine says which one it was
// started with, so it is taken to be the engine's default.
func (w *Worker) connector() *Connector {
	if c := w.dialect().connectors; len(c) > 0 {
		return c[0]
	}
	return nil
}

// Begin writes into both drafts what is known before a worker is asked.
func (c *Connector) Begin(l *Legs) { c.begin(l) }

// Tell writes into the decode worker's draft what the prefill worker has answered,
// whose whole reply is held by the call. The draft then points into the call's buffer.
func (c *Connector) Tell(l *Legs, reply *Call) Told { return c.tell(l, reply) }

// Aborted says that a reply of status 200 is no answer: the prefill worker has given
// the prompt up.
func (c *Connector) Aborted(reply []byte) bool { return c.aborted != nil && c.aborted(reply) }

// Unfetched says that a prefill worker's error is its word for a prompt that was
// computed, or was to be, and did not come over to the other worker.
func (c *Connector) Unfetched(reply []byte) bool { return c.unfetched != nil && c.unfetched(reply) }

// memberOf finds a member of the object that b begins with, and its value; nil:
// there is none. Both are sub-slices of b.
func memberOf(b []byte, name string) (member, value []byte) {
	o, ok := openai.ReadOriginal(b)
	if !ok {
		return nil, nil
	}
	m := o.Member(name)
	if m == nil {
		return nil, nil
	}
	return b[m.Start:m.Value.End:m.Value.End], m.Value.Of(b)
}

// firstOf is the first element of an array; nil: there is none.
func firstOf(array []byte) []byte {
	w := openai.Walk(array)
	if !w.Enter('[') || !w.Element() {
		return nil
	}
	return w.Span().Of(array)
}
