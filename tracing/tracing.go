// Tracing: requests as spans, sent to a collector beside the requests.

// Package tracing makes spans of requests that have ended, and sends them over OTLP. It knows
// records and no proxy: which requests are sampled, and under which ids, is decided when they begin,
// in package traceparent, so that nothing of the SDK stands in a request's way.
//
//	t := tracing.New(log, reason)
//	err := t.Apply(&tracing.Options{Endpoint: "http://127.0.0.1:4318"}) // nil: off; again at each reload
//	p.Observe(t.Observe)
//	t.Close()
//
// A request waits for no collector: its spans go into a queue of at most maxWaiting spans, those
// under way to the collector among them. What does not fit is dropped, a trace as a whole. Whatever
// does not arrive is counted, once. No text of requests, of answers or of keys is in a span, unless a
// record has content.
package tracing

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"

	"kvasir/proxy/record"
)

// Options say where spans go. What they leave out is as OTEL_EXPORTER_OTLP_* say, which the exporter
// reads itself.
type Options struct {
	Endpoint string            // a URL, with the path for HTTP; "": of the environment
	GRPC     bool              // over gRPC, else over HTTP
	Headers  map[string]string // sent with each batch; nil: of the environment
	TLS      *tls.Config       // nil: of the environment, or the system's authorities
	TLSName  string            // identifies TLS for comparison
	Version  string            // of Kvasir
}

func (o *Options) same(other *Options) bool {
	return o.Endpoint == other.Endpoint && o.GRPC == other.GRPC && o.TLSName == other.TLSName && o.Version == other.Version &&
		maps.Equal(o.Headers, other.Headers)
}

// closePatience is how long a pipeline may take for its last spans when it is closed: the process has
// 900 ms to end once its requests have.
const closePatience = 400 * time.Millisecond

// Tracing sends spans where the last Options say. It is a prometheus.Collector.
type Tracing struct {
	log    zerolog.Logger
	reason func(key, text string) // of /readyz

	now      atomic.Pointer[pipeline] // nil: off
	applying sync.Mutex               // one Apply or Close at a time
	closing  sync.WaitGroup           // of pipelines that were replaced

	exported  prometheus.Counter
	queueFull prometheus.Counter
	failed    prometheus.Counter
	dropped   *prometheus.CounterVec
	waiting   prometheus.GaugeFunc
	leftOut   *prometheus.CounterVec // content

	trouble trouble
}

// New returns a Tracing that is off. reason is told why fewer spans arrive than should: a standing
// reason of /readyz under a key, "" when it is over.
func New(log zerolog.Logger, reason func(key, text string)) *Tracing {
	t := &Tracing{
		log: log, reason: reason,
		exported: prometheus.NewCounter(prometheus.CounterOpts{Name: "kvasir_trace_spans_exported_total", Help: "Spans that the collector has taken."}),
		dropped:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvasir_trace_spans_dropped_total", Help: "Spans that did not reach the collector, by why."}, []string{"reason"}),
	}
	t.queueFull, t.failed = t.dropped.WithLabelValues("queue_full"), t.dropped.WithLabelValues("export_failed")
	t.waiting = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kvasir_trace_spans_waiting", Help: "Spans that wait for the collector."}, func() float64 {
		if p := t.now.Load(); p != nil {
			return float64(p.waiting.Load())
		}
		return 0
	})
	t.leftOut = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kvasir_trace_content_left_out_total", Help: "Requests whose prompt or answer is not in their trace though it should be, by why."}, []string{"reason"})
	for _, why := range []string{"unjudged", "too_much", full.LeftOut, "unreadable", "bug"} { // as in tracing/content
		t.leftOut.WithLabelValues(why)
	}
	t.trouble.tracing = t
	// Both are the process's. What the SDK says here is of no request, or was counted already.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug().Err(err).Msg("tracing") }))
	otel.SetLogger(funcr.New(func(_, args string) { log.Warn().Msg("tracing: " + args) }, funcr.Options{}))
	return t
}

// Apply turns to other options; nil: off. What the ones before have yet to send is sent beside, for
// a moment. The error says why the options cannot be used, and nothing has changed.
func (t *Tracing) Apply(o *Options) error {
	t.applying.Lock()
	defer t.applying.Unlock()
	old := t.now.Load()
	if o == nil && old == nil || o != nil && old != nil && o.same(&old.options) {
		return nil
	}
	var next *pipeline
	if o != nil {
		var err error
		if next, err = newPipeline(t, *o); err != nil {
			return err
		}
		t.log.Info().Str("to", next.options.to()).Msg("requests are traced")
	}
	t.now.Store(next)
	t.trouble.over()
	if old != nil {
		t.closing.Add(1)
		go t.retire(old)
	}
	return nil
}

func (t *Tracing) retire(p *pipeline) {
	defer t.closing.Done()
	p.close(closePatience)
}

// Close sends what is left, for a moment.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	if err := t.Apply(nil); err != nil {
		panic("BUG: tracing cannot be switched off: " + err.Error())
	}
	t.closing.Wait()
}

// Observe makes spans of a request that has ended, if it is sampled. It waits for nobody.
func (t *Tracing) Observe(r *record.Record) {
	if !r.Trace.Sampled {
		return
	}
	if p := t.now.Load(); p != nil {
		p.observe(r)
	}
}

// Describe and Collect are prometheus.Collector.
func (t *Tracing) Describe(out chan<- *prometheus.Desc) {
	t.exported.Describe(out)
	t.dropped.Describe(out)
	t.waiting.Describe(out)
	t.leftOut.Describe(out)
}

// Collect is prometheus.Collector's.
func (t *Tracing) Collect(out chan<- prometheus.Metric) {
	t.exported.Collect(out)
	t.dropped.Collect(out)
	t.waiting.Collect(out)
	t.leftOut.Collect(out)
}

// reasonKey is the key of the standing reason.
const reasonKey = "tracing"

// A trouble is why spans are dropped now. It is told once, until spans arrive again.
type trouble struct {
	tracing *Tracing
	mu      sync.Mutex // guards told
	told    bool
}

// is notes that spans of p were dropped. What becomes of the last ones of a pipeline that was replaced
// is counted only.
func (u *trouble) is(p *pipeline, why string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told || u.tracing.now.Load() != p {
		return
	}
	u.told = true
	to := p.options.to()
	u.tracing.reason(reasonKey, "traces do not reach the collector at "+to+": "+why)
	u.tracing.log.Warn().Str("to", to).Str("why", why).Msg("traces do not reach the collector; they are dropped and counted until it takes them again")
}

// over notes that they arrive, or that they are sent elsewhere, or not any more.
func (u *trouble) over() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.told {
		return
	}
	u.told = false
	u.tracing.reason(reasonKey, "")
	u.tracing.log.Info().Msg("traces are not dropped any more")
}

// longestWhy bounds what is said of a failure in bytes.
const longestWhy = 200

// why is an error in words of one line. The exporter puts what the collector answered into it, whole,
// which may be a page of HTML, and may repeat the headers that it was sent.
func (o *Options) why(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not answer in time"
	}
	text := strings.TrimPrefix(err.Error(), "traces export: ")
	text = text[:min(len(text), 16<<10)]
	for _, secret := range o.secrets() {
		text = strings.ReplaceAll(text, secret, "***")
	}
	cut := len(text) > longestWhy
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), longestWhy)], "")), " ")
	if cut {
		text += "..."
	}
	return text
}

// secrets are the words of headers that may be one: those of some length, which schemes as Bearer have
// not.
func (o *Options) secrets() (all []string) {
	words := []string{}
	for _, v := range o.Headers {
		words = append(words, strings.Fields(v)...)
	}
	if len(o.Headers) == 0 {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"} {
			for _, header := range strings.Split(os.Getenv(name), ",") {
				_, v, _ := strings.Cut(header, "=")
				if plain, err := url.PathUnescape(v); err == nil {
					v = plain
				}
				words = append(words, strings.Fields(v)...)
			}
		}
	}
	for _, w := range words {
		if len(w) >= 8 {
			all = append(all, w)
		}
	}
	return all
}
