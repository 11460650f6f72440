// Replies: what a client is sent of a worker's answer, framed by us.

package proxy

import (
	"bytes"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai/answer"
	"kvasir/wire"
)

// A reply is one answer on its way to the client. It is written straight to
// the connection: fasthttp's own writer would hold 8 KiB more for each stream
// and cost one copy of each event, and it would take the end of the request out
// of the function that knows how it ended.
type reply struct {
	x       *exchange
	began   bool
	chunked bool
	late    []byte // of a client that reads slowly: not yet sent, others need not wait
	unread  bool   // its client is lost; it goes on for followers
	ending  bool   // what is late goes out now
	open    bool   // only the end of the connection ends the body
	single  bool   // the body is sent with the head, to its end
}

// whole sends a reply with status 200 at once. length is that of the body, or
// -1 for a body that goes in chunks as workers' streams do.
func (r *reply) whole(header []byte, length int64, body []byte) error {
	r.single = true
	return r.begin(fasthttp.StatusOK, header, length, body)
}

// begin makes the head of the reply, lines among it, and sends it together with first, whose
// ownership stays with the caller. length is that of the whole body; -1 says
// that nobody knows it yet.
func (r *reply) begin(status int, lines []byte, length int64, first []byte) error {
	x := r.x
	now := time.Now()
	if x.backend == nil || status >= 400 {
		x.account.giveBack() // nobody worked for it; the head says what is left
	}
	x.facts.firstByte = now.Sub(x.arrived())
	x.facts.overhead = x.overhead(now)
	x.streams(now)
	r.chunked = length < 0 && x.ctx.Request.Header.IsHTTP11()
	if r.open = length < 0 && !r.chunked; r.open {
		x.ctx.SetConnectionClose() // HTTP/1.0: the end of the connection ends the body
	}
	if x.p.draining.Load() {
		x.ctx.SetConnectionClose()
	}
	out := wire.TakeBuffer(len(lines) + len(first) + 2<<10)
	b := appendStatusLine(out[:0], status)
	b = append(b, lines...)
	if !hasDate(lines) {
		b = append(fasthttp.AppendHTTPDate(append(b, "Date: "...), now), "\r\n"...)
	}
	x.facts.status = status
	b = x.appendOwnHeaders(b)
	switch {
	case status == 204: // has no body, and no length either (RFC 9110, 8.6)
	case length >= 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, length, 10)
		b = append(b, "\r\n"...)
	case r.chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case x.ctx.Request.Header.ConnectionClose() || x.ctx.Response.ConnectionClose():
		x.ctx.SetConnectionClose()
		b = append(b, "Connection: close\r\n"...)
	case !x.ctx.Request.Header.IsHTTP11():
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	b = append(b, "\r\n"...)
	if r.chunked && len(first) > 0 {
		b = wire.AppendChunkHead(b, len(first))
		b = append(b, first...)
		b = append(b, "\r\n"...)
	} else {
		b = append(b, first...)
	}
	if r.chunked && r.single {
		b = append(b, wire.LastChunk...)
	}
	r.began = true
	err := r.put(b, now)
	wire.GiveBuffer(out)
	return err
}

// hasDate says whether header lines that a worker sent have a Date, which every reply has
// (RFC 9110, 6.6.1).
func hasDate(lines []byte) bool {
	for len(lines) > 0 {
		var line []byte
		if line, lines = header.CutLine(lines); len(line) > 5 && line[4] == ':' && bytes.EqualFold(line[:4], []byte("Date")) {
			return true
		}
	}
	return false
}

// put writes to the client. When the client is lost, the reply goes on for the
// followers of the same answer, if there are any.
func (r *reply) put(b []byte, now time.Time) error {
	if r.unread {
		return nil
	}
	err := r.deliver(b, now)
	if err != nil && r.x.recipients.loseClient() {
		r.unread, r.late = true, nil
		return nil
	}
	return err
}

// lateLimit is how many bytes wait for a client that reads slowly while others follow
// the same answer. Beyond it the others wait for it, up to timeouts.write.
const lateLimit = 4 << 20

// deliver writes to the client, at most what it takes at once while others
// follow; the rest goes out with the next write, or at the end.
func (r *reply) deliver(b []byte, now time.Time) error {
	c := r.x.conn
	offers := !r.ending && len(r.late)+c.Waiting()+len(b) <= lateLimit && r.x.recipients.hasFollowers()
	if len(r.late) > 0 {
		r.late = append(r.late, b...)
		b = r.late
	}
	if !offers {
		r.late = nil
		if len(b) == 0 {
			return c.Flush(now)
		}
		_, err := c.Send(b, now)
		return err
	}
	n, err := c.Offer(b)
	r.late = append(r.late[:0], b[n:]...)
	return err
}

// write sends buf[start:end]. It writes over the wire.Headroom bytes before start,
// and leaves the wire.Tailroom bytes behind end as they were.
func (r *reply) write(buf []byte, start, end int) error {
	if !r.chunked {
		return r.put(buf[start:end], r.x.call.Now)
	}
	behind := [wire.Tailroom]byte(buf[end : end+wire.Tailroom]) // may be the next event's
	s, e := wire.FrameChunk(buf, start, end)
	err := r.put(buf[s:e], r.x.call.Now)
	copy(buf[end:], behind[:])
	return err
}

// send sends bytes that have no room around them, if there are any.
func (r *reply) send(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if r.chunked {
		out := wire.TakeBuffer(len(b) + wire.Headroom + wire.Tailroom)
		defer wire.GiveBuffer(out)
		b = append(append(wire.AppendChunkHead(out[:0], len(b)), b...), "\r\n"...)
	}
	return r.put(b, r.x.call.Now)
}

// end ends the body rightly.
func (r *reply) end() error {
	r.ending = true
	switch {
	case r.chunked:
		return r.put([]byte(wire.LastChunk), r.x.call.Now)
	case len(r.late)+r.x.conn.Waiting() > 0:
		return r.put(nil, r.x.call.Now)
	}
	return nil
}

// breakOff sends last, if there is any, and ends the connection so that nobody
// takes what came for a whole reply.
func (r *reply) breakOff(last []byte) {
	if len(last) > 0 {
		if r.chunked {
			b := wire.AppendChunkHead(nil, len(last))
			last = append(append(b, last...), "\r\n"...)
		}
	}
	if last = append(r.late, last...); len(last) > 0 {
		_, _ = r.x.conn.Send(last, time.Now())
	}
	r.x.ctx.SetConnectionClose()
	r.x.conn.Abort(r.open)
}

// tell answers the request with a reply of our own, in one write.
func (x *exchange) tell(r *answer.Replay) {
	stream := x.plan.req.Stream
	buf := wire.TakeBuffer(r.Size(stream))
	body := r.AppendTo(buf[:0], stream)
	header, length := jsonHeader, int64(len(body))
	if stream {
		header, length = streamHeader, -1
	}
	x.call.Now = time.Now() // of the writes: no worker was called
	err := x.reply.whole(header, length, body)
	x.answered()
	wire.GiveBuffer(buf)
	if err != nil {
		x.lostClient()
	}
}

// The headers of replies of our own, beside those of every reply.
var (
	jsonHeader   = []byte("Content-Type: application/json\r\n")
	streamHeader = []byte("Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n")
)

// appendStatusLine appends the status line.
func appendStatusLine(dst []byte, status int) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, fasthttp.StatusMessage(status)...)
	return append(dst, "\r\n"...)
}
