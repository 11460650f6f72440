// Receiving: a client's body is read by ourselves, so that memory follows what has come and not what was announced.

package edge

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/wire"
)

// fasthttp believes a Content-Length: it allocates 32 MiB for a head of 90
// bytes. So it is given heads only. The connection hands it the bytes of one
// head (headEnd), LeaveBody tells it that no body follows, and Receive reads
// the body before any route sees the request.

// errNoFraming is the error of a head that does not say where its body ends.
var errNoFraming = errors.New("the length of the body cannot be told")

// Receive reads the request's body, of at most most bytes, within the budget, and
// gives it to fasthttp's request until Forget. An unread body is stepped over: it takes
// no memory. The error is fasthttp.ErrBodyTooLarge, ErrNoRoom, or what reading met;
// nothing that follows on the connection can be trusted then.
func Receive(ctx *fasthttp.RequestCtx, budget *Budget, most int64, unread bool) error {
	c, ok := ctx.Conn().(*Conn)
	if !ok {
		return nil
	}
	c.arrived = ctx.Time()
	f, ok := framingOf(ctx.Request.Header.RawHeaders())
	switch {
	case !ok:
		return errNoFraming
	case f.Done():
		return nil
	}
	c.body = body{budget: budget, most: most, unread: unread}
	if n, sized := f.Size(); sized && n < most {
		c.body.most = n
	}
	err := c.body.receive(c, &f)
	if c.arrived = time.Now(); err != nil {
		c.body.letGo()
		return err
	}
	if !unread {
		ctx.Request.SetBodyRaw(c.body.bytes())
	}
	return nil
}

// Forget frees the body of a request, and of what was made of it what was charged for.
// Nobody may read it after.
func Forget(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*Conn); ok {
		ctx.Request.ResetBody()
		c.body.letGo()
	}
}

// LeaveBody tells fasthttp that no body follows this head: Receive reads it.
func LeaveBody(h *fasthttp.RequestHeader) {
	if n := h.ContentLength(); n > 0 || n == -1 {
		h.SetContentLength(0)
	}
}

// framingOf is how the body behind a request's head is framed; false: nobody can
// tell where it ends. fasthttp has accepted the head: there is at most one
// Content-Length or one Transfer-Encoding.
func framingOf(lines []byte) (f wire.Framing, ok bool) {
	f, ok = wire.Sized(0), true
	for len(lines) > 0 {
		var line []byte
		line, lines = header.CutLine(lines)
		switch line[0] | 0x20 {
		case 'c':
			if name, value := header.SplitField(line); header.Is(name, "content-length") {
				n := header.ParseLength(value)
				f, ok = wire.Sized(n), n >= 0
			}
		case 't':
			if name, value := header.SplitField(line); header.Is(name, "transfer-encoding") {
				if header.Is(value, "chunked") {
					return wire.Chunked(), true
				}
				f, ok = wire.Framing{}, false
			}
		}
	}
	return f, ok
}

// receive reads until the body has ended. Where much is still to come it is read
// straight into the body's buffer. Its end, and what stands between chunks, are read
// through the buffer of the connection, since the next request may follow in the same read.
func (b *body) receive(c *Conn, f *wire.Framing) error {
	for !f.Done() {
		if b.unread {
			b.gone, b.n = b.gone+int64(b.n), 0
		}
		if b.gone+int64(b.n)+f.Left() > b.most {
			return fasthttp.ErrBodyTooLarge
		}
		if c.from == c.to && f.Left() > readAhead && f.Plain() {
			if err := b.receiveDirect(c, f); err != nil {
				return err
			}
			continue
		}
		if err := c.fill(); err != nil {
			return early(err)
		}
		payload, rest, err := f.Decode(c.ahead[c.from:c.to])
		if err != nil {
			return err
		}
		if _, err := b.Write(payload); err != nil {
			return err
		}
		c.took(c.to - c.from - len(rest))
	}
	return nil
}

// receiveDirect reads once, nothing but bytes of the body.
func (b *body) receiveDirect(c *Conn, f *wire.Framing) error {
	if err := b.room(); err != nil {
		return err
	}
	n, err := c.readRaw(b.buf[b.n:min(int64(len(b.buf)), int64(b.n)+f.Left())])
	if n == 0 {
		return early(err)
	}
	_, _, err = f.Decode(b.buf[b.n : b.n+n])
	b.n += n
	return err
}

// early is the error of a body that ended before it should have.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
