// The edge: what clients may send at all, and the listener that takes it.

package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"kvasir/header"
	"kvasir/openai"
	"kvasir/proxy/browser"
	"kvasir/proxy/health"
	"kvasir/proxy/respond"
	"kvasir/wire"
)

const (
	headLimit = 32 << 10 // a request head may have this many bytes, then 431

	// strangersBody is how much of a body is read without a valid key: enough for
	// the reply to be read, too little to be worth sending.
	strangersBody = 64 << 10

	// keepIdle is how long a client's connection may lie quiet between two
	// requests: longer than clients and load balancers keep theirs (Go's 90 s, the
	// usual 60 to 75 s), so that none sends on one that we are just closing.
	keepIdle = 2 * time.Minute
)

// An edge is the proxy as clients meet it.
type edge struct{ *Proxy }

// server is fasthttp closed up: what it leaves open (reference: h1spec and
// fasthttp's own issues) is refused by check, errors are OpenAI's, and nothing
// of a request gets into its log.
func (e edge) server(handler fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      e.guarded(handler),
		ErrorHandler:                 e.unreadable,
		HeaderReceived:               e.headReceived,
		ExpectHandler:                e.expected,
		ReadTimeout:                  e.state.Load().settings.Timeouts.Header,
		IdleTimeout:                  keepIdle,
		ReadBufferSize:               headLimit,
		ReduceMemoryUsage:            true, // no read buffer is held while an answer streams
		DisablePreParseMultipartForm: true, // forms are read by ourselves
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		SecureErrorLogMessage:        true,
		Logger:                       quiet{e.Proxy},
		TCPKeepalive:                 true,
		Concurrency:                  1 << 20,
	}
}

// headReceived sets the clock for the body that follows, and leaves that to receive.
func (e edge) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	leaveBody(h)
	return fasthttp.RequestConfig{ReadTimeout: e.state.Load().settings.Timeouts.Body}
}

// isStranger says that a key is asked for and none that is known was shown.
func (e edge) isStranger(ctx *fasthttp.RequestCtx) bool {
	keys := e.state.Load().keys
	return keys.required() && keys.find(shownKey(&ctx.Request.Header)) == nil
}

// bodyLimit is how much of a body is read. Who shows no valid key gets no more
// read than it takes to say so.
func (e edge) bodyLimit(stranger bool) int64 {
	limit := e.state.Load().settings.MaxBody
	if stranger {
		limit = min(limit, strangersBody)
	}
	return limit
}

// expected answers a client that asks before it sends its body.
func (e edge) expected(ctx *fasthttp.RequestCtx) int {
	limit := e.state.Load().settings.MaxBody
	body, _ := framingOf(ctx.Request.Header.RawHeaders())
	var refusal *openai.Error
	switch {
	case e.isStranger(ctx):
		refusal = invalidKey()
	case body.Left() > limit:
		refusal = tooLarge(limit)
	default:
		return fasthttp.StatusContinue
	}
	e.logUnread(refusal)
	refuseAndClose(ctx, refusal)
	return refusal.Status
}

// guarded refuses what no route should see, and keeps a panic to its request.
func (e edge) guarded(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if fault := recover(); fault != nil {
				e.panicked(ctx, fault)
			}
		}()
		if err := checkRequest(&ctx.Request.Header); err != nil {
			e.logUnread(err)
			refuseAndClose(ctx, err)
			return
		}
		conn, ok := ctx.Conn().(*clientConn)
		if ok {
			conn.booked = false
		}
		defer forgetBody(ctx)
		stranger := e.isStranger(ctx)
		if err := e.receive(ctx, e.bodyLimit(stranger), stranger); err != nil {
			e.unreadable(ctx, err)
			return
		}
		if err := e.fromElsewhere(ctx); err != nil {
			ctx.Response.Header.Set("X-Request-Id", respond.RequestID(ctx))
			respond.Error(ctx, err)
		} else if !browser.CORS(ctx, e.state.Load().settings.CORS) {
			next(ctx)
		}
		if ok && !conn.booked {
			e.logAside(ctx)
		}
	}
}

// checkRequest closes the gaps of fasthttp's parser: two readers of one message
// must not be able to disagree about where it ends.
func checkRequest(h *fasthttp.RequestHeader) *openai.Error {
	switch proto := h.Protocol(); {
	case !bytes.Equal(proto, []byte("HTTP/1.1")) && !bytes.Equal(proto, []byte("HTTP/1.0")):
		return &openai.Error{Status: 505, Type: "invalid_request_error", Message: "Only HTTP/1.1 and HTTP/1.0 are spoken here"}
	case !isMethod(h.Method()):
		return openai.Invalid("", "The request method is not valid")
	}
	return checkRequestHead(h.RawHeaders())
}

// isMethod says whether b is a token (RFC 9110, 9.1).
func isMethod(b []byte) bool {
	for _, c := range b {
		if !header.IsToken(c) {
			return false
		}
	}
	return len(b) > 0
}

// unreadable answers requests of which the head or the body could not be read. The error's text
// may quote the request, so it is not passed on.
func (e edge) unreadable(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var refusal *openai.Error
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge) && e.isStranger(ctx):
		refusal = invalidKey()
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refusal = tooLarge(e.state.Load().settings.MaxBody)
	case errors.Is(err, errNoRoom):
		refusal = noRoom()
	case errors.As(err, &small):
		refusal = &openai.Error{Status: 431, Type: "invalid_request_error", Message: "The request head is larger than 32 KiB; send fewer or shorter headers"}
	case wire.IsTimeout(err):
		refusal = &openai.Error{Status: 408, Type: "invalid_request_error", Message: "The request did not arrive in time; send it faster, or raise server.timeouts"}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		refusal = openai.Invalid("", "The connection ended before the request did")
	default:
		refusal = openai.Invalid("", "The request is not valid HTTP/1.1")
	}
	e.logUnread(refusal)
	refuseAndClose(ctx, refusal)
}

// refuseAndClose answers a request after which nothing on the connection can be
// trusted. The client may still be sending: it is given time to read the answer.
func refuseAndClose(ctx *fasthttp.RequestCtx, e *openai.Error) {
	respond.Error(ctx, e)
	ctx.SetConnectionClose()
	if c, ok := ctx.Conn().(*clientConn); ok {
		c.linger.Store(true)
	}
}

func tooLarge(limit int64) *openai.Error {
	return &openai.Error{
		Status: 413, Type: "invalid_request_error", Code: "request_too_large",
		Message: "The request body is larger than " + sizeText(limit) + " (server.max_body)",
	}
}

// handler routes requests of the OpenAI listener.
func (e edge) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = respond.NotFound
	r.MethodNotAllowed = respond.MethodNotAllowed
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		a := make(answers, 600)
		r.POST(rt.Path, func(ctx *fasthttp.RequestCtx) { e.serve(ctx, rt, a) })
	}
	get(r, "/v1/models", modelList(e).all)
	get(r, "/v1/models/{id:*}", modelList(e).one)
	health.Routes(r, e.ready)
	return r.Handler
}

func get(r *router.Router, path string, h fasthttp.RequestHandler) {
	r.GET(path, h)
	r.HEAD(path, h)
}

// fromElsewhere refuses what a web page of somebody else may have had a browser send,
// where that could reach more than the page itself can.
func (e edge) fromElsewhere(ctx *fasthttp.RequestCtx) *openai.Error {
	s := e.state.Load()
	if !e.loopback.Load() || s.keys.required() {
		return nil
	}
	return browser.CheckAPI(ctx, s.settings.Hosts, s.settings.CORS)
}

// onLoopback says whether only this machine reaches a listener by TCP.
func onLoopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// quiet is fasthttp's logger: its lines may hold bytes of requests, so only
// their number is kept.
type quiet struct{ p *Proxy }

func (q quiet) Printf(string, ...any) { q.p.metrics.serverErrors.Inc() }
