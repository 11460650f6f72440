// Hostile interim replies: a worker that sends 1xx and nothing else.

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHostileEndlessInterimReplies: they were kept, at 435 MiB a second, for as long as the first-byte clock ran.
func TestHostileEndlessInterimReplies(t *testing.T) {
	t.Parallel()
	w := httptest.NewServer(http.HandlerFunc(interimWorker))
	t.Cleanup(w.Close)
	k := serve(t, "cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\n"+
		"models: [{name: sim, tokenizer: none, reasoning: none}]\nserver: {retry: {attempts: 0}}\nworkers: [{name: a, url: "+w.URL+", engine: openai}]\n", "sim")
	before := k.memory(t, "VmRSS")
	got := post(t, k.url+"/v1/chat/completions", chat(false, 5), "X-Interim: endless")
	wantError(t, got, http.StatusBadGateway)
	if grown := k.memory(t, "VmHWM") - before; grown > 50 {
		t.Errorf("it cost %d MiB", grown)
	}
	if got := post(t, k.url+"/v1/chat/completions", chat(false, 5), "X-Interim: some"); got.status != http.StatusOK {
		t.Errorf("a few interim replies: %d %s", got.status, got.body)
	}
}

const interimReply = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"

// interimWorker is rogue, with interim replies before each answer: some, or no end of them.
func interimWorker(w http.ResponseWriter, r *http.Request) {
	switch r.Header.Get("X-Interim") {
	case "endless":
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		many := strings.Repeat(interimReply, 1000)
		for err == nil {
			_, err = io.WriteString(conn, many)
		}
	case "some":
		for range 20 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		rogue(w, r)
	default:
		rogue(w, r)
	}
}
