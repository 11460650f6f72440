// Names of OpenTelemetry's conventions for generative AI, as Prometheus has them: dots are
// underscores, and the unit stands behind.

package compatible

import "strings"

// The buckets of the conventions.
var (
	genAITokens  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	genAISeconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)

// operationOf is what the conventions call a request of a route; one that they have no word for is
// called as the last part of its path.
func operationOf(route string) string {
	switch route {
	case "/v1/chat/completions", "/v1/responses", "/v1/messages":
		return "chat"
	case "/v1/completions":
		return "text_completion"
	}
	return route[strings.LastIndexByte(route, '/')+1:]
}

// providerOf is whose form a route speaks.
func providerOf(route string) string {
	if strings.HasPrefix(route, "/v1/messages") {
		return "anthropic"
	}
	return "openai"
}

var operation = []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"}

func operationValues(s series) []string {
	route := s.of("route")
	return []string{operationOf(route), providerOf(route), s.of("model")}
}

// ended is an operation with its error.type: why it ended, where it did not end well.
func ended(s series) []string {
	end := s.of("end")
	if isBlocked(s) {
		end = "blocked"
	}
	return append(operationValues(s), end)
}

func tokenUsage(s series) []string {
	switch s.of("type") {
	case "prompt":
		return append(operationValues(s), "input")
	case "completion":
		return append(operationValues(s), "output")
	}
	return nil
}

func with(labels []string, more string) []string {
	return append(labels[:len(labels):len(labels)], more)
}

var genAI = []row{
	{name: "gen_ai_client_token_usage", help: "Tokens of a prompt or an answer.", kind: histogram, from: Tokens, buckets: genAITokens, labels: with(operation, "gen_ai_token_type"), values: tokenUsage},
	{name: "gen_ai_client_operation_duration_seconds", help: "From the request to the end of its answer.", kind: histogram, from: Seconds, buckets: genAISeconds, labels: with(operation, "error_type"), values: ended},
	{name: "gen_ai_client_operation_time_to_first_chunk_seconds", help: "From the request to the first byte of a worker's stream.", kind: histogram, from: FirstSeconds, buckets: genAISeconds, labels: operation, values: operationValues},
	{name: "gen_ai_client_operation_time_per_output_chunk_seconds", help: "From one event of a stream to the next.", kind: histogram, from: ChunkSeconds, buckets: genAISeconds, labels: operation, values: operationValues},
}
