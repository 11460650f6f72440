// Metrics of what is heard from the workers' engines.

package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvevents"
)

// A listenCollector reads what the listeners know when it is asked for.
type listenCollector struct{ p *Proxy }

func listenDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"worker"}, labels...), nil)
}

var (
	kvEvents    = listenDesc("kvasir_kv_events_total", "KV events and blocks in them, by what became of them.", "kind")
	kvMessages  = listenDesc("kvasir_kv_messages_total", "Messages of KV events, by how they were had, or lost for good.", "how")
	kvGaps      = listenDesc("kvasir_kv_gaps_total", "Times that messages of KV events were missing, repaired or not.")
	kvClears    = listenDesc("kvasir_kv_clears_total", "Times that all blocks of a rank were forgotten, by why.", "why")
	kvConnected = listenDesc("kvasir_kv_events_connected", "Ranks whose KV events are heard.")
	kvSources   = listenDesc("kvasir_kv_events_sources", "Ranks whose KV events should be heard.")
	kvLag       = listenDesc("kvasir_kv_events_lag_seconds", "From when the engine made its last KV events to when they were taken in, by the clocks of both.")
	kvHeld      = listenDesc("kvasir_kv_blocks_held", "KV blocks that the worker holds by its events.")
	kvBlockSize = listenDesc("kvasir_kv_block_tokens", "Tokens of one KV block; 0: not known.")
	kvMismatch  = listenDesc("kvasir_kv_block_tokens_mismatch", "1 while the engine's blocks have another size than is assumed.")
	kvRestarts  = listenDesc("kvasir_worker_restarts_total", "Times that the worker's engine was found started anew.")
	kvLate      = listenDesc("kvasir_kv_transfers_late_total", "KV blocks fetched from the worker after it had given them up, as it counts; answers may be wrong.")
	kvExpired   = listenDesc("kvasir_kv_transfers_expired_total", "Prompts whose KV blocks nobody fetched from the worker in time, as it counts.")

	kvIndexBytes  = prometheus.NewDesc("kvasir_kv_index_bytes", "Memory of the index of KV blocks.", nil, nil)
	kvIndexBlocks = prometheus.NewDesc("kvasir_kv_index_blocks", "KV blocks in the index, summed over the workers, by how they are known.", []string{"by"}, nil)
)

// Describe and Collect are prometheus.Collector.
func (listenCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{kvEvents, kvMessages, kvGaps, kvClears, kvConnected, kvSources, kvLag, kvHeld,
		kvBlockSize, kvMismatch, kvRestarts, kvLate, kvExpired, kvIndexBytes, kvIndexBlocks} {
		out <- d
	}
}

func (c listenCollector) Collect(out chan<- prometheus.Metric) {
	s := c.p.state.Load()
	if s == nil {
		return
	}
	for _, b := range s.backends {
		collectListening(b, out)
	}
	held := s.pool.Index()
	out <- prometheus.MustNewConstMetric(kvIndexBytes, prometheus.GaugeValue, float64(held.Bytes))
	out <- prometheus.MustNewConstMetric(kvIndexBlocks, prometheus.GaugeValue, float64(held.Blocks), "events")
	out <- prometheus.MustNewConstMetric(kvIndexBlocks, prometheus.GaugeValue, float64(held.Predicted), "predicted")
}

func collectListening(b *backend, out chan<- prometheus.Metric) {
	counts, name := b.Counts(), b.Name()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{name}, labels...)...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
	}
	counter(kvRestarts, counts.Restarts)
	counter(kvLate, counts.Late)
	counter(kvExpired, counts.Expired)
	gauge(kvBlockSize, float64(b.Engine().BlockSize))
	sum := sumFacts(b.Events())
	gauge(kvSources, float64(sum.ranks))
	gauge(kvConnected, float64(sum.connected))
	gauge(kvHeld, float64(sum.held))
	gauge(kvLag, sum.lag)
	gauge(kvMismatch, sum.mismatch)
	counter(kvGaps, sum.stats.Gaps)
	for kind, n := range sum.kinds {
		counter(kvEvents, n, holdings.Kind(kind).String())
	}
	for kind, n := range map[string]uint64{
		"malformed": sum.stats.Malformed, "unknown_kind": sum.stats.UnknownKind, "unknown_tier": sum.stats.UnknownTier,
		"other_layers": sum.stats.OtherGroup, "unknown_field": sum.stats.ExtraFields,
	} {
		counter(kvEvents, n, kind)
	}
	for how, n := range map[string]uint64{
		"live": sum.stats.Messages - sum.stats.Replayed, "replayed": sum.stats.Replayed, "double": sum.stats.Doubles, "lost": sum.stats.Lost,
	} {
		counter(kvMessages, n, how)
	}
	for why, n := range sum.clears {
		counter(kvClears, uint64(n), why)
	}
}

// A listenSum is the facts of all ranks together.
type listenSum struct {
	ranks, connected, held int
	lag, mismatch          float64 // the worst
	stats                  kvevents.Stats
	kinds                  [holdings.Kinds]uint64
	clears                 map[string]int
}

func sumFacts(facts []holdings.Facts) (s listenSum) {
	s.clears = map[string]int{holdings.HashReused: 0}
	for why := kvevents.ByEngine; why <= kvevents.Damaged; why++ {
		s.clears[why.String()] = 0
	}
	s.ranks = len(facts)
	for i := range facts {
		f := &facts[i]
		if f.Connected {
			s.connected++
		}
		if f.Engine != 0 {
			s.mismatch = 1
		}
		s.held += f.Held
		s.lag = max(s.lag, f.Lag.Seconds())
		s.stats.Add(f.Stats)
		for k, n := range f.Kinds {
			s.kinds[k] += n
		}
		for why, n := range f.Cleared {
			s.clears[why] += n
		}
	}
	return s
}
