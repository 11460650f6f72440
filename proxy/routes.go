// Routes: which path of the OpenAI API leads where, and what the edge asks of the proxy before.

package proxy

import (
	"net"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"kvasir/edge"
	"kvasir/openai"
	"kvasir/proxy/browser"
	"kvasir/proxy/health"
	"kvasir/proxy/respond"
)

// server serves the OpenAI API.
func (p *Proxy) server() *fasthttp.Server {
	s := edge.Server{
		Handler: p.handler(), Budget: &p.bodies,
		Limits:   func() edge.Limits { return p.state.Load().limits() },
		Stranger: func(ctx *fasthttp.RequestCtx) *openai.Error { return p.state.Load().keys.stranger(ctx) },
		Refuse: func(ctx *fasthttp.RequestCtx, err *openai.Error) {
			p.access.unread(err)
			respond.Error(ctx, err)
		},
		Unlogged: p.access.other, Panicked: p.bugs.answer, Faulty: p.metrics.serverErrors.Inc,
	}
	return s.HTTP()
}

// limits are what is read of a request that comes now.
func (s *state) limits() edge.Limits {
	t := &s.settings.Timeouts
	return edge.Limits{Header: t.Header, Body: t.Body, MaxBody: s.settings.MaxBody}
}

// handler routes requests of the OpenAI listener, unless a web page may not send them.
func (p *Proxy) handler() fasthttp.RequestHandler {
	r := router.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = respond.NotFound
	r.MethodNotAllowed = respond.MethodNotAllowed
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		a := make(statusMetrics, 600)
		r.POST(rt.Path, func(ctx *fasthttp.RequestCtx) { p.serve(ctx, rt, a) })
	}
	get(r, "/v1/models", p.listModels)
	get(r, "/v1/models/{id:*}", p.showModel)
	health.Routes(r, p.ready)
	return func(ctx *fasthttp.RequestCtx) {
		s := p.state.Load()
		if err := fromElsewhere(ctx, s, p.loopback.Load()); err != nil {
			ctx.Response.Header.Set("X-Request-Id", respond.RequestID(ctx))
			respond.Error(ctx, err)
		} else if !browser.CORS(ctx, s.settings.CORS) {
			r.Handler(ctx)
		}
	}
}

func get(r *router.Router, path string, h fasthttp.RequestHandler) {
	r.GET(path, h)
	r.HEAD(path, h)
}

// fromElsewhere refuses what a web page of somebody else may have had a browser send,
// where that could reach more than the page itself can: on a listener that only this
// machine reaches (loopback), without keys.
func fromElsewhere(ctx *fasthttp.RequestCtx, s *state, loopback bool) *openai.Error {
	if !loopback || s.keys.required() {
		return nil
	}
	return browser.CheckAPI(ctx, s.settings.Hosts, s.settings.CORS)
}

// onLoopback says whether only this machine reaches a listener by TCP.
func onLoopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}
