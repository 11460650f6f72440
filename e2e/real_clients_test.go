//go:build real

// Frameworks on the OpenAI API, unmodified: make test-real REAL=clients.

package e2e

import "testing"

// TestRealClients has LiteLLM, LangChain, LlamaIndex, Instructor and Pydantic AI chat, stream, call
// tools, meet an error, a request that is blocked, and a stream that is cut.
func TestRealClients(t *testing.T) {
	a, b := simulate(t), simulate(t)
	k := serve(t, twoWorkers(a, b)+"classify: {pii: {action: block}}\n", "sim")
	to := target{baseURL: k.url + "/v1", model: "sim", faults: true}
	checkSDK(t, to, "../.cache/sdk-frameworks/bin/python", "../scripts/sdk/frameworks/check.py")
}
