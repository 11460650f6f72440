// Listeners: which path of the OpenAI API leads where, what the edge asks of the proxy before, and
// the admin listener's connections.

package proxy

import (
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/classify"
	"kvasir/edge"
	"kvasir/gpu"
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
	r := p.routes()
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

// routes are those of the OpenAI listener, each with what its document says of it.
func (p *Proxy) routes() *apidoc.Routes {
	r := apidoc.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = notHere
	r.MethodNotAllowed = respond.MethodNotAllowed
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		a := make(statusMetrics, 600)
		r.Add(passedOn(rt), func(ctx *fasthttp.RequestCtx) { p.serve(ctx, rt, a) })
	}
	r.AddGet(apidoc.Operation{Path: "/", Does: "What this is, for people", Group: "about", AnswersType: "text/plain", Answers: apidoc.Schema{"type": "string"}}, welcome)
	r.AddGet(apidoc.Operation{Path: "/v1/models", Does: "The models that are served, with auto and MoM", Group: "models", Answers: modelList}, p.listModels)
	r.AddGet(apidoc.Operation{Path: "/v1/models/{id:*}", Does: "One of them; its name may have slashes", Group: "models", Answers: modelObject}, p.showModel)
	health.Routes(r, health.WithCounts, p.ready)
	r.Publish(apidoc.Info{Title: "Kvasir", Description: "OpenAI's API before inference workers. The routes of /v1 are passed on to a worker of the model, " +
		"so their bodies may have whatever it understands; what stands here is what Kvasir itself reads.", Keys: true, Groups: groups})
	return r
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

// maxAdminBody is how long a body may be on the admin listener, in bytes: a text for
// the classifiers.
const maxAdminBody = 4 << 20

// ServeAdmin has handler answer the requests on ln until Close, on connections that
// clients of the API cannot use up, with bodies counted in the same budget.
func (p *Proxy) ServeAdmin(ln net.Listener, handler fasthttp.RequestHandler) error {
	return p.admin.Serve(&fasthttp.Server{
		Handler: p.receiving(handler), ErrorHandler: unreadableAdmin, HeaderReceived: adminHeadReceived, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		Concurrency:           p.descriptors.Admin(),
		NoDefaultServerHeader: true, SecureErrorLogMessage: true, Logger: edge.Quiet(p.metrics.serverErrors.Inc), CloseOnShutdown: true,
	}, &edge.Listener{Listener: ln, Watcher: p.nearby})
}

// receiving reads the body before next sees the request, and keeps a panic to its
// request: one on the admin listener once ended the process.
func (p *Proxy) receiving(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if fault := recover(); fault != nil {
				p.bugs.answer(ctx, fault)
			}
		}()
		defer edge.Forget(ctx)
		if err := edge.Receive(ctx, &p.bodies, maxAdminBody, false); err != nil {
			unreadableAdmin(ctx, err)
			return
		}
		next(ctx)
	}
}

// adminHeadReceived leaves the body to edge.Receive; the clock of the head runs on.
func adminHeadReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	edge.LeaveBody(h)
	return fasthttp.RequestConfig{}
}

// unreadableAdmin answers a request that is no valid HTTP, or too large.
func unreadableAdmin(ctx *fasthttp.RequestCtx, err error) {
	refusal := openai.Invalid("", "The request is not valid HTTP/1.1")
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refusal = edge.TooLarge(maxAdminBody, "")
	case errors.Is(err, edge.ErrNoRoom):
		refusal = edge.NoRoom()
	}
	respond.Error(ctx, refusal)
	edge.CloseBehind(ctx)
}

// AdminConnections is how many connections the admin listener takes at once.
func (p *Proxy) AdminConnections() int { return p.descriptors.Admin() }

// Metrics gathers what /metrics says.
func (p *Proxy) Metrics() prometheus.Gatherer { return prometheus.GathererFunc(p.gather) }

// Count has /metrics show what another part counts, too.
func (p *Proxy) Count(c prometheus.Collector) { p.metrics.registry.MustRegister(c) }

// AdminHosts are server.admin_hosts as new requests are served under them.
func (p *Proxy) AdminHosts() []string { return p.state.Load().settings.AdminHosts }

// AdminKey is the SHA-256 of the key that the admin listener asks for now; nil: it asks for none.
func (p *Proxy) AdminKey() *[32]byte { return p.state.Load().settings.AdminKey }

// Guarding is what new requests are judged by.
func (p *Proxy) Guarding() *classify.Options { return &p.state.Load().settings.Classify }

// Cache is the cache that new requests are answered from; nil where it is off.
func (p *Proxy) Cache() *cache.Cache { return p.state.Load().settings.Cache }

// Fleet is every GPU of this host with its workers, as of now.
func (p *Proxy) Fleet(now time.Time) *gpu.Fleet { return p.hardware.Fleet(now) }

// Judging gives a classifier of texts that no request sends, with every guard on and
// none that ends the judging; the probability from which it takes a text for an
// attack; and the model that MoM and auto stand for.
func (p *Proxy) Judging() (c *classify.Classifier, attack float64, model string) {
	s := p.state.Load()
	return s.deciding, s.settings.Classify.Jailbreak.Threshold, s.defaultModel()
}
