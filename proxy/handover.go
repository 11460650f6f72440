// Handovers: a request that one worker begins and another one answers.

package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
	"kvasir/upstream"
)

const (
	// saidLimit is how long a prefill worker's reply may be. What it holds grows
	// with the prompt: a number for each block, and at most each token.
	saidLimit = 16 << 20

	// besideGrace is how long the connection to a prefill worker may outlive the
	// whole answer, so that it can be kept.
	besideGrace = 250 * time.Millisecond
)

var (
	errPrefill = errors.New("the prefill worker failed")
	errExpired = errors.New("what the prefill worker said is no longer good")
)

// A handover is one request on its way through two workers.
//
//  1. Both legs are stopped when the client is lost, whichever is under way.
//  2. What the prefill worker said goes to one decode worker once, word for
//     word, within Connector.Good, and only while the prefill worker lives on.
//  3. Until commit, whatever fails on either leg fails the attempt. From then
//     on the prefill worker's end does not matter: its blocks are where they
//     were needed.
type handover struct {
	x     *exchange
	from  *backend // computes the prompt
	to    *backend // answers
	by    *upstream.Connector
	clock upstream.Timeouts

	prefill leg
	decode  leg
	call    upstream.Call // of the prefill leg; what decode is told lies in its buffer

	life     uint64    // of from, when it was asked
	said     time.Time // when it answered; zero: nothing of it is used
	well     time.Time // when it had done its part; zero: it has not, or runs beside
	answered bool      // its reply was the whole answer

	beside                   chan struct{} // closed when a prefill leg that runs beside has ended; nil: none does
	besideBegan, besideEnded time.Time
	besideSpan               traceparent.SpanID
	besideFault              *upstream.Failure // of it, whether or not anybody minds; read once it has ended

	mu        sync.Mutex // guards the rest, and conn of both legs
	stopped   bool       // by Close
	committed bool
	late      bool              // expired when the decode leg would have been sent
	fault     *upstream.Failure // of a prefill leg that runs beside, while it matters
}

// A leg is one of the two requests.
type leg struct {
	h *handover
	openai.Draft
	more   string // lines of its head that the protocol wants
	head   []byte
	pieces net.Buffers
	conn   io.Closer // what stops it, while it runs
}

// handOver sends the request through the two workers of its placement and passes
// the answer on, as attempt does.
func handOver(x *exchange) *upstream.Failure {
	h := &handover{
		x: x, clock: x.plan.state.settings.Timeouts.upstream(),
		from: x.at.Prefill.Peer.(*backend), to: x.at.Worker.Peer.(*backend),
	}
	h.by = upstream.Between(h.from.Worker, h.to.Worker)
	h.life = h.from.Life.Load()
	x.facts.prefill = h.from.Name()
	defer h.end()
	if !x.Bind(h) {
		return blame(x, &upstream.Call{}, h.to.Name(), upstream.ErrGone)
	}
	h.draft()
	if f := h.prepare(); f != nil {
		f.Part = upstream.PartPrefill
		x.p.noteAttempt(h.from, f, "", h.call.Now)
		result := "prefill_failed"
		if isNobodys(f) {
			result = "stopped"
		}
		x.p.metrics.handovers.ended.WithLabelValues(result).Inc()
		return f
	}
	if h.answered {
		return h.passOwn()
	}
	x.recipients.heartbeat()
	h.decode.write(h.to, x.at.Rank, x.leg(record.Decode, h.to, x.at.Rank))
	r := relay{x: x, hand: h}
	f := r.from(&h.decode, h.to)
	x.endLeg(f, x.call.Head.Status)
	return h.weigh(f)
}

// draft makes both bodies, as yet alike, of the request's.
func (h *handover) draft() {
	edit, body := &h.x.plan.edit, h.x.plan.body
	body = edit.AppendTo(make([]byte, 0, edit.Length(body)), body)
	o, ok := openai.ReadOriginal(body)
	if !ok {
		panic("BUG: a body that was validated is no JSON object")
	}
	h.prefill = leg{h: h, Draft: openai.Draft{Original: o}}
	h.decode = leg{h: h, Draft: openai.Draft{Original: o}}
}

// prepare settles what both legs say. When it returns the prefill worker has at least
// begun, and a failure is its.
func (h *handover) prepare() *upstream.Failure {
	legs := upstream.Legs{
		From: h.from.Worker, Rank: h.x.at.PrefillRank, Kind: h.x.plan.route.Kind,
		Prefill: &h.prefill.Draft, Decode: &h.decode.Draft,
	}
	h.by.Begin(&legs)
	h.decode.more = legs.Lines
	switch h.by.Ask {
	case upstream.Beside:
		h.computeBeside()
	case upstream.Before:
		if f := h.compute(); f != nil {
			return f
		}
		told := h.by.Tell(&legs, &h.call)
		if told.Missing != "" {
			return upstream.Broken(502, "no_parameters", "prefill worker %q answered without "+told.Missing+"; is it started for prefill?", h.from.Name())
		}
		if h.answered = told.Answered; told.Answered || told.Unused {
			h.said = time.Time{}
		}
	case upstream.Never:
	}
	return nil
}

// write makes the head of a leg whose body is done.
func (l *leg) write(b *backend, rank int, span traceparent.SpanID) {
	l.head = l.h.x.appendHead(nil, b, rank, span, l.more, l.Edit.Length(l.Body))
}

// Request is upstream.Asker. It looks at nothing of the exchange, which may have let go
// of the body when a leg that runs beside is sent once more.
func (l *leg) Request() net.Buffers {
	l.pieces = l.Edit.Segments(append(l.pieces[:0], l.head), l.Body)
	return l.pieces
}

// compute has the prefill worker compute the prompt, and reads its reply.
func (h *handover) compute() *upstream.Failure {
	began := time.Now()
	h.prefill.write(h.from, h.x.at.PrefillRank, h.x.leg(record.Prefill, h.from, h.x.at.PrefillRank))
	f := h.ask()
	h.x.endLeg(f, h.call.Head.Status)
	h.said = h.call.Now
	if f == nil {
		h.well = h.said
		if cached := answer.UsageOf(h.x.plan.route.Kind, h.call.Payload()).Cached; cached >= 0 {
			h.x.at.Cached(cached)
		}
	}
	h.x.at.Prefilled(h.said, f == nil)
	h.x.facts.waited += h.call.Waited
	took := h.said.Sub(began).Seconds()
	h.x.p.metrics.handovers.prefill.Observe(took)
	h.x.p.metrics.operations.notePrefill(h.x.p.state.Load(), h.from.Name(), took)
	return f
}

// ask sends the prefill leg and reads its whole reply.
func (h *handover) ask() *upstream.Failure {
	c := &h.call
	var f *upstream.Failure
	err := c.Open(&h.prefill, h.from.Conns, h.clock)
	if err == nil {
		f, err = h.readReply()
	}
	if err != nil {
		f = blame(h.x, c, h.from.Name(), err)
	}
	c.LetGo(&h.prefill)
	return f
}

// readReply holds the prefill worker's whole reply.
func (h *handover) readReply() (*upstream.Failure, error) {
	c := &h.call
	if c.Head.Status >= 400 {
		return c.Refusal(h.from.Name(), h.x.plan.route.Path)
	}
	err := c.Hold(saidLimit)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case !c.Ended():
		return upstream.Broken(502, "reply_too_long", "prefill worker %q does not come to an end", h.from.Name()), nil
	case c.Head.Status != 200:
		return upstream.Broken(502, "bad_reply", "prefill worker %q answered with a status that is no answer; check its url", h.from.Name()), nil
	}
	return nil, nil
}

// computeBeside has the prefill worker compute the prompt while the decode
// worker is asked for the answer, and waits for it.
func (h *handover) computeBeside() {
	h.besideSpan = h.x.newSpan()
	h.prefill.write(h.from, h.x.at.PrefillRank, h.besideSpan)
	h.beside, h.besideBegan = make(chan struct{}), time.Now()
	go h.runBeside()
}

// runBeside reads the prefill worker's reply to its end. Without its blocks the
// decode worker would wait for minutes, so a failure stops that leg at once.
func (h *handover) runBeside() {
	defer close(h.beside)
	defer func() {
		if fault := recover(); fault != nil {
			h.x.p.bugs.note(fault, "a prefill leg")
			h.fail(upstream.Broken(500, "bug", "a bug was met while worker %q was asked to prefill", h.from.Name()))
		}
	}()
	f := h.ask()
	h.besideFault, h.besideEnded = f, h.call.Now
	// It answers when the decode worker has its blocks, or later: that says nothing of when they were computed.
	h.x.at.Prefilled(h.call.Now, false)
	if f == nil && h.by.Aborted(h.call.Payload()) {
		f = upstream.Broken(502, "aborted", "worker %q gave the prefill up", h.from.Name())
	}
	if f != nil {
		h.fail(f)
		return
	}
	h.from.Succeeded(h.call.Now)
}

// fail stops the decode leg, unless it has what it needs.
func (h *handover) fail(f *upstream.Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.committed {
		return
	}
	f.Part = upstream.PartPrefill
	h.fault = f
	h.decode.stop()
}

// Close stops both legs: the client is lost, or everything ends.
func (h *handover) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	h.prefill.stop()
	h.decode.stop()
	return nil
}

// stop closes the leg's connection; h.mu is held.
func (l *leg) stop() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// Bind names what stops the leg. It refuses the decode leg when it would be too
// late, with the connection made and nothing sent yet.
func (l *leg) Bind(c io.Closer) bool {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if l == &h.decode {
		h.late = h.expired(time.Now())
	}
	if h.stopped || l == &h.decode && (h.late || h.fault != nil) {
		return false
	}
	l.conn = c
	return true
}

// Unbind takes it back.
func (l *leg) Unbind() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	held := l.conn != nil
	l.conn = nil
	return held
}

// expired says that what the prefill worker said must not be used any more.
func (h *handover) expired(now time.Time) bool {
	return !h.said.IsZero() && (now.Sub(h.said) > h.by.Good || h.from.Life.Load() != h.life)
}

// commit says that the client is sent the decode worker's answer now. An error
// says that it must not be. From here on no leg is sent again: what they were
// made of is let go.
func (h *handover) commit() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.committed:
		return nil
	case h.fault != nil:
		return errPrefill
	case h.expired(h.x.call.Sent), h.x.facts.streamed && h.expired(h.x.call.Heard):
		// It took so long to send, or to be read: a stream has its head before its
		// prompt is looked at, so a worker that lets it wait has stood still.
		h.late = true
		return errExpired
	}
	h.committed = true
	// Where both legs run at once the prompt was computed before this, nobody knows when.
	h.x.at.Prefilled(h.x.call.Now, false)
	h.decode.forget()
	if h.beside == nil {
		h.prefill.forget()
		h.call.Finish(nil) // its connection was let go
	}
	return nil
}

func (l *leg) forget() { l.Draft, l.head, l.pieces = openai.Draft{}, nil, nil }

// weigh says what came of the decode leg: whose failure it was. That the blocks
// did not come over shows as a 500, or as an error event before any content. The
// prefill worker did well when it answered: it may be dead since.
func (h *handover) weigh(f *upstream.Failure) *upstream.Failure {
	x, now := h.x, h.x.call.Now
	result := "decode_failed"
	h.mu.Lock()
	fault, late, stopped := h.fault, h.late, h.stopped
	h.mu.Unlock()
	switch {
	case f == nil:
		x.p.noteAttempt(h.to, nil, x.facts.why, now)
		h.didWell()
		switch x.facts.why {
		case "", "worker_error":
			result = "done"
		case whyGone, "shutdown":
			result = "stopped"
		}
	case fault != nil && !isNobodys(fault) && fault.Err.Status >= 500 && h.by.Unfetched(fault.Body):
		// The decode worker may be dead, or fetches nothing: another one is asked. Whose fault it is
		// is not said; a dead one is found out by those who ask it.
		f, result = fault, "transfer_failed"
		f.Part, f.Retry, f.Reason = upstream.PartAnswer, true, "transfer"
	case fault != nil && !isNobodys(fault):
		f, result = fault, "prefill_failed"
		x.p.noteAttempt(h.from, f, "", now)
	case stopped || isNobodys(f):
		result = "stopped"
	case late:
		f = upstream.Broken(502, "handover_expired", "what the prefill worker had said came too late for worker %q; ask again", h.to.Name())
		f.Part, result = upstream.PartTime, "expired"
	case (!h.said.IsZero() || h.beside != nil) && f.Body != nil && !f.Busy && (f.Err.Status == 500 || f.Reason == "error_event"):
		f.Part, f.Retry, f.Reason, result = upstream.PartTransfer, true, "transfer", "transfer_failed"
		x.p.noteAttempt(h.from, f, "", now)
	default:
		x.p.noteAttempt(h.to, f, "", now)
		h.didWell()
	}
	x.p.metrics.handovers.ended.WithLabelValues(result).Inc()
	return f
}

// didWell notes that the prefill worker did. One that runs beside says so itself.
func (h *handover) didWell() {
	if !h.well.IsZero() {
		h.from.Succeeded(h.well)
	}
}

// end lets go of both workers. A prefill leg that runs beside is stopped, unless
// the answer was there: then its own end is as near as a reply's way.
func (h *handover) end() {
	if h.beside != nil {
		if !h.committed {
			_ = h.Close()
		}
		select {
		case <-h.beside:
		case <-time.After(besideGrace):
			_ = h.Close()
			<-h.beside
		}
		h.besideLeg(h.besideFault)
	}
	h.x.Unbind()
	h.call.Finish(&h.prefill)
}
