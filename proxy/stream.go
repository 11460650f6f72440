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
	x    *exchange
	hand *handover // nil: no other worker computes the prompt
}

// from asks the worker b and passes its answer on. A failure means that the
// client was sent nothing, and another worker may still be asked.
func (r *relay) from(by upstream.Asker, b *backend) *upstream.Failure {
	defer r.letGo(by)
	single := r.x.plan.req.GeneratesOne() // the body may be gone at the end
	var f *upstream.Failure
	err := r.x.call.Open(by, b.Conns, r.x.plan.state.settings.Timeouts.upstream())
	if err == nil {
		f, err = r.pass()
	}
	if err != nil {
		f = blame(r.x, &r.x.call, b.Name(), err)
	}
	if cached := r.x.facts.usage.Cached; f == nil && cached >= 0 {
		r.x.at.Cached(cached)
	}
	// Of several sequences the count is the sum, and they were generated side by side.
	if tokens := r.x.facts.usage.Completion; f == nil && tokens > 0 && !r.x.facts.streamed && single {
		r.x.at.Answered(r.x.call.Now, tokens)
	}
	return f
}

// letGo lets go of the worker, whatever happened.
func (r *relay) letGo(by upstream.Holder) {
	r.x.facts.waited += r.x.call.Waited
	r.x.call.Waited = 0
	r.x.call.Finish(by)
}

// pass passes the worker's answer on. A failure or an error means that the
// client was sent nothing, and another worker may still be asked.
func (r *relay) pass() (*upstream.Failure, error) {
	h := &r.x.call.Head
	switch {
	case h.Status >= 400:
		return r.x.call.Refusal(r.x.facts.worker, r.x.plan.route.Path)
	case h.Status >= 300 && h.Status != 304:
		return upstream.Broken(502, "redirect", "worker %q answered with a redirect; check its url", r.x.facts.worker), nil
	case header.HasPrefix(h.ContentType, "text/event-stream"):
		r.x.facts.streamed = true
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
	c := &r.x.call
	limit := holdLimit
	json := header.HasPrefix(c.Head.ContentType, "application/json")
	record := r.recording()
	r.x.talk.Begin()
	switch {
	case json && r.x.plan.unveil != nil:
		limit = answer.UnveilLimit
	case json && (record != nil || r.x.talk != nil):
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
		r.x.shareWhole(r.x.recorder)
	}
	if json && whole {
		r.x.talk.Body(payload)
	} else {
		r.x.talk.Unread()
	}
	if whole {
		if json && r.x.plan.unveil != nil {
			payload = r.x.plan.unveil.Body(payload)
		}
		length = int64(len(payload))
		r.x.facts.usage = answer.UsageOf(r.x.plan.route.Kind, c.Payload())
		r.x.spend(r.x.facts.usage.Total())
	} else {
		tail.Add(c.Payload())
	}
	header := c.Head.AppendHeaders(wire.TakeBuffer(wire.SmallBuffer)[:0])
	err = r.x.reply.begin(c.Head.Status, header, length, payload)
	wire.GiveBuffer(header[:cap(header)])
	r.x.answered()
	if err == nil && !whole {
		r.x.forgetBody()
		err = r.rest(&tail)
	}
	if err != nil {
		r.x.lostClient()
	}
	return nil
}

// rest passes on what comes of a body after its first part. An error is
// the client's; a worker that fails breaks the reply off.
func (r *relay) rest(tail *answer.Tail) error {
	c := &r.x.call
	for {
		c.Pass(len(c.Payload()))
		switch err := c.More(); {
		case errors.Is(err, io.EOF):
			r.x.facts.usage = tail.Usage(r.x.plan.route.Kind)
			r.x.spend(r.x.facts.usage.Total())
			return r.x.reply.end()
		case err != nil:
			r.interrupted(false)
			return nil
		}
		if len(c.Payload()) == 0 {
			continue
		}
		tail.Add(c.Payload())
		if err := r.x.reply.write(c.Place()); err != nil {
			return err
		}
	}
}

// stream passes an event stream on. Nothing is sent before the first event
// with content; from there on each read is one write of all whole events in it.
// The rest of an event that is not whole yet waits for its end: were it sent, an
// error of ours could not follow it.
func (r *relay) stream() (*upstream.Failure, error) {
	c := &r.x.call
	s := &r.x.events
	*s = answer.NewFlow(r.x.plan.route.Kind, r.x.plan.hidesUsage, upstream.IsUnknown)
	r.x.facts.meter = nil // what another worker sent before it failed is before none of these events
	s.Recorder = r.recording()
	r.x.talk.Begin()
	s.Tap = r.x.talk.Tap()
	for {
		f, err := r.passEvents()
		if f != nil || err != nil {
			return f, err
		}
		if r.x.facts.why != "" {
			return nil, nil
		}
		c.Shrink()
		err = c.More()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return r.endEvents()
		case !r.x.reply.began:
			return nil, err
		default:
			r.interrupted(!s.Done && !s.Failed)
			return nil, nil
		}
	}
}

// passEvents sends what may be sent of the events that have come.
func (r *relay) passEvents() (*upstream.Failure, error) {
	c, s := &r.x.call, &r.x.events
	for {
		seen := s.Contents
		pass, skip := s.Scan(c.Payload())
		if n := s.Contents - seen; n > 0 {
			r.x.at.Tokens(c.Now, n)
			r.x.chunks(n)
		}
		if s.Failed && !s.Opened {
			return r.failedFirst(s.Failure)
		}
		if s.TooLong() {
			if !r.x.reply.began {
				return nil, errTooLong
			}
			r.interrupted(true)
			return nil, nil
		}
		if pass+skip > 0 || !s.Opened {
			r.x.share()
		}
		if pass+skip == 0 {
			return nil, nil
		}
		if !r.x.reply.began {
			if err := r.hand.commit(); err != nil {
				return nil, err
			}
		}
		if err := r.sendEvents(pass); err != nil {
			r.x.lostClient()
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
	r.x.call.Distrust() // what follows the event is not worth reading
	f := upstream.ConcealedEvent(r.x.facts.worker, r.x.events.Withheld)
	r.x.p.logUnknown(r.x.backend, f)
	r.x.facts.why = "worker_error"
	r.x.facts.usage = r.x.events.Usage
	r.x.reply.breakOff(r.x.events.AppendError(r.stillHeld(), f.Err))
}

// failedFirst turns an error event that came before any content into the error
// reply that it stands for.
func (r *relay) failedFirst(event []byte) (*upstream.Failure, error) {
	r.x.call.Distrust() // what follows the event is not worth reading
	return upstream.EventFailure(r.x.facts.worker, event), nil
}

// sendEvents writes the first n bytes of the payload.
func (r *relay) sendEvents(n int) error {
	c := &r.x.call
	events := c.Payload()[:n]
	if r.x.plan.unveil != nil {
		events = r.x.plan.unveil.Events(events)
	}
	switch {
	case r.x.reply.began && len(events) == 0:
		return nil
	case r.x.reply.began && r.x.plan.unveil != nil:
		return r.x.reply.send(events)
	case r.x.reply.began:
		buf, start, _ := c.Place()
		return r.x.reply.write(buf, start, start+n)
	}
	header := c.Head.AppendHeaders(wire.TakeBuffer(wire.SmallBuffer)[:0])
	err := r.x.reply.begin(c.Head.Status, header, -1, events)
	wire.GiveBuffer(header[:cap(header)])
	r.x.answered()
	r.x.forgetBody()
	return err
}

// endEvents ends a stream whose framing ended rightly. It is a finished answer
// only if its events say so too.
func (r *relay) endEvents() (*upstream.Failure, error) {
	c, s := &r.x.call, &r.x.events
	if rest := s.Last(c.Payload()); rest > 0 || !r.x.reply.began {
		if s.Failed && !s.Opened {
			return r.failedFirst(s.Failure)
		}
		if !r.x.reply.began {
			if !s.Finished() {
				return nil, io.ErrUnexpectedEOF
			}
			if err := r.hand.commit(); err != nil {
				return nil, err
			}
		}
		if err := r.sendEvents(rest); err != nil {
			r.x.lostClient()
			return nil, nil
		}
		c.Pass(rest)
	}
	if s.Withheld != nil {
		r.withheld()
		return nil, nil
	}
	r.x.facts.usage = s.Usage
	r.x.spend(r.x.facts.usage.Total())
	if !s.Finished() {
		c.Distrust() // the connection of a worker that lies about its end is not kept
		r.interrupted(true)
		return nil, nil
	}
	if s.Failed {
		r.x.facts.why = "worker_error"
	} else {
		r.x.shareWhole(r.x.recorder)
	}
	err := r.x.reply.send(r.stillHeld())
	if err == nil {
		err = r.x.reply.end()
	}
	if err != nil {
		r.x.lostClient()
	}
	return nil, nil
}

// stillHeld is what was held back of a text that comes to no placeholder now.
func (r *relay) stillHeld() []byte {
	if r.x.plan.unveil == nil {
		return nil
	}
	return r.x.plan.unveil.Last()
}

// interrupted ends an answer that was begun and cannot be finished: an error in
// the stream if the client can still read one there, and a broken end.
func (r *relay) interrupted(tell bool) {
	switch {
	case r.x.recipients.lost():
		r.x.lostClient()
		return
	case r.x.p.stopping.Load():
		r.x.facts.why = "shutdown"
	default:
		r.x.facts.why = whyInterrupted
	}
	r.x.facts.usage = r.x.events.Usage
	var last []byte
	if tell && r.x.facts.streamed {
		last = r.x.events.AppendError(append(last, r.stillHeld()...), r.interruption())
	}
	r.x.reply.breakOff(last)
}

// interruption is the error that ends a broken stream.
func (r *relay) interruption() *openai.Error {
	e := upstream.Fault(502, "worker %q stopped in the middle of its answer; the answer so far is incomplete, ask again", r.x.facts.worker)
	if r.x.facts.why == "shutdown" {
		e = upstream.Fault(503, "the gateway %s; the answer so far is incomplete, ask again", "is shutting down")
	}
	e.Code = "stream_interrupted"
	return e
}
