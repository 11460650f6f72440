// The routes of the admin listener.

// Package admin is Kvasir as operators meet it: health, metrics, profiles, reload,
// GPUs, the cache, the classifiers over HTTP, and why a request would be placed where.
// It knows nothing of the proxy: what it shows comes from the functions it is given.
//
//	handler := admin.Handler(&admin.Options{Log: log, Metrics: registry, ...})
//	err := proxy.ServeAdmin(listener, handler)
//
// What a web page may have had a browser send is refused before any route; see package
// browser.
package admin

import (
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/gpu"
	"kvasir/openai"
	"kvasir/proxy/browser"
	"kvasir/proxy/health"
	"kvasir/proxy/respond"
)

// Options are what the routes show and do. All functions but Reload are needed, and
// are called for each request: what they give is of the configuration in force then.
type Options struct {
	Log     zerolog.Logger
	Hosts   func() []string // server.admin_hosts: names by which the listener may be asked
	Metrics prometheus.Gatherer

	Readiness  func() health.Readiness
	Fleet      func(now time.Time) *gpu.Fleet
	Cache      func() *cache.Cache // nil: cache.store is off
	Classifier func() Classifier
	Explain    fasthttp.RequestHandler // POST /explain
	Reload     func() error            // reads the configuration again; nil: there is none
}

// A Classifier is what the routes of the classifiers answer by.
type Classifier struct {
	*classify.Classifier         // every guard is on, and none ends the judging
	Attack               float64 // the probability from which a text counts as an attack
	Model                string  // what MoM and auto stand for
}

// Handler routes the requests of the admin listener.
func Handler(o *Options) fasthttp.RequestHandler {
	r := router.New()
	r.NotFound, r.MethodNotAllowed, r.HandleOPTIONS = respond.NotFound, respond.MethodNotAllowed, false
	r.GET("/metrics", fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{})))
	r.POST("/reload", changing(reload(o.Reload)))
	r.ANY("/debug/pprof/{name:*}", pprofhandler.PprofHandler)
	r.GET("/debug/gpu", func(ctx *fasthttp.RequestCtx) { respond.JSON(ctx, o.Fleet(time.Now()), nil, "") })
	r.POST("/explain", o.Explain)
	classifierRoutes(r, o.Classifier)
	cacheRoutes(r, &cacheStore{now: o.Cache, log: o.Log})
	health.Routes(r, func(ctx *fasthttp.RequestCtx) {
		ready := o.Readiness()
		ready.Answer(ctx, true)
	})
	return func(ctx *fasthttp.RequestCtx) {
		if err := browser.CheckAdmin(ctx, o.Hosts()); err != nil {
			respond.Error(ctx, err)
			return
		}
		r.Handler(ctx)
	}
}

// changing is a route that changes something.
func changing(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if err := browser.CheckChange(ctx); err != nil {
			respond.Error(ctx, err)
			return
		}
		next(ctx)
	}
}

// reload is POST /reload.
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
