// The books: the one log line and the metrics of each request.
package proxy

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// account notes how a request went. Nothing of its text, its answer or its key
// is among the facts.
func (p *Proxy) account(x *exchange) {
	f := &x.facts
	x.spend()
	m := x.answers.of(f.status, x.route, p.metrics)
	m.requests.Inc()
	m.duration.Observe(f.total.Seconds())
	if f.firstByte > 0 {
		m.firstByte.Observe(f.firstByte.Seconds())
		p.metrics.overhead.Observe(f.overhead.Seconds())
	}
	if f.why != "" {
		p.metrics.ended.WithLabelValues(f.why).Inc()
	}
	if f.usage != noCounts && x.backend != nil {
		t := x.backend.tokensOf(x.model, p.metrics)
		t.prompt.Add(float64(max(f.usage.promptTokens, 0)))
		t.completion.Add(float64(max(f.usage.completionTokens, 0)))
		t.cached.Add(float64(max(f.usage.cachedTokens, 0)))
	}
	p.logRequest(x)
}

// logRequest writes the request's line.
func (p *Proxy) logRequest(x *exchange) {
	f := &x.facts
	level := zerolog.InfoLevel
	if f.status >= 500 && f.why != "client_gone" {
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
	e.Str("request_id", f.id).Str("route", x.route.path).
		Str("model_asked", f.asked).Str("model", x.model).Str("worker", f.worker).
		Int("status", f.status).Bool("stream", f.streamed).Int64("bytes", x.conn.sent).
		Dur("first_byte_ms", f.firstByte).Dur("total_ms", f.total).
		Int64("overhead_us", f.overhead.Microseconds()).
		Int("retries", f.retries).Str("end", why)
	if x.key != nil {
		e.Str("key", x.key.Name)
	}
	e.Msg("request")
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

// answers are the routeMetrics of one route by status code, each made when it is
// first needed.
type answers []atomic.Pointer[routeMetrics]

// of finds the children for a status code without building labels.
func (a answers) of(status int, rt *route, m *metrics) *routeMetrics {
	if status < 0 || status >= len(a) {
		status = 0
	}
	if v := a[status].Load(); v != nil {
		return v
	}
	v := &routeMetrics{
		requests:  m.requests.WithLabelValues(rt.path, strconv.Itoa(status)),
		duration:  m.duration.WithLabelValues(rt.path),
		firstByte: m.firstByte.WithLabelValues(rt.path),
	}
	a[status].Store(v)
	return v
}
