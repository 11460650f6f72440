// Names of other systems: what their dashboards ask, answered by Prometheus' own engine over what Kvasir serves.

package e2e

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestCompatibleNames: the queries that dashboards of NVIDIA Dynamo, Semantic Router and OpenTelemetry have give
// numbers in their units, and every name of docs/dashboards.md is served.
func TestCompatibleNames(t *testing.T) {
	t.Parallel()
	k := asMakeRun(t, "--set", "metrics.compatible=[dynamo, vllm-sr, genai]", "--set", "routing.disaggregate=always", "--set", "classify.jailbreak.action=block",
		"--set", "planner.mode=advise", "--set", "planner.interval=1s", "--set", "planner.window=1m", "--set", "models=[{name: sim, reasoning: qwen3, price: {prompt: 1, completion: 2}}]")
	s := promqltest.LoadedStorage(t, "")
	begin := time.Unix(1_800_000_000, 0)
	ask := func(body string) {
		resp, err := http.Post(k.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		must(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		must(t, err)
	}
	long := strings.Repeat("The tide rises and falls twice a day because the moon pulls at the sea. ", 40)
	at := 0
	scrape := func() []byte {
		page := pageOf(t, k)
		scraped(t, s, page, begin.Add(time.Duration(at)*15*time.Second))
		at++
		return page
	}
	for i := range 4 {
		ask(`{"model":"auto","messages":[{"role":"user","content":"What is the integral of x squared from zero to three?"}]}`)
		ask(`{"model":"auto","stream":true,"messages":[{"role":"user","content":"` + long + fmt.Sprint(i) + `"}]}`)
		ask(`{"model":"sim","messages":[{"role":"user","content":"Charge my card 4111 1111 1111 1111 please"}]}`)
		ask(`{"model":"nobody-serves-this","messages":[{"role":"user","content":"hi"}]}`)
		scrape()
	}
	var page []byte
	eventually(t, time.Minute, "the planner has planned", func() bool {
		page = pageOf(t, k)
		return strings.Contains(string(page), "dynamo_planner_scaling_events_total")
	})
	page = scrape()

	t.Logf("%d of %d series are by other systems' names", len(regexp.MustCompile(`(?m)^(dynamo|llm|gen_ai)_`).FindAll(page, -1)), len(regexp.MustCompile(`(?m)^[a-zA-Z]`).FindAll(page, -1)))
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	for _, tc := range []struct {
		query       string
		least, most float64
	}{
		{`sum(rate(dynamo_frontend_requests_total[1m]))`, 0.1, 10},
		{`sum(rate(dynamo_frontend_requests_total{status="error"}[1m])) / sum(rate(dynamo_frontend_requests_total[1m]))`, 0.4, 0.6},
		{`avg(dynamo_router_kv_cache_hit_ratio)`, 0.2, 1},
		{`histogram_quantile(0.95, sum by (le) (rate(dynamo_worker_prefill_latency_ms_bucket[1m])))`, 1, 5000},
		{`max(dynamo_kvbm_memory_utilization_percent)`, 0.1, 100},
		{`sum(dynamo_planner_scaling_events_total)`, 0, 100},

		{`histogram_quantile(0.5, sum by (le, model) (rate(dynamo_frontend_time_to_first_token_seconds_bucket{model="sim"}[1m])))`, 0.0001, 5},
		{`sum(rate(dynamo_component_router_kv_hit_rate_sum[1m])) / sum(rate(dynamo_component_router_kv_hit_rate_count[1m]))`, 0.2, 1},
		{`rate(dynamo_frontend_input_sequence_tokens_sum{model="sim"}[1m]) / rate(dynamo_frontend_input_sequence_tokens_count{model="sim"}[1m])`, 10, 10000},
		{`sum by (model, currency) (rate(kvasir_cost_total[1m])) * 3600`, 1e-3, 100}, // as the dashboard asks
		{`sum by (model) (rate(llm_model_tokens_total[1m]))`, 1, 10000},
		{`sum(rate(llm_request_errors_total{reason="pii_policy_denied"}[1m]))`, 0.01, 1},
		{`sum by (currency) (llm_model_cost_total{currency="USD"})`, 1e-6, 1},
		{`histogram_quantile(0.95, sum by (le, gen_ai_request_model) (rate(gen_ai_client_operation_duration_seconds_bucket{error_type=""}[1m])))`, 0.001, 60},
		{`sum by (gen_ai_token_type) (rate(gen_ai_client_token_usage_sum{gen_ai_token_type="output"}[1m]))`, 1, 10000},
	} {
		q, err := engine.NewInstantQuery(t.Context(), s, nil, tc.query, begin.Add(time.Minute))
		must(t, err)
		result := q.Exec(t.Context())
		must(t, result.Err)
		v, err := result.Vector()
		must(t, err)
		if len(v) == 0 || slices.ContainsFunc(v, func(one promql.Sample) bool { return math.IsNaN(one.F) || one.F < tc.least || one.F > tc.most }) {
			t.Errorf("%s is %v, want something between %v and %v", tc.query, v, tc.least, tc.most)
		}
		q.Close()
	}

	docs, err := os.ReadFile("../docs/dashboards.md")
	must(t, err)
	// What nothing here brings about: a client that leaves, a full queue; and what vLLM does not say of itself.
	not := []string{
		"dynamo_frontend_model_cancellation_total", "dynamo_frontend_model_rejection_total",
		"dynamo_frontend_model_max_num_seqs", "dynamo_frontend_model_max_num_batched_tokens",
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\w+_\w+) \| (\w+) \|`).FindAllStringSubmatch(string(docs), -1) {
		if served := strings.Contains(string(page), "# TYPE "+m[1]+" "+m[2]+"\n"); served == slices.Contains(not, m[1]) {
			t.Errorf("%s is served: %v", m[1], served)
		}
	}
}

// TestNativeHistograms: Prometheus' own parser finds native histograms, with what was observed, where it asks for them,
// and the classic buckets of the same beside them if it wants those too.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	k := asMakeRun(t)
	resp, err := http.Post(k.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`))
	must(t, err)
	resp.Body.Close()
	eventually(t, time.Minute, "the request is counted", func() bool {
		return strings.Contains(string(pageOf(t, k)), `kvasir_requests_total{code="200",route="/v1/chat/completions"} 1`)
	})
	req, err := http.NewRequest("GET", k.admin+"/metrics", nil)
	must(t, err)
	req.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.5")
	resp, err = http.DefaultClient.Do(req)
	must(t, err)
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	must(t, err)
	p, err := textparse.New(page, resp.Header.Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true})
	must(t, err)
	native, classic := map[string]uint64{}, map[string]bool{}
	for {
		entry, err := p.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		var l labels.Labels
		switch entry {
		case textparse.EntryHistogram:
			_, _, h, _ := p.Histogram()
			p.Labels(&l)
			native[l.Get("__name__")] += h.Count
		case textparse.EntrySeries:
			p.Labels(&l)
			classic[l.Get("__name__")] = true
		}
	}
	for _, name := range []string{"kvasir_request_duration_seconds", "kvasir_time_to_first_byte_seconds", "kvasir_overhead_seconds"} {
		if native[name] != 1 || !classic[name+"_bucket"] {
			t.Errorf("%s was observed %d times as a native histogram, as a classic one: %v", name, native[name], classic[name+"_bucket"])
		}
	}
}
