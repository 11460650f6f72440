// Streams: replies that are written as they come, past fasthttp's buffers.

package page

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/edge"
	"kvasir/openai"
	"kvasir/wire"
)

// writeWithin is how long one write to an operator's browser may take. What the kernel holds for
// one that reads slowly comes before that. Tests set it.
var writeWithin = 5 * time.Second

// A stream is a reply in chunks. It belongs to the goroutine that serves the request.
type stream struct{ conn *edge.Conn }

// answerHeaders come with what is not the page's own file: it is data, and nothing of it is shown as
// a page, whatever a worker calls it.
const answerHeaders = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: " + dataPolicy + "\r\n"

const dataPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// openStream is the stream of a request, whose reply it is in the place of fasthttp's once its head
// is sent.
func openStream(ctx *fasthttp.RequestCtx) (stream, *openai.Error) {
	conn, ok := ctx.Conn().(*edge.Conn)
	if !ok || !ctx.Request.Header.IsHTTP11() {
		return stream{}, &openai.Error{Status: 505, Type: "invalid_request_error", Code: "http_version", Message: "What is streamed is asked for by HTTP/1.1"}
	}
	return stream{conn}, nil
}

// head sends the status and the header lines of the reply, each with its CRLF. The connection is
// not used again.
func (s stream) head(ctx *fasthttp.RequestCtx, status int, lines []byte) error {
	b := append(strconv.AppendInt([]byte("HTTP/1.1 "), int64(status), 10), ' ')
	b = append(append(b, fasthttp.StatusMessage(status)...), "\r\n"...)
	b = append(append(b, lines...), answerHeaders+"Transfer-Encoding: chunked\r\nConnection: close\r\n"...)
	b = append(fasthttp.AppendHTTPDate(append(b, "Date: "...), time.Now()), "\r\n\r\n"...)
	ctx.SetConnectionClose()
	s.conn.Answered()
	return s.send(b)
}

// send writes what has its framing already.
func (s stream) send(framed []byte) error {
	now := time.Now()
	if err := s.conn.SetWriteDeadline(now.Add(writeWithin)); err != nil {
		return err
	}
	_, err := s.conn.Send(framed, now)
	return err
}

// chunk writes some bytes of the body.
func (s stream) chunk(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return s.send(appendChunk(nil, b))
}

// endWithin is how long the end of a body may take: a stream also ends where its reader is slow, or
// Kvasir stops.
const endWithin = 100 * time.Millisecond

// end ends the body rightly. Without it the reader sees that the body was cut.
func (s stream) end() {
	now := time.Now()
	if s.conn.SetWriteDeadline(now.Add(endWithin)) == nil {
		_, _ = s.conn.Send([]byte(wire.LastChunk), now)
	}
}

func appendChunk(dst, b []byte) []byte {
	dst = append(wire.AppendChunkHead(dst, len(b)), b...)
	return append(dst, "\r\n"...)
}
