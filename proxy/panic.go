// Panics: a bug ends one request or probe, never the process.

package proxy

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// bugs counts panics and logs where they came from. A fault's text may hold bytes of a
// request, so the log gets the stack alone.
type bugs struct {
	log    zerolog.Logger
	panics prometheus.Counter
}

// note notes a panic that has just been recovered from; what names what it ended.
func (b *bugs) note(fault any, what string) { b.noteAt(fault, debug.Stack(), what) }

func (b *bugs) noteAt(fault any, stack []byte, what string) {
	b.panics.Inc()
	b.log.Error().Str("fault", describeFault(fault)).Bytes("stack", stack).Msg("BUG: " + what + " ended in a panic; please report it")
}

// answer answers for a request whose handling met a bug. fasthttp would let
// the process die of it.
func (b *bugs) answer(ctx *fasthttp.RequestCtx, fault any) {
	b.note(fault, "a request")
	ctx.Response.Reset()
	respond.Error(ctx, &openai.Error{Status: 500, Type: "server_error", Code: "internal_error", Message: "The gateway met a bug while handling this request; it is in its log"})
	ctx.SetConnectionClose()
}

// describeFault tells what kind of fault it was, without its text unless that is
// the runtime's own.
func describeFault(fault any) string {
	if err, ok := fault.(interface{ RuntimeError() }); ok {
		if e, ok := err.(error); ok {
			return e.Error()
		}
	}
	if s, ok := fault.(string); ok && len(s) > 4 && s[:4] == "BUG:" {
		return s
	}
	return "panic"
}

// panicked ends the exchange that a bug ended. What was begun cannot be a
// whole answer any more.
func (x *exchange) panicked(fault any) {
	x.facts.why = "panic"
	x.facts.status = 500
	x.p.bugs.answer(x.ctx, fault)
	if x.reply.began {
		x.answered()
		x.conn.Abort(true)
	}
}
