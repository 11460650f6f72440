// Metrics: what /metrics says, and what each request adds to it.
package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kvasir/upstream"
)

// Metrics of the proxy. Labels are bounded: routes, status codes, models that
// are served, workers of the configuration, and the reasons in this package.
type metrics struct {
	registry *prometheus.Registry

	requests      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	firstByte     *prometheus.HistogramVec
	overhead      prometheus.Histogram
	inFlight      prometheus.Gauge
	ended         *prometheus.CounterVec
	tokens        *prometheus.CounterVec
	retries       *prometheus.CounterVec
	retriesDenied prometheus.Counter
	workerErrors  *prometheus.CounterVec
	queued        prometheus.Gauge
	queueWait     prometheus.Histogram
	refusedKeys   prometheus.Counter
	unread        *prometheus.CounterVec
	serverErrors  prometheus.Counter
	panics        prometheus.Counter
	reloads       *prometheus.CounterVec
	reloadGood    prometheus.Gauge
	reloadTime    prometheus.Gauge
	signalMetrics
	cacheMetrics
	coalesceMetrics
	placeMetrics
	handoverMetrics
}

var (
	longBuckets  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36}
	firstBuckets = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120}
	shortBuckets = []float64{1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 6.4e-4, 1.28e-3, 2.56e-3, 5.12e-3, 1.024e-2, 0.1, 1}
)

func newMetrics(p *Proxy, version string) *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), upstream.Collector{Workers: p.peers}, bodyCollector{p}, descriptorCollector{p}, kvIndexCollector{p}, cacheCollector{p})
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		r.MustRegister(h)
		return h
	}
	m := &metrics{
		registry:      r,
		requests:      counters("kvasir_requests_total", "Requests answered.", "route", "code"),
		duration:      histograms("kvasir_request_duration_seconds", "From the request to the end of its answer.", longBuckets, "route"),
		firstByte:     histograms("kvasir_time_to_first_byte_seconds", "From the request to the first byte of its answer.", firstBuckets, "route"),
		overhead:      histogram("kvasir_overhead_seconds", "Time to the first byte that was no waiting for workers.", shortBuckets),
		inFlight:      gauge("kvasir_requests_in_flight", "Requests under way."),
		ended:         counters("kvasir_requests_ended_total", "Requests that did not end well, by why.", "why"),
		tokens:        counters("kvasir_tokens_total", "Tokens as workers counted them.", "model", "type"),
		retries:       counters("kvasir_retries_total", "Requests sent again to another worker, by what the last one did.", "reason"),
		retriesDenied: counter("kvasir_retries_denied_total", "Retries that the budget did not allow."),
		workerErrors:  counters("kvasir_worker_failures_total", "Tries at workers that failed.", "worker", "reason"),
		queued:        gauge("kvasir_requests_queued", "Requests that wait for a worker."),
		queueWait:     histogram("kvasir_queue_wait_seconds", "Time that queued requests waited.", firstBuckets),
		refusedKeys:   counter("kvasir_keys_refused_total", "Requests with a missing or unknown API key."),
		unread:        counters("kvasir_requests_unreadable_total", "Requests that were no valid HTTP, too large or too slow.", "code"),
		serverErrors:  counter("kvasir_connection_errors_total", "Errors that the HTTP server met on connections."),
		panics:        counter("kvasir_panics_total", "Requests ended by a bug."),
		reloads:       counters("kvasir_config_reloads_total", "Reloads of the configuration.", "result"),
		reloadGood:    gauge("kvasir_config_last_reload_successful", "1 when the last reload was taken."),
		reloadTime:    gauge("kvasir_config_last_reload_success_timestamp_seconds", "When a configuration was last taken."),
		signalMetrics: signalMetrics{
			computed:  counters("kvasir_signals_total", "Signals computed.", "signal"),
			failed:    counters("kvasir_signal_errors_total", "Signals that could not be computed.", "signal"),
			matched:   counters("kvasir_signal_matches_total", "Signals of the configuration that held, by their name.", "signal", "name"),
			score:     histograms("kvasir_signal_score", "Probability of an attack, and confidence in the category.", scoreBuckets, "signal"),
			took:      histograms("kvasir_signal_duration_seconds", "Time that a signal took.", shortBuckets, "signal"),
			blocked:   counters("kvasir_blocked_total", "Requests refused by a guard or a decision, by what was found.", "guard", "type"),
			annotated: counters("kvasir_annotated_total", "Requests that a guard let pass although it found something, because it annotates or redacts.", "guard", "type"),
			redacted:  counters("kvasir_redacted_total", "Pieces of personal data that were replaced.", "type"),
			unjudged:  counters("kvasir_unjudged_total", "Requests that a guard could not judge, by what became of them.", "guard", "result"),
			decisions: counters("kvasir_decisions_total", "Requests that a decision held for.", "decision"),
			hidden:    counter("kvasir_hidden_text_total", "Requests with characters that no reader sees."),
		},
		cacheMetrics: cacheMetrics{
			cacheLookups:  counters("kvasir_cache_lookups_total", "Requests that were looked up, by what was found.", "result"),
			cacheBypassed: counters("kvasir_cache_bypassed_total", "Requests that were not looked up, by why.", "why"),
			cacheRefused:  counters("kvasir_cache_refused_total", "Entries found near that were not taken for an answer, by what spoke against the best.", "why"),
			cacheLookup:   histogram("kvasir_cache_lookup_seconds", "Time that a lookup took, embedding included.", shortBuckets),
			cacheEmbed:    histogram("kvasir_cache_embed_seconds", "Time that a question's embedding took, waiting for a thread included.", shortBuckets),
			stored:        counter("kvasir_cache_stored_total", "Answers that were given to the store."),
			unkept:        counters("kvasir_cache_unkept_total", "Answers that were not stored, though the request allowed it, by what is in their way.", "why"),
		},
	}
	m.coalesceMetrics = coalesceMetrics{
		followers: gauge("kvasir_cache_waiters", "Requests that wait for the answer to an equal one."),
		followed:  counters("kvasir_cache_waits_total", "Requests that waited for the answer to an equal one, by how that ended.", "end"),
	}
	m.placeMetrics = placeMetrics{
		placeTook:   histogram("kvasir_placement_seconds", "Time to find a prompt's tokens and choose its workers, by policies that ask for what workers hold.", shortBuckets),
		overlapped:  counter("kvasir_placement_overlap_tokens_total", "Tokens of prompts that the chosen workers were taken to hold."),
		predicted:   counters("kvasir_placement_cached_tokens_total", "Cached tokens of requests whose worker reported them: as predicted, and as reported.", "by"),
		overlapOff:  histogram("kvasir_placement_overlap_error_blocks", "Distance between the predicted and the reported cached tokens of a request, in blocks.", offBuckets),
		approximate: counters("kvasir_placement_approximate_total", "Requests placed by blocks of text because their tokens are not known, by why.", "model", "why"),
	}
	m.handoverMetrics = handoverMetrics{
		handovers:   counters("kvasir_handovers_total", "Requests sent through a prefill and a decode worker, by what came of it.", "result"),
		aggregated:  counters("kvasir_handover_fallbacks_total", "Prompts that the decode worker computed after all, by what the prefill worker did.", "reason"),
		prefillTime: histogram("kvasir_prefill_seconds", "Time that a prefill worker took, where the decode worker is asked after it.", firstBuckets),
	}
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kvasir_cache_flights", Help: "Requests to workers whose answer equal requests would get."},
		func() float64 { return float64(p.coalesced.Stats().Calls) }))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kvasir_build_info", Help: "The version that runs."}, []string{"version"})
	r.MustRegister(build)
	build.WithLabelValues(version).Set(1)
	m.reloadGood.Set(1)
	m.reloadTime.Set(float64(time.Now().Unix()))
	return m
}

// A kvIndexCollector reads the index of KV blocks when it is asked for.
type kvIndexCollector struct{ p *Proxy }

var (
	kvIndexBytes  = prometheus.NewDesc("kvasir_kv_index_bytes", "Memory of the index of KV blocks.", nil, nil)
	kvIndexBlocks = prometheus.NewDesc("kvasir_kv_index_blocks", "KV blocks in the index, summed over the workers, by how they are known.", []string{"by"}, nil)
)

// Describe and Collect are prometheus.Collector.
func (kvIndexCollector) Describe(out chan<- *prometheus.Desc) {
	out <- kvIndexBytes
	out <- kvIndexBlocks
}

func (c kvIndexCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil {
		return
	}
	held := s.pool.Index()
	out <- prometheus.MustNewConstMetric(kvIndexBytes, prometheus.GaugeValue, float64(held.Bytes))
	out <- prometheus.MustNewConstMetric(kvIndexBlocks, prometheus.GaugeValue, float64(held.Blocks), "events")
	out <- prometheus.MustNewConstMetric(kvIndexBlocks, prometheus.GaugeValue, float64(held.Predicted), "predicted")
}

// peers are the workers of the configuration that is served; nil before the first.
func (p *Proxy) peers() []*upstream.Worker {
	s := p.state.Load()
	if s == nil {
		return nil
	}
	return s.peers()
}
