// Guards in front of a worker: whatever fails, nothing passes unjudged.

package proxy

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"kvasir/classify"

	"kvasir/openai/answer/answertest"
)

// guarded is a configuration with both guards on.
func guarded(action classify.Action, urls ...string) *Settings {
	s := settingsFor(urls...)
	s.VSRHeaders = true
	s.Guards = Guards{JailbreakStatus: 200, PIIStatus: 200}
	s.Classify.Timeout = 5 * time.Second
	s.Classify.Jailbreak = classify.GuardOptions{Action: classify.Block, Threshold: 0.7}
	s.Classify.PII = classify.PIIOptions{
		GuardOptions: classify.GuardOptions{Action: action, Threshold: 0.7},
		Allow:        []string{"PERSON", "GPE", "DATE_TIME", "ORGANIZATION"},
	}
	return s
}

// No fault of a guard lets a request through, and each is counted.
func TestFaultsOfGuardsRefuse(t *testing.T) {
	const timeout = 500 * time.Millisecond // which the other guard needs a little of
	for _, guard := range []classify.Kind{classify.KindJailbreak, classify.KindPII} {
		for name, fault := range map[string]func(){
			"panic":   func() { panic("broken") },
			"timeout": func() { time.Sleep(timeout + timeout/10) }, // it is the fault
		} {
			for _, allow := range []bool{false, true} {
				t.Run(string(guard)+" "+name+map[bool]string{true: " allowed"}[allow], func(t *testing.T) {
					w := goodWorker(t)
					s := guarded(classify.Block, w.url)
					s.Classify.Timeout = timeout
					s.Classify.Jailbreak.AllowOnError = allow
					s.Classify.PII.AllowOnError = allow
					s.Classify.Fault = func(k classify.Kind) {
						if k == guard {
							fault()
						}
					}
					p := startProxy(t, s)
					a := p.ask(t, "/v1/chat/completions", plainChat)
					passed := len(w.seen()) == 1
					if passed != allow {
						t.Errorf("the worker saw %d requests", len(w.seen()))
					}
					result := `result="refused"`
					if allow {
						result = `result="allowed"`
					}
					if got := p.metric(t, `kvasir_unjudged_total{guard="`+string(guard)+`",`+result+`}`); got != "1" {
						t.Errorf("counted %q", got)
					}
					if allow {
						return
					}
					if a.StatusCode != 503 || !strings.Contains(a.body, `"code":"guard_failed"`) || !strings.Contains(a.body, string(guard)) {
						t.Errorf("%d %s", a.StatusCode, a.body)
					}
					if strings.Contains(a.body, "goroutine") {
						t.Errorf("the client is shown a stack: %s", a.body)
					}
				})
			}
		}
	}
}

// Parts that nobody can read stop at a mandatory guard; images do not.
func TestUnreadPartsStopAtGuards(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, guarded(classify.Block, w.url))
	for body, status := range map[string]int{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"AA=="}}]}]}`:                 400,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"hologram","data":"AA=="}]}]}`:                           400,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;,"}}]}]}`: 200,
	} {
		a := p.ask(t, "/v1/chat/completions", body)
		if a.StatusCode != status || status == 400 && !strings.Contains(a.body, `"code":"unjudged_content"`) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if a := p.ask(t, "/v1/completions", `{"model":"m","prompt":[1,2,3]}`); a.StatusCode != 400 {
		t.Errorf("token ids: %d %s", a.StatusCode, a.body)
	}
}

// A card number is blocked on every route, in the shape of the route, and the
// worker never hears of it; the answer names the type and not the number.
func TestCardNumberIsBlockedEverywhere(t *testing.T) {
	const card = "4111 1111 1111 1111"
	w := goodWorker(t)
	p := startProxy(t, guarded(classify.Block, w.url))
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":"my card is ` + card + `, ok?"}]STREAM}`,
		"/v1/completions":      `{"model":"m","prompt":["hello","my card is ` + card + `"]STREAM}`,
		"/v1/responses":        `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"my card is ` + card + `"}]}]STREAM}`,
		"/v1/messages":         `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"my card is ` + card + `"}]STREAM}`,
		"/v1/embeddings":       `{"model":"m","input":"my card is ` + card + `"}`,
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			a := p.ask(t, path, strings.Replace(body, "STREAM", stream, 1))
			want := 200
			if path == "/v1/embeddings" {
				want = 400
			}
			if a.StatusCode != want || !strings.Contains(a.body, "CREDIT_CARD") || strings.Contains(a.body, card[5:]) || a.err != nil {
				t.Errorf("%s%s: %d %s %v", path, stream, a.StatusCode, a.body, a.err)
			}
			for name, value := range map[string]string{
				"x-vsr-pii-violation": "true", "x-vsr-pii-types": "CREDIT_CARD", "x-vsr-response-path": "blocked", "x-vsr-schema-version": "2",
			} {
				if got := a.Header.Get(name); got != value {
					t.Errorf("%s%s: %s is %q", path, stream, name, got)
				}
			}
		}
	}
	if seen := w.seen(); len(seen) != 0 {
		t.Errorf("the worker saw %q", seen)
	}
	if strings.Contains(p.log.String(), card[5:]) {
		t.Error("the card number is in the log")
	}
	if got := p.metric(t, `kvasir_blocked_total{guard="pii",type="CREDIT_CARD"}`); got != "9" && got != "10" {
		t.Errorf("%s blocks are counted", got)
	}
}

// Redacted values do not reach the worker, the rest of the body does to the
// byte, and with restore the client gets them back.
func TestRedactAndRestore(t *testing.T) {
	const body = `{ "model":"m", "messages":[{"role":"user","content":"write to ann@example.org \u0026 bob@example.com,\n again ann@example.org"}] }`
	const veiled = `{ "model":"m", "messages":[{"role":"user","content":"write to [EMAIL_ADDRESS] \u0026 [EMAIL_ADDRESS_2],\n again [EMAIL_ADDRESS]"}] }`
	for _, restore := range []bool{false, true} {
		w := startWorker(t, func(c net.Conn, request string) bool {
			if strings.Contains(request, `"stream":true`) {
				_, _ = c.Write([]byte(streamHead + chunk(roleEvent+delta("to [EMAIL_")) + chunk(delta("ADDRESS_2] and [EMAIL_ADDRESS]!")+finishEvent+doneEvent) + "0\r\n\r\n"))
				return true
			}
			_, _ = c.Write([]byte(httpReply(200, "application/json", strings.Replace(chatReply, "hello", "to [EMAIL_ADDRESS_2] and [EMAIL_ADDRESS]!", 1))))
			return true
		})
		s := guarded(classify.Redact, w.url)
		s.Guards.Restore = restore
		p := startProxy(t, s)
		want := "to [EMAIL_ADDRESS_2] and [EMAIL_ADDRESS]!"
		if restore {
			want = "to bob@example.com and ann@example.org!"
		}
		a := p.ask(t, "/v1/chat/completions", body)
		var reply any
		if err := json.Unmarshal([]byte(a.body), &reply); err != nil || answertest.At(reply, "choices 0 message content") != want {
			t.Errorf("restore %v: %s %v", restore, a.body, err)
		}
		a = p.ask(t, "/v1/chat/completions", strings.Replace(body, `{ "model"`, `{"stream":true, "model"`, 1))
		if got := answertest.TextAt(t, a.body, "choices 0 delta content"); got != want {
			t.Errorf("restore %v: streamed %q", restore, got)
		}
		if got := a.Header.Get("x-kvasir-redacted"); got != "EMAIL_ADDRESS=3" {
			t.Errorf("x-kvasir-redacted is %q", got)
		}
		if seen := w.seen(); len(seen) != 2 || seen[0] != veiled {
			t.Errorf("the worker saw %q", seen)
		}
	}
}

// TestBlockedPrograms: a program that wants tools called, or an answer of a certain form, is told of a
// block by an error; one that reads text by an answer. The configuration may want either for all.
func TestBlockedPrograms(t *testing.T) {
	w := goodWorker(t)
	const card = "my card is 4111 1111 1111 1111"
	for _, row := range []struct {
		path, more string
		auto       int
	}{
		{"/v1/chat/completions", ``, 200},
		{"/v1/chat/completions", `,"stream":true`, 200},
		{"/v1/chat/completions", `,"response_format":{"type":"text"}`, 200},
		{"/v1/chat/completions", `,"tools":[]`, 200},
		{"/v1/chat/completions", `,"tools":[{"type":"function","function":{"name":"f"}}]`, 400},
		{"/v1/chat/completions", `,"stream":true,"tools":[{"type":"function","function":{"name":"f"}}]`, 400},
		{"/v1/chat/completions", `,"response_format":{"type":"json_object"}`, 400},
		{"/v1/chat/completions", `,"response_format": { "type" : "json_schema", "json_schema":{"name":"x","schema":{}}}`, 400},
		{"/v1/chat/completions", `,"guided_json":{"type":"object"}`, 400},
		{"/v1/responses", `,"text":{"format":{"type":"text"},"verbosity":"low"}`, 200},
		{"/v1/responses", `,"text":{"format":{"type":"json_schema","name":"x","schema":{}}}`, 400},
		{"/v1/messages", `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`, 400},
		{"/v1/messages", `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, 400},
		{"/v1/messages", `,"output_config":{"effort":"low"}`, 200},
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"` + card + `"}]` + row.more + `}`
		if row.path == "/v1/responses" {
			body = `{"model":"m","input":"` + card + `"` + row.more + `}`
		} else if row.path == "/v1/messages" {
			body = `{"max_tokens":9,` + body[1:]
		}
		for set, want := range map[int]int{0: row.auto, 200: 200, 403: 403} {
			s := guarded(classify.Block, w.url)
			s.Guards = Guards{PIIStatus: set}
			p := startProxy(t, s)
			if a := p.ask(t, row.path, body); a.StatusCode != want || !strings.Contains(a.body, "CREDIT_CARD") || (want != 200 && row.path != "/v1/messages") != strings.Contains(a.body, `"code":"content_filter"`) && row.path != "/v1/messages" {
				t.Errorf("status %d, %s%s: %d %s", set, row.path, row.more, a.StatusCode, a.body)
			}
		}
	}
	if seen := w.seen(); len(seen) != 0 {
		t.Errorf("the worker saw %q", seen)
	}
}

// TestNamesOfOthers: what users of Semantic Router look for in headers and the log, and the Date that
// every reply has, whoever answers.
func TestNamesOfOthers(t *testing.T) {
	undated := startWorker(t, send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"))
	s := guarded(classify.Block, undated.url)
	s.BIOTypes = true
	p := startProxy(t, s)
	a := p.ask(t, "/v1/chat/completions", `{"model":"auto","messages":[{"role":"user","content":"card 4111 1111 1111 1111, SSN 536-90-4399"}]}`)
	if got := a.Header.Get("x-vsr-pii-types"); got != "B-CREDIT_CARD,B-US_SSN" || a.Header.Get("Date") == "" {
		t.Errorf("types %q, date %q", got, a.Header.Get("Date"))
	}
	if a = p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 || len(a.Header["Date"]) != 1 {
		t.Errorf("%d, dates %q", a.StatusCode, a.Header["Date"])
	}
	for _, want := range []string{
		`"original_model":"auto","selected_model":"m","reason_code":"security_block","reasoning_enabled":false,"routing_latency_ms":`,
		`"original_model":"m","selected_model":"m","reason_code":"model_specified",`,
	} {
		waitUntil(t, "the log has "+want, func() bool { return strings.Contains(p.log.String(), want) })
	}
}
