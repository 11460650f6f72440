// Tests of asking workers once, as `kvasir check --live` does.

package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// answering is a worker that answers paths with fixed bodies and the rest with 404.
func answering(t *testing.T, bodies map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		} else if body == "key" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestCheck(t *testing.T) {
	const list = `{"data":[{"id":"qwen","owned_by":"vllm"},{"id":"lora","owned_by":"vllm"}]}`
	vllm := map[string]string{"/health": "", "/v1/models": list, "/version": `{"version":"0.32.0"}`}
	for _, tt := range []struct {
		bodies map[string]string
		models []string
		what   string // or the error
	}{
		{vllm, nil, "vllm 0.32.0, models: qwen, lora"},
		{vllm, []string{"lora"}, "vllm 0.32.0, models: lora"},
		{vllm, []string{"lora", "qwen2"}, "vllm 0.32.0, models: lora, qwen2; but its /v1/models does not list qwen2, only qwen, lora"},
		{map[string]string{"/v1/models": `{"data":[{"id":"llama3","owned_by":"library"}]}`}, nil, "openai, models: llama3"},
		{map[string]string{"/v1/models": `{"data":[]}`}, nil, "openai, but it serves no model"},
		{map[string]string{"/health": ""}, nil, "/v1/models answers 404: this is no OpenAI server, or its url lacks the base path; else set its models"},
		{map[string]string{"/health": "", "/v1/models": "key"}, nil, "/v1/models answers 401: the worker wants a key, set its key_file or headers"},
		{map[string]string{"/health": "key"}, nil, "/health answers 401"},
	} {
		got := Check(t.Context(), []Settings{{Name: "w", URL: answering(t, tt.bodies), Models: tt.models}}, testTimeouts)[0]
		if got.Err != nil {
			got.What = got.Err.Error()
		}
		if got.What != tt.what {
			t.Errorf("%v, models %v: %q, want %q", tt.bodies, tt.models, got.What, tt.what)
		}
	}
}

// TestCheckAsksAllAtOnce: a silent worker used up the time of those after it,
// and they were called dead.
func TestCheckAsksAllAtOnce(t *testing.T) {
	answered := make(chan struct{})
	once := sync.OnceFunc(func() { close(answered) })
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answered }))
	t.Cleanup(silent.Close)
	t.Cleanup(once)
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { once() }))
	t.Cleanup(good.Close)
	ctx, cancel := context.WithTimeout(t.Context(), questionTimeout-500*time.Millisecond)
	defer cancel()
	Check(ctx, []Settings{{Name: "silent", URL: silent.URL}, {Name: "good", URL: good.URL}}, testTimeouts)
	if ctx.Err() != nil {
		t.Error("the second worker was not asked while the first was silent")
	}
}
