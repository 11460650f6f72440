//go:build real

// Traces of real vLLM under Kvasir's: one request's, whole, in the OpenTelemetry Collector's receiver.

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestRealTraces: of a prompt that one vLLM computes and another one answers, both servers' spans lie
// under Kvasir's legs, in the client's trace; of a request that is not sampled there is none.
func TestRealTraces(t *testing.T) {
	c := startCollector(t)
	v := startServers(t, []string{"OTEL_SERVICE_NAME=vllm", "OTEL_BSP_SCHEDULE_DELAY=100", "EXTRA_ARGS=--otlp-traces-endpoint http://" + c.grpc}, "prefill", "decode")
	workers := fmt.Sprintf("  - {name: p, url: %q, role: prefill}\n  - {name: d, url: %q, role: decode}\n", v.urls[0], v.urls[1])
	k := serveIn(t, sentSoon, placementConfig(t, workers)+fmt.Sprintf("routing: {disaggregate: always}\ntracing: {endpoint: \"http://%s\"}\n", c.http), tiny)
	untilExact(t, k, tiny)

	ask := func(id, trace, sampled string) {
		got := post(t, k.url+chatRoute, chatAbout(tiny, prose(200, 300), "Well?", 8, true), "X-Request-Id: "+id, "traceparent: 00-"+trace+"-"+clientSpan+"-"+sampled)
		if p := got.header.Get("x-kvasir-prefill-worker"); p != "p" {
			t.Fatalf("prefilled by %q: %d %s", p, got.status, got.body)
		}
	}
	const unsampled = "11111111111111112222222222222222"
	ask("unsampled", unsampled, "00")
	ask("sampled", clientTrace, "01")
	legs := c.trace(t, "sampled").legs()
	if len(legs) != 2 || legs[0].is("kvasir.worker") != "p" || legs[1].is("kvasir.worker") != "d" {
		t.Fatalf("legs are %v", legs)
	}
	for _, leg := range legs {
		var under []span
		eventually(t, patience, "vLLM's span under the leg to "+leg.is("kvasir.worker"), func() bool {
			under = nil
			for _, s := range c.spans() {
				if s.ParentSpanID() == leg.SpanID() {
					under = append(under, s)
				}
			}
			return len(under) > 0
		})
		for _, s := range under {
			if s.service != "vllm" || s.Kind() != ptrace.SpanKindServer || s.TraceID() != leg.TraceID() || s.StartTimestamp() < leg.StartTimestamp() {
				t.Errorf("under the leg to %s is %q of %s, from %v", leg.is("kvasir.worker"), s.Name(), s.service, s.StartTimestamp())
			}
			t.Logf("%s: %q of %s %v", leg.is("kvasir.worker"), s.Name(), s.service, s.Attributes().AsRaw())
		}
	}
	if strings.Contains(c.text(t), unsampled) {
		t.Error("there are spans of a request that is not sampled")
	}
}
