// Names of vLLM Semantic Router.

package compatible

import "strings"

// byWorkers keeps requests that a worker was asked for.
func byWorkers(s series) []string { return only("worker", "true", "model")(s) }

// answered keeps answers of workers that went well.
func answered(s series) []string {
	if s.of("end") != "" {
		return nil
	}
	return byWorkers(s)
}

// errorReason is how Semantic Router tells why a request went wrong.
func errorReason(s series) []string {
	reason, end := "", s.of("end")
	switch {
	case end == "":
		return nil
	case end == "blocked_jailbreak":
		reason = "jailbreak_block"
	case end == "blocked_pii":
		reason = "pii_policy_denied"
	case end == "blocked_decision":
		return nil // an answer of its own there
	case end == "client_gone":
		reason = "cancellation"
	case isTimeout(s):
		reason = "timeout"
	case s.of("worker") != "true" && s.of("code") == "400":
		reason = "parse_error"
	case s.of("worker") != "true":
		reason = end
	case strings.HasPrefix(s.of("code"), "4"):
		reason = "upstream_4xx"
	default:
		reason = "upstream_5xx"
	}
	return []string{s.of("model"), reason}
}

// changed keeps requests that went to another model than the one that was asked for. What is refused
// or answered from the cache went to none.
func changed(s series) []string {
	from, to := s.of("source"), s.of("model")
	switch reason := s.of("reason"); {
	case from == to, reason == "security_block", reason == "cache_hit":
		return nil
	}
	return []string{from, to}
}

// reasoningDecision is what a decision said of the reasoning.
func reasoningDecision(s series) []string {
	enabled, effort := "true", s.of("effort")
	switch effort {
	case "off":
		enabled, effort = "false", ""
	case "on":
		effort = ""
	}
	return []string{s.of("category"), s.of("model"), enabled, effort}
}

// classifiers are the signals that are classifiers there, too.
func classifier(s series) []string {
	switch name := s.of("signal"); name {
	case "category", "jailbreak", "pii":
		return []string{name}
	}
	return nil
}

func cacheHit(s series) []string {
	switch s.of("result") {
	case "exact", "semantic":
		return []string{}
	}
	return nil
}

func spent(s series) []string {
	if s.of("type") == "cached" { // they are among the prompt's
		return nil
	}
	return []string{s.of("model")}
}

// The buckets of Semantic Router; those of times are the Go client's default ones.
var (
	routerTokensOf = []float64{0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	routerSeconds  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
)

var semanticRouter = []row{
	{name: "llm_model_requests_total", help: "Requests that a worker was asked for.", kind: counter, from: Requests, labels: byModel, values: byWorkers},
	{name: "llm_request_errors_total", help: "Requests that did not end well.", kind: counter, from: Requests, labels: []string{"model", "reason"}, values: errorReason},
	{name: "llm_model_cost_total", help: "What the tokens of workers cost.", kind: counter, from: "kvasir_cost_total", labels: []string{"model", "currency"}},
	{name: "llm_model_tokens_total", help: "Tokens of prompts and answers.", kind: counter, from: "kvasir_tokens_total", labels: byModel, values: spent},
	{name: "llm_model_prompt_tokens_total", help: "Tokens of prompts.", kind: counter, from: "kvasir_tokens_total", labels: byModel, values: only("type", "prompt", "model")},
	{name: "llm_model_completion_tokens_total", help: "Tokens of answers.", kind: counter, from: "kvasir_tokens_total", labels: byModel, values: only("type", "completion", "model")},
	{name: "llm_prompt_tokens_per_request", help: "Tokens of a prompt.", kind: histogram, from: Tokens, buckets: routerTokensOf, labels: byModel, values: only("type", "prompt", "model")},
	{name: "llm_completion_tokens_per_request", help: "Tokens of an answer.", kind: histogram, from: Tokens, buckets: routerTokensOf, labels: byModel, values: only("type", "completion", "model")},
	{name: "llm_model_completion_latency_seconds", help: "From a request to the end of a worker's answer.", kind: histogram, from: Seconds, buckets: routerSeconds, labels: byModel, values: answered},
	{name: "llm_model_ttft_seconds", help: "From the request to the first byte of a worker's stream.", kind: histogram, from: FirstSeconds, buckets: routerSeconds, labels: byModel},
	{name: "llm_model_tpot_seconds", help: "Time of a whole answer for each of its tokens.", kind: histogram, from: TokenSeconds, buckets: routerSeconds, labels: byModel},

	{name: "llm_model_routing_latency_seconds", help: "Time to the first byte that was no waiting for workers.", kind: histogram, from: "kvasir_overhead_seconds"},
	{name: "llm_model_routing_modifications_total", help: "Requests that went to another model than the one that was asked for.", kind: counter, from: Routed,
		labels: []string{"source_model", "target_model"}, values: changed},
	{name: "llm_routing_reason_codes_total", help: "Why a request went to its model.", kind: counter, from: Routed,
		labels: []string{"reason_code", "model"}, values: renamed("reason", "model")},
	{name: "llm_reasoning_decisions_total", help: "Requests whose reasoning a decision set.", kind: counter, from: Reasoning,
		labels: []string{"category", "model", "enabled", "effort"}, values: reasoningDecision},

	{name: "llm_category_classifications_count", help: "Requests by the category that was found.", kind: untyped, from: Categories, labels: []string{"category"}},
	{name: "llm_pii_violations_total", help: "Personal data that was not to be in a request.", kind: counter, from: PersonalData,
		labels: []string{"model", "pii_type"}, values: renamed("model", "type")},
	{name: "llm_classifier_latency_seconds", help: "Time that a classifier took.", kind: histogram, from: "kvasir_signal_duration_seconds",
		labels: []string{"classifier"}, values: classifier},
	{name: "llm_signal_extraction_latency_seconds", help: "Time that a signal took.", kind: histogram, from: "kvasir_signal_duration_seconds",
		labels: []string{"signal_type"}, values: renamed("signal")},
	{name: "llm_signal_match_total", help: "Signals that held for a decision.", kind: counter, from: "kvasir_signal_matches_total",
		labels: []string{"signal_type", "signal_name"}, values: renamed("signal", "name")},
	{name: "llm_decision_match_total", help: "Requests that a decision held for.", kind: counter, from: "kvasir_decisions_total",
		labels: []string{"decision_name"}, values: renamed("decision")},

	{name: "llm_cache_hits_total", help: "Requests answered from the cache.", kind: counter, from: "kvasir_cache_lookups_total", values: cacheHit},
	{name: "llm_cache_misses_total", help: "Requests looked up in the cache and not found.", kind: counter, from: "kvasir_cache_lookups_total", values: only("result", "miss")},
	{name: "llm_cache_entries_total", help: "Answers that are kept.", kind: gauge, from: CacheEntries, labels: []string{"backend"}},
}
