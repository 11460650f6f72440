// A call: one request sent to one worker, and its reply as it is read.
package proxy

import (
	"errors"
	"io"
	"net"
	"time"

	"kvasir/wire"
)

const (
	holdLimit = 64 << 10 // what may be held back of a reply, and queued of a stream

	// maxInterim is how many interim replies a worker may send before its reply.
	// Each is bounded as a head is, and dropped when the next one is read.
	maxInterim = 64
)

var (
	errStale     = errors.New("the kept connection was closed before a reply began")
	errGone      = errors.New("the client has gone")
	errFirstByte = errors.New("the worker sent nothing within timeouts.first_byte")
	errIdle      = errors.New("the worker fell silent for longer than timeouts.idle")
	errTooLong   = errors.New("the worker's reply is longer than may be held")
	errInterim   = errors.New("over 64 interim replies (1xx) before the reply itself")
)

// A call is one try at one worker. Its buffer is laid out as
//
//	[ room | head of the reply | payload not yet passed on | free ]
//	                            start                    end
//
// The head is let go of when the reply begins; from there on the room before a
// payload takes the size of our own chunk, so that an event that came in one
// read goes out in one write without being copied.
type call struct {
	b     *backend
	conn  *workerConn
	clock Timeouts
	now   time.Time // when it last went on, after sending or waiting
	sent  time.Time // when the request was written: the first-byte clock runs from here
	heard time.Time // when the head of the reply was there

	head  replyHead // points into front
	frame wire.Framing
	buf   []byte
	front []byte // the buffer that the head lies in, once buf is another
	start int
	end   int

	body   bool          // a byte of the body has come
	ended  bool          // the body has ended rightly
	waited time.Duration // spent waiting for the worker
	broken error         // why the body could not be read to its end
}

// A holder is who must be able to stop a call from outside: it closes what is
// bound when the client is lost.
type holder interface {
	bind(io.Closer) bool
	unbind() (held bool) // false: it was closed
}

// An asker is a holder that has a request for a worker. What request returns
// is valid until it is called again.
type asker interface {
	holder
	request(*backend) net.Buffers
}

// open takes a connection, sends the request and reads the reply's head. A kept
// connection that the worker closed in the meantime is replaced by a fresh one:
// the worker has not seen the request.
func (c *call) open(by asker, b *backend, clock Timeouts) error {
	waited := time.Duration(0)
	for {
		*c = call{b: b, clock: clock, buf: c.buf, waited: waited}
		err := c.try(by)
		if !errors.Is(err, errStale) {
			return err
		}
		by.unbind()
		c.conn.drop()
		waited = c.waited
	}
}

func (c *call) try(by asker) error {
	c.now = time.Now()
	conn, err := c.b.take()
	if err != nil || !conn.used { // a kept one costs no waiting
		c.wait(time.Now())
	}
	if err != nil {
		return err
	}
	c.conn = conn
	if !by.bind(conn.raw) { // not TLS: its Close can wait for a worker that does not read
		return errGone
	}
	err = conn.send(by.request(c.b), c.now)
	c.now = time.Now()
	c.sent = c.now
	if err == nil {
		return c.readHead()
	}
	if wire.IsTimeout(err) || c.readHead() != nil {
		return c.stale(err)
	}
	// It has answered before it read all, and hung up: 413 and 401 come so.
	c.head.close = true
	return nil
}

// stale turns the end of a kept connection without a byte of reply into errStale.
func (c *call) stale(err error) error {
	if c.conn.used && c.end == 0 && !wire.IsTimeout(err) && !errors.Is(err, errFirstByte) && !errors.Is(err, net.ErrClosed) {
		return errStale
	}
	return err
}

// readHead reads until the head of the final reply is complete. Interim replies
// (1xx) are dropped as they come; a worker that sends many has no reply.
func (c *call) readHead() error {
	if c.buf == nil {
		c.buf = wire.TakeBuffer(wire.SmallBuffer)
	}
	c.start = wire.Headroom
	at := wire.Headroom // where the bytes of the reply end
	for interim := 0; ; {
		n, err := c.read(at)
		if err != nil {
			return c.stale(err)
		}
		at += n
		c.end = at // from here on something has come
		for at > c.start {
			n, err := c.head.parse(c.buf[c.start:at])
			if err != nil {
				return &badHead{err}
			}
			if n == 0 {
				break
			}
			c.start += n
			if c.head.status >= 200 {
				return c.headRead(at)
			}
			if interim++; interim > maxInterim {
				return &badHead{errInterim}
			}
		}
		at = wire.Headroom + copy(c.buf[wire.Headroom:], c.buf[c.start:at])
		c.start = wire.Headroom
	}
}

// headRead begins the body, of which there may be bytes up to at.
func (c *call) headRead(at int) error {
	c.conn.used = true
	c.heard = c.now
	c.frame = c.head.framing()
	c.end = c.start
	return c.decode(at)
}

// read reads once from the worker into the buffer from at on.
func (c *call) read(at int) (int, error) {
	if at > wire.Headroom {
		c.conn.ack.say()
	}
	if len(c.buf)-wire.Tailroom-at < wire.SmallBuffer/4 {
		c.grow(at)
	}
	if at > wire.Headroom { // between the request and its reply, nothing else is done
		c.now = time.Now()
	}
	limit := c.clock.Idle
	if !c.body {
		limit = c.clock.FirstByte - c.now.Sub(c.sent)
	}
	n, err := c.conn.readWithin(c.buf[at:len(c.buf)-wire.Tailroom], c.now, limit)
	c.wait(time.Now())
	switch {
	case n > 0:
		return n, nil
	case wire.IsTimeout(err) && !c.body:
		return 0, errFirstByte
	case wire.IsTimeout(err):
		return 0, errIdle
	default:
		return 0, err
	}
}

// wait books the time until now as waiting.
func (c *call) wait(now time.Time) {
	c.waited += now.Sub(c.now)
	c.now = now
}

// more reads once and decodes; io.EOF means that the body has ended rightly.
func (c *call) more() error {
	if c.ended {
		return io.EOF
	}
	if c.broken != nil {
		return c.broken
	}
	n, err := c.read(c.end)
	if errors.Is(err, io.EOF) {
		if err = c.frame.AtEOF(); err == nil {
			c.ended = true
			return io.EOF
		}
	}
	if err != nil {
		c.broken = err
		return err
	}
	return c.decode(c.end + n)
}

// decode takes the framing off what lies between end and at.
func (c *call) decode(at int) error {
	payload, _, err := c.frame.Decode(c.buf[c.end:at])
	if len(payload) > 0 {
		c.body = true
		from := wire.Offset(c.buf, payload)
		if c.start == c.end { // nothing is held: the payload stays where it is
			c.start, c.end = from, from+len(payload)
		} else {
			c.end += copy(c.buf[c.end:], payload)
		}
	}
	c.ended = c.frame.Done()
	c.broken = err
	if len(payload) > 0 {
		return nil // what came before the fault is still good; more tells of it
	}
	return err
}

// payload is what has come of the body and was not passed on.
func (c *call) payload() []byte { return c.buf[c.start:c.end] }

// pass says that the first n bytes of the payload were passed on. The rest
// moves to the front; the head must have been sent.
func (c *call) pass(n int) {
	c.end = wire.Headroom + copy(c.buf[wire.Headroom:], c.buf[c.start+n:c.end])
	c.start = wire.Headroom
}

// grow makes room for another read behind the first at bytes.
func (c *call) grow(at int) {
	bigger := wire.TakeBuffer(2 * len(c.buf))
	copy(bigger, c.buf[:at])
	if c.front == nil && c.head.status >= 200 {
		c.front = c.buf
	} else {
		wire.GiveBuffer(c.buf) // the head does not point into it, or not yet
	}
	c.buf = bigger
}

// shrink gives grown buffers back while a stream waits, when it holds nothing.
func (c *call) shrink() {
	if c.front != nil && c.end == wire.Headroom {
		wire.GiveBuffer(c.buf)
		c.buf, c.front = c.front, nil
	}
}

// letGo gives the connection back to be kept when the reply was read to its
// right end, and closes it otherwise: draining would keep the worker working.
// What was read stays.
func (c *call) letGo(by holder) {
	if c.conn == nil {
		return
	}
	if held := by.unbind(); held && c.ended && !c.frame.Dirty() && !c.head.close {
		c.conn.keep()
	} else {
		c.conn.drop()
	}
	c.conn = nil
}

// finish lets go of the connection and of what was read.
func (c *call) finish(by holder) {
	c.letGo(by)
	for _, b := range [...]*[]byte{&c.buf, &c.front} {
		if *b != nil {
			wire.GiveBuffer(*b)
			*b = nil
		}
	}
}

// A badHead is a reply that is no HTTP or whose head is too large.
type badHead struct{ err error }

func (e *badHead) Error() string { return e.err.Error() }
func (e *badHead) Unwrap() error { return e.err }
