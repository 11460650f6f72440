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

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/openai/answer"
)

// An accessLog counts requests and writes a line for each. Nothing of a request's text,
// its answer or its key is in it.
type accessLog struct {
	log     zerolog.Logger
	metrics *metrics
}

// note counts a request that has ended, and writes its line.
func (l *accessLog) note(x *exchange) {
	f := &x.facts
	m := x.byStatus.of(f.status, x.plan.route, l.metrics)
	m.requests.Inc()
	x.measure(m.duration, f.total.Seconds())
	if f.firstByte > 0 {
		x.measure(m.firstByte, f.firstByte.Seconds())
		l.metrics.overhead.Observe(f.overhead.Seconds())
	}
	if f.why != "" {
		l.metrics.ended.WithLabelValues(f.why).Inc()
	}
	if f.usage != answer.NoUsage && x.backend != nil {
		t := x.backend.countersOf(x.plan.model, l.metrics)
		t.prompt.Add(float64(max(f.usage.Prompt, 0)))
		t.completion.Add(float64(max(f.usage.Completion, 0)))
		t.cached.Add(float64(max(f.usage.Cached, 0)))
		x.backend.tally.note(f.usage)
	}
	l.metrics.spending.note(x)
	l.metrics.operations.note(x)
	x.p.planning.done(x)
	l.request(x)
}

// measure adds a value to a histogram, with the trace as its exemplar if one is kept.
func (x *exchange) measure(o prometheus.Observer, v float64) {
	if e, ok := o.(prometheus.ExemplarObserver); ok && x.trace.Sampled {
		e.ObserveWithExemplar(v, prometheus.Labels{"trace_id": x.trace.Trace.String()})
		return
	}
	o.Observe(v)
}

// request writes the request's line.
func (l *accessLog) request(x *exchange) {
	x.conn.Logged()
	f := &x.facts
	level := zerolog.InfoLevel
	if f.status >= 500 && f.why != whyGone {
		level = zerolog.WarnLevel
	}
	e := l.log.WithLevel(level)
	if l.log.GetLevel() > level || !e.Enabled() {
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
	if x.trace.Sampled {
		e.Hex("trace_id", x.trace.Trace[:])
	}
	if x.facts.judged {
		e.Str("event", "routing_decision")
		x.logAsRouters(e)
		x.plan.judgement.log(e)
	}
	if f.usage != answer.NoUsage && x.backend != nil { // `kvasir replay` reads them
		e.Int("prompt_tokens", max(f.usage.Prompt, 0)).Int("completion_tokens", max(f.usage.Completion, 0)).
			Int("cached_tokens", max(f.usage.Cached, 0))
	}
	if f.priced {
		e.Float64("tokens_cost", billionths(f.cost)) // cost is placement's
	}
	f.cache.log(e)
	if f.prefill != "" {
		e.Str("prefill_worker", f.prefill)
	}
	f.placed.log(e)
	e.Msg("request")
}

// logAsRouters adds what Semantic Router's line of this name has, in its words: log pipelines that
// were made for that find it here.
func (x *exchange) logAsRouters(e *zerolog.Event) {
	j := &x.plan.judgement
	e.Str("original_model", x.plan.asked).Str("selected_model", x.plan.model).Str("reason_code", x.reasonCode()).
		Bool("reasoning_enabled", j.reasoning != "" && j.reasoning != "off").Float64("routing_latency_ms", milliseconds(x.facts.overhead))
}

// reasonCode is why the request went where it did, in Semantic Router's words.
func (x *exchange) reasonCode() string {
	switch {
	case x.plan.judgement.path == pathBlocked:
		return "security_block"
	case x.facts.cache.result == cacheHit:
		return "cache_hit"
	case isLeftToUs(x.plan.asked):
		return "auto_routing"
	}
	return "model_specified"
}

// candidates writes the line that says why: every candidate with what it holds,
// its load and its price. There are as many as workers, so it is for log.level
// debug; the request's own line has the choice.
func (l *accessLog) candidates(x *exchange, at *kvroute.Placement) {
	if len(at.Candidates) == 0 || l.log.GetLevel() > zerolog.DebugLevel {
		return
	}
	e := l.log.Debug()
	if !e.Enabled() {
		return
	}
	list := zerolog.Arr()
	for i := range at.Candidates {
		c := &at.Candidates[i]
		one := zerolog.Dict().Str("worker", c.Worker.Name())
		if c.Rank >= 0 {
			one.Int("rank", c.Rank)
		}
		one.Str("leg", c.Leg.String()).Bool("chosen", c.Chosen).Int("requests", c.Load.Requests).Int("decoding", c.Load.Decoding).
			Int("backlog", c.Load.Backlog).Int("context", c.Load.Context).
			Int("device", c.Overlap.Device).Int("host", c.Overlap.Host).Int("disk", c.Overlap.Disk).Int("predicted", c.Overlap.Predicted).
			Int("of", c.Overlap.Of).Int("block_size", c.Overlap.BlockSize).Float64("cost", thousandths(c.Cost))
		if c.TTFT > 0 {
			one.Float64("ttft_ms", milliseconds(c.TTFT))
		}
		if c.Slow > 1 {
			one.Float64("slow", thousandths(c.Slow))
		}
		if c.Aside {
			one.Bool("aside", true)
		}
		for _, part := range c.Parts {
			if part.Name != "" {
				one.Float64("cost_"+part.Name, thousandths(part.Value))
			}
		}
		list.Dict(one)
	}
	var words [32]byte // of the line that Dynamo's router writes, for log pipelines that look for them
	e.Bytes("overlap", strconv.AppendInt(append(words[:0], "cached blocks: "...), int64(x.facts.placed.overlap), 10))
	e.Str("request_id", x.facts.id).Str("event", "routing_decision").Str("model", x.plan.model).
		Str("policy", x.plan.state.settings.Routing.Policy.String()).Str("why", at.Why).Int("prompt_tokens", x.plan.placing.tokens).
		Array("candidates", list).Msg("placement")
}

// other writes the line of a request that is not passed on to workers: health, models
// and unknown routes. Its path is the client's text, so only known ones are named.
func (l *accessLog) other(ctx *fasthttp.RequestCtx) {
	status := ctx.Response.StatusCode()
	route, level := "other", zerolog.InfoLevel
	switch path := string(ctx.Path()); {
	case path == "/health", path == "/livez", path == "/readyz":
		route, level = path, zerolog.DebugLevel // probes come every second
	case strings.HasPrefix(path, "/v1/models"):
		route = "/v1/models"
	}
	l.log.WithLevel(level).Bytes("request_id", ctx.Response.Header.Peek("X-Request-Id")).Str("route", route).
		Int("status", status).Dur("total_ms", time.Since(ctx.Time())).Msg("request")
}

// unread notes a request that was no valid HTTP, too large or too slow. There is
// nothing of it that could be named.
func (l *accessLog) unread(err *openai.Error) {
	if err.Status == fasthttp.StatusUnauthorized {
		l.metrics.refusedKeys.Inc()
	}
	l.metrics.unread.WithLabelValues(strconv.Itoa(err.Status)).Inc()
	l.log.Info().Str("route", "unreadable").Int("status", err.Status).Msg("request")
}

// tokenMetrics are the token counters of one model.
type tokenMetrics struct {
	model                      string
	prompt, completion, cached prometheus.Counter
}

// countersOf finds the counters of a model that this worker answered for. Most
// workers serve one, so the last one found is kept.
func (b *backend) countersOf(model string, m *metrics) *tokenMetrics {
	if t := b.counters.Load(); t != nil && t.model == model {
		return t
	}
	t := &tokenMetrics{
		model:      model,
		prompt:     m.tokens.WithLabelValues(model, "prompt"),
		completion: m.tokens.WithLabelValues(model, "completion"),
		cached:     m.tokens.WithLabelValues(model, "cached"),
	}
	b.counters.Store(t)
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
