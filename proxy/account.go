// The books: the one log line and the metrics of each request.
package proxy

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// account notes how a request went. Nothing of its text, its answer or its key
// is among the facts.
func (p *Proxy) account(x *exchange) {
	f := &x.facts
	x.spend()
	m := p.metrics.of(x.route, f.status)
	m.requests.Inc()
	m.duration.Observe(f.total.Seconds())
	if f.firstByte > 0 {
		m.firstByte.Observe(f.firstByte.Seconds())
		p.metrics.overhead.Observe(f.overhead.Seconds())
	}
	if f.why != "" {
		p.metrics.ended.WithLabelValues(f.why).Inc()
	}
	if f.usage != noCounts && x.state.serves(x.model) {
		p.metrics.tokens.WithLabelValues(x.model, "prompt").Add(float64(max(f.usage.promptTokens, 0)))
		p.metrics.tokens.WithLabelValues(x.model, "completion").Add(float64(max(f.usage.completionTokens, 0)))
		p.metrics.tokens.WithLabelValues(x.model, "cached").Add(float64(max(f.usage.cachedTokens, 0)))
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

// routeMetrics are the children of one route and status, looked up once.
type routeMetrics struct {
	requests            prometheus.Counter
	duration, firstByte prometheus.Observer
}

// of finds the children for a route and a status code without building labels
// on each request.
func (m *metrics) of(rt *route, status int) *routeMetrics {
	k := routeStatus{rt, status}
	if v, ok := m.byRoute.Load(k); ok {
		return v.(*routeMetrics)
	}
	code := strconv.Itoa(status)
	v, _ := m.byRoute.LoadOrStore(k, &routeMetrics{
		requests:  m.requests.WithLabelValues(rt.path, code),
		duration:  m.duration.WithLabelValues(rt.path),
		firstByte: m.firstByte.WithLabelValues(rt.path),
	})
	return v.(*routeMetrics)
}

type routeStatus struct {
	rt     *route
	status int
}
