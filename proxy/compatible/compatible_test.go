// Tests of the names of other systems: what each is told from, and its page.

package compatible

import (
	"bytes"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// TestPage wants a row in docs/dashboards.md for each name, with its type and labels, in order, and no other.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/dashboards.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+_\w+) \| (\w+) \| (.*?) ?\| .+ \|$`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, m[1]+" "+m[2]+" "+strings.TrimSpace(m[3]))
	}
	for _, s := range systems {
		for _, r := range s.rows {
			want = append(want, r.name+" "+strings.ToLower(r.kind.String())+" "+strings.Join(r.labels, ", "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/dashboards.md has\n%s\nthe tables\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// a makes a metric with these labels, name and value in turn.
func a(m *dto.Metric, labels ...string) *dto.Metric {
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	return m
}

func count(n float64, labels ...string) *dto.Metric {
	return a(&dto.Metric{Counter: &dto.Counter{Value: &n}}, labels...)
}

func times(n uint64, sum float64, labels ...string) *dto.Metric {
	return a(&dto.Metric{Histogram: &dto.Histogram{SampleCount: &n, SampleSum: &sum, Bucket: []*dto.Bucket{
		{UpperBound: new(0.01), CumulativeCount: new(max(n, 1) - 1)}, {UpperBound: new(0.5), CumulativeCount: &n},
	}}}, labels...)
}

func family(name string, kind dto.MetricType, metrics ...*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Help: new("help"), Type: &kind, Metric: metrics}
}

// told is what Append shows of these, in the text format.
func told(t *testing.T, names []string, counted ...*dto.MetricFamily) string {
	t.Helper()
	var text bytes.Buffer
	for _, f := range Append(nil, counted, names) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text.String(), "")
}

// TestUnits: seconds become milliseconds, shares per cent, what comes to the same labels is added up, and of buckets
// those are told that the name has there.
func TestUnits(t *testing.T) {
	got := told(t, []string{"dynamo"},
		family(PrefillSeconds, histogram, times(3, 0.25, "worker", "p0"), times(2, 0.5, "worker", "p1")),
		family(HeldShare, gauge, a(&dto.Metric{Gauge: &dto.Gauge{Value: new(0.25)}}, "worker", "d0")),
		family("kvasir_planner_decisions_total", counter, count(2, "decision", "up"), count(1, "decision", "down"), count(40, "decision", "keep")),
		family("kvasir_requests_queued", gauge, &dto.Metric{Gauge: &dto.Gauge{Value: new(7.0)}}),
		family(FirstSeconds, histogram, times(3, 1, "model", "m", "route", "/v1/chat/completions"), times(5, 2, "model", "m", "route", "/v1/completions"),
			times(0, 0, "model", "idle", "route", "/v1/embeddings")))
	want := `dynamo_component_router_time_to_first_token_seconds_bucket{dynamo_component="router",le="0.01"} 6
dynamo_component_router_time_to_first_token_seconds_bucket{dynamo_component="router",le="+Inf"} 8
dynamo_component_router_time_to_first_token_seconds_sum{dynamo_component="router"} 3
dynamo_component_router_time_to_first_token_seconds_count{dynamo_component="router"} 8
dynamo_frontend_router_queue_pending_requests{worker_type="decode"} 7
dynamo_frontend_time_to_first_token_seconds_bucket{model="m",le="0.01"} 6
dynamo_frontend_time_to_first_token_seconds_bucket{model="m",le="+Inf"} 8
dynamo_frontend_time_to_first_token_seconds_sum{model="m"} 3
dynamo_frontend_time_to_first_token_seconds_count{model="m"} 8
dynamo_kvbm_memory_utilization_percent{worker_id="d0"} 25
dynamo_planner_scaling_events_total{direction="up"} 2
dynamo_planner_scaling_events_total{direction="down"} 1
dynamo_worker_prefill_latency_ms_bucket{worker_id="p0",le="10"} 2
dynamo_worker_prefill_latency_ms_bucket{worker_id="p0",le="500"} 3
dynamo_worker_prefill_latency_ms_bucket{worker_id="p0",le="+Inf"} 3
dynamo_worker_prefill_latency_ms_sum{worker_id="p0"} 250
dynamo_worker_prefill_latency_ms_count{worker_id="p0"} 3
dynamo_worker_prefill_latency_ms_bucket{worker_id="p1",le="10"} 1
dynamo_worker_prefill_latency_ms_bucket{worker_id="p1",le="500"} 2
dynamo_worker_prefill_latency_ms_bucket{worker_id="p1",le="+Inf"} 2
dynamo_worker_prefill_latency_ms_sum{worker_id="p1"} 500
dynamo_worker_prefill_latency_ms_count{worker_id="p1"} 2
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEnds: how each system tells the end of a request.
func TestEnds(t *testing.T) {
	for _, tc := range []struct{ end, code, worker, dynamo, router string }{
		{"", "200", "true", "success", ""},
		{"client_gone", "499", "true", "error cancelled", "cancellation"},
		{"client_gone", "200", "true", "error cancelled", "cancellation"},
		{"blocked_jailbreak", "200", "false", "error validation", "jailbreak_block"},
		{"blocked_pii", "403", "false", "error validation", "pii_policy_denied"},
		{"blocked_decision", "200", "false", "error validation", ""},
		{"invalid_request_error", "400", "false", "error validation", "parse_error"},
		{"invalid_api_key", "401", "false", "error validation", "invalid_api_key"},
		{"model_not_found", "404", "false", "error not_found", "model_not_found"},
		{"rate_limit_exceeded", "429", "false", "error overload", "rate_limit_exceeded"},
		{"overloaded", "503", "false", "error unavailable", "overloaded"},
		{"worker_error", "400", "true", "error validation", "upstream_4xx"},
		{"upstream_error", "502", "true", "error internal", "upstream_5xx"},
		{"upstream_error", "504", "true", "error response_timeout", "timeout"},
		{"interrupted", "200", "true", "error internal", "upstream_5xx"},
		{"panic", "0", "false", "error internal", "panic"},
		{"route_not_served", "501", "true", "error not_implemented", "upstream_5xx"},
	} {
		s := series(count(1, "end", tc.end, "code", tc.code, "worker", tc.worker, "model", "m", "route", "/v1/embeddings").Label)
		status, kind := statusOf(s)
		if got := strings.TrimSpace(status + " " + kind); got != tc.dynamo {
			t.Errorf("%+v is %q to Dynamo", tc, got)
		}
		reason := errorReason(s)
		if len(reason) == 0 != (tc.router == "") || len(reason) == 2 && reason[1] != tc.router {
			t.Errorf("%+v is %q to Semantic Router", tc, reason)
		}
	}
}

// TestBucketWithoutBound: a series that has a bucket without a bound, for an exemplar in it, is added to one that has
// none, and no bucket is told twice.
func TestBucketWithoutBound(t *testing.T) {
	withBound := times(5, 2, "model", "m", "route", "/v1/completions")
	withBound.Histogram.Bucket = append(withBound.Histogram.Bucket, &dto.Bucket{UpperBound: new(math.Inf(1)), CumulativeCount: new(uint64(5))})
	without := times(3, 1, "model", "m", "route", "/v1/chat/completions")
	for _, series := range [][]*dto.Metric{{without, withBound}, {withBound, without}} {
		got := told(t, []string{"vllm-sr"}, family(FirstSeconds, histogram, series...))
		want := `llm_model_ttft_seconds_bucket{model="m",le="0.01"} 6
llm_model_ttft_seconds_bucket{model="m",le="0.5"} 8
llm_model_ttft_seconds_bucket{model="m",le="+Inf"} 8
llm_model_ttft_seconds_sum{model="m"} 3
llm_model_ttft_seconds_count{model="m"} 8
`
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestChangedModels: a request that was refused, or answered from the cache, went to no other model.
func TestChangedModels(t *testing.T) {
	got := told(t, []string{"vllm-sr"}, family(Routed, counter, count(4, "source", "auto", "model", "m", "reason", "auto_routing"),
		count(2, "source", "auto", "model", "m", "reason", "security_block"), count(1, "source", "auto", "model", "m", "reason", "cache_hit"),
		count(8, "source", "m", "model", "m", "reason", "model_specified"), count(16, "source", "m", "model", "spare", "reason", "model_specified")))
	for _, want := range []string{
		`llm_model_routing_modifications_total{source_model="auto",target_model="m"} 4`,
		`llm_model_routing_modifications_total{source_model="m",target_model="spare"} 16`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
}

// TestNamesAreApart: no name stands in two tables, each is made from something that is counted, and its series have
// all its labels and no two the same.
func TestNamesAreApart(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range systems {
		for i := range s.rows {
			r := &s.rows[i]
			if seen[r.name] || r.help == "" || r.from == "" {
				t.Errorf("%s: %+v", s.name, r)
			}
			seen[r.name] = true
			one := times(1, 1, "model", "m", "route", "/v1/chat/completions", "type", "prompt", "signal", "pii", "decision", "up", "result", "exact", "end", "overloaded", "code", "503", "worker", "true")
			if values, ok := r.valuesOf(one.Label); ok && len(values) != len(r.labels) {
				t.Errorf("%s has the labels %v and the values %v", r.name, r.labels, values)
			}
		}
	}
	if len(Append(nil, nil, Systems())) != 0 {
		t.Error("there is something of nothing")
	}
}

// TestBuckets: each system's histograms have the buckets that it has itself, in order, and those that several tell have
// all of them.
func TestBuckets(t *testing.T) {
	want := map[string][]float64{
		"dynamo_frontend_request_duration_seconds":              {0, 2, 4, 8, 16, 32, 64, 130, 260, 510},
		"dynamo_frontend_time_to_first_token_seconds":           {0, 0.0022, 0.0047, 0.01, 0.022, 0.047, 0.1, 0.22, 0.47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480},
		"dynamo_frontend_inter_token_latency_seconds":           {0, 0.0019, 0.0035, 0.0067, 0.013, 0.024, 0.045, 0.084, 0.16, 0.3, 0.56, 1.1, 2},
		"dynamo_frontend_output_sequence_tokens":                {0, 100, 210, 430, 880, 1800, 3700, 7600, 16000, 32000},
		"llm_prompt_tokens_per_request":                         {0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
		"llm_model_ttft_seconds":                                {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		"gen_ai_client_token_usage":                             {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
		"gen_ai_client_operation_duration_seconds":              {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
		"gen_ai_client_operation_time_to_first_chunk_seconds":   {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
		"gen_ai_client_operation_time_per_output_chunk_seconds": {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
	}
	for _, s := range systems {
		for i := range s.rows {
			r := &s.rows[i]
			counted := Buckets(r.from)
			h := &dto.Histogram{SampleCount: new(uint64(1)), SampleSum: new(1.0)}
			for _, bound := range counted {
				h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: new(uint64(1))})
			}
			sum := &dto.Metric{}
			addHistogram(sum, h, r.buckets, 1)
			var got []float64
			for _, b := range sum.Histogram.Bucket {
				got = append(got, b.GetUpperBound())
			}
			if !slices.IsSorted(r.buckets) || r.buckets != nil && !slices.Equal(got, r.buckets) {
				t.Errorf("%s has %v, of %v", r.name, got, counted)
			}
			if of, named := want[r.name]; named && !slices.Equal(got, of) {
				t.Errorf("%s has %v, want %v", r.name, got, of)
			}
		}
	}
}
