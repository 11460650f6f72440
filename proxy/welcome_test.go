// What people are told who ask for a path that is elsewhere.

package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestNotHere(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	for _, row := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/", 200, "base_url    this address, followed by /v1"},
		{"POST", "/chat/completions", 404, "did you mean /v1/chat/completions?"},
		{"GET", "/models", 404, "did you mean /v1/models?"},
		{"POST", "/v1/v1/chat/completions", 404, "/v1 is there twice"},
		{"POST", "/v1/messages/", 404, "did you mean /v1/messages?"},
		{"GET", "/metrics", 404, "server.admin in the configuration"},
		{"GET", "/favicon.ico", 404, "Unknown request URL: GET /favicon.ico; GET /openapi.json lists the routes"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), row.method, "http://"+p.addr+row.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil || got.StatusCode != row.status || !strings.Contains(string(body), row.want) {
			t.Errorf("%s %s: %d %s %v", row.method, row.path, got.StatusCode, body, err)
		}
	}
}

// TestMessagesErrorsOfWorkers: a worker's error in OpenAI's shape gets Anthropic's on /v1/messages; one that
// has it passes as it came, and so do all on other routes.
func TestMessagesErrorsOfWorkers(t *testing.T) {
	const body = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	for _, row := range []struct{ path, said, want string }{
		{"/v1/messages", `{"error":{"message":"no \u00e9","type":"BadRequestError","param":"top_k","code":"bad_top_k"}}`,
			`{"type":"error","error":{"message":"no é","type":"invalid_request_error","param":"top_k","code":"bad_top_k"}}`},
		{"/v1/messages", `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`,
			`{"type":"error","error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`},
		{"/v1/messages", `{"type":"error", "error":{"type":"invalid_request_error","message":"no"},"request_id":"r"}`,
			`{"type":"error", "error":{"type":"invalid_request_error","message":"no"},"request_id":"r"}`},
		{"/v1/chat/completions", `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`,
			`{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`},
	} {
		p := startProxy(t, settingsFor(startWorker(t, send(httpReply(400, "application/json", row.said))).url))
		if got := p.ask(t, row.path, body); got.StatusCode != 400 || got.body != row.want {
			t.Errorf("%s, %s: %d %s, want %s", row.path, row.said, got.StatusCode, got.body, row.want)
		}
	}
}

// TestMessagesErrors: clients of /v1/messages read errors in Anthropic's shape: those of our own, and
// those that a worker sent in another one.
func TestMessagesErrors(t *testing.T) {
	w := startWorker(t, send(httpReply(422, "application/json", `{"detail":"too deep"}`)))
	p := startProxy(t, keyed(settingsFor(w.url), Key{Name: "one"}))
	const body = `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	for _, row := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/v1/messages", "Authorization: Bearer wrong", 401, `{"type":"error","error":{"message":`},
		{"/v1/messages", "x-api-key: wrong", 401, `"type":"authentication_error"`},
		{"/v1/messages", "x-api-key: sk-one", 422, `{"type":"error","error":{"message":"too deep","type":"invalid_request_error"`},
		{"/v1/messages/count_tokens", "x-api-key: wrong", 401, `{"type":"error","error":{"message":`},
		{"/v1/messages/batches", "x-api-key: sk-one", 404, `{"type":"error","error":{"message":`},
		{"/v1/messages/batches", "x-api-key: sk-one", 404, `"type":"not_found_error"`},
		{"/v1/chat/completions", "x-api-key: wrong", 401, `{"error":{"message":`},
		{"/v1/chat/completions", "x-api-key: sk-one", 422, `{"error":{"message":"too deep","type":"invalid_request_error"`},
	} {
		if got := p.ask(t, row.path, body, row.key); got.StatusCode != row.status || !strings.Contains(got.body, row.want) {
			t.Errorf("%s with %s: %d %s", row.path, row.key, got.StatusCode, got.body)
		}
	}
}
