// The routes of the admin listener.

// Package admin is Kvasir's interface for operators: the page, health, metrics, profiles, reload,
// GPUs, the cache, the classifiers over HTTP, and an explanation of where a request would be placed. It
// knows nothing of the proxy: its data comes from the functions in Options.
//
//	handler := admin.Handler(&admin.Options{Log: log, Metrics: registry, ...})
//	err := proxy.ServeAdmin(listener, handler)
//
// Requests that a web page may have made a browser send are refused before any route; see package
// browser. So are those without the key, where there is one; see key.go.
package admin

import (
	"bytes"
	"time"

	fasthttprouter "github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/classify"
	"kvasir/gpu"
	"kvasir/openai"
	"kvasir/page"
	"kvasir/planner"
	"kvasir/proxy/browser"
	"kvasir/proxy/health"
	"kvasir/proxy/respond"
)

// Options are the functions behind the routes. All except Key, Page and Reload are required. They
// are called for each request, so that their results fit the configuration in force.
type Options struct {
	Log     zerolog.Logger
	Hosts   func() []string // server.admin_hosts: host names accepted by the listener
	Key     func() *KeySum  // of server.admin_key_file; nil: none is required
	Metrics prometheus.Gatherer

	Readiness  func() health.Readiness
	Fleet      func(now time.Time) *gpu.Fleet
	Cache      func() *cache.Cache // nil: cache.store is off
	Classifier func() Classifier
	Explain    fasthttp.RequestHandler // POST /explain
	Explained  apidoc.Schema           // what it answers
	Plan       func() *planner.Report  // nil: nobody plans
	Reload     func() error            // reads the configuration again; nil: there is no configuration to reload

	Page *page.Page // nil: there is none
}

// A Classifier answers the routes of the classifiers.
type Classifier struct {
	*classify.Classifier         // with every guard on, and no guard ending the classification early
	Attack               float64 // the probability from which a text counts as an attack
	Model                string  // the model that MoM and auto stand for
}

// Handler routes the requests of the admin listener.
func Handler(o *Options) fasthttp.RequestHandler {
	r := routes(o)
	return func(ctx *fasthttp.RequestCtx) {
		if err := browser.CheckAdmin(ctx, o.Hosts()); err != nil {
			respond.Error(ctx, err)
			return
		}
		if !needsNoKey(ctx) {
			if err := o.checkKey(ctx); err != nil {
				respond.Error(ctx, err)
				return
			}
		}
		r.Handler(ctx)
	}
}

// routes are those of the admin listener, each with what its document says of it.
func routes(o *Options) *apidoc.Routes {
	r := apidoc.New()
	r.NotFound, r.MethodNotAllowed, r.HandleOPTIONS = notHere, respond.MethodNotAllowed, false
	plain := apidoc.Schema{"type": "string"}
	r.AddGet(apidoc.Operation{Path: "/metrics", Does: "Metrics, for Prometheus", Group: "watch", AnswersType: "text/plain", Answers: plain},
		fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true})))
	r.Add(apidoc.Operation{Method: "POST", Path: "/reload", Does: "Read the configuration again", Group: "change", Headers: changes,
		Answers: apidoc.Object(apidoc.Schema{"status": apidoc.Text("reloaded")}, "status")}, changing(reload(o.Reload)))
	r.Add(apidoc.Operation{Method: fasthttprouter.MethodWild, Path: "/debug/pprof/{name:*}", Does: "Go's profiles", Group: "watch", AnswersType: "*/*", Answers: plain},
		pprofhandler.PprofHandler)
	r.Add(apidoc.Operation{Method: "GET", Path: "/debug/gpu", Does: "The GPUs of this host, with their workers", Group: "watch", Answers: apidoc.Of[gpu.Fleet]()},
		func(ctx *fasthttp.RequestCtx) { respond.JSON(ctx, o.Fleet(time.Now()), nil, "") })
	r.Add(apidoc.Operation{Method: "POST", Path: "/explain", Does: "Where a request would be placed now, and every candidate's price", Group: "watch",
		More: "The body is one of a route of /v1.", Asks: apidoc.Schema{"type": "object"}, Answers: o.Explained}, o.Explain)
	r.Add(apidoc.Operation{Method: "GET", Path: "/plan", Does: "How many workers are wanted, and why", Group: "watch", Answers: apidoc.Of[planner.Report]()}, plan(o.Plan))
	classifierRoutes(r, o.Classifier)
	cacheRoutes(r, &cacheStore{now: o.Cache, log: o.Log})
	health.Routes(r, health.WithReasons, func(ctx *fasthttp.RequestCtx) {
		ready := o.Readiness()
		ready.Answer(ctx, o.checkKey(ctx) == nil) // the reasons name workers and parts of the configuration
	})
	if o.Page != nil {
		o.Page.Routes(r, changing, changes)
	}
	r.Publish(apidoc.Info{Title: "Kvasir, for operators", Description: "What the admin listener serves. What changes something needs the header X-Kvasir-Admin: 1.", Groups: groups})
	return r
}

// groups are those of the routes.
var groups = map[string]string{
	"watch":    "What goes on, and why",
	"change":   "What an operator may do",
	"classify": "The classifiers, in the shapes of vLLM Semantic Router",
	"cache":    "The answers that are kept",
	"health":   "Whether this Kvasir lives, and is ready",
	"about":    "What this is",
}

// changes is the header that a route which changes something asks for.
var changes = []apidoc.Parameter{{Name: "X-Kvasir-Admin", Does: "1, so that no web page can have a browser send it", Needed: true}}

// plan serves GET /plan.
func plan(report func() *planner.Report) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		report := report()
		if report == nil {
			respond.Error(ctx, &openai.Error{Status: 404, Type: "invalid_request_error", Code: "not_found", Message: "The planner is off: set planner.mode to advise"})
			return
		}
		respond.JSON(ctx, report, nil, "")
	}
}

// notHere answers for a path that is no route.
func notHere(ctx *fasthttp.RequestCtx) {
	hint := ""
	if bytes.HasPrefix(ctx.Path(), []byte("/v1/")) {
		hint = "; the OpenAI API is on the other listener, server.listen in the configuration"
	}
	respond.NotFound(ctx, hint)
}

// changing wraps a route that changes something.
func changing(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if err := browser.CheckChange(ctx); err != nil {
			respond.Error(ctx, err)
			return
		}
		next(ctx)
	}
}

// reload serves POST /reload.
func reload(again func() error) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("application/json")
		if again == nil {
			respond.Error(ctx, &openai.Error{Status: 501, Type: "server_error", Message: "there is no configuration to reload"})
			return
		}
		if err := again(); err != nil {
			respond.Error(ctx, &openai.Error{
				Status: 422, Type: "invalid_request_error", Code: "config_invalid",
				Message: "The new configuration was not taken, the old one stays: " + err.Error(),
			})
			return
		}
		ctx.SetBodyString(`{"status":"reloaded"}`)
	}
}
