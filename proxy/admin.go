// Admin: health, readiness, metrics, reload and profiles.
package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/router"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
	"github.com/valyala/fasthttp/pprofhandler"

	"kvasir/kvroute"
)

// adminHandler routes requests of the admin listener.
func (p *Proxy) adminHandler() fasthttp.RequestHandler {
	r := router.New()
	r.NotFound, r.MethodNotAllowed, r.HandleOPTIONS = notFound, methodNotAllowed, false
	r.GET("/metrics", fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(p.metrics.registry, promhttp.HandlerOpts{})))
	r.POST("/reload", p.reload)
	r.ANY("/debug/pprof/{name:*}", pprofhandler.PprofHandler)
	p.healthRoutes(r)
	return r.Handler
}

// healthRoutes are on both listeners.
func (p *Proxy) healthRoutes(r *router.Router) {
	get(r, "/health", alive)
	get(r, "/livez", alive)
	get(r, "/readyz", p.ready)
}

func alive(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"status":"ok"}`)
}

// ready says whether requests should be sent here, and what is not as it
// should be: degraded is not down.
func (p *Proxy) ready(ctx *fasthttp.RequestCtx) {
	status, code := "ready", fasthttp.StatusOK
	why, up := p.workerReasons(time.Now())
	why = append(p.reasons.list(), why...)
	switch {
	case p.draining.Load():
		status, code = "shutting down", fasthttp.StatusServiceUnavailable
	case up == 0:
		status, code = "no worker is up", fasthttp.StatusServiceUnavailable
	case len(why) > 0:
		status = "degraded"
	}
	body := append([]byte(nil), `{"status":`...)
	body = appendJSONString(body, status)
	body = append(body, `,"reasons":[`...)
	for i, reason := range why {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendJSONString(body, reason)
	}
	ctx.SetStatusCode(code)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, "]}"...))
}

// workerReasons names the workers that are not up, and counts those that are and can answer.
func (p *Proxy) workerReasons(now time.Time) (why []string, up int) {
	for _, b := range p.state.Load().backends {
		st := b.Status(now)
		if usable(st.State) {
			if b.Role() != kvroute.Prefill { // which answers nobody
				up++
			}
			continue
		}
		why = append(why, fmt.Sprintf("worker %q is %s: %s", b.Name(), st.State, st.Why))
	}
	slices.Sort(why)
	return why, up
}

func (p *Proxy) reload(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	if p.Reload == nil {
		writeError(ctx, &apiError{status: 501, kind: "server_error", message: "there is no configuration to reload"})
		return
	}
	if err := p.Reload(); err != nil {
		writeError(ctx, &apiError{
			status: 422, kind: "invalid_request_error", code: "config_invalid",
			message: "The new configuration was not taken, the old one stays: " + err.Error(),
		})
		return
	}
	ctx.SetBodyString(`{"status":"reloaded"}`)
}

// ReloadFailed notes that a configuration was not taken.
func (p *Proxy) ReloadFailed(err error) {
	p.metrics.reloads.WithLabelValues("failed").Inc()
	p.metrics.reloadGood.Set(0)
	p.reasons.set("reload", "the last reload was not taken: "+err.Error())
	p.log.Error().Str("problem", err.Error()).Msg("configuration not taken; the old one stays")
}

// ReloadDone notes that one was. Keys in restart changed and wait for a restart.
func (p *Proxy) ReloadDone(restart []string) {
	p.metrics.reloads.WithLabelValues("taken").Inc()
	p.metrics.reloadGood.Set(1)
	p.metrics.reloadTime.Set(float64(time.Now().Unix()))
	p.reasons.set("reload", "")
	e := p.log.Info()
	if len(restart) > 0 {
		p.reasons.set("restart", "these keys changed and need a restart: "+strings.Join(restart, ", "))
		e = p.log.Warn().Strs("need_restart", restart)
	} else {
		p.reasons.set("restart", "")
	}
	e.Msg("configuration reloaded")
}

// Degrade notes a standing reason why the proxy is less than it should be.
func (p *Proxy) Degrade(reason string) {
	p.reasons.set(reason, reason)
	p.log.Warn().Msg(reason)
}

// reasons are what /readyz lists besides workers.
type reasons struct {
	mu    sync.Mutex
	byKey map[string]string
}

func (r *reasons) set(key, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" {
		delete(r.byKey, key)
		return
	}
	if r.byKey == nil {
		r.byKey = make(map[string]string)
	}
	r.byKey[key] = text
}

func (r *reasons) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]string, 0, len(r.byKey))
	for _, text := range r.byKey {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
