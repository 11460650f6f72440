// Headers: those that the proxy adds, toward clients and toward workers.

package proxy

import (
	"encoding/hex"
	"net"
	"strconv"
	"time"

	"kvasir/header"
	"kvasir/tracing/traceparent"
)

// Request is the client's request as it is sent to the worker that is asked now: our head, and the
// body with its splices, all of it in place.
func (x *exchange) Request() net.Buffers {
	x.head = x.appendHead(x.head[:0], x.backend, x.at.Rank, x.span, "", x.plan.edit.Length(x.plan.body))
	x.pieces = x.plan.edit.Segments(append(x.pieces[:0], x.head), x.plan.body)
	return x.pieces
}

// appendHead appends the head of a request to b with a body of length bytes.
// rank is the data-parallel rank that it is for, -1: none; span is that of the leg, if the request
// is traced; more are whole lines.
func (x *exchange) appendHead(dst []byte, b *backend, rank int, span traceparent.SpanID, more string, length int) []byte {
	h := &x.ctx.Request.Header
	dst = b.AppendTarget(dst, "POST", x.plan.route.Path, x.ctx.URI().QueryString())
	dst = x.plan.req.AppendContentType(b.AppendHeaders(dst, h.RawHeaders(), x.trace.On()))
	dst = x.trace.AppendTo(dst, span)
	if auth := h.Peek("Authorization"); len(auth) > 0 && !b.OwnsAuth() && !x.plan.state.keys.required() {
		dst = append(append(append(dst, "Authorization: "...), auth...), "\r\n"...)
	}
	dst = x.p.appendVia(append(b.AppendDirections(dst, rank), more...), h.Peek(via))
	dst = append(append(append(dst, "X-Request-Id: "...), x.facts.sentID[:]...), "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(length), 10)
	return append(dst, "\r\n\r\n"...)
}

// appendOwnHeaders appends what we tell the client about the answer.
func (x *exchange) appendOwnHeaders(dst []byte) []byte {
	dst = appendHeader(dst, "X-Request-Id", x.facts.id)
	if x.plan.state.settings.ReplyHeaders {
		dst = appendFact(dst, "x-kvasir-worker", x.facts.worker) // none was asked where a guard refuses
		dst = x.facts.placed.appendHeaders(dst, x.facts.worker, x.facts.prefill)
		if x.facts.fallbacks > 0 {
			dst = appendHeader(dst, "x-kvasir-fallback", x.plan.model)
		}
		dst = x.facts.cache.appendHeaders(dst)
		dst = appendFact(dst, "x-kvasir-redacted", x.plan.judgement.redactedBy)
		if n := x.plan.judgement.hidden; n > 0 {
			dst = appendHeader(dst, "x-kvasir-hidden-characters", strconv.Itoa(n))
		}
		dst = append(dst, "x-kvasir-overhead-us: "...)
		dst = strconv.AppendInt(dst, x.facts.overhead.Microseconds(), 10)
		dst = append(dst, "\r\n"...)
		if x.trace.Sampled { // else nobody finds it
			dst = hex.AppendEncode(append(dst, traceHeader+": "...), x.trace.Trace[:])
			dst = append(dst, "\r\n"...)
		}
	}
	dst = appendVSR(dst, &x.plan, &x.facts.cache, x.facts.status)
	dst = appendLimits(dst, &x.plan, time.Now())
	if h := &x.ctx.Response.Header; len(x.plan.state.settings.CORS) > 0 {
		for _, name := range [...]string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Vary"} {
			if v := h.Peek(name); len(v) > 0 {
				dst = appendHeader(dst, name, string(v))
			}
		}
	}
	return dst
}

// traceHeader has the id of the request's trace, for a client that complains.
const traceHeader = "x-kvasir-trace-id"

func appendHeader(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// setOwnHeaders sets what is told with an error of our own, which fasthttp writes: the
// request's id, the overhead, the trace's id, x-vsr-* and the limits. Of the worker, its placement and
// the cache it says nothing. A new header that errors shall have, too, is added here as
// well.
func (x *exchange) setOwnHeaders() {
	h := &x.ctx.Response.Header
	h.Set("X-Request-Id", x.facts.id)
	if x.plan.state.settings.ReplyHeaders {
		h.Set("x-kvasir-overhead-us", strconv.FormatInt(x.facts.overhead.Microseconds(), 10))
		if x.trace.Sampled {
			h.Set(traceHeader, x.trace.Trace.String())
		}
	}
	for lines := appendLimits(appendVSR(nil, &x.plan, &x.facts.cache, x.facts.status), &x.plan, time.Now()); len(lines) > 0; {
		var line []byte
		line, lines = header.CutLine(lines)
		if name, value, err := header.CutField(line); err == nil {
			h.SetBytesKV(name, value)
		}
	}
}
