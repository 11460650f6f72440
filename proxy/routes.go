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
	respond.Error(ctx, err)
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
		if err := p.fromElsewhere(ctx); err != nil {
			ctx.Response.Header.Set("X-Request-Id", respond.RequestID(ctx))
			respond.Error(ctx, err)
		} else if !browser.CORS(ctx, p.state.Load().settings.CORS) {
			r.Handler(ctx)
		}
	}
}

func get(r *router.Router, path string, h fasthttp.RequestHandler) {
	r.GET(path, h)
	r.HEAD(path, h)
}

// fromElsewhere refuses what a web page of somebody else may have had a browser send,
// where that could reach more than the page itself can.
func (p *Proxy) fromElsewhere(ctx *fasthttp.RequestCtx) *openai.Error {
	s := p.state.Load()
	if !p.loopback.Load() || s.keys.required() {
		return nil
	}
	return browser.CheckAPI(ctx, s.settings.Hosts, s.settings.CORS)
}

// onLoopback says whether only this machine reaches a listener by TCP.
func onLoopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}
