// Receiving: our own reader of request bodies, whose memory follows the bytes received, not the
// length announced.

package edge

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/wire"
)

// fasthttp trusts a Content-Length: it allocates 32 MiB for a head of 90 bytes. So it gets heads
// only. The connection gives it the bytes of one head (headEnd), LeaveBody tells it that no body
// follows, and Receive reads the body before any route sees the request.

// errNoFraming is returned for a head that does not say where its body ends.
var errNoFraming = errors.New("the length of the body cannot be told")

// Receive reads the request's body, at most `most` bytes, within the budget, and sets it as the
// body of fasthttp's request until Forget. With unread, the body is skipped and takes no memory.
// The error is fasthttp.ErrBodyTooLarge, ErrNoRoom or an error of reading; after any of them,
// later bytes on the connection cannot be trusted.
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

// Forget frees the body of a request and the memory charged for data derived from it. Nobody may
// read either afterwards.
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

// framingOf returns how the body after a request's head is framed; false: the head does not say
// where the body ends. fasthttp has accepted the head, so there is at most one Content-Length or
// one Transfer-Encoding.
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

// receive reads until the body has ended. Large pieces are read straight into the body's buffer.
// The end of the body, and the lines between chunks, are read through the connection's buffer,
// since the next request may follow in the same read.
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

// receiveDirect reads once, and only bytes of the body.
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

// early turns the error of a body that ended too early into io.ErrUnexpectedEOF.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
