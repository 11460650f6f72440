// Spans: one request as a span, with one below it for each step and leg.

package tracing

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
)

// A part is what becomes a span below that of the request: a step, or a leg, whose answer is a step
// of its own in the record.
type part struct {
	*record.Step
	stream *record.Step // in which the leg's answer was passed on; nil: no leg, or there was none
}

// next takes the first part off steps, which are in the order of their begin.
func next(steps []record.Step) (part, []record.Step) {
	p := part{Step: &steps[0]}
	rest := steps[1:]
	if p.Name != record.Decode {
		return p, rest
	}
	for i := range rest {
		switch s := &rest[i]; {
		case s.Name == record.Decode:
			return p, rest // another attempt
		case s.Name == record.Stream && s.Leg != nil:
			p.stream = s
			return p, rest
		}
	}
	return p, rest
}

// isPart says whether a step is a span of its own: the passing on of an answer belongs to its leg.
func isPart(s *record.Step) bool { return s.Name != record.Stream }

// spansOf is how many spans emit makes of a request.
func spansOf(r *record.Record) int {
	n := 1
	for i := range r.Steps {
		if isPart(&r.Steps[i]) {
			n++
		}
	}
	return n
}

// emit makes the spans of a request, spansOf of them, with content.
func (p *pipeline) emit(r *record.Record, content *record.Content) {
	ctx := under(remote(&r.Trace), r.Trace.Trace, r.Trace.Span)
	_, root := p.tracer.Start(ctx, spanName(r), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(r.Began), trace.WithAttributes(rootAttributes(r)...), trace.WithAttributes(contentAttributes(content)...), trace.WithLinks(links(r)...))
	if s, ok := root.(sdktrace.ReadOnlySpan); ok { // the limits of OTEL_SPAN_* may have cut it
		p.content.Add(int64(contentOf(s) - content.Size()))
	}
	if content != nil && content.LeftOut != "" {
		p.tracing.leftOut.WithLabelValues(content.LeftOut).Inc()
	}
	below := trace.ContextWithSpan(context.Background(), root)
	for rest := r.Steps; len(rest) > 0; {
		var s part
		s, rest = next(rest)
		switch {
		case s.Leg != nil && isPart(s.Step):
			p.leg(below, r, &s)
		case isPart(s.Step):
			_, span := p.tracer.Start(below, s.Name.String(), trace.WithTimestamp(r.Began.Add(s.Begin)))
			span.End(trace.WithTimestamp(r.Began.Add(s.End)))
		}
		note(root, r, s.Step)
	}
	if text := failed(r); text != "" {
		root.SetStatus(codes.Error, text)
	}
	root.End(trace.WithTimestamp(r.Began.Add(r.Total)))
}

// leg makes the span of one request to a worker.
func (p *pipeline) leg(below context.Context, r *record.Record, s *part) {
	end, failure := s.End, s.Leg.Failure
	if s.stream != nil {
		end, failure = s.stream.End, s.stream.Leg.Failure
	}
	name := operation(r.Route)
	if s.Name == record.Prefill {
		name = s.Name.String()
	}
	if s.Leg.Span != (traceparent.SpanID{}) {
		below = under(below, r.Trace.Trace, s.Leg.Span)
	}
	_, span := p.tracer.Start(below, name+" "+clean(s.Leg.Model), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(r.Began.Add(s.Begin)), trace.WithAttributes(legAttributes(r, s, failure)...))
	if s.stream != nil {
		span.AddEvent("first_byte", trace.WithTimestamp(r.Began.Add(s.stream.Begin)))
	}
	if failure != "" && failure != clientGone {
		span.SetStatus(codes.Error, failure)
	}
	span.End(trace.WithTimestamp(r.Began.Add(end)))
}

// links are those of the request's span: to the equal request whose answer it was given.
func links(r *record.Record) []trace.Link {
	if r.Link == (traceparent.Link{}) {
		return nil
	}
	return []trace.Link{{
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(r.Link.Trace), SpanID: trace.SpanID(r.Link.Span), TraceFlags: trace.FlagsSampled}),
		Attributes:  []attribute.KeyValue{attribute.String("kvasir.link", "leader")},
	}}
}

// remote is a context with the client's span, if it named one.
func remote(c *traceparent.Context) context.Context {
	ctx := context.Background()
	if c.Parent == (traceparent.SpanID{}) {
		return ctx
	}
	state, err := trace.ParseTraceState(c.State)
	if err != nil {
		state = trace.TraceState{} // it was checked when it came: the SDK has become stricter
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(c.Trace), SpanID: trace.SpanID(c.Parent), TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true,
	}))
}

// spanName is that of a request. A model that nobody was asked for may be the client's invention:
// names are few.
func spanName(r *record.Record) string {
	if r.Model == "" || r.Worker == "" && r.Outcome() != record.FromCache {
		return operation(r.Route)
	}
	return operation(r.Route) + " " + clean(r.Model)
}

const clientGone = "client_gone" // why a request ended that its client did not wait for

// failed is why a request is an error of ours or a worker's; "": it is none. One of the client's is
// none of the server's, as everywhere in HTTP.
func failed(r *record.Record) string {
	switch {
	case r.Outcome() != record.Error, r.Status >= 400 && r.Status < 500:
		return ""
	case r.End != "":
		return r.End
	}
	return strconv.Itoa(r.Status)
}

// note adds what was decided in a step to the request's span, as an event at its end.
func note(root trace.Span, r *record.Record, s *record.Step) {
	at := trace.WithTimestamp(r.Began.Add(s.End))
	switch s.Name {
	case record.Judge:
		if r.Judgement.Judged {
			root.AddEvent("routing_decision", at, trace.WithAttributes(decisionAttributes(r)...))
		}
	case record.Place:
		if s == lastPlace(r) && r.Placement.Why != "" {
			root.AddEvent("placement", at, trace.WithAttributes(placementAttributes(r)...))
		}
	}
}

// lastPlace is the step in which the placement that the record has was made.
func lastPlace(r *record.Record) *record.Step {
	for i := len(r.Steps) - 1; i >= 0; i-- {
		if r.Steps[i].Name == record.Place {
			return &r.Steps[i]
		}
	}
	return nil
}

func seconds(d time.Duration) attribute.Value { return attribute.Float64Value(d.Seconds()) }
