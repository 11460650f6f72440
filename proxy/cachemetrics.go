// Metrics of the cache: what requests make of it, and how its store does.

package proxy

import (
	"github.com/prometheus/client_golang/prometheus"
)

// cacheMetrics are what is counted of each request.
type cacheMetrics struct {
	lookups  *prometheus.CounterVec
	bypassed *prometheus.CounterVec
	refused  *prometheus.CounterVec
	lookup   prometheus.Histogram
	embed    prometheus.Histogram
	stored   prometheus.Counter
	unkept   *prometheus.CounterVec
}

func newCacheMetrics(f making) cacheMetrics {
	return cacheMetrics{
		lookups:  f.counters("kvasir_cache_lookups_total", "Requests that were looked up, by what was found.", "result"),
		bypassed: f.counters("kvasir_cache_bypassed_total", "Requests that were not looked up, by why.", "why"),
		refused:  f.counters("kvasir_cache_refused_total", "Entries found near that were not taken for an answer, by what spoke against the best.", "why"),
		lookup:   f.histogram("kvasir_cache_lookup_seconds", "Time that a lookup took, embedding included.", shortBuckets),
		embed:    f.histogram("kvasir_cache_embed_seconds", "Time that a question's embedding took, waiting for a thread included.", shortBuckets),
		stored:   f.counter("kvasir_cache_stored_total", "Answers that were given to the store."),
		unkept:   f.counters("kvasir_cache_unkept_total", "Answers that were not stored, though the request allowed it, by what is in their way.", "why"),
	}
}

// A cacheCollector reads the store's counters when it is asked for.
type cacheCollector struct{ p *Proxy }

var (
	cacheEntries = prometheus.NewDesc("kvasir_cache_entries", "Answers that are kept.", nil, nil)
	cacheBytes   = prometheus.NewDesc("kvasir_cache_bytes", "Memory that they take in this process.", nil, nil)
	cacheBreaker = prometheus.NewDesc("kvasir_cache_breaker", "1 for the state of the breaker before a remote store.", []string{"state"}, nil)
	cacheGone    = prometheus.NewDesc("kvasir_cache_removed_total", "Entries that left the store, by why.", []string{"why"}, nil)
	cacheLost    = prometheus.NewDesc("kvasir_cache_lost_total", "What the store could not keep or do, by why.", []string{"why"}, nil)
)

// Describe and Collect are prometheus.Collector.
func (cacheCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheEntries, cacheBytes, cacheBreaker, cacheGone, cacheLost} {
		out <- d
	}
}

func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil || s.settings.Cache == nil {
		return
	}
	stats := s.settings.Cache.Stats()
	to := told(out)
	if stats.Entries >= 0 {
		to.gauge(cacheEntries, float64(stats.Entries))
	}
	to.gauge(cacheBytes, float64(stats.Bytes))
	if stats.Breaker != "" {
		to.gauge(cacheBreaker, 1, stats.Breaker)
	}
	to.counter(cacheGone, stats.Evicted, "evicted")
	to.counter(cacheGone, stats.Expired, "expired")
	to.counter(cacheGone, stats.Deleted, "deleted")
	to.counter(cacheLost, stats.Dropped, "dropped")
	to.counter(cacheLost, stats.Failed, "failed")
	to.counter(cacheLost, stats.Corrupt, "corrupt")
}
