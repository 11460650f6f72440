// Tests of spans, of the way to the collector, and of its faults.

package tracing

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
)

// A collector keeps what it is sent over HTTP. The one of OpenTelemetry itself stands in e2e.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	from  map[string]string // the resource that sent them
	asked []http.Header

	longest int // bytes of the longest message, unpacked
}

func startCollector(t testing.TB) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(in); err == nil {
				in = z
			}
		}
		body, err := io.ReadAll(in)
		var m v1.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(body, &m) != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, r.Header)
		c.longest = max(c.longest, len(body))
		for _, rs := range m.ResourceSpans {
			c.from = attributesOf(rs.Resource.Attributes)
			for _, s := range rs.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) endpoint() string { return c.URL + "/v1/traces" }

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.spans)
}

// waitUntil waits for a condition.
func waitUntil(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

// reasons are those of /readyz.
type reasons struct {
	mu   sync.Mutex
	text string
}

func (r *reasons) set(_, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
}

func (r *reasons) get() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text
}

func start(t testing.TB, o *Options) (*Tracing, *reasons) {
	t.Helper()
	why := &reasons{}
	tr := New(zerolog.Nop(), why.set)
	if err := tr.Apply(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr, why
}

// began is when the requests of these tests came.
var began = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// sampled is a context with fixed ids, with or without a client's span.
func sampled(parent byte) traceparent.Context {
	c := traceparent.Context{Trace: traceparent.TraceID{0: 1}, Span: traceparent.SpanID{0: 2}, Sampled: true}
	if parent != 0 {
		c.Parent, c.State = traceparent.SpanID{0: parent}, "vendor=x"
	}
	return c
}

func step(n record.Name, from, to time.Duration) record.Step {
	return record.Step{Name: n, Begin: from, End: to}
}

func leg(n record.Name, from, to time.Duration, worker string, span byte, failure string) record.Step {
	s := step(n, from, to)
	s.Leg = &record.Leg{Worker: worker, Engine: "vllm", Address: worker + ":8000", Model: "qwen", Rank: -1, Span: traceparent.SpanID{0: span}, Failure: failure}
	if failure == "" {
		s.Leg.Status = 200
	}
	return s
}

// handedOver is a request that was tried at two pairs of workers.
func handedOver() *record.Record {
	return &record.Record{
		ID: "r1", WorkerID: []byte("w1"), Route: "/v1/chat/completions", Asked: "auto", Model: "qwen", Key: "alice", Tenant: "red", Worker: "d2", Prefill: "p1",
		Trace: sampled(9), Began: began, FirstByte: 30 * ms, Total: 90 * ms, Overhead: 2 * ms, Status: 200, Streamed: true, Path: "upstream", Retries: 1,
		Prompt: 100, Completion: 20, CachedTokens: 64,
		Steps: []record.Step{
			step(record.Identify, 0, ms), step(record.Read, ms, 2*ms), step(record.Judge, 2*ms, 3*ms), step(record.Place, 3*ms, 4*ms),
			leg(record.Prefill, 4*ms, 10*ms, "p1", 3, ""), leg(record.Decode, 10*ms, 12*ms, "d1", 4, "reset"),
			step(record.Place, 12*ms, 13*ms), step(record.Queue, 13*ms, 15*ms),
			leg(record.Prefill, 15*ms, 20*ms, "p1", 5, ""), leg(record.Decode, 20*ms, 30*ms, "d2", 6, ""), leg(record.Stream, 30*ms, 89*ms, "d2", 0, ""),
		},
		Judgement: record.Judgement{Judged: true, Category: "math", Confidence: 0.9, Decision: "maths", Matched: []record.Match{{Kind: "keyword", Name: "urgent"}}},
		Placement: record.Placement{Policy: "predict", Why: "predict", Priced: true, Overlap: 4, Blocks: 6, BlockTokens: 16, Cost: 12.5, TTFT: 20 * ms,
			Candidates: []record.Candidate{{Worker: "d2", Rank: 1, Leg: "decode", Chosen: true, Cost: 12.5, Overlap: 4}, {Worker: "d1", Rank: -1, Leg: "whole", Cost: 30}}},
	}
}

func attributesOf(list []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		all[a.Key] = valueOf(a.Value)
	}
	return all
}

func valueOf(v *commonpb.AnyValue) string {
	switch x := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return x.StringValue
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(x.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(x.DoubleValue)
	case *commonpb.AnyValue_ArrayValue:
		var all []string
		for _, one := range x.ArrayValue.Values {
			all = append(all, valueOf(one))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return "?"
}

// written is a trace as text: a line for each span, in the order of their begin, then its events.
func written(spans []*tracepb.Span) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int {
		if a.StartTimeUnixNano != b.StartTimeUnixNano {
			return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano))
		}
		return int(int64(b.EndTimeUnixNano) - int64(a.EndTimeUnixNano))
	})
	at := func(nanos uint64) time.Duration { return time.Unix(0, int64(nanos)).Sub(began) }
	var b strings.Builder
	for _, s := range spans {
		fmt.Fprintf(&b, "%q %s %v-%v", s.Name, strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")), at(s.StartTimeUnixNano), at(s.EndTimeUnixNano))
		if s.Kind != tracepb.Span_SPAN_KIND_INTERNAL {
			fmt.Fprintf(&b, " id %x", s.SpanId[:1])
		}
		fmt.Fprintf(&b, " under %x", s.ParentSpanId[:min(1, len(s.ParentSpanId))])
		if s.Kind == tracepb.Span_SPAN_KIND_SERVER && s.TraceState != "" { // all have it
			fmt.Fprintf(&b, " state %s", s.TraceState)
		}
		if s.Status.GetCode() != 0 {
			fmt.Fprintf(&b, " %v: %s", s.Status.Code, s.Status.Message)
		}
		b.WriteString("\n")
		lines(&b, "  ", s.Attributes)
		for _, e := range s.Events {
			fmt.Fprintf(&b, "  at %v %s\n", at(e.TimeUnixNano), e.Name)
			lines(&b, "    ", e.Attributes)
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, "  link %x-%x\n", l.TraceId[:1], l.SpanId[:1])
			lines(&b, "    ", l.Attributes)
		}
	}
	return b.String()
}

func lines(b *strings.Builder, indent string, list []*commonpb.KeyValue) {
	for _, a := range list {
		fmt.Fprintf(b, "%s%s=%s\n", indent, a.Key, valueOf(a.Value))
	}
}

var handedOverText = `"chat qwen" server 0s-90ms id 02 under 09 state vendor=x
  gen_ai.operation.name=chat
  gen_ai.provider.name=kvasir
  gen_ai.request.model=auto
  gen_ai.request.stream=true
  gen_ai.response.model=qwen
  gen_ai.response.time_to_first_chunk=0.03
  gen_ai.usage.input_tokens=100
  gen_ai.usage.output_tokens=20
  gen_ai.usage.cache_read.input_tokens=64
  http.request.method=POST
  http.route=/v1/chat/completions
  http.response.status_code=200
  kvasir.request_id=r1
  kvasir.worker_request_id=w1
  kvasir.key=alice
  kvasir.tenant=red
  kvasir.outcome=ok
  kvasir.path=upstream
  kvasir.retries=1
  kvasir.overhead_us=2000
  at 3ms routing_decision
    kvasir.model=qwen
    kvasir.decision=maths
    kvasir.category=math
    kvasir.category.confidence=0.9
    kvasir.signals=[keyword:urgent]
  at 13ms placement
    kvasir.worker=d2
    kvasir.prefill_worker=p1
    kvasir.policy=predict
    kvasir.why=predict
    kvasir.overlap_blocks=4
    kvasir.prompt_blocks=6
    kvasir.block_tokens=16
    kvasir.cost=12.5
    kvasir.predicted_ttft=0.02
    kvasir.candidates=[d2 rank 1 decode, d1]
    kvasir.candidates.cost=[12.5, 30]
    kvasir.candidates.overlap_blocks=[4, 0]
"identify" internal 0s-1ms under 02
"read" internal 1ms-2ms under 02
"judge" internal 2ms-3ms under 02
"place" internal 3ms-4ms under 02
` + legText("prefill qwen", "4ms-10ms id 03", "p1", "prefill", "") +
	legText("chat qwen", "10ms-12ms id 04", "d1", "decode", "reset") +
	`"place" internal 12ms-13ms under 02
"queue" internal 13ms-15ms under 02
` + legText("prefill qwen", "15ms-20ms id 05", "p1", "prefill", "") +
	legText("chat qwen", "20ms-89ms id 06", "d2", "decode", "") +
	"  at 30ms first_byte\n"

// legText is the span of one leg as written has it.
func legText(name, when, worker, leg, failure string) string {
	failed, status, why := "", "  http.response.status_code=200\n", ""
	if failure != "" {
		failed, status, why = " STATUS_CODE_ERROR: "+failure, "", "  error.type="+failure+"\n"
	}
	return fmt.Sprintf("%q client %s under 02%s\n", name, when, failed) +
		"  gen_ai.operation.name=chat\n  gen_ai.provider.name=vllm\n  gen_ai.request.model=qwen\n" +
		"  http.request.method=POST\n  http.route=/v1/chat/completions\n" + status +
		"  server.address=" + worker + "\n  server.port=8000\n" + why +
		"  kvasir.worker=" + worker + "\n  kvasir.leg=" + leg + "\n"
}

func TestSpans(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab,service.name=gateway")
	tr, _ := start(t, &Options{Endpoint: c.endpoint(), Headers: map[string]string{"X-Key": "1"}, Version: "v1"})
	r := handedOver()
	tr.Observe(r)
	r.Trace.Sampled = false
	tr.Observe(r)
	tr.Close()
	if got := written(c.spans); got != handedOverText {
		t.Errorf("got\n%s\nwant\n%s", got, handedOverText)
	}
	for _, s := range c.spans {
		if trace.TraceID(s.TraceId) != trace.TraceID(r.Trace.Trace) || len(s.SpanId) != 8 {
			t.Errorf("%q has ids %x-%x", s.Name, s.TraceId, s.SpanId)
		}
	}
	if n := spansOf(r); n != c.count() {
		t.Errorf("%d spans came, %d were counted", c.count(), n)
	}
	if c.from["service.name"] != "gateway" || c.from["service.version"] != "v1" || c.from["deployment.environment.name"] != "lab" || c.from["host.name"] == "" {
		t.Errorf("they come from %v", c.from)
	}
	if c.asked[0].Get("X-Key") != "1" {
		t.Errorf("the request's header is %v", c.asked[0])
	}
	if got := testutil.ToFloat64(tr.exported); got != float64(c.count()) {
		t.Errorf("%v exported, want %d", got, c.count())
	}
}

// TestRoots has the first line of traces that end otherwise.
func TestRoots(t *testing.T) {
	good := func() *record.Record {
		return &record.Record{Route: "/v1/messages", Asked: "m", Model: "m", Worker: "w", Trace: sampled(0), Began: began, Total: ms, Status: 200, Path: "upstream",
			Prompt: -1, Completion: -1, CachedTokens: -1}
	}
	for _, c := range []struct {
		name   string
		change func(r *record.Record)
		want   string // the first line, then attributes
	}{
		{"plain", func(*record.Record) {}, `"chat m" server 0s-1ms id 02 under ; kvasir.outcome=ok gen_ai.response.model=m`},
		{"a cache hit", func(r *record.Record) {
			r.Worker, r.Cache = "", record.Cache{Result: "hit", Entry: "e1", Similarity: 0.97}
		}, `"chat m" server 0s-1ms id 02 under ; kvasir.outcome=cache kvasir.cache=hit kvasir.cache.entry=e1 kvasir.cache.similarity=0.97`},
		{"an equal request's answer", func(r *record.Record) {
			r.Worker, r.Cache, r.Link = "", record.Cache{Result: "wait"}, traceparent.Link{Trace: traceparent.TraceID{0: 7}, Span: traceparent.SpanID{0: 8}}
		}, `"chat m" server 0s-1ms id 02 under ; kvasir.outcome=cache kvasir.cache=wait link_07-08 kvasir.link=leader`},
		{"blocked", func(r *record.Record) {
			r.Worker, r.Path, r.End = "", "blocked", "blocked"
		}, `"chat" server 0s-1ms id 02 under ; kvasir.outcome=blocked error.type=blocked`},
		{"a model that nobody has", func(r *record.Record) {
			r.Worker, r.Status, r.Path, r.End = "", 404, "error", "model_not_found"
		}, `"chat" server 0s-1ms id 02 under ; kvasir.outcome=error error.type=model_not_found gen_ai.request.model=m`},
		{"a worker that stopped", func(r *record.Record) { r.End = "interrupted" }, `"chat m" server 0s-1ms id 02 under  STATUS_CODE_ERROR: interrupted; error.type=interrupted`},
		{"no worker", func(r *record.Record) { r.Worker, r.Status = "", 503 }, `"chat" server 0s-1ms id 02 under  STATUS_CODE_ERROR: 503; error.type=503`},
		{"a client that went", func(r *record.Record) { r.End = clientGone }, `"chat m" server 0s-1ms id 02 under ; error.type=client_gone kvasir.outcome=cancelled`},
		{"embeddings", func(r *record.Record) { r.Route = "/v1/embeddings" }, `"embeddings m" server 0s-1ms id 02 under ; http.route=/v1/embeddings`},
		{"speech", func(r *record.Record) { r.Route = "/v1/audio/speech" }, `"audio_speech m" server 0s-1ms id 02 under ; gen_ai.operation.name=audio_speech`},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := startCollector(t)
			tr, _ := start(t, &Options{Endpoint: to.endpoint()})
			r := good()
			c.change(r)
			tr.Observe(r)
			tr.Close()
			first, attributes, _ := strings.Cut(c.want, "; ")
			got, rest, _ := strings.Cut(written(to.spans), "\n")
			if got != first {
				t.Errorf("got %s, want %s", got, first)
			}
			for _, a := range strings.Fields(attributes) {
				if !strings.Contains(rest, "  "+strings.ReplaceAll(a, "_0", " 0")+"\n") {
					t.Errorf("%s is not there:\n%s", a, rest)
				}
			}
		})
	}
}

// TestSamplerAgrees: a ratio keeps the traces that the SDK's sampler keeps, so that services with the
// same ratio keep the same ones.
func TestSamplerAgrees(t *testing.T) {
	for _, ratio := range []float64{0, 0.01, 0.5, 0.99, 1} {
		ours, theirs := traceparent.NewSampler(traceparent.Ratio, ratio), sdktrace.TraceIDRatioBased(ratio)
		for range 2000 {
			c := ours.Begin(nil)
			want := theirs.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: trace.TraceID(c.Trace)}).Decision == sdktrace.RecordAndSample
			if c.Sampled != want {
				t.Fatalf("ratio %v, trace %s: sampled %v, the SDK says %v", ratio, c.Trace, c.Sampled, want)
			}
		}
	}
}

// TestDeadCollector: with nobody there, spans are dropped and counted, and one reason stands until
// somebody is.
func TestDeadCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + ln.Addr().String() + "/v1/traces"
	_ = ln.Close()
	tr, why := start(t, &Options{Endpoint: dead})
	r := handedOver()
	tr.Observe(r)
	waitUntil(t, "the spans are dropped", func() bool { return testutil.ToFloat64(tr.failed) == float64(spansOf(r)) })
	waitUntil(t, "a reason", func() bool { return strings.Contains(why.get(), dead) })

	c := startCollector(t)
	if err := tr.Apply(&Options{Endpoint: c.endpoint()}); err != nil {
		t.Fatal(err)
	}
	if got := why.get(); got != "" {
		t.Errorf("of another collector %q is said", got)
	}
	tr.Observe(r)
	waitUntil(t, "the spans come", func() bool { return c.count() == spansOf(r) })
}

// TestRefusingCollector: the reason is taken back by the first batch that is taken.
func TestRefusingCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	c := startCollector(t)
	good := c.Config.Handler
	var refuses sync.Map
	c.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := refuses.Load(1); is {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		good.ServeHTTP(w, r)
	})
	refuses.Store(1, nil)
	tr, why := start(t, &Options{Endpoint: c.endpoint()})
	r := handedOver()
	tr.Observe(r)
	waitUntil(t, "a reason", func() bool { return strings.Contains(why.get(), "403") })
	refuses.Delete(1)
	tr.Observe(r)
	waitUntil(t, "no reason", func() bool { return why.get() == "" })
	if failed, exported := testutil.ToFloat64(tr.failed), testutil.ToFloat64(tr.exported); failed != exported || int(failed) != spansOf(r) {
		t.Errorf("%v failed, %v exported", failed, exported)
	}
}

// TestSilentCollector: one that takes connections and says nothing makes nobody wait, holds a bounded
// number of spans, and does not hold up the end. Each span is counted once.
func TestSilentCollector(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		t.Run(fmt.Sprintf("grpc %v", grpc), func(t *testing.T) {
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			tr, why := start(t, &Options{Endpoint: "http://" + ln.Addr().String(), GRPC: grpc})
			r := handedOver()
			n := 0
			for testutil.ToFloat64(tr.queueFull) == 0 {
				tr.Observe(r)
				n += spansOf(r)
			}
			tr.Observe(r)
			n += spansOf(r)
			if waiting := testutil.ToFloat64(tr.waiting); waiting > maxWaiting {
				t.Errorf("%v spans wait", waiting)
			}
			if got := why.get(); !strings.Contains(got, "more slowly") {
				t.Errorf("the reason is %q", got)
			}
			tr.Close()
			if got := testutil.ToFloat64(tr.queueFull) + testutil.ToFloat64(tr.failed); int(got) != n {
				t.Errorf("of %d spans %v are counted as dropped", n, got)
			}
			if got := why.get(); got != "" {
				t.Errorf("switched off, %q is said", got)
			}
		})
	}
}

// TestApply: what cannot be used changes nothing, and the same again makes nothing anew.
func TestApply(t *testing.T) {
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	first := tr.now.Load()
	if err := tr.Apply(&Options{Endpoint: c.endpoint()}); err != nil || tr.now.Load() != first {
		t.Errorf("the same again: %v, another pipeline: %v", err, tr.now.Load() != first)
	}
	if err := tr.Apply(nil); err != nil || tr.now.Load() != nil {
		t.Errorf("off: %v, %v", err, tr.now.Load())
	}
	tr.Observe(handedOver()) // goes nowhere
}

// TestPlaceIsToldWithoutPassword: a variable may have one.
func TestPlaceIsToldWithoutPassword(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:S3CRET@otel.example:4318/api?token=S3CRET")
	if got := (&Options{}).to(); got != "https://otel.example:4318/api" {
		t.Errorf("got %q", got)
	}
}

// TestReplaced: requests end while the collector is replaced, again and again. Each span is exported or
// counted as dropped.
func TestReplaced(t *testing.T) {
	a, b := startCollector(t), startCollector(t)
	tr, _ := start(t, &Options{Endpoint: a.endpoint()})
	r := handedOver()
	var observed atomic.Int64
	var observing sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		observing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					tr.Observe(r)
					observed.Add(1)
				}
			}
		})
	}
	for n := range 20 {
		before := observed.Load()
		waitUntil(t, "requests end", func() bool { return observed.Load() > before+20 })
		to := []*collector{b, a}[n%2]
		if err := tr.Apply(&Options{Endpoint: to.endpoint()}); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	observing.Wait()
	tr.Close()
	exported := int(testutil.ToFloat64(tr.exported))
	counted := exported + int(testutil.ToFloat64(tr.failed)+testutil.ToFloat64(tr.queueFull))
	if want := int(observed.Load()) * spansOf(r); counted != want {
		t.Errorf("%d of %d spans are counted", counted, want)
	}
	// A batch may have come of which the collector could not say so in time.
	if came := a.count() + b.count(); came < exported {
		t.Errorf("%d spans came, %d are counted", came, exported)
	}
}

// TestClosedLate: a pipeline ends, too, where the time for its last spans is over before it begins.
func TestClosedLate(t *testing.T) {
	c := startCollector(t)
	tr, _ := start(t, &Options{Endpoint: c.endpoint()})
	p, r := tr.now.Load(), handedOver()
	tr.Observe(r)
	p.close(0)
	tr.Observe(r)
	if got := testutil.ToFloat64(tr.exported) + testutil.ToFloat64(tr.failed); int(got) != 2*spansOf(r) {
		t.Errorf("%v spans are counted, want %d", got, 2*spansOf(r))
	}
	tr.now.Store(nil) // it is closed
}

// TestOff: of requests that are not sampled, and while it is off, nothing is allocated.
func TestOff(t *testing.T) {
	tr, _ := start(t, nil)
	r := handedOver()
	if n := testing.AllocsPerRun(100, func() { tr.Observe(r) }); n > 0 {
		t.Errorf("off: %v allocations", n)
	}
	c := startCollector(t)
	if err := tr.Apply(&Options{Endpoint: c.endpoint()}); err != nil {
		t.Fatal(err)
	}
	r.Trace.Sampled = false
	if n := testing.AllocsPerRun(100, func() { tr.Observe(r) }); n > 0 {
		t.Errorf("not sampled: %v allocations", n)
	}
}

// BenchmarkObserve is what a sampled request of twelve spans costs, with sending them to a collector
// that throws them away.
func BenchmarkObserve(b *testing.B) {
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer c.Close()
	tr, _ := start(b, &Options{Endpoint: c.URL})
	r := handedOver()
	b.ReportAllocs()
	for b.Loop() {
		for p := tr.now.Load(); p.waiting.Load() > maxWaiting/2; {
			time.Sleep(100 * time.Microsecond) // what is dropped costs nothing
		}
		tr.Observe(r)
	}
}

// What a client calls a model loses no spans of others, and is neither a name of a span nor long.
func TestOddModels(t *testing.T) {
	c := startCollector(t)
	tr, why := start(t, &Options{Endpoint: c.endpoint()})
	asked := []string{"fine", "bad\xff\xfe", strings.Repeat("\u00e4", 1<<20)}
	for _, a := range asked {
		tr.Observe(&record.Record{Route: "/v1/chat/completions", Asked: a, Model: a, Path: "jailbreak", Status: 200, Trace: sampled(1), Began: began})
	}
	if err := tr.now.Load().batches.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.count() != len(asked) || why.get() != "" {
		t.Fatalf("%d of %d spans came: %s", c.count(), len(asked), why.get())
	}
	for i, want := range []string{"fine", "bad\uFFFD", strings.Repeat("\u00e4", longest/2)} {
		if got := attributesOf(c.spans[i].Attributes)["gen_ai.request.model"]; got != want {
			t.Errorf("the model is %.40q of %d bytes, want %.40q", got, len(got), want)
		}
		if name := c.spans[i].Name; name != "chat" {
			t.Errorf("the span is called %.40q", name)
		}
	}
}

// What a collector answers goes into /readyz and the log in a line, without the key that it repeats.
func TestWhatACollectorAnswersIsBounded(t *testing.T) {
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "not with\n"+r.Header.Get("Authorization")+strings.Repeat("\n<p>", 1<<18))
	}))
	defer c.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x=y,authorization=Bearer%20hush-hush")
	for _, headers := range []map[string]string{{"Authorization": "Bearer hush-hush"}, nil} {
		o := &Options{Endpoint: c.URL + "/v1/traces", Headers: headers}
		tr, why := start(t, o)
		tr.Observe(&record.Record{Route: "/v1/chat/completions", Asked: "m", Model: "m", Trace: sampled(1), Began: began})
		if err := tr.now.Load().batches.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := Check(t.Context(), o)
		for _, got := range []string{why.get(), fmt.Sprint(err)} {
			if !strings.Contains(got, "400 Bad Request") || !strings.Contains(got, "not with Bearer ***") || strings.Contains(got, "\n") || len(got) > 400 || strings.Contains(got, "hush") {
				t.Errorf("the reason is %d bytes: %.500q", len(got), got)
			}
		}
	}
}
