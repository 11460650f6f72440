// Admin: health, readiness, metrics, reload and profiles.

package proxy

import (
	"errors"
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

	"kvasir/edge"
	"kvasir/kvroute"
	"kvasir/openai"
)

// An admin is the proxy as operators meet it.
type admin struct{ *Proxy }

// handler routes requests of the admin listener.
func (a admin) handler() fasthttp.RequestHandler {
	r := router.New()
	r.NotFound, r.MethodNotAllowed, r.HandleOPTIONS = notFound, methodNotAllowed, false
	r.GET("/metrics", fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{})))
	r.POST("/reload", a.changing(a.reload))
	r.ANY("/debug/pprof/{name:*}", pprofhandler.PprofHandler)
	r.GET("/debug/gpu", a.gpus)
	a.askingRoutes(r)
	r.POST("/explain", a.explain)
	cacheAdmin(a).routes(r)
	a.healthRoutes(r, a.ready)
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if fault := recover(); fault != nil {
				a.panicked(ctx, fault)
			}
		}()
		defer edge.Forget(ctx)
		if err := edge.Receive(ctx, &a.bodies, maxAdminBody, false); err != nil {
			a.unreadable(ctx, err)
			return
		}
		if err := a.fromElsewhere(ctx); err != nil {
			writeError(ctx, err)
			return
		}
		r.Handler(ctx)
	}
}

// headReceived leaves the body to receive; the clock of the head runs on.
func (a admin) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	edge.LeaveBody(h)
	return fasthttp.RequestConfig{}
}

// maxAdminBody is how long a body may be, in bytes: a text to be asked about.
const maxAdminBody = 4 << 20

// unreadable answers a request that is no valid HTTP, or too large.
func (a admin) unreadable(ctx *fasthttp.RequestCtx, err error) {
	refusal := openai.Invalid("", "The request is not valid HTTP/1.1")
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		refusal = edge.TooLarge(maxAdminBody, "")
	case errors.Is(err, edge.ErrNoRoom):
		refusal = edge.NoRoom()
	}
	writeError(ctx, refusal)
	edge.CloseBehind(ctx)
}

// healthRoutes are on both listeners.
func (a admin) healthRoutes(r *router.Router, ready fasthttp.RequestHandler) {
	get(r, "/health", alive)
	get(r, "/livez", alive)
	get(r, "/readyz", ready)
}

func alive(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"status":"ok"}`)
}

// ready says whether requests should be sent here, and what is not as it
// should be: degraded is not down.
func (a admin) ready(ctx *fasthttp.RequestCtx) { a.readiness().answer(ctx, true) }

// ready says the same to everybody, but what is wrong only to who shows a key:
// the reasons name workers, their addresses and what stands in configurations.
func (p *Proxy) ready(ctx *fasthttp.RequestCtx) {
	admin{p}.readiness().answer(ctx, p.state.Load().keys.required() && !p.isStranger(ctx))
}

// A readiness is what /readyz says.
type readiness struct {
	status  string
	code    int
	up, all int // workers: those that can answer, and all
	reasons []string
}

func (a admin) readiness() readiness {
	s := a.state.Load()
	r := readiness{status: "ready", code: fasthttp.StatusOK, all: len(s.backends)}
	why, up := a.workerReasons(time.Now())
	r.up = up
	r.reasons = append(a.reasons.list(), why...)
	r.reasons = append(r.reasons, a.descriptors.Reasons(time.Now())...)
	if c := s.settings.Cache; c != nil {
		if problem := c.Stats().Problem; problem != "" {
			r.reasons = append(r.reasons, "the cache: "+problem)
		}
	}
	switch {
	case a.draining.Load():
		r.status, r.code = "shutting down", fasthttp.StatusServiceUnavailable
	case up == 0:
		r.status, r.code = "no worker is up", fasthttp.StatusServiceUnavailable
	case len(r.reasons) > 0:
		r.status = "degraded"
	}
	return r
}

// answer says it, with the reasons, or with counts alone.
func (r readiness) answer(ctx *fasthttp.RequestCtx, inWords bool) {
	body := append([]byte(nil), `{"status":`...)
	body = openai.AppendString(body, r.status)
	if inWords {
		body = append(body, `,"reasons":[`...)
		for i, reason := range r.reasons {
			if i > 0 {
				body = append(body, ',')
			}
			body = openai.AppendString(body, reason)
		}
		body = append(body, ']')
	} else {
		body = fmt.Appendf(body, `,"workers":{"up":%d,"all":%d},"problems":%d`, r.up, r.all, len(r.reasons))
	}
	ctx.SetStatusCode(r.code)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, '}'))
}

// workerReasons names the workers that are not up, or whose events are not heard as they should be, and counts those
// that are up and can answer.
func (a admin) workerReasons(now time.Time) (why []string, up int) {
	s := a.state.Load()
	for _, b := range s.backends {
		st := b.Status(now)
		if usable(st.State) {
			why = append(why, s.placeReasons(b)...)
			if few := b.ListsTooMany(); few != "" {
				why = append(why, few)
			}
			if b.Role() != kvroute.Prefill { // which answers nobody
				up++
			}
			why = append(why, b.EventReasons(now)...)
			continue
		}
		why = append(why, fmt.Sprintf("worker %q is %s: %s", b.Name(), st.State, st.Why))
	}
	why = append(why, a.hardware.reasons(s, now)...)
	slices.Sort(why)
	return why, up
}

func (a admin) reload(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	if a.Reload == nil {
		writeError(ctx, &openai.Error{Status: 501, Type: "server_error", Message: "there is no configuration to reload"})
		return
	}
	if err := a.Reload(); err != nil {
		writeError(ctx, &openai.Error{
			Status: 422, Type: "invalid_request_error", Code: "config_invalid",
			Message: "The new configuration was not taken, the old one stays: " + err.Error(),
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
