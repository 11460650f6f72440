// What is said of a verdict in metrics and the log. Never the text.

package proxy

import (
	"maps"
	"math"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"kvasir/classify"
)

// signalMetrics are what is counted of each signal.
type signalMetrics struct {
	computed  *prometheus.CounterVec
	failed    *prometheus.CounterVec
	matched   *prometheus.CounterVec
	score     *prometheus.HistogramVec
	took      *prometheus.HistogramVec
	blocked   *prometheus.CounterVec
	annotated *prometheus.CounterVec
	redacted  *prometheus.CounterVec
	unjudged  *prometheus.CounterVec
	decisions *prometheus.CounterVec
	hidden    prometheus.Counter

	kinds atomic.Pointer[map[classify.Kind]kindMetrics] // never changed, but replaced
}

func newSignalMetrics(f making) signalMetrics {
	return signalMetrics{
		computed:  f.counters("kvasir_signals_total", "Signals computed.", "signal"),
		failed:    f.counters("kvasir_signal_errors_total", "Signals that could not be computed.", "signal"),
		matched:   f.counters("kvasir_signal_matches_total", "Signals of the configuration that held, by their name.", "signal", "name"),
		score:     f.histograms("kvasir_signal_score", "Probability of an attack, and confidence in the category.", scoreBuckets, "signal"),
		took:      f.histograms("kvasir_signal_duration_seconds", "Time that a signal took.", shortBuckets, "signal"),
		blocked:   f.counters("kvasir_blocked_total", "Requests refused by a guard or a decision, by what was found.", "guard", "type"),
		annotated: f.counters("kvasir_annotated_total", "Requests that a guard let pass although it found something, because it annotates or redacts.", "guard", "type"),
		redacted:  f.counters("kvasir_redacted_total", "Pieces of personal data that were replaced.", "type"),
		unjudged:  f.counters("kvasir_unjudged_total", "Requests that a guard could not judge, by what became of them.", "guard", "result"),
		decisions: f.counters("kvasir_decisions_total", "Requests that a decision held for.", "decision"),
		hidden:    f.counter("kvasir_hidden_text_total", "Requests with characters that no reader sees."),
	}
}

// kindMetrics are those of one kind of signal, looked up once: a look-up by label takes as long as
// some signals do.
type kindMetrics struct {
	computed prometheus.Counter
	took     prometheus.Observer
}

func (m *signalMetrics) of(kind classify.Kind) kindMetrics {
	old := m.kinds.Load()
	if old != nil {
		if k, ok := (*old)[kind]; ok {
			return k
		}
	}
	kinds := map[classify.Kind]kindMetrics{kind: {m.computed.WithLabelValues(string(kind)), m.took.WithLabelValues(string(kind))}}
	k := kinds[kind]
	if old != nil {
		maps.Copy(kinds, *old)
	}
	m.kinds.CompareAndSwap(old, &kinds) // who comes too late looks it up again
	return k
}

var scoreBuckets = []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}

// countVerdict counts what a verdict says.
func (m *signalMetrics) countVerdict(v *classify.Verdict) {
	for _, t := range v.Took {
		kind := m.of(t.Kind)
		kind.computed.Inc()
		kind.took.Observe(t.Took.Seconds())
		if t.Err {
			m.failed.WithLabelValues(string(t.Kind)).Inc()
		}
	}
	if v.Hidden > 0 {
		m.hidden.Inc()
	}
	for i := range v.Matched {
		m.matched.WithLabelValues(string(v.Matched[i].Kind), v.Matched[i].Name).Inc()
	}
	if v.Jailbreak.Judged {
		m.score.WithLabelValues("jailbreak").Observe(v.Jailbreak.Score)
	}
	if v.Category.Judged {
		m.score.WithLabelValues("category").Observe(v.Category.Confidence)
	}
	if v.Decision != nil {
		m.decisions.WithLabelValues(v.Decision.Name).Inc()
	}
}

// countRedacted counts one piece of personal data that was replaced.
func (m *signalMetrics) countRedacted(kind string) { m.redacted.WithLabelValues(kind).Inc() }

// typesOf lists the types among the spans, each once.
func typesOf(spans []classify.Entity) []string {
	var seen uint64
	var types []string
	for i := range spans {
		if bit := uint64(1) << (spans[i].Type & 63); seen&bit == 0 {
			seen |= bit
			types = append(types, spans[i].Type.String())
		}
	}
	return types
}

func thousandths(p float64) float64 { return math.Round(p*1000)/1000 + 0 } // no -0

// log adds what was decided to the request's line.
func (j *judgement) log(e *zerolog.Event) {
	if j.judged {
		e.Float64("jailbreak_score", thousandths(j.score))
	}
	if j.category != "" {
		e.Str("category", j.category).Float64("category_confidence", thousandths(j.confidence))
	}
	for _, f := range [...]struct{ name, value string }{
		{"jailbreak_type", j.attack}, {"decision", j.decision}, {"reasoning", j.reasoning}, {"language", j.language}, {"complexity", j.complexity},
		{"pii_types", strings.Join(j.types, ",")}, {"blocked_by", j.guard}, {"unjudged_by", j.unjudged},
	} {
		if f.value != "" {
			e.Str(f.name, f.value)
		}
	}
	if j.hidden > 0 {
		e.Int("hidden_characters", j.hidden)
	}
	if j.redacted > 0 {
		e.Int("redacted", j.redacted)
	}
}
