// Panics: a bug ends one request or probe, never the process.

package proxy

import (
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// noteBug counts a panic and logs where it came from. The fault's text may hold
// bytes of a request, so the log gets the stack alone.
func (p *Proxy) noteBug(fault any, what string) { p.noteBugAt(fault, debug.Stack(), what) }

func (p *Proxy) noteBugAt(fault any, stack []byte, what string) {
	p.metrics.panics.Inc()
	p.log.Error().Str("fault", describeFault(fault)).Bytes("stack", stack).Msg("BUG: " + what + " ended in a panic; please report it")
}

// panicked answers for a request whose handling met a bug. fasthttp would let
// the process die of it.
func (p *Proxy) panicked(ctx *fasthttp.RequestCtx, fault any) {
	p.noteBug(fault, "a request")
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
	x.p.panicked(x.ctx, fault)
	if x.reply.began {
		x.answered()
		x.conn.Abort(true)
	}
}
