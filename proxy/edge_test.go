// The edge: what is refused before a worker hears of it, and how.

package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func goodWorker(t testing.TB) *testWorker {
	return startWorker(t, send(httpReply(200, "application/json", chatReply)))
}

// raw sends bytes as they are and returns everything until the proxy closes.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	c := dial(t, addr)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(8 * time.Second)) // less than settingsFor's clock of heads
	_, _ = io.WriteString(c, request)
	b, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("not closed: %v after %q", err, b)
	}
	return string(b)
}

const chatHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

func TestStrictness(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	body := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(plainChat), plainChat)
	smuggled := "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tc := range []struct{ name, request, status string }{
		{"both lengths", chatHead + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "400"},
		{"two lengths", chatHead + "Content-Length: 3\r\n" + body, "400"},
		{"length with a sign", chatHead + "Content-Length: +5\r\n\r\n12345", "400"},
		{"encoding unknown", chatHead + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"},
		{"encoding in 1.0", strings.Replace(chatHead, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
		{"folded line", chatHead + "X-A: b\r\n c\r\n" + body, "400"},
		{"space before the colon", chatHead + "X-A : b\r\n" + body, "400"},
		{"space in a name", chatHead + "X A: b\r\n" + body, "400"},
		{"no name", chatHead + ": b\r\n" + body, "400"},
		{"bad name", chatHead + "X(A): b\r\n" + body, "400"},
		{"NUL in a value", chatHead + "X-A: a\x00b\r\n" + body, "400"},
		{"CR in a value", chatHead + "X-A: a\rb\r\n" + body, "400"},
		{"bare LF", "GET /health HTTP/1.1\nHost: x\n\n", "400"},
		{"no host", "GET /health HTTP/1.1\r\n\r\n", "400"},
		{"two hosts", "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
		{"version 1.2", "GET /health HTTP/1.2\r\nHost: x\r\n\r\n", "505"},
		{"version 2.0", "GET /health HTTP/2.0\r\nHost: x\r\n\r\n", "505"},
		{"no version", "GET /health\r\nHost: x\r\n\r\n", "400"},
		{"odd version", "GET /health HTTP/x.y\r\nHost: x\r\n\r\n", ""},
		{"blank in the target", "GET /health?a b HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"CR in the target", "GET /health?a\rX-A:b HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"NUL in the target", "GET /health?a\x00 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"bad method", "G(T /health HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"large head", "GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 33<<10) + "\r\n\r\n", "431"},
		{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
		{"bad chunk size", chatHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := raw(t, p.addr, tc.request+smuggled)
			status, _, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), " ")
			if tc.status != "" && status != tc.status || status < "400" {
				t.Errorf("got %q", got)
			}
			if strings.Count(got, "\r\nDate: ") != 1 {
				t.Errorf("more than one reply: %q", got)
			}
			checkErrorShape(t, got[strings.Index(got, "\r\n\r\n")+4:])
		})
	}
	if n := len(w.seen()); n != 0 {
		t.Errorf("the worker was asked %d times", n)
	}
}

// checkErrorShape wants OpenAI's four members and nothing else.
func checkErrorShape(t *testing.T, body string) {
	t.Helper()
	var shape struct {
		Error *struct {
			Message *string         `json:"message"`
			Type    *string         `json:"type"`
			Param   json.RawMessage `json:"param"`
			Code    json.RawMessage `json:"code"`
		} `json:"error"`
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&shape); err != nil || shape.Error == nil || shape.Error.Message == nil || *shape.Error.Message == "" ||
		shape.Error.Type == nil || shape.Error.Param == nil || shape.Error.Code == nil {
		t.Errorf("not OpenAI's error: %v %q", err, body)
	}
}

func TestServedAllTheSame(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	body := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(plainChat), plainChat)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(plainChat), plainChat)
	for _, tc := range []struct{ name, request string }{
		{"HTTP/1.0 without Host", "POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\n" + body},
		{"absolute form", "POST http://other/v1/chat/completions HTTP/1.1\r\nHost: other\r\nContent-Type: application/json\r\nConnection: close\r\n" + body},
		{"chunked", chatHead + "Connection: close\r\n" + chunked},
		{"query", strings.Replace(chatHead, "completions", "completions?a=b", 1) + "Connection: close\r\n" + body},
		{"large head", chatHead + "Connection: close\r\nX-A: " + strings.Repeat("a", 31<<10) + "\r\n" + body},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := raw(t, p.addr, tc.request); !strings.Contains(got, " 200 OK") || !strings.HasSuffix(got, chatReply) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestExpectContinue(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	c := dial(t, p.addr)
	r := bufio.NewReader(c)
	for range 2 { // also behind an answer on the same connection
		_, _ = fmt.Fprintf(c, chatHead+"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(plainChat))
		if line, _ := r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("got %q", line)
		}
		_, _ = r.ReadString('\n')
		_, _ = io.WriteString(c, plainChat)
		if a := receive(t, r); a.body != chatReply {
			t.Fatalf("got %q", a.body)
		}
	}
}

// Ten requests at once, of both kinds: answers that we write and answers that
// fasthttp writes must come in order, each once.
func TestPipelined(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	c := dial(t, p.addr)
	var all strings.Builder
	for i := range 10 {
		if i%3 == 1 {
			all.WriteString("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		} else {
			all.WriteString(post("/v1/chat/completions", plainChat))
		}
	}
	_, _ = io.WriteString(c, all.String())
	r := bufio.NewReader(c)
	for i := range 10 {
		want := chatReply
		if i%3 == 1 {
			want = `{"status":"ok"}`
		}
		if a := receive(t, r); a.StatusCode != 200 || a.body != want {
			t.Fatalf("answer %d is %d %q", i, a.StatusCode, a.body)
		}
	}
}

func TestTooLargeABody(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.MaxBody = 1000
	p := startProxy(t, s)
	large := strings.Repeat("x", 500<<10)
	for _, tc := range []struct{ name, head, body string }{
		{"announced, nothing sent", "Content-Length: 512000\r\n\r\n", ""},
		{"announced and sent", "Content-Length: 512000\r\n\r\n", large},
		{"chunked", "Transfer-Encoding: chunked\r\n\r\n", chunk(large)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, p.addr)
			_, _ = io.WriteString(c, chatHead+tc.head)
			if _, err := io.WriteString(c, tc.body); err != nil {
				t.Fatalf("cannot send the body: %v", err)
			}
			a := receive(t, bufio.NewReader(c))
			if a.StatusCode != 413 || a.err != nil {
				t.Errorf("got %d %v", a.StatusCode, a.err)
			}
			checkErrorShape(t, a.body)
		})
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("a", 100<<10)+`"}]}`)
	_ = z.Close()
	if a := p.ask(t, "/v1/chat/completions", packed.String(), "Content-Encoding: gzip"); a.StatusCode != 413 {
		t.Errorf("a body that grows gets %d %q", a.StatusCode, a.body)
	}
}

func TestPackedBody(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, plainChat)
	_ = z.Close()
	if a := p.ask(t, "/v1/chat/completions", packed.String(), "Content-Encoding: gzip"); a.StatusCode != 200 || w.seen()[0] != plainChat {
		t.Errorf("got %d %q, the worker %q", a.StatusCode, a.body, w.seen())
	}
	if a := p.ask(t, "/v1/chat/completions", packed.String(), "Content-Encoding: GZip"); a.StatusCode != 200 || w.seen()[1] != plainChat {
		t.Errorf("in capitals: %d %q", a.StatusCode, a.body)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "Content-Encoding: gzip"); a.StatusCode != 400 {
		t.Errorf("no gzip got %d %q", a.StatusCode, a.body)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "Content-Encoding: rot13"); a.StatusCode != 415 {
		t.Errorf("an unknown coding got %d %q", a.StatusCode, a.body)
	}
}

func TestSlowHeadIsClosed(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Timeouts.Header, s.Timeouts.Body = 200*time.Millisecond, 200*time.Millisecond
	p := startProxy(t, s)
	for _, begun := range []string{"", "POST /v1/chat/comp", chatHead + "Content-Length: 10\r\n\r\n{"} {
		got := raw(t, p.addr, begun)
		if got != "" && !strings.HasPrefix(got, "HTTP/1.1 408") {
			t.Errorf("%q got %q", begun, got)
		}
	}
}

func TestRoutesAndModels(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	do := func(method, path string) received {
		c := dial(t, p.addr)
		_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", method, path)
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		return received{resp, string(b), err}
	}
	if a := do("GET", "/v1/nothing"); a.StatusCode != 404 {
		t.Errorf("an unknown route gets %d", a.StatusCode)
	} else {
		checkErrorShape(t, a.body)
	}
	if a := do("GET", "/v1/chat/completions"); a.StatusCode != 405 || a.Header.Get("Allow") != "POST" {
		t.Errorf("a wrong method gets %d, Allow %q", a.StatusCode, a.Header.Get("Allow"))
	} else {
		checkErrorShape(t, a.body)
	}
	for _, path := range []string{"/health", "/livez", "/readyz", "/v1/models", "/v1/models/m", "/v1/models/MoM", "/v1/models/auto"} {
		if a := do("GET", path); a.StatusCode != 200 || !json.Valid([]byte(a.body)) {
			t.Errorf("%s gets %d %q", path, a.StatusCode, a.body)
		}
		if a := do("HEAD", path); a.StatusCode != 200 || a.body != "" {
			t.Errorf("HEAD %s gets %d %q", path, a.StatusCode, a.body)
		}
	}
	if a := do("GET", "/v1/models"); !strings.Contains(a.body, `"id":"m"`) || !strings.Contains(a.body, `"max_model_len":4096`) {
		t.Errorf("the list is %q", a.body)
	}
	if a := do("GET", "/metrics"); a.StatusCode != 404 {
		t.Errorf("/metrics is open on the API: %d", a.StatusCode)
	}
	for _, a := range []received{do("GET", "/v1/models/nope"), p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"nope"`, 1))} {
		if a.StatusCode != 404 || !strings.Contains(a.body, `"type":"invalid_request_error","param":"model","code":"model_not_found"`) {
			t.Errorf("an unknown model gets %d %q", a.StatusCode, a.body)
		}
	}
}

func TestAutoModels(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	for i, name := range []string{"MoM", "auto"} {
		a := p.ask(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}], "model" : "`+name+`" ,"x":1e3}`)
		if want := `{"messages":[{"role":"user","content":"hi"}], "model" : "m" ,"x":1e3}`; a.StatusCode != 200 || w.seen()[i] != want {
			t.Errorf("%s: %d, the worker got %q", name, a.StatusCode, w.seen())
		}
	}
}

func TestHandOverFieldsAreStripped(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, settingsFor(w.url))
	a := p.ask(t, "/v1/chat/completions",
		`{"kv_transfer_params":{"do_remote_prefill":true},"model":"m","bootstrap_room":1,"messages":[{"role":"user","content":"hi"}],"disaggregated_params":null}`,
		"X-Data-Parallel-Rank: 1", "x-dynamo-worker-instance-id: 2", "Connection: keep-alive, X-Secret", "X-Secret: 1", "X-Kept: 1", "Cookie: a=b")
	if a.StatusCode != 200 || w.seen()[0] != plainChat {
		t.Errorf("got %d, the worker %q", a.StatusCode, w.seen())
	}
	h := w.heads[0]
	for _, gone := range []string{"X-Data-Parallel-Rank", "X-Dynamo-Worker-Instance-Id", "X-Secret", "Connection"} {
		if h.Get(gone) != "" {
			t.Errorf("the worker got %s: %s", gone, h.Get(gone))
		}
	}
	if h.Get("X-Kept") != "1" || h.Get("Cookie") != "a=b" {
		t.Errorf("the worker got %v", h)
	}
}

func TestPanicEndsOneRequest(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	s := p.state.Load()
	broken := *s
	broken.pool = nil
	p.state.Store(&broken)
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 500 {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
	p.state.Store(s)
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 {
		t.Errorf("after a panic: %d %q", a.StatusCode, a.body)
	}
	if !strings.Contains(p.log.String(), "BUG") {
		t.Error("the log does not tell of the panic")
	}
}

func TestCORS(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.CORS = []string{"https://app.example"}
	p := startProxy(t, s)
	preflight := func(origin string) string {
		return raw(t, p.addr, "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: "+origin+"\r\nAccess-Control-Request-Method: POST\r\n\r\n")
	}
	if got := preflight("https://app.example"); !strings.HasPrefix(got, "HTTP/1.1 204") || !strings.Contains(got, "Access-Control-Allow-Origin: https://app.example") {
		t.Errorf("got %q", got)
	}
	if got := preflight("https://evil.example"); strings.Contains(got, "Access-Control") {
		t.Errorf("a stranger got %q", got)
	}
	a := p.ask(t, "/v1/chat/completions", plainChat, "Origin: https://app.example")
	if a.StatusCode != 200 || a.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("got %d %v", a.StatusCode, a.Header)
	}
}

func TestUnixSocket(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	ln, err := net.Listen("unix", t.TempDir()+"/k.sock")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- edge{p.Proxy}.server(edge{p.Proxy}.handler()).Serve(p.clients(ln, nil)) }()
	c, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
	if a := receive(t, bufio.NewReader(c)); a.body != chatReply {
		t.Errorf("got %q", a.body)
	}
	_ = c.Close()
	_ = ln.Close()
	<-done
}

// TestWriteClockFollowsReload: it was read once, when serving began.
func TestWriteClockFollowsReload(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	p := startProxy(t, s)
	next := *s
	next.Timeouts.Write = 7 * time.Second
	if err := p.Apply(&next); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	clients := p.clients(ln, nil)
	defer clients.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	c, err := clients.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.(*clientConn).writeTimeout; got != 7*time.Second {
		t.Errorf("the write clock of a new connection is %v", got)
	}
}
