// Traces as a collector gets them: from the built binary to the OTLP receiver of the OpenTelemetry Collector.

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"kvasir/config/certtest"
)

// A collector is the OTLP receiver of the OpenTelemetry Collector, and what it was sent.
type collector struct {
	consumertest.TracesSink
	http, grpc string // host:port
}

// startCollector starts one on free ports.
func startCollector(t *testing.T) *collector {
	return startCollectorAt(t, freeAddress(t), freeAddress(t), nil)
}

// startCollectorAt starts one; tls are its settings for both ports, nil: none.
func startCollectorAt(t *testing.T, http, grpc string, tls map[string]any) *collector {
	t.Helper()
	c := &collector{http: http, grpc: grpc}
	at := func(address string) map[string]any {
		port := map[string]any{"endpoint": address}
		if tls != nil {
			port["tls"] = tls
		}
		return port
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": at(http), "grpc": at(grpc)}}).Unmarshal(config))
	r, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, c)
	must(t, err)
	must(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { _ = r.Shutdown(context.Background()) })
	return c
}

// A span is one that the collector has.
type span struct {
	ptrace.Span
	service string
}

func (c *collector) spans() (all []span) {
	for _, m := range c.AllTraces() {
		for _, rs := range m.ResourceSpans().All() {
			service, found := rs.Resource().Attributes().Get("service.name")
			if !found {
				continue
			}
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					all = append(all, span{s, service.Str()})
				}
			}
		}
	}
	return all
}

func (s *span) is(name string) string {
	if v, found := s.Attributes().Get(name); found {
		return v.AsString()
	}
	return ""
}

func (s *span) event(name string) bool {
	for _, e := range s.Events().All() {
		if e.Name() == name {
			return true
		}
	}
	return false
}

// A tree is the trace of one request.
type tree struct {
	root  span
	below []span // in the order of their begin
}

// trace waits for the trace of the request with this id, and wants it whole: every span below the
// request's, and within its time.
func (c *collector) trace(t *testing.T, id string) *tree {
	t.Helper()
	tr := &tree{}
	eventually(t, patience, "the trace of "+id+" has come", func() bool {
		for _, s := range c.spans() {
			if s.is("kvasir.request_id") == id {
				tr.root = s
				return true
			}
		}
		return false
	})
	for _, s := range c.spans() { // the last span of a request is the request's own
		if s.TraceID() != tr.root.TraceID() || s.SpanID() == tr.root.SpanID() {
			continue
		}
		if s.ParentSpanID() != tr.root.SpanID() {
			continue // of another request of the same client's trace
		}
		if s.StartTimestamp() < tr.root.StartTimestamp() || s.EndTimestamp() > tr.root.EndTimestamp() || s.service != tr.root.service {
			t.Errorf("%q of %s is not within the request", s.Name(), s.service)
		}
		tr.below = append(tr.below, s)
	}
	slices.SortStableFunc(tr.below, func(a, b span) int { return int(int64(a.StartTimestamp()) - int64(b.StartTimestamp())) })
	return tr
}

// legs are the requests to workers.
func (tr *tree) legs() (all []span) {
	for _, s := range tr.below {
		if s.Kind() == ptrace.SpanKindClient {
			all = append(all, s)
		}
	}
	return all
}

// names are the names of the spans below the request, without repeats.
func (tr *tree) names() string {
	var all []string
	for _, s := range tr.below {
		if !slices.Contains(all, s.Name()) {
			all = append(all, s.Name())
		}
	}
	return strings.Join(all, " ")
}

// sentSoon has batches sent at once.
var sentSoon = []string{"OTEL_BSP_SCHEDULE_DELAY=50"}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// question is a chat about the text, sent under an id as part of a client's trace.
func (k *kvasir) question(t *testing.T, id, model, text string, stream bool) reply {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"max_tokens":8,"temperature":0,"stream":%t}`, model, text, stream)
	return post(t, k.url+"/v1/chat/completions", body, "X-Request-Id: "+id, "traceparent: 00-"+clientTrace+"-"+clientSpan+"-01", "tracestate: vendor=x")
}

// TestTraces has each way that a request can take, in one client's trace.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	dies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"fragile","object":"model","owned_by":"vllm"}]}`)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(dies.Close)
	k := serveIn(t, sentSoon, fmt.Sprintf(`
workers: [{name: dies, url: %q, models: [fragile]}]
simulate:
  - {name: prefill-0, role: prefill, model: sim}
  - {name: decode-0, role: decode, model: sim}
  - {name: lives, model: fragile}
models: [{name: sim, default: true}]
routing: {policy: round_robin}
classify: {pii: {action: block}}
server: {retry: {budget: 1}}
tracing: {endpoint: "http://%s"}
`, dies.URL, c.http), "sim", "fragile")

	t.Run("handed over, as a stream", func(t *testing.T) {
		if got := k.question(t, "handed", "auto", strings.Repeat("one two three ", 2000)+canary, true); got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		tr := c.trace(t, "handed")
		r := tr.root
		if r.TraceID().String() != clientTrace || r.ParentSpanID().String() != clientSpan || r.TraceState().AsRaw() != "vendor=x" || r.service != "kvasir" {
			t.Errorf("the request is %s under %s, state %q, of %s", r.TraceID(), r.ParentSpanID(), r.TraceState().AsRaw(), r.service)
		}
		if r.Name() != "chat sim" || r.Kind() != ptrace.SpanKindServer || r.is("gen_ai.request.model") != "auto" || r.is("gen_ai.response.model") != "sim" ||
			r.is("gen_ai.usage.output_tokens") != "8" || r.is("gen_ai.request.stream") != "true" || r.is("http.response.status_code") != "200" {
			t.Errorf("%q has %v", r.Name(), r.Attributes().AsRaw())
		}
		if !r.event("routing_decision") || !r.event("placement") {
			t.Errorf("%d events", r.Events().Len())
		}
		if got, want := tr.names(), "identify read admit judge guard reuse edit locate place prefill sim chat sim"; got != want {
			t.Errorf("spans %q, want %q", got, want)
		}
		legs := tr.legs()
		if len(legs) != 2 || legs[0].is("kvasir.worker") != "prefill-0" || legs[1].is("kvasir.worker") != "decode-0" || legs[0].is("server.port") == "" ||
			legs[0].is("gen_ai.provider.name") != "vllm" || !legs[1].event("first_byte") || legs[0].EndTimestamp() > legs[1].StartTimestamp() {
			t.Errorf("%d legs: %v", len(legs), legs)
		}
	})
	t.Run("a cache hit", func(t *testing.T) {
		eventually(t, patience, "a hit", func() bool {
			body := `{"model":"sim","messages":[{"role":"user","content":"How tall is the Eiffel Tower?"}],"temperature":0}`
			return post(t, k.url+"/v1/chat/completions", body, "X-Request-Id: again").header.Get("x-vsr-cache-hit") == "true"
		})
		eventually(t, patience, "a hit is traced", func() bool {
			return slices.ContainsFunc(c.spans(), func(s span) bool {
				return s.is("kvasir.request_id") == "again" && s.is("kvasir.outcome") == "cache" && s.is("kvasir.cache.entry") != ""
			})
		})
	})
	t.Run("blocked", func(t *testing.T) {
		k.question(t, "blocked", "sim", "My card is 4111 1111 1111 1111.", false)
		tr := c.trace(t, "blocked")
		if got := tr.names(); tr.root.is("kvasir.outcome") != "blocked" || tr.root.Status().Code() != ptrace.StatusCodeUnset || len(tr.legs()) != 0 || !strings.HasSuffix(got, "guard") {
			t.Errorf("%v with %q", tr.root.Attributes().AsRaw(), got)
		}
	})
	t.Run("a retry", func(t *testing.T) {
		for n := 0; ; n++ { // round robin begins anywhere
			id := fmt.Sprint("retry-", n)
			k.question(t, id, "fragile", fmt.Sprint("What is ", n, "?"), false)
			tr := c.trace(t, id)
			if tr.root.is("kvasir.retries") == "" {
				continue
			}
			legs := tr.legs()
			if len(legs) != 2 || legs[0].is("kvasir.worker") != "dies" || legs[0].Status().Code() != ptrace.StatusCodeError || legs[0].is("error.type") == "" ||
				legs[1].is("kvasir.worker") != "lives" || legs[1].Status().Code() != ptrace.StatusCodeUnset || tr.root.Status().Code() != ptrace.StatusCodeUnset {
				t.Errorf("legs %v", legs)
			}
			return
		}
	})
	t.Run("no such model", func(t *testing.T) {
		k.question(t, "unknown", "invented", "Hello.", false)
		if r := c.trace(t, "unknown").root; r.Name() != "chat" || r.is("error.type") != "model_not_found" || r.Status().Code() != ptrace.StatusCodeUnset {
			t.Errorf("%q has %v", r.Name(), r.Attributes().AsRaw())
		}
	})
	t.Run("exemplars", func(t *testing.T) {
		request, err := http.NewRequest(http.MethodGet, k.admin+"/metrics", nil)
		must(t, err)
		request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		page := string(do(t, request).body)
		if !strings.Contains(page, `# {trace_id="`+clientTrace+`"}`) || !strings.HasSuffix(page, "# EOF\n") {
			t.Errorf("no exemplar in %s", tail(page, 400))
		}
	})
	t.Run("no content", func(t *testing.T) {
		wantNoCanary(t, "the traces", c.text(t))
	})
}

// text is all that the collector was sent.
func (c *collector) text(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, m := range c.AllTraces() {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(m)
		must(t, err)
		b.Write(text)
	}
	return b.String()
}

// TestTracesByEachWay has both protocols, in the clear and over TLS, named by keys and by variables.
func TestTracesByEachWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	ca := certtest.Write(t, file("ca.pem"), file("ca.key"), "ca", nil)
	certtest.Write(t, file("c.pem"), file("c.key"), "collector", ca)
	certtest.Write(t, file("k.pem"), file("k.key"), "kvasir", ca)
	plain := startCollector(t)
	secret := startCollectorAt(t, freeAddress(t), freeAddress(t), map[string]any{"cert_file": file("c.pem"), "key_file": file("c.key"), "client_ca_file": file("ca.pem")})
	tls := fmt.Sprintf("tls: {ca: %q, cert: %q, key: %q}", file("ca.pem"), file("k.pem"), file("k.key"))
	variables := []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=" + file("ca.pem"), "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + file("k.pem"), "OTEL_EXPORTER_OTLP_CLIENT_KEY=" + file("k.key")}
	for _, tc := range []struct {
		name string
		to   *collector
		keys string
		env  []string
	}{
		{"http", plain, fmt.Sprintf(`{endpoint: "http://%s"}`, plain.http), nil},
		{"grpc", plain, fmt.Sprintf(`{endpoint: "http://%s", protocol: grpc}`, plain.grpc), nil},
		{"https", secret, fmt.Sprintf(`{endpoint: "https://%s", %s}`, secret.http, tls), nil},
		{"grpcs", secret, fmt.Sprintf(`{endpoint: "https://%s", protocol: grpc, %s}`, secret.grpc, tls), nil},
		{"json", plain, fmt.Sprintf(`{endpoint: "http://%s", content: true}`, plain.http), []string{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"}},
		{"variables", plain, "{}", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + plain.http}},
		{"variables-grpcs", secret, "{}", append(variables, "OTEL_EXPORTER_OTLP_ENDPOINT=https://"+secret.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := serveIn(t, append(tc.env, "OTEL_SERVICE_NAME="+tc.name), "simulate: [{name: s}]\nserver: {drain: {delay: 0s}}\ntracing: "+tc.keys+"\n", "sim")
			k.question(t, tc.name, "sim", "Hello.", false)
			k.stop(t) // what is left is sent
			if r := tc.to.trace(t, tc.name).root; r.service != tc.name {
				t.Errorf("the service is %q", r.service)
			}
			if strings.Contains(k.output.String(), "traces do not reach") {
				t.Errorf("the log has %s", k.output.String())
			}
		})
	}
}

// TestDeadCollector: nothing waits for a collector that is not there; what is lost is counted, and told
// until it is there. Then tracing is switched off, by a reload.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	at := freeAddress(t)
	config := "simulate: [{name: s}]\ncache: {store: off}\n"
	k := serveIn(t, sentSoon, config+fmt.Sprintf("tracing: {endpoint: \"http://%s\"}\n", at), "sim")
	for n := range 50 {
		if got := k.question(t, fmt.Sprint(n), "sim", "Hello.", false); got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
	}
	eventually(t, patience, "spans are dropped", func() bool { return metric(t, k.admin+"/metrics", "kvasir_trace_spans_dropped_total") >= 50*8 })
	if got := string(get(t, k.admin+"/readyz").body); !strings.Contains(got, "degraded") || !strings.Contains(got, "traces do not reach the collector at http://"+at) {
		t.Errorf("/readyz says %s", got)
	}
	if n := strings.Count(k.output.String(), "traces do not reach the collector"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}

	c := startCollectorAt(t, at, freeAddress(t), nil)
	k.question(t, "back", "sim", "Hello.", false)
	c.trace(t, "back")
	eventually(t, patience, "/readyz is well", func() bool { return !strings.Contains(string(get(t, k.admin+"/readyz").body), "traces") })

	must(t, os.WriteFile(k.file, []byte(config), 0o600))
	must(t, k.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, patience, "the configuration is reloaded", func() bool { return strings.Contains(k.output.String(), "configuration reloaded") })
	k.question(t, "off", "sim", "Hello.", false)
	k.stop(t) // what is left is sent
	if slices.ContainsFunc(c.spans(), func(s span) bool { return s.is("kvasir.request_id") == "off" }) {
		t.Error("a request is traced while tracing is off")
	}
}
