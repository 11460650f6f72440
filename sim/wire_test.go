// Whole replies, compared with the bytes that vLLM 0.32 sent for the same requests.

package sim

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWire sends every recorded request and compares the reply with vLLM's: errors byte for byte,
// other replies by their form, which is everything except ids, times, texts and counts.
func TestWire(t *testing.T) {
	requests, err := filepath.Glob("testdata/vllm/*.request")
	if err != nil || len(requests) < 40 {
		t.Fatalf("%d recorded requests: %v", len(requests), err)
	}
	address := start(t, Options{Name: "w", Model: "tiny-qwen", BlockSize: 32, MaxModelLen: 8192, Speedup: 1000})
	for _, path := range requests {
		name := strings.TrimSuffix(filepath.Base(path), ".request")
		t.Run(name, func(t *testing.T) {
			got := parseReply(t, exchange(t, address, readFile(t, path)))
			want := parseReply(t, readFile(t, strings.TrimSuffix(path, ".request")+".response"))
			compareReplies(t, name, got, want)
		})
	}
}

func TestContextTooLong(t *testing.T) {
	address := start(t, Options{Model: "tiny-qwen", MaxModelLen: 8192})
	want := parseReply(t, readFile(t, "testdata/vllm/err_context_too_long.response"))
	for _, stream := range []string{"", `,"stream":true`} {
		got := parseReply(t, post(t, address, "/v1/chat/completions", `{"model":"tiny-qwen","messages":[{"role":"user","content":"`+
			strings.Repeat("word ", 9000)+`"}]`+stream+`}`))
		compareReplies(t, "err_context_too_long", got, want)
	}
}

func TestErrorInMidStream(t *testing.T) {
	address := start(t, Options{Model: "tiny-qwen", Speedup: 1000, Faults: true})
	got := parseReply(t, post(t, address, "/v1/chat/completions", hello(`"stream":true`), "x-sim-fault: role-then-error"))
	want := parseReply(t, readFile(t, "testdata/vllm/stream_kv_load_failure.response"))
	want.events[1] = strings.Replace(want.events[1], "Internal server error", "Simulated fault: status 500", 1)
	compareReplies(t, "", got, want)
}

// reply is one parsed HTTP reply.
type reply struct {
	status  string
	headers map[string]string // lower-case names
	body    string
	events  []string // chunks of the body
	ended   bool     // a chunked body has its last chunk
}

func parseReply(t *testing.T, raw []byte) (r reply) {
	t.Helper()
	head, body, ok := strings.Cut(string(raw), "\r\n\r\n")
	if !ok {
		t.Fatalf("no reply head in %q", raw)
	}
	lines := strings.Split(head, "\r\n")
	_, r.status, _ = strings.Cut(lines[0], " ")
	r.headers = map[string]string{}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		r.headers[strings.ToLower(name)] = value
	}
	r.body = body
	if r.headers["transfer-encoding"] != "chunked" {
		return r
	}
	for body != "" {
		size, rest, _ := strings.Cut(body, "\r\n")
		n := 0
		for _, c := range size {
			n = n<<4 + strings.IndexRune("0123456789abcdef", c)
		}
		if n == 0 {
			r.ended = true
			break
		}
		if len(rest) < n+2 {
			break
		}
		r.events = append(r.events, rest[:n])
		body = rest[n+2:]
	}
	decoded, _ := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(r.body)))
	r.body = string(decoded)
	return r
}

func compareReplies(t *testing.T, name string, got, want reply) {
	t.Helper()
	if got.status != want.status {
		t.Errorf("status %q, vLLM %q", got.status, want.status)
	}
	for _, header := range []string{"content-type", "transfer-encoding", "connection", "vary", "allow"} {
		if got.headers[header] != want.headers[header] {
			t.Errorf("header %s %q, vLLM %q", header, got.headers[header], want.headers[header])
		}
	}
	if !strings.HasPrefix(got.status, "200") {
		if got.body != want.body {
			t.Errorf("body\n got %s\nvLLM %s", got.body, want.body)
		}
		return
	}
	if want.events == nil {
		if g, w := form(got.body), form(want.body); g != w {
			t.Errorf("body\n got %s\nvLLM %s", g, w)
		}
		return
	}
	if !got.ended {
		t.Error("the stream has no end")
	}
	g, w := forms(got.events), forms(want.events)
	if strings.HasSuffix(name, "_n2") { // the engine decides the order of the choices' events
		slices.Sort(g)
		slices.Sort(w)
		g, w = slices.Compact(g), slices.Compact(w)
	}
	if !slices.Equal(g, w) {
		t.Errorf("events\n got %s\nvLLM %s", strings.Join(g, ""), strings.Join(w, ""))
	}
}

// variable lists the parts of a reply that may differ from vLLM's.
var variable = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`"id":"(chatcmpl-tool|chatcmpl-req-test|chatcmpl-body-rid|chatcmpl|cmpl|modelperm)-[^"]*"`), `"id":"$1-ID"`},
	{regexp.MustCompile(`"(id|item_id)":"(resp|msg)_[^"]*"`), `"$1":"$2_ID"`},
	{regexp.MustCompile(`"(created_at|input_tokens|output_tokens|cache_write_tokens|original_input_tokens)":\d+`), `"$1":N`},
	{regexp.MustCompile(`"delta":"(?:[^"\\]|\\.)+"`), `"delta":"TEXT"`},
	{regexp.MustCompile(`"sequence_number":\d+`), `"sequence_number":N`},
	{regexp.MustCompile(`"remote_request_id":"(chatcmpl|cmpl)-([^"]*-|)[0-9a-f]{8}"`), `"remote_request_id":"$1-ID"`},
	{regexp.MustCompile(`"remote_engine_id":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`), `"remote_engine_id":"UUID"`},
	{regexp.MustCompile(`"remote_block_ids":\[\[\d+(,\d+)*\]\]`), `"remote_block_ids":[[...]]`},
	{regexp.MustCompile(`"(created|remote_port|remote_num_tokens|remote_prefill_cached_tokens|prompt_tokens|total_tokens|completion_tokens|cached_tokens|created_cache_tokens|count)":\d+`), `"$1":N`},
	{regexp.MustCompile(`"id":"[0-9a-f]{32}"`), `"id":"ID"`},
	{regexp.MustCompile(`"weight_version":"[^"]+","weight_versions":\[\{"version":"[^"]+","start":0,"end":\d+\}\]`), `"weight_version":"W"`},
	{regexp.MustCompile(`"max_model_len":131072`), `"max_model_len":4096`}, // the tokenizer's own limit
	{regexp.MustCompile(`"(content|text|arguments|prompt|version|root)":"(?:[^"\\]|\\.)+"`), `"$1":"TEXT"`},
	{regexp.MustCompile(`"system_fingerprint":"[^"]+"`), `"system_fingerprint":"F"`},
	{regexp.MustCompile(`"(tokens|token_strs)":\[[^\]]+\]`), `"$1":[...]`},
}

func form(body string) string {
	for _, v := range variable {
		body = v.pattern.ReplaceAllString(body, v.by)
	}
	return body
}

// forms returns the forms of events; a run of equal forms counts once.
func forms(events []string) (out []string) {
	for _, e := range events {
		out = append(out, form(e))
	}
	return slices.Compact(out)
}

// exchange sends raw bytes and returns everything that comes back until the server closes.
func exchange(t *testing.T, address string, request []byte) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil && len(raw) == 0 {
		t.Fatal(err)
	}
	return raw
}

// post sends a JSON request with Connection: close and returns the raw reply.
func post(t *testing.T, address, path, body string, headers ...string) []byte {
	t.Helper()
	return exchange(t, address, rawPost(path, body, append(headers, "Connection: close")...))
}

func rawPost(path, body string, headers ...string) []byte {
	var b bytes.Buffer
	b.WriteString("POST " + path + " HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: " +
		itoa(len(body)) + "\r\n")
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
