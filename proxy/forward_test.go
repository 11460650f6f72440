// The way there and back, with workers that do what real ones were seen to do.

package proxy

import (
	"io"
	"net"
	"strings"
	"testing"
)

func send(s ...string) func(net.Conn, string) bool {
	return func(c net.Conn, _ string) bool {
		_, err := io.WriteString(c, strings.Join(s, ""))
		return err == nil
	}
}

func TestPlainAnswer(t *testing.T) {
	w := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, settingsFor(w.url))
	a := p.ask(t, "/v1/chat/completions", plainChat)
	if a.StatusCode != 200 || a.body != chatReply || a.err != nil {
		t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
	}
	if got := w.seen(); len(got) != 1 || got[0] != plainChat {
		t.Fatalf("the worker got %q", got)
	}
	if got := a.Header.Get("x-kvasir-worker"); got != "w0" {
		t.Errorf("x-kvasir-worker is %q", got)
	}
}

func TestStreamIsPassedOnByteForByte(t *testing.T) {
	w := startWorker(t, send(streamHead, chunk(roleEvent), chunk(delta("a")), chunk(delta("b")), chunk(finishEvent), chunk(usageEvent), chunk(doneEvent), "0\r\n\r\n"))
	p := startProxy(t, settingsFor(w.url))
	a := p.ask(t, "/v1/chat/completions", streamChat)
	want := roleEvent + delta("a") + delta("b") + finishEvent + doneEvent
	if a.StatusCode != 200 || a.body != want || a.err != nil {
		t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
	}
	if got := w.seen()[0]; !strings.Contains(got, `"stream_options":{"include_usage":true}`) {
		t.Errorf("usage was not asked for: %s", got)
	}
}

// die closes the connection without a byte of reply.
func die(net.Conn, string) bool { return false }

// sendAndClose says something and closes the connection.
func sendAndClose(s ...string) func(net.Conn, string) bool {
	return func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, strings.Join(s, ""))
		return false
	}
}

const closeHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

// What a first worker does, and whether a second one may make it good.
var retryCases = []struct {
	name   string
	first  func(net.Conn, string) bool
	stream bool
	retry  bool
	status int    // without retry
	has    string // in the body, without retry
}{
	{"dies before the head", die, false, true, 0, ""},
	{"dies in the head", sendAndClose("HTTP/1.1 200 OK\r\nContent-"), false, true, 0, ""},
	{"speaks no HTTP", sendAndClose("SSH-2.0-OpenSSH\r\n"), false, true, 0, ""},
	{"sends an endless head", sendAndClose("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 70<<10)), false, true, 0, ""},
	{"is overloaded", send(httpReply(503, "application/json", `{"error":{"message":"full"}}`)), false, true, 0, ""},
	{"is a bad gateway", send(httpReply(502, "text/html", "<html>")), false, true, 0, ""},
	{"times out behind a gateway", send(httpReply(504, "text/html", "")), false, true, 0, ""},
	{"limits", send(httpReply(429, "application/json", `{"error":{"message":"slow"}}`)), false, true, 0, ""},
	{"cuts a plain body", sendAndClose("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"), false, true, 0, ""},
	{"fails inside", send(httpReply(500, "application/json", `{"error":{"message":"bug","type":"x"}}`)), false, false, 500, `"bug"`},
	{"refuses", send(httpReply(400, "application/json", `{"error":{"message":"no","type":"x"}}`)), false, false, 400, `"no"`},
	{"does not know the model", send(httpReply(404, "application/json", `{"error":{"message":"nope"}}`)), false, false, 404, `"nope"`},
	{"sends an error event first", send(streamHead, chunk(`data: {"error":{"message":"full","code":503}}`+"\n\n"), chunk(doneEvent), "0\r\n\r\n"), true, true, 0, ""},
	{"sends an error after the role", send(streamHead, chunk(roleEvent), chunk(`data: {"error":{"message":"kv","code":500}}`+"\n\n"), chunk(doneEvent), "0\r\n\r\n"), true, true, 0, ""},
	{"dies after the role", sendAndClose(streamHead, chunk(roleEvent)), true, true, 0, ""},
	{"dies after a comment", sendAndClose(streamHead, chunk(": keep-alive\n\n")), true, true, 0, ""},
	{"ends before any event", send(streamHead, "0\r\n\r\n"), true, true, 0, ""},
	{"dies after content", sendAndClose(streamHead, chunk(roleEvent), chunk(delta("a"))), true, false, 200, `"code":"stream_interrupted"`},
}

func TestRetryRule(t *testing.T) {
	for _, tc := range retryCases {
		t.Run(tc.name, func(t *testing.T) {
			first := startWorker(t, tc.first)
			body, good := plainChat, httpReply(200, "application/json", chatReply)
			want := chatReply
			if tc.stream {
				body, good = streamChat, streamHead+chunk(roleEvent)+chunk(delta("b"))+chunk(finishEvent)+chunk(doneEvent)+"0\r\n\r\n"
				want = roleEvent + delta("b") + finishEvent + doneEvent
			}
			second := startWorker(t, send(good))
			p := startProxy(t, settingsFor(first.url, second.url))
			for len(first.seen()) == 0 { // round robin begins anywhere
				a := p.ask(t, "/v1/chat/completions", body)
				switch {
				case a.Header.Get("x-kvasir-worker") == "w1" && (a.body != want || a.StatusCode != 200 || a.err != nil):
					t.Errorf("got %d %q %v", a.StatusCode, a.body, a.err)
				case a.Header.Get("x-kvasir-worker") != "w1" && tc.retry:
					t.Errorf("not retried: %d %q", a.StatusCode, a.body)
				case a.Header.Get("x-kvasir-worker") == "w0" && (a.StatusCode != tc.status || !strings.Contains(a.body, tc.has)):
					t.Errorf("got %d %q", a.StatusCode, a.body)
				}
			}
			if len(first.seen()) != 1 {
				t.Errorf("the first worker was asked %d times", len(first.seen()))
			}
		})
	}
}

func TestEveryCutIsToldFromAnEnd(t *testing.T) {
	events := roleEvent + delta("a") + delta("b")
	tail := finishEvent + doneEvent
	for _, tc := range []struct {
		name  string
		reply func(net.Conn, string) bool
		path  string
		whole bool
		body  string // what must have come before the error
	}{
		{"chunked", sendAndClose(streamHead, chunk(events), chunk(tail), "0\r\n\r\n"), "", true, events + tail},
		{"chunked with trailers", sendAndClose(streamHead, chunk(events+tail), "0\r\nX-A: b\r\n\r\n"), "", true, events + tail},
		{"one chunk an event, split lines", sendAndClose(streamHead, chunk(events[:20]), chunk(events[20:]), chunk(tail), "0\r\n\r\n"), "", true, events + tail},
		{"end by close", sendAndClose(closeHead, events, tail), "", true, events + tail},
		{"finish without [DONE], end by close", sendAndClose(closeHead, events, finishEvent), "", true, events + finishEvent},
		{"without the last blank line", sendAndClose(closeHead, events, finishEvent, "data: [DONE]\n"), "", true, events + finishEvent + "data: [DONE]\n"},
		{"chunked without its end", sendAndClose(streamHead, chunk(events)), "", false, events},
		{"mid-chunk", sendAndClose(streamHead, chunk(events), "ff\r\ndata: {"), "", false, events},
		{"mid-event", sendAndClose(streamHead, chunk(events+"data: {\"id")), "", false, events},
		{"chunk without its CRLF", sendAndClose(streamHead, chunk(events), "3\r\nabcX"), "", false, events},
		{"short length", sendAndClose("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n", events), "", false, events},
		{"clean framing, no end mark", sendAndClose(streamHead, chunk(events), "0\r\n\r\n"), "", false, events},
		{"finish, then cut", sendAndClose(streamHead, chunk(events+finishEvent)), "", false, events + finishEvent},
		{"close without an end mark", sendAndClose(closeHead, events), "", false, events},
		{"responses completed", sendAndClose(streamHead, chunk("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\"}\n\n"), "0\r\n\r\n"), "/v1/responses", true, "event: response.output_text.delta"},
		{"responses cut", sendAndClose(streamHead, chunk("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"), "0\r\n\r\n"), "/v1/responses", false, "event: response.output_text.delta"},
		{"messages stopped", sendAndClose(streamHead, chunk("event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "0\r\n\r\n"), "/v1/messages", true, "event: content_block_delta"},
		{"messages cut", sendAndClose(streamHead, chunk("event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n"), "0\r\n\r\n"), "/v1/messages", false, "event: content_block_delta"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := startWorker(t, tc.reply)
			p := startProxy(t, settingsFor(w.url))
			path, body := "/v1/chat/completions", streamChat
			switch tc.path {
			case "/v1/responses":
				path, body = tc.path, `{"model":"m","stream":true,"input":"hi"}`
			case "/v1/messages":
				path = tc.path
			}
			a := p.ask(t, path, body)
			if !strings.HasPrefix(a.body, tc.body) {
				t.Errorf("body is %q", a.body)
			}
			switch told := strings.Contains(a.body, `"code":"stream_interrupted"`); {
			case tc.whole && (a.err != nil || told || tc.path == "" && a.body != tc.body):
				t.Errorf("a whole stream was broken: %v %q", a.err, a.body)
			case !tc.whole && (a.err == nil || !told):
				t.Errorf("a cut stream looks whole: %v %q", a.err, a.body)
			}
			if strings.Count(a.body, "[DONE]") != strings.Count(tc.body, "[DONE]") {
				t.Errorf("[DONE] was invented: %q", a.body)
			}
		})
	}
}

// An answer in one piece that the worker breaks off counts nothing. (It was booked with no tokens at all, none of them
// cached, which the worker's agreement with placement and kvasir replay took at its word.)
func TestCutBodyCountsNothing(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 300000\r\n\r\n"+
			`{"choices":[{"message":{"content":"`+strings.Repeat("a", 200000))
		return false
	})
	p := startProxy(t, settingsFor(w.url))
	c := p.dial(t)
	_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
	_, _ = io.ReadAll(c)
	waitUntil(t, "it is booked", func() bool { return strings.Contains(p.log.String(), `"end":"interrupted"`) })
	if log := p.log.String(); strings.Contains(log, "prompt_tokens") {
		t.Error(log)
	}
}
