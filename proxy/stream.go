// Streams: a worker's answer on its way to the client, event by event or as a body.
package proxy

import (
	"bytes"
	"errors"
	"io"
)

// eventLimit is how long one event may be. Longer is a broken worker.
const eventLimit = 4 << 20

const whyInterrupted = "interrupted"

// relay passes the worker's answer on. A failure or an error means that the
// client was sent nothing, and another worker may still be asked.
func (x *exchange) relay() (*failure, error) {
	h := &x.call.head
	switch {
	case h.status >= 400:
		return x.relayError()
	case h.status >= 300 && h.status != 304:
		return broken(502, "redirect", "worker %q answered with a redirect; check its url", x.facts.worker), nil
	case foldHas(h.contentType, "text/event-stream"):
		x.facts.streamed = true
		return x.relayEvents()
	default:
		return nil, x.relayBody()
	}
}

// relayBody passes on an answer that is no event stream. What fits the hold
// limit is read whole before the client is sent anything, so that a worker that
// dies over it costs a retry and no answer. Only what is no JSON and of unknown
// length, such as speech while it is made, goes on as it comes.
func (x *exchange) relayBody() error {
	c := &x.call
	limit := holdLimit
	if c.head.length < 0 && !foldHas(c.head.contentType, "application/json") {
		limit = 1
	}
	err := c.hold(limit)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	length, whole := c.head.length, c.ended
	var tail *bodyTail
	if whole {
		length = int64(len(c.payload()))
		x.facts.usage = usageNear(x.route.kind, c.payload())
		x.spend()
	} else {
		tail = tailOf(c.payload())
	}
	header := c.head.appendHeaders(takeBuffer(smallBuffer)[:0])
	err = x.reply.begin(c.head.status, header, length, c.payload())
	giveBuffer(header[:cap(header)])
	x.answered()
	if err == nil && !whole {
		x.forgetBody()
		err = x.relayRest(tail)
	}
	if err != nil {
		x.lostClient()
	}
	return nil
}

// relayRest passes on what comes of a body after its first part. An error is
// the client's; a worker that fails breaks the reply off.
func (x *exchange) relayRest(tail *bodyTail) error {
	c := &x.call
	for {
		c.pass(len(c.payload()))
		switch err := c.more(); {
		case errors.Is(err, io.EOF):
			x.facts.usage = tail.usage(x.route.kind)
			x.spend()
			return x.reply.end()
		case err != nil:
			x.interrupted(false)
			return nil
		}
		if len(c.payload()) == 0 {
			continue
		}
		tail.add(c.payload())
		if err := x.reply.write(c.buf, c.start, c.end); err != nil {
			return err
		}
	}
}

// hold reads until the body has ended or more than limit bytes of it are held.
func (c *call) hold(limit int) error {
	for len(c.payload()) < limit {
		if err := c.more(); err != nil {
			return err
		}
	}
	return nil
}

// relayEvents passes an event stream on. Nothing is sent before the first event
// with content; from there on each read is one write of all whole events in it.
// The rest of an event that is not whole yet waits for its end: were it sent, an
// error of ours could not follow it.
func (x *exchange) relayEvents() (*failure, error) {
	c := &x.call
	s := &x.events
	s.begin(x.route.kind, x.hidesUsage)
	for {
		f, err := x.passEvents()
		if f != nil || err != nil {
			return f, err
		}
		if x.facts.why != "" {
			return nil, nil
		}
		c.shrink()
		err = c.more()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return x.endEvents()
		case !x.reply.began:
			return nil, err
		default:
			x.interrupted(!s.done && !s.failed)
			return nil, nil
		}
	}
}

// passEvents sends what may be sent of the events that have come.
func (x *exchange) passEvents() (*failure, error) {
	c, s := &x.call, &x.events
	for {
		pass, skip := s.scan(c.payload())
		if s.failed && !s.opened {
			return x.failedFirst(s.failure)
		}
		if s.tooLong() {
			c.broken = errTooLong
			if !x.reply.began {
				return nil, c.broken
			}
			x.interrupted(true)
			return nil, nil
		}
		if pass+skip == 0 {
			return nil, nil
		}
		if err := x.sendEvents(pass); err != nil {
			x.lostClient()
			return nil, nil
		}
		c.pass(pass + skip)
	}
}

// sendEvents writes the first n bytes of the payload.
func (x *exchange) sendEvents(n int) error {
	c := &x.call
	if x.reply.began {
		if n == 0 {
			return nil
		}
		return x.reply.write(c.buf, c.start, c.start+n)
	}
	header := c.head.appendHeaders(takeBuffer(smallBuffer)[:0])
	err := x.reply.begin(c.head.status, header, -1, c.payload()[:n])
	giveBuffer(header[:cap(header)])
	x.answered()
	x.forgetBody()
	return err
}

// endEvents ends a stream whose framing ended rightly. It is a finished answer
// only if its events say so too.
func (x *exchange) endEvents() (*failure, error) {
	c, s := &x.call, &x.events
	if rest := s.last(c.payload()); rest > 0 || !x.reply.began {
		if s.failed && !s.opened {
			return x.failedFirst(s.failure)
		}
		if !x.reply.began && !s.finished() {
			return nil, io.ErrUnexpectedEOF
		}
		if err := x.sendEvents(rest); err != nil {
			x.lostClient()
			return nil, nil
		}
		c.pass(rest)
	}
	x.facts.usage = s.usage
	x.spend()
	if !s.finished() {
		c.ended = false // the connection of a worker that lies about its end is not kept
		x.interrupted(true)
		return nil, nil
	}
	if s.failed {
		x.facts.why = "worker_error"
	}
	if err := x.reply.end(); err != nil {
		x.lostClient()
	}
	return nil, nil
}

// interrupted ends an answer that was begun and cannot be finished: an error in
// the stream if the client can still read one there, and a broken end.
func (x *exchange) interrupted(tell bool) {
	switch {
	case x.conn.gone.Load():
		x.lostClient()
		return
	case x.p.stopping.Load():
		x.facts.why = "shutdown"
	default:
		x.facts.why = whyInterrupted
	}
	x.facts.usage = x.events.usage
	var last []byte
	if tell && x.facts.streamed {
		last = x.events.appendError(nil, x.interruption())
	}
	x.reply.breakOff(last)
}

// interruption is the error that ends a broken stream.
func (x *exchange) interruption() *apiError {
	e := upstream(502, "worker %q stopped in the middle of its answer; what came until here is not whole. Ask again", x.facts.worker)
	if x.facts.why == "shutdown" {
		e = upstream(503, "the gateway %s; what came until here is not whole. Ask again", "is shutting down")
	}
	e.code = "stream_interrupted"
	return e
}

// lostClient notes that the client did not stay to the end.
func (x *exchange) lostClient() {
	x.facts.why = "client_gone"
	if x.facts.usage == noCounts && x.reply.began {
		x.facts.usage = x.events.usage // one that hangs up behind the last event has had them all
	}
	x.ctx.SetConnectionClose()
	x.answered()
}

// answered keeps fasthttp's own reply back.
func (x *exchange) answered() { x.conn.answered = true }

// forgetBody frees the prompt while the answer streams: nothing is sent again.
// An answer that is whole already does without.
func (x *exchange) forgetBody() {
	x.req.reset() // its fields are sub-slices of the body
	clear(x.pieces)
	x.body = nil
	x.ctx.Request.ResetBody()
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
func (t *bodyTail) usage(k kind) tokenCounts {
	if t == nil {
		return noCounts
	}
	return usageNear(k, t.last)
}

// usageNear reads the counts of the "usage" member near the end of a body, where
// engines put it: walking the whole answer for it costs as much as parsing the
// request. Quotes inside strings are escaped, so text cannot hold it.
func usageNear(k kind, body []byte) tokenCounts {
	near := body[max(len(body)-tailLength, 0):]
	for {
		at := bytes.Index(near, usageMember)
		if at < 0 {
			return usageOf(k, body)
		}
		near = near[at+len(usageMember):]
		o := replyObject{tokenCounts: noCounts}
		w := replyWalker{b: bytes.TrimLeft(near, " :")}
		if o.readUsage(&w); o.counted && !w.bad {
			return o.tokenCounts
		}
	}
}

var usageMember = []byte(`"usage"`)
