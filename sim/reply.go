// Serving one completion: submit it, follow its tokens, and write them as a whole or event by
// event.

package sim

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// serve answers one completion, already read and checked.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, c *completion, fault fault) {
	var side source
	if c.transfer.holds() {
		host, port, err := s.openSide()
		if err != nil {
			c.refuse(w, &failure{http.StatusInternalServerError, kindOf(http.StatusInternalServerError), err.Error(), ""})
			return
		}
		side = source{engine: s.engineID, host: host, port: port}
	}
	c.write(s.options)
	requests := c.requests(s.options)
	job := prepare(c, requests)
	defer s.driver.leave(job)
	if c.rooms == nil || !c.transfer.holds() { // otherwise each starts when its room is joined
		if err := s.driver.submit(job, 0, requests); err != nil { // cannot happen: the lengths fit the context, and that fits the pool
			c.refuse(w, &failure{http.StatusInternalServerError, kindOf(http.StatusInternalServerError), err.Error(), ""})
			return
		}
	}
	created := time.Now().Unix()
	form := s.dialect.format
	if c.form != nil {
		form = c.form
	}
	wire := form(c, created)
	if c.stream {
		e := &events{server: s, w: w, flush: http.NewResponseController(w), ctx: r.Context(), fault: fault, wire: wire, request: c, job: job}
		e.run(s.options.BlockSize)
		return
	}
	if err := s.finish(r.Context(), c, job); err != nil {
		if failed := (*failure)(nil); errors.As(err, &failed) {
			c.refuse(w, failed)
			return
		}
		abort()
	}
	c.end()
	body := wire.appendReply(nil, c, created, job.usage(c, s.options.BlockSize), s.dialect.handOver(c, job, side))
	if fault.whole(r.Context(), w, body) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if fault.kind != "close" {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	_, _ = w.Write(body)
}

// refuse replies with a failure in the form of the request's route.
func (c *completion) refuse(w http.ResponseWriter, f *failure) {
	writeJSON(w, f.status, c.failure(f))
}

// end notes that the answers are whole.
func (c *completion) end() {
	if c.finished != nil {
		c.finished(c)
	}
}

// finish waits until an answer that is not streamed is complete.
func (s *Server) finish(ctx context.Context, c *completion, j *job) error {
	if err := pullBlocks(ctx, s, c, j); err != nil {
		return err
	}
	select {
	case <-j.wake: // rings only when everything is there
		return nil
	case <-s.dead:
		return engineDead
	case <-ctx.Done():
		return ctx.Err()
	}
}

// format writes one request's reply or events in the bytes of an engine. Each method appends to b
// and returns it.
type format interface {
	appendRole(b []byte, choice int, u *usage) []byte
	appendChunk(b []byte, c chunk) []byte
	appendUsageEvent(b []byte, u usage) []byte
	appendReply(b []byte, c *completion, created int64, u usage, handOver []byte) []byte
	endsApart() bool                           // the end of a choice is a separate event
	appendEnd(b []byte) []byte                 // what ends a stream
	appendFailure(b []byte, f *failure) []byte // what ends a stream that failed
}

// doneEnd ends streams with [DONE], failed ones as well.
type doneEnd struct {
	event func(*failure) []byte // of an error
}

func (doneEnd) appendEnd(b []byte) []byte { return append(b, doneEvent...) }

func (e doneEnd) appendFailure(b []byte, f *failure) []byte {
	return append(append(b, e.event(f)...), doneEvent...)
}

// events writes a stream: each event at once, in one HTTP chunk and one write.
type events struct {
	server  *Server
	w       http.ResponseWriter
	flush   *http.ResponseController
	ctx     context.Context
	fault   fault
	wire    format
	request *completion
	job     *job
	sent    int // events sent, without comments
	buffer  []byte
}

// errFailed ends a stream that a fault has already ended with an error event and [DONE].
var errFailed = errors.New("stream failed as asked")

// run writes the whole stream, and aborts it if the client or the server goes away. The head goes
// out before the prefill, as vLLM's does: a 200 proves nothing.
func (e *events) run(blockSize int) {
	e.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if e.fault.kind == "close" {
		endByClose(e.w)
	}
	e.w.WriteHeader(http.StatusOK)
	err := e.flush.Flush()
	if err == nil {
		err = e.all(blockSize)
	}
	if err != nil && !errors.Is(err, errFailed) {
		abort()
	}
}

// all writes every event, tokens as they become visible.
func (e *events) all(blockSize int) error {
	if err := e.begin(); err != nil {
		return err
	}
	if err := pullBlocks(e.ctx, e.server, e.request, e.job); err != nil {
		if failed := (*failure)(nil); errors.As(err, &failed) {
			return e.failTransfer(failed)
		}
		return err
	}
	shown := make([]int, len(e.request.answers))
	for left := len(shown); left > 0; {
		select {
		case <-e.job.wake:
		case <-e.server.dead:
			return e.fail(engineDead)
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
		finished, err := e.show(shown, left)
		if err != nil {
			return err
		}
		left -= finished
	}
	e.request.end()
	if e.request.usage {
		e.buffer = e.wire.appendUsageEvent(e.buffer[:0], e.job.usage(e.request, blockSize))
		if err := e.send(e.buffer); err != nil {
			return err
		}
	}
	e.buffer = e.wire.appendEnd(e.buffer[:0])
	return e.send(e.buffer)
}

// begin writes what some faults send before the first event.
func (e *events) begin() error {
	switch {
	case e.fault.kind == "keepalive":
		for range 2 {
			if err := e.put([]byte(": keep-alive\n\n")); err != nil {
				return err
			}
		}
	case e.fault.kind == "error-event", e.fault.kind == "role-then-error" && !e.request.chat:
		return e.fail(simulated(http.StatusInternalServerError))
	}
	return nil
}

// show writes the events of all newly visible tokens, choice by choice. shown holds how many of
// each choice were written. left is the number of unfinished answers; show returns how many of
// them finished now.
func (e *events) show(shown []int, left int) (finished int, err error) {
	if e.sent == 0 && e.request.chat {
		if err := e.roles(); err != nil {
			return 0, err
		}
	}
	for i := range e.job.tickets {
		a := &e.request.answers[i]
		for visible := int(e.job.tickets[i].visible.Load()); shown[i] < visible; shown[i]++ {
			if err := e.token(i, shown[i], left-finished == 1 && !e.request.usage); err != nil {
				return finished, err
			}
			if shown[i] == len(a.tokens)-1 {
				finished++
			}
		}
	}
	return finished, nil
}

// roles opens every choice of a chat.
func (e *events) roles() error {
	for i := range e.request.answers {
		e.buffer = e.wire.appendRole(e.buffer[:0], i, e.usageAfter(i, 0))
		if err := e.send(e.buffer); err != nil {
			return err
		}
	}
	if e.fault.kind == "role-then-error" {
		return e.fail(simulated(http.StatusInternalServerError))
	}
	return nil
}

// failTransfer ends a stream whose prompt's KV did not arrive. As vLLM does, it still sends the
// role of each choice first.
func (e *events) failTransfer(f *failure) error {
	if f == transferFailed && e.request.chat && e.server.options.Engine == "vllm" {
		if err := e.roles(); err != nil {
			return err
		}
	}
	return e.fail(f)
}

// token writes the event of one token of an answer. lastAnswer means that no other answer ends
// after this one.
func (e *events) token(choice, token int, lastAnswer bool) error {
	a := &e.request.answers[choice]
	c := chunk{choice: choice, call: e.request.tool, usage: e.usageAfter(choice, token+1)}
	if c.call != nil && token == 0 {
		name := c
		name.callID = newCallID()
		e.buffer = e.wire.appendChunk(e.buffer[:0], name)
		if err := e.send(e.buffer); err != nil {
			return err
		}
	}
	c.text = a.piece(token)
	if token == len(a.tokens)-1 {
		if e.wire.endsApart() && len(c.text) > 0 {
			e.buffer = e.wire.appendChunk(e.buffer[:0], c)
			if err := e.send(e.buffer); err != nil {
				return err
			}
			c.text = nil
		}
		c.reason, c.stop, c.last = a.reason, a.stopString, lastAnswer
	}
	e.buffer = e.wire.appendChunk(e.buffer[:0], c)
	return e.send(e.buffer)
}

// usageAfter returns the usage that continuous_usage_stats adds to an event: the choice's own
// tokens so far.
func (e *events) usageAfter(choice, tokens int) *usage {
	if !e.request.every {
		return nil
	}
	prompt := e.request.prompts[choice/e.request.choices]
	return &usage{prompt: len(prompt), completion: tokens}
}

// send writes events one by one.
func (e *events) send(events []byte) error {
	for len(events) > 0 {
		n := bytes.Index(events, eventEnd) + len(eventEnd) // JSON has no such bytes
		if err := e.sendOne(events[:n]); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

var eventEnd = []byte("\n\n")

// sendOne writes one event, or does what a fault demands instead.
func (e *events) sendOne(event []byte) error {
	after := e.sent == e.fault.events
	switch e.fault.kind {
	case "slow":
		sleep(e.ctx, e.fault.wait)
	case "die-after":
		if after {
			abort()
		}
	case "hang-after":
		if after {
			<-e.ctx.Done()
			return e.ctx.Err()
		}
	case "error-after":
		if after {
			return e.fail(simulated(http.StatusInternalServerError))
		}
	}
	e.sent++
	return e.put(event)
}

// fail ends the stream with an error event, and [DONE] where there is one, as vLLM does when its
// engine fails.
func (e *events) fail(f *failure) error {
	rest := e.wire.appendFailure(nil, f)
	for len(rest) > 0 {
		n := bytes.Index(rest, eventEnd) + len(eventEnd)
		if err := e.put(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return errFailed
}

// put writes bytes at once, as one chunk.
func (e *events) put(b []byte) error {
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return e.flush.Flush()
}
