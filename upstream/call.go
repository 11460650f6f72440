// A call: one request sent to one worker, and its reply as it is read.

package upstream

import (
	"errors"
	"io"
	"net"
	"time"

	"kvasir/openai"
	"kvasir/wire"
)

// maxInterim is how many interim replies (1xx) a worker may send before its reply.
// Each is bounded as a head is, and dropped when the next one is read.
const maxInterim = 64

// Errors of a call.
var (
	ErrGone      = errors.New("the client has gone") // or nobody wants the reply any more
	ErrFirstByte = errors.New("the worker sent nothing within timeouts.first_byte")
	ErrIdle      = errors.New("the worker fell silent for longer than timeouts.idle")

	errStale   = errors.New("the kept connection was closed before a reply began")
	errInterim = errors.New("over 64 interim replies (1xx) before the reply itself")
)

// A HeadError is a reply that is no HTTP, or whose head is too large.
type HeadError struct{ Err error }

func (e *HeadError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *HeadError) Unwrap() error { return e.Err }

// A Call is one try at one worker. The zero value is ready for Open, and after
// Finish it is so again. Its buffer is laid out as
//
//	[ room | head of the reply | payload not yet passed on | free ]
//	                           start                       end
//
// The head's place is given up when the reply to the client has begun. From then on
// the room before a payload takes the size line of our own chunk, so that an event
// that came in one read goes out in one write, without being copied.
//
//  1. A call has a connection from Open until LetGo, and its asker is bound to that
//     connection for the same time.
//  2. Head points into the buffer: it is good until the first Pass.
//  3. The connection is kept only when the body has ended as its framing says and
//     nothing came behind it.
//  4. Ended and broken exclude each other, and neither is undone by reading on.
type Call struct {
	// Now is when the call last went on: after sending, or after waiting for the
	// worker. Reading the clock once for each read is enough for all that follows it.
	Now    time.Time
	Sent   time.Time     // when the request was written: the first-byte clock runs from here
	Heard  time.Time     // when the head of the reply was there
	Waited time.Duration // spent waiting for the worker, stale connections included
	Head   Head          // of the reply

	pool     *Conns
	conn     *conn // nil: none could be made, or it was let go
	timeouts Timeouts

	frame wire.Framing // of the reply's body
	buf   []byte       // of wire.TakeBuffer; nil before the first read
	front []byte       // the smaller buffer that the head lies in, once buf is another; nil: it is buf
	start int          // of the payload in buf
	end   int          // of the payload in buf

	body   bool  // a byte of the body has come: from now on the idle clock runs
	ended  bool  // the body has ended rightly
	broken error // why the body could not be read to its end
}

// A Holder can stop a call from outside: it closes what is bound when nobody waits
// for the reply any more.
type Holder interface {
	Bind(io.Closer) bool // false: nobody waits already, and nothing is bound
	Unbind() (held bool) // false: it was closed, or nothing was bound
}

// An Asker is a Holder that has a request for a worker.
type Asker interface {
	Holder
	Request() net.Buffers // head and body; valid until it is called again
}

// Open takes a connection, sends the request and reads the reply's head. A kept
// connection that the worker has closed in the meantime is replaced by a new one:
// the worker has not seen the request. After an error the call may still have a
// connection: LetGo or Finish is due in any case.
func (c *Call) Open(by Asker, pool *Conns, t Timeouts) error {
	waited := time.Duration(0)
	for {
		*c = Call{pool: pool, timeouts: t, buf: c.buf, Waited: waited}
		err := c.try(by)
		if !errors.Is(err, errStale) {
			return err
		}
		by.Unbind()
		c.conn.drop()
		waited = c.Waited
	}
}

func (c *Call) try(by Asker) error {
	c.Now = time.Now()
	conn, err := c.pool.take()
	if err != nil || !conn.used { // a kept one costs no waiting
		c.wait(time.Now())
	}
	if err != nil {
		return err
	}
	c.conn = conn
	if !by.Bind(conn.raw) { // not TLS: its Close can wait for a worker that does not read
		return ErrGone
	}
	err = conn.send(by.Request(), c.Now)
	c.Now = time.Now()
	c.Sent = c.Now
	if err == nil {
		return c.readHead()
	}
	if wire.IsTimeout(err) || c.readHead() != nil {
		return c.stale(err)
	}
	// The worker has answered before it had read the whole request, and hung up: 413
	// and 401 come so.
	c.Head.close = true
	return nil
}

// stale turns the end of a kept connection without a byte of reply into errStale.
func (c *Call) stale(err error) error {
	if c.conn.used && c.end == 0 && !wire.IsTimeout(err) && !errors.Is(err, ErrFirstByte) && !errors.Is(err, net.ErrClosed) {
		return errStale
	}
	return err
}

// readHead reads until the head of the final reply is complete. Interim replies
// are dropped as they come; a worker that sends many of them has no reply.
func (c *Call) readHead() error {
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
			n, err := c.Head.parse(c.buf[c.start:at])
			if err != nil {
				return &HeadError{err}
			}
			if n == 0 {
				break
			}
			c.start += n
			if c.Head.Status >= 200 {
				return c.headRead(at)
			}
			if interim++; interim > maxInterim {
				return &HeadError{errInterim}
			}
		}
		at = wire.Headroom + copy(c.buf[wire.Headroom:], c.buf[c.start:at])
		c.start = wire.Headroom
	}
}

// headRead begins the body, of which there may be bytes up to at.
func (c *Call) headRead(at int) error {
	c.conn.used = true
	c.Heard = c.Now
	c.frame = c.Head.framing()
	c.end = c.start
	return c.decode(at)
}

// read reads once from the worker into the buffer from at on.
func (c *Call) read(at int) (int, error) {
	if at > wire.Headroom {
		c.conn.ack.say()
	}
	if len(c.buf)-wire.Tailroom-at < wire.SmallBuffer/4 {
		c.grow(at)
	}
	if at > wire.Headroom { // between the request and its reply, nothing else is done
		c.Now = time.Now()
	}
	limit := c.timeouts.Idle
	if !c.body {
		limit = c.timeouts.FirstByte - c.Now.Sub(c.Sent)
	}
	n, err := c.conn.readWithin(c.buf[at:len(c.buf)-wire.Tailroom], c.Now, limit)
	c.wait(time.Now())
	switch {
	case n > 0:
		return n, nil
	case wire.IsTimeout(err) && !c.body:
		return 0, ErrFirstByte
	case wire.IsTimeout(err):
		return 0, ErrIdle
	default:
		return 0, err
	}
}

// wait counts the time until now as waiting.
func (c *Call) wait(now time.Time) {
	c.Waited += now.Sub(c.Now)
	c.Now = now
}

// More reads once and decodes. io.EOF means that the body has ended rightly.
func (c *Call) More() error {
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

// Hold reads until the body has ended (io.EOF) or at least limit bytes of it are
// held.
func (c *Call) Hold(limit int) error {
	for len(c.Payload()) < limit {
		if err := c.More(); err != nil {
			return err
		}
	}
	return nil
}

// decode takes the framing off what lies between end and at.
func (c *Call) decode(at int) error {
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
		return nil // what came before the fault is still good; the next More tells of it
	}
	return err
}

// Ended says whether the body has ended rightly.
func (c *Call) Ended() bool { return c.ended }

// Distrust has the connection closed when it is let go, however the body ends:
// what follows in it is not worth reading, or the worker lies about its end.
func (c *Call) Distrust() { c.ended = false }

// Connected says whether there is a connection. After Open has failed, false means
// that none could be made.
func (c *Call) Connected() bool { return c.conn != nil }

// Payload is what has come of the body and was not passed on. It is valid until
// the next call of any other method.
func (c *Call) Payload() []byte { return c.buf[c.start:c.end] }

// Place is where Payload lies: in buf[start:end], with wire.Headroom bytes before it
// and wire.Tailroom bytes behind it, for wire.FrameChunk to write over. Those behind
// it may be part of what is still to be passed on, when only the front of the
// payload is framed: they have to be put back.
func (c *Call) Place() (buf []byte, start, end int) { return c.buf, c.start, c.end }

// Pass says that the first n bytes of the payload were passed on. The rest moves to
// the front, over the head: that must have been sent.
func (c *Call) Pass(n int) {
	c.end = wire.Headroom + copy(c.buf[wire.Headroom:], c.buf[c.start+n:c.end])
	c.start = wire.Headroom
}

// Cut takes a member of a JSON object, a sub-slice of the payload, out of it, with
// its comma; nil: none.
func (c *Call) Cut(member []byte) {
	if len(member) == 0 {
		return
	}
	held := c.Payload()
	from := wire.Offset(held, member)
	var s openai.Splices
	s.Remove(openai.Span{Start: int32(from), End: int32(from + len(member))})
	start, end := s.Removal(held)
	c.end = c.start + start + copy(held[start:], held[end:])
}

// grow makes room for another read behind the first at bytes.
func (c *Call) grow(at int) {
	bigger := wire.TakeBuffer(2 * len(c.buf))
	copy(bigger, c.buf[:at])
	if c.front == nil && c.Head.Status >= 200 {
		c.front = c.buf
	} else {
		wire.GiveBuffer(c.buf) // the head does not point into it, or not yet
	}
	c.buf = bigger
}

// Shrink gives a grown buffer back where nothing is held, before a stream waits.
func (c *Call) Shrink() {
	if c.front != nil && c.end == wire.Headroom {
		wire.GiveBuffer(c.buf)
		c.buf, c.front = c.front, nil
	}
}

// LetGo gives the connection back: to be kept when the reply was read to its right
// end, else closed, since reading on would keep the worker working. What was read
// stays. by is who opened the call; nil where it has no connection any more.
func (c *Call) LetGo(by Holder) {
	if c.conn == nil {
		return
	}
	if held := by.Unbind(); held && c.ended && !c.frame.Dirty() && !c.Head.close {
		c.conn.keep()
	} else {
		c.conn.drop()
	}
	c.conn = nil
}

// Finish lets go of the connection and of what was read.
func (c *Call) Finish(by Holder) {
	c.LetGo(by)
	for _, b := range [...]*[]byte{&c.buf, &c.front} {
		if *b != nil {
			wire.GiveBuffer(*b)
			*b = nil
		}
	}
}
