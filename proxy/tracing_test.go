// What workers, records, the log and exemplars have of a request's trace.

package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"kvasir/proxy/record"
	"kvasir/tracing"
	"kvasir/tracing/traceparent"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// traced are settings under which requests are traced.
func traced(s *Settings, mode traceparent.Mode) *Settings {
	s.Tracing = traceparent.NewSampler(mode, 1)
	return s
}

// sent are the traceparents that a worker was sent, one a request.
func (w *testWorker) sent(t *testing.T) (all []string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heads {
		if n := len(h.Values("traceparent")); n > 1 {
			t.Errorf("a worker was sent %d of them", n)
		}
		all = append(all, h.Get("traceparent"))
	}
	return all
}

// Without tracing a client's trace context goes on as it came, whatever is in it.
func TestUntracedContextPasses(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	for _, value := range []string{"00-" + clientTrace + "-" + clientSpan + "-01", "what ever"} {
		p.ask(t, "/v1/chat/completions", plainChat, "Traceparent: "+value, "tracestate: a=1")
	}
	p.ask(t, "/v1/chat/completions", plainChat)
	if got, want := w.sent(t), []string{"00-" + clientTrace + "-" + clientSpan + "-01", "what ever", ""}; !slices.Equal(got, want) {
		t.Errorf("the worker got %q, want %q", got, want)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.Header.Get(traceHeader) != "" {
		t.Errorf("the client is told of the trace %q", a.Header.Get(traceHeader))
	}
	if strings.Contains(p.log.String(), "trace_id") {
		t.Errorf("the log has a trace: %s", p.log.String())
	}
}

// A worker goes on with the trace under the span of the leg that asks it, and is told whether it is
// sampled: vLLM would begin a trace of its own otherwise.
func TestTraceContext(t *testing.T) {
	good := "traceparent: 00-" + clientTrace + "-" + clientSpan + "-0"
	for _, tc := range []struct {
		name      string
		mode      traceparent.Mode
		headers   []string
		continued bool
		flags     string
		state     string
	}{
		{"a client's", traceparent.Parent, []string{good + "1", "tracestate: a=1", "TraceState: b=2"}, true, "01", "a=1,b=2"},
		{"a client's that is not sampled", traceparent.Parent, []string{good + "0"}, true, "00", ""},
		{"a client's, sampled here", traceparent.Always, []string{good + "0"}, true, "01", ""},
		{"a client's, not sampled here", traceparent.Never, []string{good + "1"}, true, "00", ""},
		{"none", traceparent.Parent, nil, false, "03", ""},
		{"malformed", traceparent.Parent, []string{"traceparent: 00-" + strings.ToUpper(clientTrace) + "-" + clientSpan + "-00", "tracestate: a=1"}, false, "03", ""},
		{"two", traceparent.Parent, []string{good + "0", good + "0"}, false, "03", ""},
		{"under another name", traceparent.Parent, []string{"trace-parent: x", "Traceparent : x"}, false, "", ""}, // the second is no HTTP
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := goodWorker(t)
			p := startProxy(t, traced(settingsFor(w.url), tc.mode))
			o := observe(p)
			a := p.ask(t, "/v1/chat/completions", plainChat, tc.headers...)
			if tc.flags == "" {
				if a.StatusCode != 400 {
					t.Errorf("got %d", a.StatusCode)
				}
				return
			}
			r := o.nth(t, 1)
			leg := r.Steps[slices.IndexFunc(r.Steps, func(s record.Step) bool { return s.Name == record.Decode })]
			want := fmt.Sprintf("00-%s-%x-%s", r.Trace.Trace, leg.Leg.Span, tc.flags)
			if got := w.sent(t); len(got) != 1 || got[0] != want {
				t.Errorf("the worker got %q, want %q", got, want)
			}
			if got := w.heads[0].Values("tracestate"); strings.Join(got, "|") != tc.state {
				t.Errorf("the worker got the state %q, want %q", got, tc.state)
			}
			if continued := r.Trace.Trace.String() == clientTrace && fmt.Sprintf("%x", r.Trace.Parent) == clientSpan; continued != tc.continued {
				t.Errorf("the record has %+v", r.Trace)
			}
			if leg.Leg.Span == r.Trace.Span || leg.Leg.Span == r.Trace.Parent || leg.Leg.Span == (traceparent.SpanID{}) || leg.Leg.Engine != "vllm" && leg.Leg.Engine != "openai" || "http://"+leg.Leg.Address != w.url || leg.Leg.Model != "m" {
				t.Errorf("the leg is %+v", leg)
			}
			sampled := tc.flags != "00"
			if got := strings.Contains(p.log.String(), `"trace_id":"`+r.Trace.Trace.String()+`"`); got != sampled {
				t.Errorf("the trace is in the log: %v\n%s", got, p.log.String())
			}
			for _, name := range []string{"kvasir_request_duration_seconds", "kvasir_time_to_first_byte_seconds"} {
				want := ""
				if sampled {
					want = r.Trace.Trace.String()
				}
				if got := p.exemplar(t, name); got != want {
					t.Errorf("the exemplar of %s is %q, want %q", name, got, want)
				}
			}
			told := ""
			if sampled {
				told = r.Trace.Trace.String()
			}
			if refused := p.ask(t, "/v1/chat/completions", `{"model":"nobodys"}`, tc.headers...); a.Header.Get(traceHeader) != told || (len(refused.Header.Get(traceHeader)) == 32) != sampled {
				t.Errorf("the client is told of %q, with an error of %q", a.Header.Get(traceHeader), refused.Header.Get(traceHeader))
			}
		})
	}
}

// exemplar is the trace of a histogram's only exemplar; "": it has none.
func (p *testProxy) exemplar(t *testing.T, name string) (id string) {
	t.Helper()
	families, err := p.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	for _, b := range families[at].Metric[0].Histogram.Bucket {
		for _, l := range b.Exemplar.GetLabel() {
			if l.GetName() != "trace_id" || id != "" {
				t.Errorf("%s has %s=%s", name, l.GetName(), l.GetValue())
			}
			id = l.GetValue()
		}
	}
	return id
}

// Each attempt is a span of its own.
func TestTraceOfARetry(t *testing.T) {
	first := startWorker(t, die)
	second := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, traced(settingsFor(first.url, second.url), traceparent.Parent))
	o := observe(p)
	for n := 1; ; n++ {
		p.ask(t, "/v1/chat/completions", plainChat)
		if r := o.nth(t, n); r.Retries > 0 { // round robin begins anywhere
			a, b := first.sent(t), second.sent(t)
			if got, want := []string{a[len(a)-1], b[len(b)-1]}, legsOf(r); !slices.Equal(got, want) || want[0] == want[1] {
				t.Errorf("workers got %q, the record has %q", got, want)
			}
			return
		}
	}
}

// legsOf are the traceparents of a record's legs, in the order in which they began.
func legsOf(r *record.Record) (all []string) {
	for _, s := range r.Steps {
		if s.Leg != nil && s.Leg.Span != (traceparent.SpanID{}) {
			all = append(all, fmt.Sprintf("00-%s-%x-03", r.Trace.Trace, s.Leg.Span))
		}
	}
	return all
}

// Both workers of a hand-over go on with the trace, each under a leg of its own, one after another or
// side by side.
func TestTraceOfHandovers(t *testing.T) {
	for engine, prefilled := range map[string]string{"vllm": nixlReply, "trtllm": contextReply, "sglang": chatReply} {
		t.Run(engine, func(t *testing.T) {
			asked := make(chan struct{})
			from := startWorker(t, func(c net.Conn, _ string) bool {
				if engine == "sglang" {
					<-asked
				}
				_, err := io.WriteString(c, httpReply(200, "application/json", prefilled))
				return err == nil
			})
			to := startWorker(t, func(c net.Conn, _ string) bool {
				close(asked)
				_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
				return err == nil
			})
			p := startProxy(t, traced(autoSettings(engine, []string{from.url}, []string{to.url}), traceparent.Parent))
			o := observe(p)
			if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != 200 {
				t.Fatalf("got %d %q", a.StatusCode, a.body)
			}
			r := o.nth(t, 1)
			got, want := slices.Concat(from.sent(t), to.sent(t)), legsOf(r)
			if len(want) != 2 || want[0] == want[1] {
				t.Fatalf("the record has %q", want)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("workers got %q, the record has %q", got, want)
			}
		})
	}
}

// Being traced costs a request no allocation, unless it is sampled.
func TestAllocationsOfATracedRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	once, done := wayOf(t, plainChat, func(s *Settings) { s.Tracing = traceparent.NewSampler(traceparent.Parent, 0) })
	defer done()
	if got, _ := allocationsOf(t, once); got > allocsPerRequest+0.5 {
		t.Errorf("%.2f allocations a request, want %d", got, allocsPerRequest)
	}
}

// BenchmarkTraced is a plain request over loopback, with its spans sent to a collector that throws
// them away: what tracing costs is the difference to off. The worker and the client are in it.
func BenchmarkTraced(b *testing.B) {
	c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer c.Close()
	for _, tc := range []struct {
		name  string
		ratio float64 // below 0: off
	}{{"off", -1}, {"none", 0}, {"hundredth", 0.01}, {"all", 1}} {
		b.Run(tc.name, func(b *testing.B) {
			tr := tracing.New(zerolog.Nop(), func(_, why string) { b.Log(why) })
			defer tr.Close()
			if tc.ratio >= 0 {
				if err := tr.Apply(&tracing.Options{Endpoint: c.URL}); err != nil {
					b.Fatal(err)
				}
			}
			observed = func(p *testProxy) { p.Observe(tr.Observe) }
			defer func() { observed = nil }()
			once, done := wayOf(b, plainChat, func(s *Settings) {
				if tc.ratio >= 0 {
					s.Tracing = traceparent.NewSampler(traceparent.Parent, tc.ratio)
				}
			})
			defer done()
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
