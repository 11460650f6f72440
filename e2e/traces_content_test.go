// Prompts and answers as a collector gets them, where tracing.content asks for them.

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A message is one of gen_ai.input.messages or gen_ai.output.messages.
type message struct {
	Role  string `json:"role"`
	Parts []struct {
		Type, Content, ID, Name string
		Arguments, Response     any
	} `json:"parts"`
	Finish string `json:"finish_reason"`
}

// messages reads an attribute of a span.
func (s *span) messages(t *testing.T, name string) (all []message) {
	t.Helper()
	text := s.is(name)
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || !utf8.ValidString(text) {
		t.Fatalf("%s is %s: %v", name, tail(text, 400), err)
	}
	return all
}

// line is messages in a line: roles, parts and why they ended.
func line(all []message) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%s:", m.Role)
		for _, p := range m.Parts {
			switch p.Type {
			case "tool_call":
				fmt.Fprintf(&b, " %s=%s(%v)", p.ID, p.Name, p.Arguments)
			case "tool_call_response":
				fmt.Fprintf(&b, " %s->%v", p.ID, p.Response)
			default:
				fmt.Fprintf(&b, " %s", p.Content)
			}
		}
		fmt.Fprintf(&b, "%s; ", map[bool]string{true: " /" + m.Finish}[m.Finish != ""])
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// answersByPath is a worker that answers each route as its engine does, with the last thing that was
// asked in the answer.
func answersByPath(t *testing.T) *httptest.Server {
	event := func(w io.Writer, name, data string) {
		if name != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", name)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model","owned_by":"vllm"}]}`)
			return
		}
		b, _ := io.ReadAll(r.Body)
		asked := string(b)
		text := "Fine."
		switch {
		case strings.Contains(asked, "[EMAIL_ADDRESS]"):
			text = "I write to [EMAIL_ADDRESS]."
		case strings.Contains(asked, "mangled"):
			text = "a\xff\xfeb"
		}
		call := strings.Contains(asked, `"tools"`) && !strings.Contains(asked, `"tool_call_id"`)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(asked, `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		switch streams := strings.Contains(asked, `"stream":true`); {
		case r.URL.Path == "/v1/chat/completions" && call && streams:
			event(w, "", `{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}}]}`)
			event(w, "", `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"unit\":\"celsius\"}"}}]}}]}`)
			event(w, "", `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
			event(w, "", "[DONE]")
		case r.URL.Path == "/v1/chat/completions" && strings.Contains(asked, "cut me off"):
			event(w, "", `{"choices":[{"index":0,"delta":{"role":"assistant","content":"Once"}}]}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/v1/chat/completions" && streams:
			for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
				event(w, "", `{"choices":[{"index":0,"delta":{"content":"`+piece+`"}}]}`)
			}
			event(w, "", `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
			event(w, "", "[DONE]")
		case r.URL.Path == "/v1/chat/completions":
			_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}]}`, text)
		case r.URL.Path == "/v1/completions" && streams:
			event(w, "", `{"choices":[{"index":0,"text":"`+text+`","finish_reason":"length"}]}`)
			event(w, "", "[DONE]")
		case r.URL.Path == "/v1/completions":
			_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"text":"%s","finish_reason":"length"}]}`, text)
		case r.URL.Path == "/v1/responses" && streams:
			event(w, "response.output_text.delta", `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"`+text+`"}`)
			event(w, "response.completed", `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"`+text+`"}]}]}}`)
		case r.URL.Path == "/v1/responses":
			_, _ = fmt.Fprintf(w, `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"%s"}]}]}`, text)
		case r.URL.Path == "/v1/messages" && streams:
			event(w, "message_start", `{"type":"message_start","message":{"type":"message","content":[]}}`)
			event(w, "content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
			event(w, "content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`)
			event(w, "message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)
			event(w, "message_stop", `{"type":"message_stop"}`)
		case r.URL.Path == "/v1/messages":
			_, _ = fmt.Fprintf(w, `{"type":"message","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn"}`, text)
		default:
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"embedding":[0.25]}],"model":"scripted"}`)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// TestTracesOfContent has prompts and answers of each route, in streams and whole, over both protocols.
func TestTracesOfContent(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	w := answersByPath(t)
	for _, protocol := range []string{"http", "grpc"} {
		to := map[string]string{"http": c.http, "grpc": c.grpc}[protocol]
		k := serveIn(t, sentSoon, fmt.Sprintf(`
workers: [{name: w, url: %q}]
models: [{name: scripted, tokenizer: none}]
routing: {policy: round_robin}
server: {retry: {attempts: 0}, max_body: 32MiB}
classify: {pii: {action: redact, restore: true}, timeout: 1m}
cache: {store: off}
tracing: {endpoint: "http://%s", protocol: %s, content: true}
`, w.URL, to, protocol), "scripted")
		// ask sends a request, and wants this prompt and this answer in its trace.
		ask := func(name, path, body, system, input, output string) {
			t.Run(protocol+" "+name, func(t *testing.T) {
				id := strings.ReplaceAll(protocol+"-"+name, " ", "-")
				got := post(t, k.url+path, body, "X-Request-Id: "+id)
				r := c.trace(t, id).root
				if got := line(r.messages(t, "gen_ai.input.messages")); got != input {
					t.Errorf("asked %s, want %s", tail(got, 300), tail(input, 300))
				}
				if got := line(r.messages(t, "gen_ai.output.messages")); got != output {
					t.Errorf("answered %s, want %s", got, output)
				}
				if r.is("gen_ai.system_instructions") != system {
					t.Errorf("instructed %s, want %s", r.is("gen_ai.system_instructions"), system)
				}
				if strings.Contains(body, "ann@") && !strings.Contains(string(got.body), "ann@example.org") {
					t.Errorf("the client got %s", got.body)
				}
			})
		}
		for _, streamed := range []string{"", `,"stream":true`} {
			ask("chat"+streamed, "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"How are you?"}]`+streamed+`}`,
				"", "system: Be brief.; user: How are you?", "assistant: Fine. /stop")
			ask("redacted"+streamed, "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"Write to ann@example.org!"}]`+streamed+`}`,
				"", "user: Write to [EMAIL_ADDRESS]!", "assistant: I write to [EMAIL_ADDRESS]. /stop")
			ask("completions"+streamed, "/v1/completions", `{"model":"scripted","prompt":"Once"`+streamed+`}`, "", "user: Once", "assistant: Fine. /length")
			ask("responses"+streamed, "/v1/responses", `{"model":"scripted","instructions":"Be brief.","input":"How are you?"`+streamed+`}`,
				`[{"type":"text","content":"Be brief."}]`, "user: How are you?", "assistant: Fine. /stop")
			ask("messages"+streamed, "/v1/messages", `{"model":"scripted","max_tokens":9,"system":"Be brief.","messages":[{"role":"user","content":"How are you?"}]`+streamed+`}`,
				`[{"type":"text","content":"Be brief."}]`, "user: How are you?", "assistant: Fine. /stop")
			ask("mangled"+streamed, "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"mangled"}]`+streamed+`}`,
				"", "user: mangled", "assistant: a\uFFFD\uFFFDb /stop")
		}
		const tools = `"stream":true,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`
		ask("a call", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"Weather?"}],`+tools+`}`,
			"", "user: Weather?", "assistant: c1=weather(map[unit:celsius]) /tool_call")
		ask("its result", "/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"unit\":\"celsius\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"Rain."}],`+tools+`}`,
			"", "user: Weather?; assistant: c1=weather(map[unit:celsius]); tool: c1->Rain.", "assistant: Fine. /stop")
		ask("cut off", "/v1/chat/completions", `{"model":"scripted","stream":true,"messages":[{"role":"user","content":"Please cut me off."}]}`,
			"", "user: Please cut me off.", "assistant: Once /interrupted")
		ask("vectors", "/v1/embeddings", `{"model":"scripted","input":"How are you?"}`, "", "", "")

		t.Run(protocol+" five megabytes", func(t *testing.T) {
			id := protocol + "-large"
			long := strings.Repeat("Много слов. ", 5<<20/len("Много слов. "))
			got := post(t, k.url+"/v1/chat/completions", `{"model":"scripted","messages":[{"role":"user","content":"`+long+`"},{"role":"user","content":"How are you?"}]}`, "X-Request-Id: "+id)
			r := c.trace(t, id).root
			all := r.messages(t, "gen_ai.input.messages")
			if got.status != http.StatusOK || len(all) != 2 || all[1].Parts[0].Content != "How are you?" {
				t.Fatalf("status %d, %d messages", got.status, len(all))
			}
			if text := all[0].Parts[0].Content; len(text) > 17<<10 || !strings.Contains(text, "[cut by Kvasir: ") {
				t.Errorf("%d bytes: %s", len(text), tail(text, 100))
			}
		})
		k.stop(t)
		if log := k.output.String(); strings.Contains(log, "traces do not reach") || strings.Contains(log, "How are you?") || strings.Contains(log, "panic") {
			t.Errorf("the log has %s", tail(log, 2000))
		}
	}
	if text := c.text(t); strings.Contains(text, "ann@example.org") || !strings.Contains(text, "[EMAIL_ADDRESS]") {
		t.Error("a redacted address is in the traces")
	}
	if slices.ContainsFunc(c.spans(), func(s span) bool { return s.is("kvasir.content.left_out") != "" }) {
		t.Error("content was left out")
	}
}

// TestTracesOfMuchContent: a batch with more content than a collector takes in one message over gRPC
// arrives.
func TestTracesOfMuchContent(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	k := serveIn(t, []string{"OTEL_BSP_SCHEDULE_DELAY=60000", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=2048"}, fmt.Sprintf(`
workers: [{name: w, url: %q}]
models: [{name: scripted, tokenizer: none}]
routing: {policy: round_robin}
classify: {pii: {action: off}, jailbreak: {action: off}}
cache: {store: off}
tracing: {endpoint: "http://%s", protocol: grpc, content: true}
`, answersByPath(t).URL, c.grpc), "scripted")
	wide := strings.Repeat(fmt.Sprintf(`{"role":"user","content":"%s"},`, strings.Repeat("word ", 3000)), 4)
	for n := 0; len(c.spans()) == 0; n++ { // until the batch is full
		post(t, k.url+"/v1/chat/completions", `{"model":"scripted","messages":[`+wide+`{"role":"user","content":"How are you?"}]}`, fmt.Sprint("X-Request-Id: many-", n))
	}
	eventually(t, patience, "the batch has come", func() bool { return len(c.spans()) >= 2048 })
	for n := range 100 {
		if r := c.trace(t, fmt.Sprint("many-", n)).root; len(r.messages(t, "gen_ai.input.messages")) < 4 || len(r.messages(t, "gen_ai.output.messages")) != 1 {
			t.Fatalf("number %d has %v", n, r.is("kvasir.content.left_out"))
		}
	}
	if messages := len(c.AllTraces()); messages < 3 || strings.Contains(k.output.String(), "traces do not reach") {
		t.Errorf("it came in %d messages; the log has %s", messages, tail(k.output.String(), 300))
	}
}
