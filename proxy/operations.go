// Operations: what is counted of requests by model, while names of other systems are asked for
// (metrics.compatible). Package compatible tells it by those.

package proxy

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvasir/proxy/compatible"
)

// operations are not among the metrics that are shown. Their labels are bounded: routes, status
// codes, reasons of this package, and models that are served, of which the first maxNames have a
// name.
type operations struct {
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	first     *prometheus.HistogramVec
	chunk     *prometheus.HistogramVec
	tokens    *prometheus.HistogramVec
	perToken  *prometheus.HistogramVec
	routed    *prometheus.CounterVec
	found     *prometheus.CounterVec
	personal  *prometheus.CounterVec
	reasoning *prometheus.CounterVec
	prefill   *prometheus.HistogramVec
	reused    prometheus.Histogram
	lately    reusedLately

	models bounded
	ends   known[operationEnd, operationMeter]
	meters known[modelRoute, modelMeter]
}

// shareBuckets are of a share, from 0 to 1.
var shareBuckets = []float64{0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1}

func newOperations(p *Proxy) *operations {
	r := prometheus.NewRegistry()
	f := making{promauto.With(r)}
	o := &operations{
		registry:  r,
		requests:  f.counters(compatible.Requests, "Requests.", "model", "route", "stream", "worker", "end", "code"),
		seconds:   f.histograms(compatible.Seconds, "To the end of answers.", compatible.Buckets(compatible.Seconds), "model", "route", "worker", "end", "code"),
		first:     f.histograms(compatible.FirstSeconds, "To the first byte of streams.", compatible.Buckets(compatible.FirstSeconds), "model", "route"),
		chunk:     f.histograms(compatible.ChunkSeconds, "Between events.", compatible.Buckets(compatible.ChunkSeconds), "model", "route"),
		tokens:    f.histograms(compatible.Tokens, "Tokens.", compatible.Buckets(compatible.Tokens), "model", "route", "type"),
		perToken:  f.histograms(compatible.TokenSeconds, "Of an answer, by token.", compatible.Buckets(compatible.TokenSeconds), "model"),
		routed:    f.counters(compatible.Routed, "Judged requests.", "source", "model", "reason"),
		found:     f.counters(compatible.Categories, "Categories.", "category"),
		personal:  f.counters(compatible.PersonalData, "Personal data.", "model", "type"),
		reasoning: f.counters(compatible.Reasoning, "Reasoning.", "category", "model", "effort"),
		prefill:   f.histograms(compatible.PrefillSeconds, "Of prefill workers.", firstBuckets, "worker"),
		reused:    f.histogram(compatible.ReusedShare, "Of blocks.", shareBuckets),
	}
	r.MustRegister(engineCollector{p, &o.lately})
	return o
}

// An operationEnd tells apart how requests went.
type operationEnd struct {
	model, route, end string
	code              int
	stream, worker    bool
}

type operationMeter struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

type modelRoute struct{ model, route string }

type modelMeter struct {
	first, chunk, prompt, completion, cached, perToken prometheus.Observer
}

// counts says whether requests are counted by model.
func (s *Settings) counts() bool { return len(s.Compatible) > 0 }

// modelOf is the label of a request's model: names of models that are not served are what clients
// make up.
func (o *operations) modelOf(s *state, model string) string {
	if !s.serves(model) {
		return otherName
	}
	return o.models.name(model)
}

func (o *operations) meterOf(model, route string) *modelMeter {
	key := modelRoute{model, route}
	if m := o.meters.get(key); m != nil {
		return m
	}
	return o.meters.put(key, &modelMeter{
		first: o.first.WithLabelValues(model, route), chunk: o.chunk.WithLabelValues(model, route),
		prompt: o.tokens.WithLabelValues(model, route, "prompt"), completion: o.tokens.WithLabelValues(model, route, "completion"),
		cached: o.tokens.WithLabelValues(model, route, "cached"), perToken: o.perToken.WithLabelValues(model),
	})
}

func (o *operations) endOf(key operationEnd) *operationMeter {
	if m := o.ends.get(key); m != nil {
		return m
	}
	worker, code := strconv.FormatBool(key.worker), strconv.Itoa(key.code)
	return o.ends.put(key, &operationMeter{
		requests: o.requests.WithLabelValues(key.model, key.route, strconv.FormatBool(key.stream), worker, key.end, code),
		seconds:  o.seconds.WithLabelValues(key.model, key.route, worker, key.end, code),
	})
}

// note counts a request that has ended.
func (o *operations) note(x *exchange) {
	f, pl := &x.facts, &x.plan
	if !pl.state.settings.counts() {
		return
	}
	model, route := o.modelOf(pl.state, pl.model), pl.route.Path
	end := o.endOf(operationEnd{model: model, route: route, end: endOf(f.why, pl.judgement.guard), code: f.status, stream: f.streamed, worker: x.backend != nil})
	end.requests.Inc()
	end.seconds.Observe(f.total.Seconds())
	if f.judged {
		o.noteJudged(x, model)
	}
	if x.backend == nil {
		return
	}
	m := o.meterOf(model, route)
	if f.streamed && f.firstByte > 0 && f.status < 400 { // an error that is passed on has no first token
		m.first.Observe(f.firstByte.Seconds())
	}
	observeCount(m.prompt, f.usage.Prompt)
	observeCount(m.completion, f.usage.Completion)
	observeCount(m.cached, f.usage.Cached)
	if f.why == "" && f.usage.Completion > 0 {
		m.perToken.Observe(f.total.Seconds() / float64(f.usage.Completion))
	}
}

// observeCount notes a number of tokens; -1: nobody told it.
func observeCount(o prometheus.Observer, n int) {
	if n >= 0 {
		o.Observe(float64(n))
	}
}

// endOf is why a request ended, with the guard that blocked it.
func endOf(why, guard string) string {
	if why != "blocked" {
		return why
	}
	switch guard {
	case "jailbreak":
		return "blocked_jailbreak"
	case "pii":
		return "blocked_pii"
	}
	return "blocked_decision"
}

// noteJudged counts what was found in a request, and where it went.
func (o *operations) noteJudged(x *exchange, model string) {
	j, asked := &x.plan.judgement, x.plan.asked
	source := "auto"
	if !isLeftToUs(asked) {
		source = o.modelOf(x.plan.state, asked)
	}
	o.routed.WithLabelValues(source, model, x.reasonCode()).Inc()
	if j.category != "" {
		o.found.WithLabelValues(j.category).Inc()
	}
	for _, kind := range j.denied {
		o.personal.WithLabelValues(model, kind).Inc()
	}
	if j.reasoning != "" {
		o.reasoning.WithLabelValues(j.category, model, j.reasoning).Inc()
	}
}

// chunks notes that n events have come of a worker's stream: from the first with content on, all of
// them. Of several that came at once each counts for its part of the time since the one before.
func (x *exchange) chunks(n int) {
	if !x.plan.state.settings.counts() {
		return
	}
	f, now, gap := &x.facts, x.call.Now, 0.0
	if f.meter == nil {
		o := x.p.metrics.operations
		f.meter = o.meterOf(o.modelOf(x.plan.state, x.plan.model), x.plan.route.Path)
		n-- // the first one has nothing before it
	} else {
		gap = now.Sub(f.lastChunk).Seconds() / float64(n)
	}
	for range n {
		f.meter.chunk.Observe(gap)
	}
	f.lastChunk = now
}

// notePlaced notes how much of a prompt its worker was taken to hold.
func (o *operations) notePlaced(f *placed, now time.Time) {
	if f.of > 0 {
		o.reused.Observe(float64(f.overlap) / float64(f.of))
		o.lately.note(now, f.overlap, f.of)
	}
}

// notePrefill notes what a prefill worker took. One that a reload has dropped meanwhile has no series
// any more, and gets none.
func (o *operations) notePrefill(s *state, worker string, seconds float64) {
	if s.settings.counts() && s.has(worker) {
		o.prefill.WithLabelValues(worker).Observe(seconds)
	}
}

// forget drops what is counted of workers that the next state does not have.
func (o *operations) forget(old, next *state) {
	for _, b := range old.backends {
		if !next.has(b.Name()) {
			o.prefill.DeleteLabelValues(b.Name())
		}
	}
}

// reusedLately is the share of the prompts' blocks that workers were taken to hold, of requests
// that count the less the longer ago they came.
type reusedLately struct {
	mu           sync.Mutex // guards all below
	at           time.Time
	overlap, all float64 // blocks
}

// lately is after how long a request counts for half of a new one.
const lately = time.Minute

func (l *reusedLately) note(now time.Time, overlap, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since := now.Sub(l.at); since > 0 {
		left := math.Exp2(-since.Seconds() / lately.Seconds())
		l.overlap, l.all, l.at = l.overlap*left, l.all*left, now
	}
	l.overlap += float64(overlap)
	l.all += float64(all)
}

// share is false until a request was placed by what workers hold.
func (l *reusedLately) share() (float64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == 0 {
		return 0, false
	}
	return l.overlap / l.all, true
}

// An engineCollector reads what is known of engines, and of what they hold, when it is asked for.
type engineCollector struct {
	p      *Proxy
	lately *reusedLately
}

func engineDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	engineBlocks  = engineDesc(compatible.EngineBlocks, "KV blocks.", "model")
	engineSeqs    = engineDesc(compatible.EngineSeqs, "Requests of a pass.", "model")
	engineBatch   = engineDesc(compatible.EngineBatch, "Tokens of a pass.", "model")
	engineContext = engineDesc(compatible.EngineContext, "Tokens of a request.", "model")
	engineBlock   = engineDesc(compatible.EngineBlock, "Tokens of a block.", "model")
	heldShare     = engineDesc(compatible.HeldShare, "Of a worker's blocks.", "worker")
	reusedShare   = engineDesc(compatible.ReusedLately, "Of prompts' blocks.")
	entriesKept   = engineDesc(compatible.CacheEntries, "Of the cache.", "backend")
)

// Describe and Collect are prometheus.Collector.
func (engineCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{engineBlocks, engineSeqs, engineBatch, engineContext, engineBlock, heldShare, reusedShare, entriesKept} {
		out <- d
	}
}

func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if share, ok := c.lately.share(); ok {
		gauge(reusedShare, share)
	}
	told := map[string]bool{}
	for _, b := range s.ordered {
		c.collectHeld(b, gauge)
		c.collectEngine(b, told, gauge)
	}
	if s.settings.Cache == nil {
		return
	}
	if stats := s.settings.Cache.Stats(); stats.Entries >= 0 {
		backend := "memory"
		if stats.Breaker != "" {
			backend = "milvus"
		}
		gauge(entriesKept, float64(stats.Entries), backend)
	}
}

// collectHeld is how much of a worker's cache holds something, where its events say so.
func (c engineCollector) collectHeld(b *backend, gauge func(*prometheus.Desc, float64, ...string)) {
	e := b.Engine()
	ranks := b.Events()
	if e.Blocks == 0 || !e.Events || len(ranks) == 0 {
		return
	}
	held := 0
	for i := range ranks {
		held += ranks[i].Held
	}
	gauge(heldShare, min(float64(held)/float64(e.Blocks*len(ranks)), 1), b.Name())
}

// collectEngine is what the engine of the first worker that serves a model says of itself.
func (c engineCollector) collectEngine(b *backend, told map[string]bool, gauge func(*prometheus.Desc, float64, ...string)) {
	models, _ := b.Models()
	e := b.Engine()
	for i := range models {
		m := &models[i]
		model := c.p.metrics.operations.models.name(m.Name)
		if told[model] || e.BlockSize == 0 {
			continue
		}
		told[model] = true
		for _, fact := range [...]struct {
			desc *prometheus.Desc
			n    int
		}{{engineBlocks, e.Blocks}, {engineSeqs, e.MaxSeqs}, {engineBatch, e.MaxBatchedTokens}, {engineContext, m.MaxModelLen}, {engineBlock, e.BlockSize}} {
			if fact.n > 0 {
				gauge(fact.desc, float64(fact.n), model)
			}
		}
	}
}
