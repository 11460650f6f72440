// Streams: a worker's answer on its way to the client, event by event or as a body.
package proxy

import (
	"bytes"
	"errors"
	"io"

	"kvasir/header"
	"kvasir/openai"
	"kvasir/upstream"
	"kvasir/wire"
)

const (
	holdLimit  = 64 << 10 // bytes that may be held back of a reply, and queued of a stream
	eventLimit = 4 << 20  // bytes of one event; a longer one is a broken worker's
)

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
	if cached := r.facts.usage.cachedTokens; f == nil && cached >= 0 {
		r.placing.at.Cached(cached)
	}
	// Of several sequences the count is the sum, and they were generated side by side.
	if tokens := r.facts.usage.completionTokens; f == nil && tokens > 0 && !r.facts.streamed && single {
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
		limit = unveilLimit
	case json && record != nil:
		limit = recordLimit
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
	var tail *bodyTail
	if record != nil {
		record.wholeBody(payload, json && whole)
		sharer{r.exchange}.recorded()
	}
	if whole {
		if json && r.unveil != nil {
			payload = r.unveil.body(payload)
		}
		length = int64(len(payload))
		r.facts.usage = usageNear(r.route.Kind, c.Payload())
		r.spend(r.facts.usage.total())
	} else {
		tail = tailOf(c.Payload())
	}
	header := c.Head.AppendHeaders(wire.TakeBuffer(wire.SmallBuffer)[:0])
	err = r.reply.begin(c.Head.Status, header, length, payload)
	wire.GiveBuffer(header[:cap(header)])
	r.answered()
	if err == nil && !whole {
		r.forgetBody()
		err = r.rest(tail)
	}
	if err != nil {
		r.lostClient()
	}
	return nil
}

// rest passes on what comes of a body after its first part. An error is
// the client's; a worker that fails breaks the reply off.
func (r *relay) rest(tail *bodyTail) error {
	c := &r.call
	for {
		c.Pass(len(c.Payload()))
		switch err := c.More(); {
		case errors.Is(err, io.EOF):
			r.facts.usage = tail.usage(r.route.Kind)
			r.spend(r.facts.usage.total())
			return r.reply.end()
		case err != nil:
			r.interrupted(false)
			return nil
		}
		if len(c.Payload()) == 0 {
			continue
		}
		tail.add(c.Payload())
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
	s.begin(r.route.Kind, r.hidesUsage)
	s.recorder = r.recording()
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
			r.interrupted(!s.done && !s.failed)
			return nil, nil
		}
	}
}

// passEvents sends what may be sent of the events that have come.
func (r *relay) passEvents() (*upstream.Failure, error) {
	c, s := &r.call, &r.events
	for {
		seen := s.contents
		pass, skip := s.scan(c.Payload())
		if n := s.contents - seen; n > 0 {
			r.placing.at.Tokens(c.Now, n)
		}
		if s.failed && !s.opened {
			return r.failedFirst(s.failure)
		}
		if s.tooLong() {
			if !r.reply.began {
				return nil, errTooLong
			}
			r.interrupted(true)
			return nil, nil
		}
		if pass+skip > 0 || !s.opened {
			sharer{r.exchange}.passOn()
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
		if s.withheld != nil {
			r.withheld()
			return nil, nil
		}
	}
}

// withheld ends a stream in which an error event came that may hold anything of
// the worker's host: the client is told of it in our words.
func (r *relay) withheld() {
	r.call.Distrust() // what follows the event is not worth reading
	f := upstream.ConcealedEvent(r.facts.worker, r.events.withheld)
	r.p.logUnknown(r.backend, f)
	r.facts.why = "worker_error"
	r.facts.usage = r.events.usage
	r.reply.breakOff(r.events.appendError(r.stillHeld(), f.Err))
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
		events = r.unveil.events(events)
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
	if rest := s.last(c.Payload()); rest > 0 || !r.reply.began {
		if s.failed && !s.opened {
			return r.failedFirst(s.failure)
		}
		if !r.reply.began {
			if !s.finished() {
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
	if s.withheld != nil {
		r.withheld()
		return nil, nil
	}
	r.facts.usage = s.usage
	r.spend(r.facts.usage.total())
	if !s.finished() {
		c.Distrust() // the connection of a worker that lies about its end is not kept
		r.interrupted(true)
		return nil, nil
	}
	if s.failed {
		r.facts.why = "worker_error"
	} else {
		sharer{r.exchange}.recorded()
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
	return r.unveil.last()
}

// interrupted ends an answer that was begun and cannot be finished: an error in
// the stream if the client can still read one there, and a broken end.
func (r *relay) interrupted(tell bool) {
	switch {
	case r.lost():
		r.lostClient()
		return
	case r.p.stopping.Load():
		r.facts.why = "shutdown"
	default:
		r.facts.why = whyInterrupted
	}
	r.facts.usage = r.events.usage
	var last []byte
	if tell && r.facts.streamed {
		last = r.events.appendError(append(last, r.stillHeld()...), r.interruption())
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

// A bodyTail keeps the end of a body that is too large to hold: that is where
// its usage stands.
type bodyTail struct{ last []byte }

const tailLength = 1 << 10

func tailOf(payload []byte) *bodyTail {
	t := &bodyTail{}
	t.add(payload)
	return t
}

func (t *bodyTail) add(payload []byte) {
	if len(payload) >= tailLength {
		t.last = append(t.last[:0], payload[len(payload)-tailLength:]...)
		return
	}
	if over := len(t.last) + len(payload) - tailLength; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.last = append(t.last, payload...)
}

// usage reads the counts of the last `"usage":{...}`.
func (t *bodyTail) usage(k openai.Kind) tokenCounts {
	if t == nil {
		return noCounts
	}
	return usageNear(k, t.last)
}

// usageNear reads the counts of the "usage" member near the end of a body, where
// engines put it: walking the whole answer for it costs as much as parsing the
// request. Quotes inside strings are escaped, so text cannot hold it.
func usageNear(k openai.Kind, body []byte) tokenCounts {
	near := body[max(len(body)-tailLength, 0):]
	for {
		at := bytes.Index(near, usageMember)
		if at < 0 {
			return usageOf(k, body)
		}
		near = near[at+len(usageMember):]
		o := replyObject{tokenCounts: noCounts}
		w := openai.Walker{B: bytes.TrimLeft(near, " :")}
		if o.readUsage(&w); o.counted && !w.Bad {
			return o.tokenCounts
		}
	}
}

var usageMember = []byte(`"usage"`)
