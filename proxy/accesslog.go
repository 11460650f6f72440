// The access log: one line a request, and its metrics.

package proxy

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/openai/answer"
)

// record notes how a request went. Nothing of its text, its answer or its key
// is among the facts.
func (p *Proxy) record(x *exchange) {
	f := &x.facts
	m := x.byStatus.of(f.status, x.plan.route, p.metrics)
	m.requests.Inc()
	m.duration.Observe(f.total.Seconds())
	if f.firstByte > 0 {
		m.firstByte.Observe(f.firstByte.Seconds())
		p.metrics.overhead.Observe(f.overhead.Seconds())
	}
	if f.why != "" {
		p.metrics.ended.WithLabelValues(f.why).Inc()
	}
	if f.usage != answer.NoUsage && x.backend != nil {
		t := x.backend.tokensOf(x.plan.model, p.metrics)
		t.prompt.Add(float64(max(f.usage.Prompt, 0)))
		t.completion.Add(float64(max(f.usage.Completion, 0)))
		t.cached.Add(float64(max(f.usage.Cached, 0)))
	}
	p.logRequest(x)
}

// logRequest writes the request's line.
func (p *Proxy) logRequest(x *exchange) {
	x.conn.Logged()
	f := &x.facts
	level := zerolog.InfoLevel
	if f.status >= 500 && f.why != whyGone {
		level = zerolog.WarnLevel
	}
	e := p.log.WithLevel(level)
	if p.log.GetLevel() > level || !e.Enabled() {
		return
	}
	why := f.why
	if why == "" {
		why = "ok"
	}
	e.Str("request_id", f.id).Bytes("worker_request_id", f.sentID[:]).Str("route", x.plan.route.Path).
		Str("model_asked", x.plan.asked).Str("model", x.plan.model).Str("worker", f.worker).
		Int("status", f.status).Bool("stream", f.streamed).Int64("bytes", x.conn.Sent()).
		Dur("first_byte_ms", f.firstByte).Dur("total_ms", f.total).
		Int64("overhead_us", f.overhead.Microseconds()).
		Int("retries", f.retries).Str("end", why)
	if x.plan.key != nil {
		e.Str("key", x.plan.key.Name)
	}
	if x.facts.judged {
		e.Str("event", "routing_decision")
		x.plan.judgement.log(e)
	}
	if f.usage != answer.NoUsage && x.backend != nil { // `kvasir replay` reads them
		e.Int("prompt_tokens", max(f.usage.Prompt, 0)).Int("completion_tokens", max(f.usage.Completion, 0)).
			Int("cached_tokens", max(f.usage.Cached, 0))
	}
	f.cache.log(e)
	if f.prefill != "" {
		e.Str("prefill_worker", f.prefill)
	}
	f.placed.log(e)
	e.Msg("request")
}

// logAside writes the line of a request that no worker heard of: health, models and
// unknown routes. Its path is the client's text, so only known ones are named.
func (p *Proxy) logAside(ctx *fasthttp.RequestCtx) {
	status := ctx.Response.StatusCode()
	route, level := "other", zerolog.InfoLevel
	switch path := string(ctx.Path()); {
	case path == "/health", path == "/livez", path == "/readyz":
		route, level = path, zerolog.DebugLevel // probes come every second
	case strings.HasPrefix(path, "/v1/models"):
		route = "/v1/models"
	}
	p.log.WithLevel(level).Bytes("request_id", ctx.Response.Header.Peek("X-Request-Id")).Str("route", route).
		Int("status", status).Dur("total_ms", time.Since(ctx.Time())).Msg("request")
}

// logUnread notes a request that was no valid HTTP, too large or too slow. There is
// nothing of it that could be named.
func (p *Proxy) logUnread(err *openai.Error) {
	if err.Status == fasthttp.StatusUnauthorized {
		p.metrics.refusedKeys.Inc()
	}
	p.metrics.unread.WithLabelValues(strconv.Itoa(err.Status)).Inc()
	p.log.Info().Str("route", "unreadable").Int("status", err.Status).Msg("request")
}

// tokenMetrics are the token counters of one model.
type tokenMetrics struct {
	model                      string
	prompt, completion, cached prometheus.Counter
}

// tokensOf finds the counters of a model that this worker answered for. Most
// workers serve one, so the last one found is kept.
func (b *backend) tokensOf(model string, m *metrics) *tokenMetrics {
	if t := b.tokens.Load(); t != nil && t.model == model {
		return t
	}
	t := &tokenMetrics{
		model:      model,
		prompt:     m.tokens.WithLabelValues(model, "prompt"),
		completion: m.tokens.WithLabelValues(model, "completion"),
		cached:     m.tokens.WithLabelValues(model, "cached"),
	}
	b.tokens.Store(t)
	return t
}

// routeMetrics are the children of one route and status.
type routeMetrics struct {
	requests            prometheus.Counter
	duration, firstByte prometheus.Observer
}

// statusMetrics are the routeMetrics of one route by status code, each made when it is
// first needed.
type statusMetrics []atomic.Pointer[routeMetrics]

// of finds the children for a status code without building labels.
func (a statusMetrics) of(status int, rt *openai.Route, m *metrics) *routeMetrics {
	if status < 0 || status >= len(a) {
		status = 0
	}
	if v := a[status].Load(); v != nil {
		return v
	}
	v := &routeMetrics{
		requests:  m.requests.WithLabelValues(rt.Path, strconv.Itoa(status)),
		duration:  m.duration.WithLabelValues(rt.Path),
		firstByte: m.firstByte.WithLabelValues(rt.Path),
	}
	a[status].Store(v)
	return v
}
