// Metrics: what /metrics says, and what each request adds to it.

package proxy

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"kvasir/proxy/compatible"
	"kvasir/upstream"
)

// metrics are those of the proxy; what belongs to one step is made where the step is.
// Labels are bounded: routes, status codes, models that are served, workers of the
// configuration, and the reasons in this package.
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
	found         prometheus.Counter

	reload    reloadMetrics
	signals   signalMetrics
	cache     cacheMetrics
	coalesced coalesceMetrics
	placed    placeMetrics
	handovers handoverMetrics

	spending   *spending
	operations *operations // not in registry
}

var (
	longBuckets  = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36}
	firstBuckets = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120}
	shortBuckets = []float64{1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 6.4e-4, 1.28e-3, 2.56e-3, 5.12e-3, 1.024e-2, 0.1, 1}
)

// forget drops what is counted for workers that the next state does not have: sources may
// find ever new names.
func (m *metrics) forget(old, next *state) {
	for _, b := range old.backends {
		if !next.has(b.Name()) {
			m.workerErrors.DeletePartialMatch(prometheus.Labels{"worker": b.Name()})
		}
	}
	m.operations.forget(old, next)
}

func newMetrics(p *Proxy, version string) *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		upstream.Collector{Workers: p.peers}, &p.bodies, &p.descriptors, kvIndexCollector{p}, cacheCollector{p}, sourceCollector{p}, peerCollector{p}, plannerCollector{&p.planning})
	f := making{promauto.With(r)}
	f.gauges("kvasir_build_info", "The version that runs.", "version").WithLabelValues(version).Set(1)
	return &metrics{
		registry:      r,
		requests:      f.counters("kvasir_requests_total", "Requests answered.", "route", "code"),
		duration:      f.durations("kvasir_request_duration_seconds", "From the request to the end of its answer.", longBuckets, "route"),
		firstByte:     f.durations("kvasir_time_to_first_byte_seconds", "From the request to the first byte of its answer.", firstBuckets, "route"),
		overhead:      f.duration("kvasir_overhead_seconds", "Time to the first byte that was no waiting for workers.", shortBuckets),
		inFlight:      f.gauge("kvasir_requests_in_flight", "Requests under way."),
		ended:         f.counters("kvasir_requests_ended_total", "Requests that did not end well, by why.", "why"),
		tokens:        f.counters("kvasir_tokens_total", "Tokens as workers counted them.", "model", "type"),
		retries:       f.counters("kvasir_retries_total", "Requests sent again to another worker, by what the last one did.", "reason"),
		retriesDenied: f.counter("kvasir_retries_denied_total", "Retries that the budget did not allow."),
		workerErrors:  f.counters("kvasir_worker_failures_total", "Tries at workers that failed.", "worker", "reason"),
		queued:        f.gauge("kvasir_requests_queued", "Requests that wait for a worker."),
		queueWait:     f.duration("kvasir_queue_wait_seconds", "Time that queued requests waited.", firstBuckets),
		refusedKeys:   f.counter("kvasir_keys_refused_total", "Requests with a missing or unknown API key."),
		unread:        f.counters("kvasir_requests_unreadable_total", "Requests that were no valid HTTP, too large or too slow.", "code"),
		serverErrors:  f.counter("kvasir_connection_errors_total", "Errors that the HTTP server met on connections."),
		panics:        f.counter("kvasir_panics_total", "Requests ended by a bug."),
		found:         f.counter("kvasir_discovery_applied_total", "Times that other workers, found by sources, were taken over."),

		reload:    newReloadMetrics(f),
		signals:   newSignalMetrics(f),
		cache:     newCacheMetrics(f),
		coalesced: newCoalesceMetrics(f, &p.coalesced),
		placed:    newPlaceMetrics(f),
		handovers: newHandoverMetrics(f),

		spending:   newSpending(f),
		operations: newOperations(p),
	}
}

// making makes metrics and has the registry show them.
type making struct{ promauto.Factory }

func (f making) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (f making) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (f making) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (f making) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (f making) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func (f making) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

// duration and durations are histograms that a scraper may also have as native ones, with buckets
// that are 9 % apart at most. In the text format they are as others are. One more observation takes
// some 20 ns more, and no allocation; all buckets of a series take about 12 KB.
func (f making) duration(name, help string, buckets []float64) prometheus.Histogram {
	return f.NewHistogram(native(name, help, buckets))
}

func (f making) durations(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(native(name, help, buckets), labels)
}

func native(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// told are metrics that are read when they are asked for.
type told chan<- prometheus.Metric

func (to told) gauge(d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (to told) counter(d *prometheus.Desc, v uint64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
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
	to := told(out)
	to.gauge(kvIndexBytes, float64(held.Bytes))
	to.gauge(kvIndexBlocks, float64(held.Blocks), "events")
	to.gauge(kvIndexBlocks, float64(held.Predicted), "predicted")
}

// peers are the workers of the configuration that is served; nil before the first.
func (p *Proxy) peers() []*upstream.Worker {
	s := p.state.Load()
	if s == nil {
		return nil
	}
	return s.peers()
}

// gather is all metrics, also by the names of other systems that the configuration asks for.
func (p *Proxy) gather() ([]*dto.MetricFamily, error) {
	shown, err := p.metrics.registry.Gather()
	s := p.state.Load()
	if s == nil || !s.settings.counts() {
		return shown, err
	}
	counted, also := p.metrics.operations.registry.Gather()
	return compatible.Append(shown, counted, s.settings.Compatible), errors.Join(err, also)
}
