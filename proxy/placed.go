// Placed: what is said of a placement, in headers, the log and metrics, and what its end tells.

package proxy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"kvasir/kvroute"
)

// placed is what the headers, the log and the metrics say of the last placement
// of a request.
type placed struct {
	why         string        // of the choice: the policy, pinned, busy, last_resort
	approximate string        // why text stands in for tokens; "": it does not
	priced      bool          // the policy looked at what workers hold
	overlap     int           // leading blocks that can be reused where the prompt is computed
	of          int           // blocks of the prompt there
	blockSize   int           // tokens of one; 0: not known
	cost        float64       // of the choice
	candidates  int           // that were priced
	ttft        time.Duration // predicted; 0: it is not
	located     time.Duration // to find the prompt's tokens
	took        time.Duration // that and the choice
}

// placeNow asks the pool for a place at once, and notes how long that took.
func (a *attempts) placeNow(q kvroute.Query) (kvroute.Placement, error) {
	if !a.x.plan.state.prices() {
		return a.x.plan.state.pool.Place(q)
	}
	begin := time.Now()
	at, err := a.x.plan.state.pool.Place(q)
	a.x.facts.placed.took = a.x.facts.placed.located + time.Since(begin)
	return at, err
}

// note takes over what a placement says: what is known of the prompt's blocks where
// it is computed, and the price. tokens are the prompt's.
func (f *placed) note(at *kvroute.Placement, tokens int) {
	f.why = at.Why
	held := at.Overlap
	if at.Prefill != nil {
		held = at.PrefillOverlap
	}
	if f.priced = len(at.Candidates) > 0; !f.priced {
		return
	}
	f.overlap, f.of, f.blockSize = held.Blocks(), held.Of, held.BlockSize
	if f.blockSize > 0 { // engines compute the last token, whatever they hold
		f.overlap = min(f.overlap, max(tokens-1, 0)/f.blockSize)
	}
	for i := range at.Candidates {
		if c := &at.Candidates[i]; c.Chosen {
			f.cost, f.ttft = f.cost+c.Cost, max(f.ttft, c.TTFT)
		}
	}
}

// count counts the last placement of a request for the model.
func (m *placeMetrics) count(f *placed, model string) {
	if !f.priced {
		return
	}
	m.took.Observe(f.took.Seconds())
	if f.approximate != "" {
		m.approximate.WithLabelValues(model, f.approximate).Inc()
	}
	m.overlapped.Add(float64(f.overlap * f.blockSize))
}

// compare notes how far what a worker says it had cached, in tokens (negative: it
// does not say), is from what it was taken to hold, for a prompt of so many tokens.
func (m *placeMetrics) compare(f *placed, b *backend, cached, tokens int) {
	if cached < 0 || !f.priced || f.approximate != "" || f.blockSize == 0 {
		return
	}
	predicted := f.overlap * f.blockSize
	m.predicted.WithLabelValues("predicted").Add(float64(predicted))
	m.predicted.WithLabelValues("reported").Add(float64(cached))
	off := float64(predicted - cached)
	m.off.Observe(math.Abs(off) / float64(f.blockSize))
	b.agreement.note(predicted, cached, tokens)
}

// notePlacement notes where the request goes now: in its facts, the metrics and the
// log.
func (x *exchange) notePlacement() {
	p, f := &x.plan.placing, &x.facts.placed
	p.tokens = p.prompt.Tokens()
	f.note(&x.at, p.tokens)
	x.p.metrics.placed.count(f, x.plan.model)
	x.tallyOverlap()
	if x.plan.state.settings.counts() {
		x.p.metrics.operations.notePlaced(f, x.arrived())
	}
	x.p.access.candidates(x, &x.at)
	if x.trail.On() {
		x.priced = appendPriced(x.priced[:0], x.at.Candidates)
	}
	x.facts.placed.candidates = len(x.at.Candidates)
	x.at.DropCandidates()
}

// endPlacement compares what the worker says with what it was taken to hold, and
// gives the placement back.
func (x *exchange) endPlacement() {
	b := x.backend
	if x.at.Prefill != nil { // the count is the prefill worker's, whoever sends it
		b = x.at.Prefill.Peer.(*backend)
	}
	x.p.metrics.placed.compare(&x.facts.placed, b, x.facts.usage.Cached, x.plan.placing.tokens)
	x.at.Release()
}

// An agreement is how well a worker's own counts agree with what was predicted of
// it, over its last requests.
type agreement struct {
	mu                sync.Mutex // guards all below
	requests          int
	predicted, cached float64 // share of the prompt, each request weighing 1/agreementMemory
	off               float64 // their distance, whichever way
}

const (
	agreementMemory = 32
	agreementBad    = 0.25 // of the prompts' tokens
)

func (a *agreement) note(predicted, cached, tokens int) {
	if tokens <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests++
	weight := max(1.0/agreementMemory, 1/float64(a.requests)) // the first ones are not compared with nothing
	p, c := float64(predicted)/float64(tokens), float64(cached)/float64(tokens)
	a.predicted += weight * (p - a.predicted)
	a.cached += weight * (c - a.cached)
	a.off += weight * (math.Abs(p-c) - a.off)
}

// problem says that the worker holds something else than it is taken to hold; "":
// it does not, or too few requests say so.
func (a *agreement) problem() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.requests < agreementMemory || a.off < agreementBad {
		return ""
	}
	return fmt.Sprintf("of its last prompts %.0f %% were predicted to be cached and it says %.0f %%; its KV events, block size or tokenizer may be another's",
		100*a.predicted, 100*a.cached)
}

// placeMetrics are what is counted of placements.
type placeMetrics struct {
	took        prometheus.Histogram
	overlapped  prometheus.Counter
	predicted   *prometheus.CounterVec
	off         prometheus.Histogram
	approximate *prometheus.CounterVec
}

func newPlaceMetrics(f making) placeMetrics {
	return placeMetrics{
		took:        f.histogram("kvasir_placement_seconds", "Time to find a prompt's tokens and choose its workers, by policies that ask for what workers hold.", shortBuckets),
		overlapped:  f.counter("kvasir_placement_overlap_tokens_total", "Tokens of prompts that the chosen workers were taken to hold."),
		predicted:   f.counters("kvasir_placement_cached_tokens_total", "Cached tokens of requests whose worker reported them: as predicted, and as reported.", "by"),
		off:         f.histogram("kvasir_placement_overlap_error_blocks", "Distance between the predicted and the reported cached tokens of a request, in blocks.", offBuckets),
		approximate: f.counters("kvasir_placement_approximate_total", "Requests placed by blocks of text because their tokens are not known, by why.", "model", "why"),
	}
}

// offBuckets are blocks.
var offBuckets = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// appendHeaders appends what a reply says of its placement. prefill is the worker
// that computed the prompt for the other one; "": none.
func (f *placed) appendHeaders(dst []byte, worker, prefill string) []byte {
	if prefill != "" {
		dst = appendHeader(dst, "x-kvasir-prefill-worker", prefill)
		dst = appendHeader(dst, "x-kvasir-decode-worker", worker)
	}
	if !f.priced {
		return dst
	}
	dst = append(strconv.AppendInt(append(dst, "x-kvasir-overlap-blocks: "...), int64(f.overlap), 10), "\r\n"...)
	dst = append(strconv.AppendInt(append(dst, "x-kvasir-prompt-blocks: "...), int64(f.of), 10), "\r\n"...)
	if f.approximate != "" {
		dst = appendHeader(dst, "x-kvasir-placement", "approximate")
	}
	return dst
}

// log adds the placement to the request's line.
func (f *placed) log(e *zerolog.Event) {
	if f.why != "" {
		e.Str("placed_by", f.why)
	}
	if !f.priced {
		return
	}
	e.Int("overlap_blocks", f.overlap).Int("prompt_blocks", f.of).Float64("cost", thousandths(f.cost)).Int64("placement_us", f.took.Microseconds())
	if f.ttft > 0 {
		e.Dur("predicted_first_byte_ms", f.ttft)
	}
	if f.approximate != "" {
		e.Str("placement", "approximate").Str("no_tokens", f.approximate)
	}
}

// placeReasons are what is not as it should be with placement at a worker that is up.
func (s *state) placeReasons(b *backend) (why []string) {
	if problem := b.agreement.problem(); problem != "" && s.prices() {
		why = append(why, fmt.Sprintf("worker %q: %s", b.Name(), problem))
	}
	if e := b.EngineName(); e != "" && !b.TakesSalt() && slices.ContainsFunc(s.settings.Keys, func(k Key) bool { return k.Isolate }) {
		why = append(why, fmt.Sprintf("worker %q: keys[].isolate has no effect at its engine, %s", b.Name(), e))
	}
	return why
}
