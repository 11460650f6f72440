// Receiving: a client's body, read by ourselves so that memory follows what has come and not what was announced.

package proxy

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
	"kvasir/wire"
)

// fasthttp believes a Content-Length: it allocates 32 MiB for a head of 90
// bytes. So it is given heads only. The connection hands it the bytes of one
// head (headEnd), headReceived tells it that no body follows, and receive reads
// the body before any route sees the request.

const (
	// smallBody is up to which size a body may use all of the budget. Larger ones
	// leave a quarter of it, so that a crowd of large bodies does not shut out
	// ordinary prompts.
	smallBody = 64 << 10

	// A body's buffer grows by a factor of 4 up to fastGrowth, which saves copies,
	// and by 2 above: it is never more than 4 times what has come.
	fastGrowth = 256 << 10
)

// errNoRoom is a body for which the budget has no memory left.
var errNoRoom = errors.New("no memory left for bodies")

// noRoom is what the client hears of it.
func noRoom() *openai.Error {
	return unavailable("the gateway holds as many request bodies as it has memory for (server.body_memory); try again later, or send a smaller body", 2*time.Second)
}

// A bodyBudget counts the memory of all bodies in flight, as they came and
// unpacked. The first buffer of a body, 4 KiB, is not counted: a connection costs
// more than that.
type bodyBudget struct {
	limit   atomic.Int64
	held    atomic.Int64
	refused atomic.Uint64 // bodies for which there was no room
}

// take counts n more bytes, of a body or made of one; false: there is no room for
// them.
func (g *bodyBudget) take(n int64) bool {
	limit := g.limit.Load()
	if n > smallBody {
		limit -= limit / 4
	}
	if g.held.Add(n) > limit {
		g.held.Add(-n)
		g.refused.Add(1)
		return false
	}
	return true
}

// charge counts n bytes for what was made of the body, until it is let go.
func (b *body) charge(budget *bodyBudget, n int64) bool {
	if !budget.take(n) {
		return false
	}
	b.budget, b.charged = budget, b.charged+n
	return true
}

func (g *bodyBudget) give(n int64) { g.held.Add(-n) }

// A body is the bytes of one request's body. It grows as they come.
type body struct {
	budget  *bodyBudget
	most    int64  // bytes that it may have
	buf     []byte // of takeBuffer
	n       int    // bytes in it
	unread  bool   // nobody wants its bytes
	gone    int64  // bytes that were dropped
	charged int64  // of the budget, for what was made of it
}

func (b *body) bytes() []byte { return b.buf[:b.n] }

// letGo frees the body; its bytes may not be used after.
func (b *body) letGo() {
	if b.charged > 0 {
		b.budget.give(b.charged)
	}
	if b.buf != nil {
		b.giveBack(b.buf)
	}
	*b = body{}
}

func (b *body) giveBack(buf []byte) {
	if n := counted(buf); n > 0 {
		b.budget.give(n)
	}
	wire.GiveBuffer(buf)
}

// counted is how much of the budget a buffer takes.
func counted(buf []byte) int64 {
	if len(buf) <= wire.SmallBuffer {
		return 0
	}
	return int64(len(buf))
}

// room makes place for at least one byte more.
func (b *body) room() error {
	if b.n < len(b.buf) {
		return nil
	}
	size := int64(wire.SmallBuffer)
	switch has := int64(len(b.buf)); {
	case has > fastGrowth:
		size = 2 * has
	case has > 0:
		size = 4 * has
	}
	size = wire.BufferSize(min(size, b.most))
	if size > wire.SmallBuffer && !b.budget.take(size) {
		return errNoRoom
	}
	bigger := wire.TakeBuffer(int(size))
	if b.buf != nil {
		copy(bigger, b.buf)
		b.giveBack(b.buf)
	}
	b.buf = bigger
	return nil
}

// Write appends p.
func (b *body) Write(p []byte) (int, error) {
	if b.gone+int64(b.n+len(p)) > b.most {
		return 0, fasthttp.ErrBodyTooLarge
	}
	for rest := p; len(rest) > 0; {
		if err := b.room(); err != nil {
			return 0, err
		}
		n := copy(b.buf[b.n:], rest)
		b.n += n
		rest = rest[n:]
	}
	return len(p), nil
}

// errNoFraming is a head that does not say where its body ends.
var errNoFraming = errors.New("the length of the body cannot be told")

// receive reads the request's body and gives it to fasthttp's request. One that
// is unread is stepped over: it takes no memory. The error is for unreadable.
func (p *Proxy) receive(ctx *fasthttp.RequestCtx, most int64, unread bool) error {
	c, ok := ctx.Conn().(*clientConn)
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
	c.body = body{budget: &p.bodies, most: most, unread: unread}
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

// forgetBody frees the body of a request that has been answered.
func forgetBody(ctx *fasthttp.RequestCtx) {
	if c, ok := ctx.Conn().(*clientConn); ok {
		ctx.Request.ResetBody()
		c.body.letGo()
	}
}

// leaveBody tells fasthttp that no body follows this head.
func leaveBody(h *fasthttp.RequestHeader) {
	if n := h.ContentLength(); n > 0 || n == -1 {
		h.SetContentLength(0)
	}
}

// framingOf is how the body behind a request's head is framed; false: nobody can
// tell where it ends. The head was accepted by fasthttp: there is one
// Content-Length, or one Transfer-Encoding.
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

// receive reads until the body has ended. Where much is still to come it goes
// right into the body's buffer; ends, and what stands between chunks, are read
// through the connection's own, which may hold the next request behind them.
func (b *body) receive(c *clientConn, f *wire.Framing) error {
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

// receiveDirect reads once, bytes of the body alone.
func (b *body) receiveDirect(c *clientConn, f *wire.Framing) error {
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

// A headEnd finds where a request's head ends: at its first blank line, CRLF or
// bare LF, never behind the place where fasthttp sees it. Blank lines before the
// request line are part of the head.
type headEnd struct {
	begun bool // a line that is not blank has begun
	line  lineState
}

type lineState uint8

const (
	atLine lineState = iota // nothing of the line has come
	atCR                    // a CR alone
	inLine                  // more
)

// scan takes the next bytes and says how many of them belong to the head, and
// whether it has ended with them. It is ready for the next head then.
func (h *headEnd) scan(b []byte) (n int, ended bool) {
	for n < len(b) {
		i := bytes.IndexByte(b[n:], '\n')
		if i < 0 {
			h.part(b[n:])
			return len(b), false
		}
		h.part(b[n : n+i])
		n += i + 1
		blank := h.line != inLine
		h.line = atLine
		if blank && h.begun {
			h.begun = false
			return n, true
		}
		h.begun = h.begun || !blank
	}
	return n, false
}

// part takes bytes of one line.
func (h *headEnd) part(b []byte) {
	switch {
	case len(b) == 0:
	case len(b) == 1 && b[0] == '\r' && h.line == atLine:
		h.line = atCR
	default:
		h.line, h.begun = inLine, true
	}
}

// A bodyCollector reads the metrics of the budget when they are asked for.
type bodyCollector struct{ p *Proxy }

var (
	bodyBytes    = prometheus.NewDesc("kvasir_body_bytes", "Memory of request bodies in flight, as they came and unpacked.", nil, nil)
	bodyLimit    = prometheus.NewDesc("kvasir_body_limit_bytes", "server.body_memory, or what it is by default.", nil, nil)
	bodyRefusals = prometheus.NewDesc("kvasir_bodies_refused_total", "Request bodies refused with 503 because there was no memory for them.", nil, nil)
)

// Describe names the metrics.
func (bodyCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- bodyBytes
	ch <- bodyLimit
	ch <- bodyRefusals
}

// Collect reads them.
func (c bodyCollector) Collect(ch chan<- prometheus.Metric) {
	b := &c.p.bodies
	ch <- prometheus.MustNewConstMetric(bodyBytes, prometheus.GaugeValue, float64(b.held.Load()))
	ch <- prometheus.MustNewConstMetric(bodyLimit, prometheus.GaugeValue, float64(b.limit.Load()))
	ch <- prometheus.MustNewConstMetric(bodyRefusals, prometheus.CounterValue, float64(b.refused.Load()))
}
