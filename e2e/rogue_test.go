// A worker whose answers hold the canary, and which fails in every way on request.

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// rogueFaults are the values of x-rogue. Each reply holds the canary where a parser may quote it.
var rogueFaults = []string{
	"status=400", "status=401", "status=404", "status=429", "status=500", "status=503",
	"no-http", "bad-header", "long-head", "bad-chunk", "short", "cut", "silent", "error-event", "long-event", "bad-event",
}

// rogue answers like a small OpenAI server.
func rogue(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model","created":1,"owned_by":"rogue"}]}`)
		return
	case "/health", "/version", "/metrics":
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	fault := r.Header.Get("X-Rogue")
	if code, ok := strings.CutPrefix(fault, "status="); ok {
		refuse(w, code)
		return
	}
	if raw := brokenHTTP(fault); raw != "" {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, raw)
		return
	}
	if fault == "silent" {
		<-r.Context().Done()
		return
	}
	if strings.Contains(string(body), `"stream":true`) {
		streamCanary(w, r, fault)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"id":"rogue","object":"chat.completion","created":1,"model":"sim","choices":[{"index":0,"message":{"role":"assistant","content":"`+
		canary+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
}

// refuse is an engine's error that quotes the prompt.
func refuse(w http.ResponseWriter, code string) {
	status := 0
	if _, err := fmt.Sscan(code, &status); err != nil {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Why", canary)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":"cannot serve %s","type":"%s","param":null,"code":%d}}`, canary, canary, status)
}

// brokenHTTP is a reply that is broken HTTP; "" for the other faults.
func brokenHTTP(fault string) string {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	switch fault {
	case "no-http":
		return canary + "\r\n\r\n" + canary
	case "bad-header":
		return "HTTP/1.1 200 OK\r\nno colon " + canary + "\r\n\r\n"
	case "long-head":
		return ok + "X: " + strings.Repeat(canary, 8<<10) + "\r\n\r\n"
	case "bad-chunk":
		return ok + "Transfer-Encoding: chunked\r\n\r\n" + canary + "\r\n" + canary
	case "short":
		return ok + "Content-Length: 1000\r\n\r\ndata: " + canary
	}
	return ""
}

func streamCanary(w http.ResponseWriter, r *http.Request, fault string) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(data string) {
		fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
	token := `{"id":"rogue","object":"chat.completion.chunk","created":1,"model":"sim","choices":[{"index":0,"delta":{"content":"` + canary + `"},"finish_reason":null}]}`
	switch fault {
	case "error-event":
		event(`{"error":{"message":"` + canary + `","type":"` + canary + `","param":null,"code":500}}`)
	case "bad-event":
		event(`{"choices":[` + canary)
	case "long-event":
		event(`{"id":"` + strings.Repeat(canary, 5<<20/len(canary)) + `"}`)
	case "cut":
		event(token)
		panic(http.ErrAbortHandler)
	case "drip":
		for r.Context().Err() == nil {
			event(token)
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
		return
	}
	event(token)
	event(`{"id":"rogue","object":"chat.completion.chunk","created":1,"model":"sim","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	event("[DONE]")
}
