// Streams: a worker's answer on its way to the client, event by event or as a body.
package proxy

import (
	"errors"
	"io"

	"kvasir/header"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/upstream"
	"kvasir/wire"
)

const holdLimit = 64 << 10 // bytes that may be held back of a reply before the client is sent any

var errTooLong = errors.New("the worker's reply is longer than may be held")

// Why a request ended, where it did not end well.
const (
	whyInterrupted = "interrupted" // the worker stopped in mid-stream
	whyGone        = "client_gone"
)

// A relay passes one worker's answer on to the client.
type relay struct {
	*exchange
	hand *handover // nil: no other worker computes the prompt
}

// from asks the worker b and passes its answer on. A failure means that the
// client was sent nothing, and another worker may still be asked.
func (r *relay) from(by upstream.Asker, b *backend) *upstream.Failure {
	defer r.letGo(by)
	single := r.req.GeneratesOne() // the body may be gone at the end
	var f *upstream.Failure
	err := r.call.Open(by, b.Conns, r.state.settings.Timeouts.upstream())
	if err == nil {
		f, err = r.pass()
	}
	if err != nil {
		f = blame(r.exchange, &r.call, b.Name(), err)
	}
	if cached := r.facts.usage.Cached; f == nil && cached >= 0 {
		r.placing.at.Cached(cached)
	}
	// Of several sequences the count is the sum, and they were generated side by side.
	if tokens := r.facts.usage.Completion; f == nil && tokens > 0 && !r.facts.streamed && single {
		r.placing.at.Answered(r.call.Now, tokens)
	}
	return f
}

// letGo lets go of the worker, whatever happened.
func (r *relay) letGo(by upstream.Holder) {
	r.facts.waited += r.call.Waited
	r.call.Waited = 0
	r.call.Finish(by)
}

// pass passes the worker's answer on. A failure or an error means that the
// client was sent nothing, and another worker may still be asked.
func (r *relay) pass() (*upstream.Failure, error) {
	h := &r.call.Head
	switch {
	case h.Status >= 400:
		return r.call.Refusal(r.facts.worker)
	case h.Status >= 300 && h.Status != 304:
		return upstream.Broken(502, "redirect", "worker %q answered with a redirect; check its url", r.facts.worker), nil
	case header.HasPrefix(h.ContentType, "text/event-stream"):
		r.facts.streamed = true
		return r.stream()
	default:
		return nil, r.body()
	}
}

// body passes on an answer that is no event stream. What fits the hold
// limit is read whole before the client is sent anything, so that a worker that
// dies over it costs a retry and no answer. Only what is no JSON and of unknown
// length, such as speech while it is made, goes on as it comes.
func (r *relay) body() error {
	c := &r.call
	limit := holdLimit
	json := header.HasPrefix(c.Head.ContentType, "application/json")
	record := r.recording()
	switch {
	case json && r.unveil != nil:
		limit = answer.UnveilLimit
	case json && record != nil:
		limit = answer.RecordLimit
	case c.Head.Length < 0 && !json:
		limit = 1
	}
	err := c.Hold(limit)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := r.hand.commit(); err != nil {
		return err
	}
	payload := c.Payload()
	length, whole := c.Head.Length, c.Ended()
	var tail answer.Tail
	if record != nil {
		if json && whole {
			record.Body(payload)
		} else {
			record.Spoil(answer.FlawData)
		}
		shareWhole(r.recipients.leader, r.recorder)
	}
	if whole {
		if json && r.unveil != nil {
			payload = r.unveil.Body(payload)
		}
		length = int64(len(payload))
		r.facts.usage = answer.UsageOf(r.route.Kind, c.Payload())
		r.spend(r.facts.usage.Total())
	} else {
		tail.Add(c.Payload())
	}
	header := c.Head.AppendHeaders(wire.TakeBuffer(wire.SmallBuffer)[:0])
	err = r.reply.begin(c.Head.Status, header, length, payload)
	wire.GiveBuffer(header[:cap(header)])
	r.answered()
	if err == nil && !whole {
		r.forgetBody()
		err = r.rest(&tail)
	}
	if err != nil {
		r.lostClient()
	}
	return nil
}

// rest passes on what comes of a body after its first part. An error is
// the client's; a worker that fails breaks the reply off.
func (r *relay) rest(tail *answer.Tail) error {
	c := &r.call
	for {
		c.Pass(len(c.Payload()))
		switch err := c.More(); {
		case errors.Is(err, io.EOF):
			r.facts.usage = tail.Usage(r.route.Kind)
			r.spend(r.facts.usage.Total())
			return r.reply.end()
		case err != nil:
			r.interrupted(false)
			return nil
		}
		if len(c.Payload()) == 0 {
			continue
		}
		tail.Add(c.Payload())
		if err := r.reply.write(c.Place()); err != nil {
			return err
		}
	}
}

// stream passes an event stream on. Nothing is sent before the first event
// with content; from there on each read is one write of all whole events in it.
// The rest of an event that is not whole yet waits for its end: were it sent, an
// error of ours could not follow it.
func (r *relay) stream() (*upstream.Failure, error) {
	c := &r.call
	s := &r.events
	*s = answer.NewFlow(r.route.Kind, r.hidesUsage, upstream.IsUnknown)
	s.Recorder = r.recording()
	for {
		f, err := r.passEvents()
		if f != nil || err != nil {
			return f, err
		}
		if r.facts.why != "" {
			return nil, nil
		}
		c.Shrink()
		err = c.More()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return r.endEvents()
		case !r.reply.began:
			return nil, err
		default:
			r.interrupted(!s.Done && !s.Failed)
			return nil, nil
		}
	}
}

// passEvents sends what may be sent of the events that have come.
func (r *relay) passEvents() (*upstream.Failure, error) {
	c, s := &r.call, &r.events
	for {
		seen := s.Contents
		pass, skip := s.Scan(c.Payload())
		if n := s.Contents - seen; n > 0 {
			r.placing.at.Tokens(c.Now, n)
		}
		if s.Failed && !s.Opened {
			return r.failedFirst(s.Failure)
		}
		if s.TooLong() {
			if !r.reply.began {
				return nil, errTooLong
			}
			r.interrupted(true)
			return nil, nil
		}
		if pass+skip > 0 || !s.Opened {
			share(r.recipients.leader, r.recorder)
		}
		if pass+skip == 0 {
			return nil, nil
		}
		if !r.reply.began {
			if err := r.hand.commit(); err != nil {
				return nil, err
			}
		}
		if err := r.sendEvents(pass); err != nil {
			r.lostClient()
			return nil, nil
		}
		c.Pass(pass + skip)
		if s.Withheld != nil {
			r.withheld()
			return nil, nil
		}
	}
}

// withheld ends a stream in which an error event came that may hold anything of
// the worker's host: the client is told of it in our words.
func (r *relay) withheld() {
	r.call.Distrust() // what follows the event is not worth reading
	f := upstream.ConcealedEvent(r.facts.worker, r.events.Withheld)
	r.p.logUnknown(r.backend, f)
	r.facts.why = "worker_error"
	r.facts.usage = r.events.Usage
	r.reply.breakOff(r.events.AppendError(r.stillHeld(), f.Err))
}

// failedFirst turns an error event that came before any content into the error
// reply that it stands for.
func (r *relay) failedFirst(event []byte) (*upstream.Failure, error) {
	r.call.Distrust() // what follows the event is not worth reading
	return upstream.EventFailure(r.facts.worker, event), nil
}

// sendEvents writes the first n bytes of the payload.
func (r *relay) sendEvents(n int) error {
	c := &r.call
	events := c.Payload()[:n]
	if r.unveil != nil {
		events = r.unveil.Events(events)
	}
	switch {
	case r.reply.began && len(events) == 0:
		return nil
	case r.reply.began && r.unveil != nil:
		return r.reply.send(events)
	case r.reply.began:
		buf, start, _ := c.Place()
		return r.reply.write(buf, start, start+n)
	}
	header := c.Head.AppendHeaders(wire.TakeBuffer(wire.SmallBuffer)[:0])
	err := r.reply.begin(c.Head.Status, header, -1, events)
	wire.GiveBuffer(header[:cap(header)])
	r.answered()
	r.forgetBody()
	return err
}

// endEvents ends a stream whose framing ended rightly. It is a finished answer
// only if its events say so too.
func (r *relay) endEvents() (*upstream.Failure, error) {
	c, s := &r.call, &r.events
	if rest := s.Last(c.Payload()); rest > 0 || !r.reply.began {
		if s.Failed && !s.Opened {
			return r.failedFirst(s.Failure)
		}
		if !r.reply.began {
			if !s.Finished() {
				return nil, io.ErrUnexpectedEOF
			}
			if err := r.hand.commit(); err != nil {
				return nil, err
			}
		}
		if err := r.sendEvents(rest); err != nil {
			r.lostClient()
			return nil, nil
		}
		c.Pass(rest)
	}
	if s.Withheld != nil {
		r.withheld()
		return nil, nil
	}
	r.facts.usage = s.Usage
	r.spend(r.facts.usage.Total())
	if !s.Finished() {
		c.Distrust() // the connection of a worker that lies about its end is not kept
		r.interrupted(true)
		return nil, nil
	}
	if s.Failed {
		r.facts.why = "worker_error"
	} else {
		shareWhole(r.recipients.leader, r.recorder)
	}
	err := r.reply.send(r.stillHeld())
	if err == nil {
		err = r.reply.end()
	}
	if err != nil {
		r.lostClient()
	}
	return nil, nil
}

// stillHeld is what was held back of a text that comes to no placeholder now.
func (r *relay) stillHeld() []byte {
	if r.unveil == nil {
		return nil
	}
	return r.unveil.Last()
}

// interrupted ends an answer that was begun and cannot be finished: an error in
// the stream if the client can still read one there, and a broken end.
func (r *relay) interrupted(tell bool) {
	switch {
	case r.recipients.lost():
		r.lostClient()
		return
	case r.p.stopping.Load():
		r.facts.why = "shutdown"
	default:
		r.facts.why = whyInterrupted
	}
	r.facts.usage = r.events.Usage
	var last []byte
	if tell && r.facts.streamed {
		last = r.events.AppendError(append(last, r.stillHeld()...), r.interruption())
	}
	r.reply.breakOff(last)
}

// interruption is the error that ends a broken stream.
func (r *relay) interruption() *openai.Error {
	e := upstream.Fault(502, "worker %q stopped in the middle of its answer; what came until here is not whole. Ask again", r.facts.worker)
	if r.facts.why == "shutdown" {
		e = upstream.Fault(503, "the gateway %s; what came until here is not whole. Ask again", "is shutting down")
	}
	e.Code = "stream_interrupted"
	return e
}
