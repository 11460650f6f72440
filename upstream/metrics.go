// Metrics of workers: whether they can be asked, and what is heard from their engines.

package upstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/kvroute/holdings"
	"kvasir/kvroute/kvevents"
)

// A Collector is the metrics of the workers that Workers gives, read when they are
// asked for. No two workers may have one name.
type Collector struct{ Workers func() []*Worker }

var (
	workerUp     = prometheus.NewDesc("kvasir_worker_up", "1 when requests may be sent to the worker.", []string{"worker", "role", "state"}, nil)
	workerActive = workerDesc("kvasir_worker_active_requests", "Requests under way at the worker.")
	workerConns  = workerDesc("kvasir_worker_connections", "Open connections to the worker.")
	workerSource = workerDesc("kvasir_worker_source", "1 for the source that the worker was found by.", "source")
)

func workerDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"worker"}, labels...), nil)
}

var (
	kvEvents    = workerDesc("kvasir_kv_events_total", "KV events and blocks in them, by what became of them.", "kind")
	kvMessages  = workerDesc("kvasir_kv_messages_total", "Messages of KV events, by how they were had, or lost for good.", "how")
	kvGaps      = workerDesc("kvasir_kv_gaps_total", "Times that messages of KV events were missing, repaired or not.")
	kvClears    = workerDesc("kvasir_kv_clears_total", "Times that all blocks of a rank were forgotten, by why.", "why")
	kvConnected = workerDesc("kvasir_kv_events_connected", "Ranks whose KV events are heard.")
	kvSources   = workerDesc("kvasir_kv_events_sources", "Ranks whose KV events should be heard.")
	kvLag       = workerDesc("kvasir_kv_events_lag_seconds", "From when the engine made its last KV events to when they were taken in, by the clocks of both.")
	kvHeld      = workerDesc("kvasir_kv_blocks_held", "KV blocks that the worker holds by its events.")
	kvBlockSize = workerDesc("kvasir_kv_block_tokens", "Tokens of one KV block; 0: not known.")
	kvMismatch  = workerDesc("kvasir_kv_block_tokens_mismatch", "1 while the engine's blocks have another size than is assumed.")
	kvRestarts  = workerDesc("kvasir_worker_restarts_total", "Times that the worker's engine was found started anew.")
	kvLate      = workerDesc("kvasir_kv_transfers_late_total", "KV blocks fetched from the worker after it had given them up, as it counts; answers may be wrong.")
	kvExpired   = workerDesc("kvasir_kv_transfers_expired_total", "Prompts whose KV blocks nobody fetched from the worker in time, as it counts.")
)

// Describe and Collect are prometheus.Collector.
func (Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{workerUp, workerActive, workerConns, workerSource, kvEvents, kvMessages, kvGaps, kvClears, kvConnected,
		kvSources, kvLag, kvHeld, kvBlockSize, kvMismatch, kvRestarts, kvLate, kvExpired} {
		out <- d
	}
}

// Collect reads the workers.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, w := range c.Workers() {
		w.collect(now, out)
		w.collectHeard(out)
	}
}

func (w *Worker) collect(now time.Time, out chan<- prometheus.Metric) {
	st := w.Status(now)
	up := 0.0
	if st.State.TakesRequests() {
		up = 1
	}
	out <- prometheus.MustNewConstMetric(workerUp, prometheus.GaugeValue, up, w.Name(), w.Role().String(), st.State.String())
	out <- prometheus.MustNewConstMetric(workerActive, prometheus.GaugeValue, float64(w.Active()), w.Name())
	out <- prometheus.MustNewConstMetric(workerConns, prometheus.GaugeValue, float64(w.Conns.Count()), w.Name())
	source := w.Source()
	if source == "" {
		source = "config"
	}
	out <- prometheus.MustNewConstMetric(workerSource, prometheus.GaugeValue, 1, w.Name(), source)
}

// collectHeard is what the worker's engine says of itself and of its KV cache.
func (w *Worker) collectHeard(out chan<- prometheus.Metric) {
	counts, name := w.Counts(), w.Name()
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), append([]string{name}, labels...)...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
	}
	counter(kvRestarts, counts.Restarts)
	counter(kvLate, counts.Late)
	counter(kvExpired, counts.Expired)
	gauge(kvBlockSize, float64(w.Engine().BlockSize))
	sum := sumStatus(w.Events())
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

// A heardSum is the facts of all ranks together.
type heardSum struct {
	ranks, connected, held int
	lag, mismatch          float64 // the worst
	stats                  kvevents.Stats
	kinds                  [holdings.Kinds]uint64
	clears                 map[string]int
}

func sumStatus(ranks []holdings.Status) (s heardSum) {
	s.clears = map[string]int{holdings.HashReused: 0}
	for why := kvevents.ByEngine; why <= kvevents.Damaged; why++ {
		s.clears[why.String()] = 0
	}
	s.ranks = len(ranks)
	for i := range ranks {
		f := &ranks[i]
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
