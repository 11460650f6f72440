// Names of NVIDIA Dynamo: those of the frontend and router of its version 1, and five of dashboards
// made for it.

package compatible

import (
	"math"
	"strconv"
	"strings"
)

// endpoints are Dynamo's names of routes.
var endpoints = map[string]string{
	"/v1/chat/completions": "chat_completions", "/v1/completions": "completions", "/v1/embeddings": "embeddings",
	"/v1/responses": "responses", "/v1/messages": "anthropic_messages", "/v1/rerank": "rerank",
	"/v1/images/generations": "images", "/v1/audio/speech": "audios",
}

// endpointOf is a route as Dynamo names it; one that it does not have keeps its path.
func endpointOf(route string) string {
	if name, ok := endpoints[route]; ok {
		return name
	}
	return route
}

func requestType(s series) string {
	if s.of("stream") == "true" {
		return "stream"
	}
	return "unary"
}

// statusOf is how Dynamo tells an end.
func statusOf(s series) (status, errorType string) {
	switch end := s.of("end"); {
	case end == "":
		return "success", ""
	case end == "client_gone":
		return "error", "cancelled"
	case isTimeout(s):
		return "error", "response_timeout"
	}
	switch code := s.of("code"); code {
	case "404":
		return "error", "not_found"
	case "429":
		return "error", "overload"
	case "503":
		return "error", "unavailable"
	case "501":
		return "error", "not_implemented"
	default:
		if strings.HasPrefix(code, "4") || isBlocked(s) {
			return "error", "validation"
		}
	}
	return "error", "internal"
}

// isTimeout says that a worker took too long to begin or to go on.
func isTimeout(s series) bool { return s.of("code") == "504" }

// isBlocked says that a guard or a decision refused the request.
func isBlocked(s series) bool {
	switch s.of("end") {
	case "blocked_jailbreak", "blocked_pii", "blocked_decision":
		return true
	}
	return false
}

func dynamoRequest(s series) []string {
	status, errorType := statusOf(s)
	return []string{s.of("model"), endpointOf(s.of("route")), requestType(s), status, errorType}
}

func dynamoEnded(end string) func(series) []string {
	return func(s series) []string {
		if s.of("end") != end {
			return nil
		}
		return []string{s.of("model"), endpointOf(s.of("route")), requestType(s)}
	}
}

// only keeps the series that have a value of a label, and of those the other labels that are named.
func only(label, value string, labels ...string) func(series) []string {
	return func(s series) []string {
		if s.of(label) != value {
			return nil
		}
		values := make([]string, len(labels))
		for i, name := range labels {
			values[i] = s.of(name)
		}
		return values
	}
}

// constant gives all series the same labels.
func constant(values ...string) func(series) []string {
	return func(series) []string { return values }
}

// routerTokens keeps the tokens of one type.
func routerTokens(kind string) func(series) []string {
	return func(s series) []string {
		if s.of("type") != kind {
			return nil
		}
		return []string{"router"}
	}
}

// renamed gives labels other names: their values are those of labels.
func renamed(labels ...string) func(series) []string {
	return func(s series) []string {
		values := make([]string, len(labels))
		for i, name := range labels {
			values[i] = s.of(name)
		}
		return values
	}
}

func scaling(s series) []string {
	switch d := s.of("decision"); d {
	case "up", "down":
		return []string{d}
	}
	return nil
}

var (
	byModel  = []string{"model"}
	byRouter = []string{"dynamo_component"}
	router   = constant("router")
)

// The buckets that Dynamo has by default.
var (
	dynamoSeconds = logarithmic(1, 512, 10)
	dynamoFirst   = logarithmic(0.001, 480, 18)
	dynamoBetween = logarithmic(0.001, 2, 13)
	dynamoPrompt  = logarithmic(50, 128_000, 12)
	dynamoAnswer  = logarithmic(50, 32_000, 10)
)

// logarithmic are bounds as Dynamo spaces them: 0 in place of the least one, then up to the most in
// equal ratios, rounded to two figures.
func logarithmic(least, most float64, n int) []float64 {
	bounds := []float64{0}
	for i := 1; i < n; i++ {
		x := least * math.Pow(most/least, float64(i)/float64(n-1))
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 1, 64), 64)
		bounds = append(bounds, rounded)
	}
	return bounds
}

var dynamo = []row{
	{name: "dynamo_frontend_requests_total", help: "Requests answered.", kind: counter, from: Requests,
		labels: []string{"model", "endpoint", "request_type", "status", "error_type"}, values: dynamoRequest},
	{name: "dynamo_frontend_active_requests", help: "Requests under way, of all models.", kind: gauge, from: "kvasir_requests_in_flight"},
	{name: "dynamo_frontend_inflight_requests", help: "Requests under way, of all models.", kind: gauge, from: "kvasir_requests_in_flight"},
	{name: "dynamo_frontend_request_duration_seconds", help: "From the request to the end of its answer.", kind: histogram, from: Seconds, buckets: dynamoSeconds, labels: byModel},
	{name: "dynamo_frontend_time_to_first_token_seconds", help: "From the request to the first byte of a worker's stream.", kind: histogram, from: FirstSeconds, buckets: dynamoFirst, labels: byModel},
	{name: "dynamo_frontend_inter_token_latency_seconds", help: "From one event of a stream to the next.", kind: histogram, from: ChunkSeconds, buckets: dynamoBetween, labels: byModel},
	{name: "dynamo_frontend_input_sequence_tokens", help: "Tokens of a prompt.", kind: histogram, from: Tokens, buckets: dynamoPrompt, labels: byModel, values: only("type", "prompt", "model")},
	{name: "dynamo_frontend_output_sequence_tokens", help: "Tokens of an answer.", kind: histogram, from: Tokens, buckets: dynamoAnswer, labels: byModel, values: only("type", "completion", "model")},
	{name: "dynamo_frontend_cached_tokens", help: "Tokens of a prompt that the worker had cached.", kind: histogram, from: Tokens, buckets: dynamoPrompt, labels: byModel, values: only("type", "cached", "model")},
	{name: "dynamo_frontend_output_tokens_total", help: "Tokens of answers.", kind: counter, from: "kvasir_tokens_total", labels: byModel, values: only("type", "completion", "model")},
	{name: "dynamo_frontend_model_cancellation_total", help: "Requests whose client left before the end.", kind: counter, from: Requests,
		labels: []string{"model", "endpoint", "request_type"}, values: dynamoEnded("client_gone")},
	{name: "dynamo_frontend_model_rejection_total", help: "Requests refused because there was no room.", kind: counter, from: Requests,
		labels: []string{"model", "endpoint"}, values: rejected},
	{name: "dynamo_frontend_router_queue_pending_requests", help: "Requests that wait for a worker.", kind: gauge, from: "kvasir_requests_queued",
		labels: []string{"worker_type"}, values: constant("decode")},
	{name: "dynamo_frontend_model_total_kv_blocks", help: "KV blocks of a worker's rank.", kind: gauge, from: EngineBlocks, labels: byModel},
	{name: "dynamo_frontend_model_max_num_seqs", help: "Requests of one pass of a worker.", kind: gauge, from: EngineSeqs, labels: byModel},
	{name: "dynamo_frontend_model_max_num_batched_tokens", help: "Tokens of one pass of a worker.", kind: gauge, from: EngineBatch, labels: byModel},
	{name: "dynamo_frontend_model_context_length", help: "Tokens of prompt and answer together.", kind: gauge, from: EngineContext, labels: byModel},
	{name: "dynamo_frontend_model_kv_cache_block_size", help: "Tokens of a KV block.", kind: gauge, from: EngineBlock, labels: byModel},

	{name: "dynamo_component_router_requests_total", help: "Requests placed by what workers hold.", kind: counter, from: "kvasir_placement_seconds", labels: byRouter, values: router},
	{name: "dynamo_component_router_time_to_first_token_seconds", help: "From the request to the first byte of a worker's stream.", kind: histogram, from: FirstSeconds, buckets: dynamoFirst, labels: byRouter, values: router},
	{name: "dynamo_component_router_input_sequence_tokens", help: "Tokens of a prompt.", kind: histogram, from: Tokens, buckets: dynamoPrompt, labels: byRouter, values: routerTokens("prompt")},
	{name: "dynamo_component_router_output_sequence_tokens", help: "Tokens of an answer.", kind: histogram, from: Tokens, buckets: dynamoAnswer, labels: byRouter, values: routerTokens("completion")},
	{name: "dynamo_component_router_kv_hit_rate", help: "Share of a prompt's blocks that its worker was taken to hold.", kind: histogram, from: ReusedShare, labels: byRouter, values: router},
	{name: "dynamo_router_overhead_total_ms", help: "Milliseconds to find a prompt's tokens and choose its workers.", kind: histogram, from: "kvasir_placement_seconds", scale: 1000},

	{name: "dynamo_router_kv_cache_hit_ratio", help: "Share of the prompts' blocks that their workers were taken to hold, over the last minutes.", kind: gauge, from: ReusedLately},
	{name: "dynamo_worker_prefill_latency_ms", help: "Milliseconds that a prefill worker took for a prompt.", kind: histogram, from: PrefillSeconds, scale: 1000,
		labels: []string{"worker_id"}, values: renamed("worker")},
	{name: "dynamo_kvbm_memory_utilization_percent", help: "Per cent of a worker's KV blocks that hold something, by its events.", kind: gauge, from: HeldShare, scale: 100,
		labels: []string{"worker_id"}, values: renamed("worker")},
	{name: "dynamo_planner_scaling_events_total", help: "Times that the planner wanted more or fewer workers.", kind: counter, from: "kvasir_planner_decisions_total",
		labels: []string{"direction"}, values: scaling},
}

// rejected are requests that were refused because there was no room for them.
func rejected(s series) []string {
	if s.of("end") != "overloaded" {
		return nil
	}
	return []string{s.of("model"), endpointOf(s.of("route"))}
}
