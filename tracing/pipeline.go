// A pipeline: the SDK's exporter and its queue, under one set of options.

package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials"

	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
)

// maxWaiting bounds the spans of which the collector does not have the word yet: some 600 traces.
const maxWaiting = 8192

// maxContent bounds the bytes of prompts and answers in these, maxBatch in one batch: collectors take
// messages of 4 MiB over gRPC.
const (
	maxContent = 32 << 20
	maxBatch   = 2 << 20
)

// A pipeline takes spans to one collector.
type pipeline struct {
	sdktrace.SpanExporter // to the collector

	tracing *Tracing
	options Options
	batches sdktrace.SpanProcessor
	tracer  trace.Tracer

	waiting atomic.Int64 // spans that were begun, and are neither exported nor dropped
	content atomic.Int64 // bytes of prompts and answers in them
	missed  atomic.Bool  // some were dropped for want of room since the last export

	hurry  context.Context // done: exports under way end now
	stop   context.CancelFunc
	closed chan struct{} // closed when the SDK's goroutine has ended
	gone   atomic.Bool   // it has: whatever waits is lost
}

func newPipeline(t *Tracing, o Options) (*pipeline, error) {
	ctx := context.Background()
	exporter, err := otlptrace.New(ctx, newClient(&o))
	if err != nil {
		return nil, fmt.Errorf("cannot trace to %s: %w", o.to(), err)
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "kvasir"), attribute.String("service.version", o.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before ours
	if err != nil {
		t.log.Warn().Err(err).Msg("some of OTEL_RESOURCE_ATTRIBUTES cannot be used")
	}
	p := &pipeline{SpanExporter: exporter, tracing: t, options: o, closed: make(chan struct{})}
	p.hurry, p.stop = context.WithCancel(ctx)
	// It never drops: observe has looked whether there is room. The rest is as OTEL_BSP_* say.
	p.batches = sdktrace.NewBatchSpanProcessor(p, sdktrace.WithMaxQueueSize(maxWaiting))
	p.tracer = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(p.batches),
		sdktrace.WithResource(res),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // only of sampled requests spans are made
		sdktrace.WithIDGenerator(ids{}),
	).Tracer("kvasir", trace.WithInstrumentationVersion(o.Version))
	return p, nil
}

func newClient(o *Options) otlptrace.Client {
	if o.GRPC {
		var opts []otlptracegrpc.Option
		if o.Endpoint != "" {
			opts = append(opts, otlptracegrpc.WithEndpointURL(o.Endpoint))
		}
		if len(o.Headers) > 0 {
			opts = append(opts, otlptracegrpc.WithHeaders(o.Headers))
		}
		if o.TLS != nil {
			opts = append(opts, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(o.TLS)))
		}
		return otlptracegrpc.NewClient(opts...)
	}
	var opts []otlptracehttp.Option
	if o.Endpoint != "" {
		opts = append(opts, otlptracehttp.WithEndpointURL(o.Endpoint))
	}
	if len(o.Headers) > 0 {
		opts = append(opts, otlptracehttp.WithHeaders(o.Headers))
	}
	if o.TLS != nil {
		opts = append(opts, otlptracehttp.WithTLSClientConfig(o.TLS))
	}
	return otlptracehttp.NewClient(opts...)
}

// Check sends the collector nothing, once, and says where that is and what came of it.
func Check(ctx context.Context, o *Options) (to string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	c := newClient(o)
	if err = c.Start(ctx); err != nil {
		return o.to(), err
	}
	if err = errors.Join(c.UploadTraces(ctx, nil), c.Stop(context.WithoutCancel(ctx))); err != nil {
		err = errors.New(o.why(err))
	}
	return o.to(), err
}

// checkPatience is how long a collector may take to take nothing: gRPC tries again for as long.
const checkPatience = 3 * time.Second

// to is the collector's address, for people. A variable may have a password in it, which the exporter
// does not use.
func (o *Options) to() string {
	raw := cmp.Or(o.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	u, err := url.Parse(raw)
	if err != nil {
		return "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// observe makes the spans of a request, unless there is no room for them.
func (p *pipeline) observe(r *record.Record) {
	n := int64(spansOf(r))
	if p.waiting.Add(n) > maxWaiting {
		p.waiting.Add(-n)
		p.missed.Store(true)
		p.tracing.queueFull.Add(float64(n))
		p.tracing.trouble.is(p, "it takes them more slowly than they come")
		return
	}
	p.emit(r, p.roomFor(r.Content))
	if p.gone.Load() { // meanwhile
		p.countLeft()
	}
}

// full is content that is left out for want of room.
var full = &record.Content{LeftOut: "queue_full"}

// roomFor is the content, or if there is no room for it what says so.
func (p *pipeline) roomFor(c *record.Content) *record.Content {
	n := int64(c.Size())
	if n > 0 && p.content.Add(n) > maxContent {
		p.content.Add(-n)
		return full
	}
	return c
}

// ExportSpans is sdktrace.SpanExporter's. It is called by one goroutine of the SDK, which has no use
// for the error. What a batch has of content goes out in messages that collectors take.
func (p *pipeline) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.hurry, cancel)()
	for from, size, n := 0, 0, 0; n < len(spans); {
		more := contentOf(spans[n])
		if n++; n < len(spans) && size+more < maxBatch {
			size += more
			continue
		}
		p.export(ctx, spans[from:n])
		p.content.Add(-int64(size + more))
		from, size = n, 0
	}
	return nil
}

// contentOf is how many bytes of prompts and answers a span has.
func contentOf(s sdktrace.ReadOnlySpan) (n int) {
	if s.SpanKind() != trace.SpanKindServer {
		return 0
	}
	for _, a := range s.Attributes() {
		switch a.Key {
		case "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages":
			n += len(a.Value.AsString())
		}
	}
	return n
}

// export sends spans in one message.
func (p *pipeline) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	p.waiting.Add(-int64(len(spans)))
	n, t := float64(len(spans)), p.tracing
	if err != nil {
		t.failed.Add(n)
		t.trouble.is(p, p.options.why(err))
		return
	}
	t.exported.Add(n)
	if !p.missed.Swap(false) && t.now.Load() == p {
		t.trouble.over()
	}
}

// Shutdown is sdktrace.SpanExporter's: the last that the SDK's goroutine calls.
func (p *pipeline) Shutdown(ctx context.Context) error {
	defer close(p.closed)
	return p.SpanExporter.Shutdown(ctx)
}

// close sends what is left within patience, drops the rest, and waits for the SDK's goroutine.
func (p *pipeline) close(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, p.stop)()
	// Not the provider's: that leaves its processors running where the time is over already.
	if err := p.batches.Shutdown(ctx); err != nil {
		p.tracing.log.Debug().Err(err).Msg("closing the way to the collector")
	}
	<-p.closed
	p.stop()
	p.gone.Store(true)
	p.countLeft()
}

// countLeft counts the spans that came when the SDK took none any more.
func (p *pipeline) countLeft() {
	if n := p.waiting.Swap(0); n > 0 {
		p.tracing.failed.Add(float64(n))
	}
}

// ids gives spans the ids that were made when the request began, as they stand in the context.
type ids struct{}

type wanted struct {
	trace traceparent.TraceID
	span  traceparent.SpanID
}

type wantedKey struct{}

// under has the next span that begins in ctx have these ids.
func under(ctx context.Context, t traceparent.TraceID, s traceparent.SpanID) context.Context {
	return context.WithValue(ctx, wantedKey{}, &wanted{t, s})
}

// NewIDs is sdktrace.IDGenerator's.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	w, _ := ctx.Value(wantedKey{}).(*wanted)
	return trace.TraceID(w.trace), trace.SpanID(w.span)
}

// NewSpanID is sdktrace.IDGenerator's.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w, _ := ctx.Value(wantedKey{}).(*wanted); w != nil && w.span != (traceparent.SpanID{}) {
		return trace.SpanID(w.span)
	}
	return trace.SpanID(traceparent.NewSpan())
}
