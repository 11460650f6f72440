// What a worker could tell clients' browsers, and what clients could tell workers by their request ids.

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// serveTold is Kvasir in front of a worker of the test's own.
func serveTold(t *testing.T, worker http.HandlerFunc) *kvasir {
	t.Helper()
	w := httptest.NewServer(worker)
	t.Cleanup(w.Close)
	return serve(t, fmt.Sprintf("server: {drain: {delay: 0s}}\nworkers: [{name: w, url: %q, engine: openai, models: [m]}]\nmodels: [{name: m, tokenizer: none}]\ncache: {store: off}\n", w.URL))
}

// TestHostileWorkerSpeaksForTheSite: a worker set cookies for the site of its clients, and told browsers where to go.
func TestHostileWorkerSpeaksForTheSite(t *testing.T) {
	t.Parallel()
	evil := []string{"Set-Cookie", "set-cookie2", "Clear-Site-Data", "Strict-Transport-Security", "Refresh", "Location", "Alt-Svc", "Link",
		"Content-Security-Policy-Report-Only", "Report-To", "Reporting-Endpoints", "NEL", "WWW-Authenticate", "X-Accel-Redirect", "x-ratelimit-remaining-requests"}
	k := serveTold(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range evil {
			w.Header()[name] = []string{"evil"}
		}
		w.Header().Set("X-Fine", "1")
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("X-Fail") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"no","type":"x","param":null,"code":401}}`)
			return
		}
		fmt.Fprintf(w, frugalAnswer, 1, 2)
	})
	for _, fail := range []string{"", "1"} {
		got := post(t, k.url+"/v1/chat/completions", frugalChat("Hello"+fail, ""), "X-Fail: "+fail)
		if got.header.Get("X-Fine") != "1" {
			t.Errorf("%d: what is fine does not pass: %v", got.status, got.header)
		}
		for name, values := range got.header {
			if strings.Contains(strings.Join(values, " "), "evil") {
				t.Errorf("%d: %s passes: %q", got.status, name, values)
			}
		}
	}
}

// TestHostileIdReachesAWorker: vLLM's connectors read an address to dial out of the client's request id.
func TestHostileIdReachesAWorker(t *testing.T) {
	t.Parallel()
	const id = "cmpl-___prefill_addr_10.6.6.6:666___decode_addr_10.6.6.6:667_x"
	var mu sync.Mutex
	var heads []string
	k := serveTold(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			mu.Lock()
			body, _ := io.ReadAll(r.Body) // what is missing is missed below
			heads = append(heads, fmt.Sprint(r.Header)+string(body))
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, frugalAnswer, 1, 2)
	})
	got := post(t, k.url+"/v1/chat/completions", frugalChat("Hello", `"request_id":"`+id+`","rid":"`+id+`","vllm_xargs":{"request_id":"`+id+`"},`), "X-Request-Id: "+id)
	if got.status != http.StatusOK || got.header.Get("X-Request-Id") != id {
		t.Errorf("the client gets %d and the id %q", got.status, got.header.Get("X-Request-Id"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(heads) != 1 || strings.Contains(heads[0], "666") || !strings.Contains(heads[0], "Hello") {
		t.Errorf("the worker got %q", heads)
	}
	eventually(t, patience, "the log has both ids", func() bool {
		log := k.output.String()
		return strings.Contains(log, id) && strings.Contains(log, `"worker_request_id":"`)
	})
}
