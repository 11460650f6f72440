// Routes: which path of the OpenAI API leads where, and what the edge asks of the proxy before.

package proxy

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"kvasir/edge"
	"kvasir/openai"
)

const requestIDLimit = 128

// server serves the OpenAI API.
func (p *Proxy) server() *fasthttp.Server {
	s := edge.Server{
		Handler: p.handler(), Limits: p.limits, Budget: &p.bodies,
		Stranger: p.stranger, Refuse: p.refuseUnread, Aside: p.logAside, Panicked: p.panicked, Faulty: p.metrics.serverErrors.Inc,
	}
	return s.HTTP()
}

// limits are what is read of a request that comes now.
func (p *Proxy) limits() edge.Limits {
	s := p.state.Load().settings
	return edge.Limits{Header: s.Timeouts.Header, Body: s.Timeouts.Body, MaxBody: s.MaxBody}
}

// isStranger says that a key is asked for and none that is known was shown.
func (p *Proxy) isStranger(ctx *fasthttp.RequestCtx) bool {
	keys := p.state.Load().keys
	return keys.required() && keys.find(shownKey(&ctx.Request.Header)) == nil
}

// stranger is what a stranger is told; nil: it is none.
func (p *Proxy) stranger(ctx *fasthttp.RequestCtx) *openai.Error {
	if p.isStranger(ctx) {
		return invalidKey()
	}
	return nil
}

// refuseUnread answers a request that no route sees.
func (p *Proxy) refuseUnread(ctx *fasthttp.RequestCtx, err *openai.Error) {
	p.logUnread(err)
	writeError(ctx, err)
}

// handler routes requests of the OpenAI listener, unless a web page may not send them.
func (p *Proxy) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = notFound
	r.MethodNotAllowed = methodNotAllowed
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		a := make(answers, 600)
		r.POST(rt.Path, func(ctx *fasthttp.RequestCtx) { p.serve(ctx, rt, a) })
	}
	get(r, "/v1/models", modelList{p}.all)
	get(r, "/v1/models/{id:*}", modelList{p}.one)
	admin{p}.healthRoutes(r, p.ready)
	return func(ctx *fasthttp.RequestCtx) {
		if err := p.fromElsewhere(ctx); err != nil {
			ctx.Response.Header.Set("X-Request-Id", requestID(ctx))
			writeError(ctx, err)
		} else if !p.cors(ctx) {
			r.Handler(ctx)
		}
	}
}

func get(r *router.Router, path string, h fasthttp.RequestHandler) {
	r.GET(path, h)
	r.HEAD(path, h)
}

func notFound(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("X-Request-Id", requestID(ctx))
	writeError(ctx, &openai.Error{
		Status: 404, Type: "invalid_request_error", Code: "unknown_url",
		Message: "Unknown request URL: " + openai.Quoted(string(ctx.Method())+" "+string(ctx.Path())) + "; the README lists the routes",
	})
}

func methodNotAllowed(ctx *fasthttp.RequestCtx) {
	// The router names OPTIONS too, which only CORS answers.
	allow := slices.DeleteFunc(strings.Split(string(ctx.Response.Header.Peek("Allow")), ", "), func(m string) bool { return m == "OPTIONS" })
	ctx.Response.Header.Set("Allow", strings.Join(allow, ", "))
	ctx.Response.Header.Set("X-Request-Id", requestID(ctx))
	writeError(ctx, &openai.Error{
		Status: 405, Type: "invalid_request_error", Code: "method_not_allowed",
		Message: "Not allowed to " + openai.Quoted(string(ctx.Method())) + " on " + openai.Quoted(string(ctx.Path())) + "; allowed: " + strings.Join(allow, ", "),
	})
}

// requestID is the client's X-Request-Id when it can stand in a header and a
// log, else a new one.
func requestID(ctx *fasthttp.RequestCtx) string {
	if id := ctx.Request.Header.Peek("X-Request-Id"); len(id) > 0 && len(id) <= requestIDLimit && isPrintable(id) {
		return string(id)
	}
	return newID()
}

// An idText is a UUID as it is written.
type idText [36]byte

// newIDText is newID in place. Workers get this one in any case: vLLM's
// connectors between engines read addresses to dial out of a request's id
// (`___prefill_addr_host:port`), and two clients may send the same.
func newIDText() (text idText) {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	at := 0
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		hex.Encode(text[at:at+2], []byte{b})
		at += 2
	}
	return text
}

// newID makes a UUID (version 4). It has to be unlike others, not secret: the
// kernel's randomness would cost more than the rest of the head.
func newID() string {
	id := newIDText()
	return string(id[:])
}

func isPrintable(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
