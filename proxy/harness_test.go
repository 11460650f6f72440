// The harness: a proxy on loopback, and workers that say exactly what a test scripts.

package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"kvasir/admin"
	"kvasir/kvroute"
	"kvasir/logtest"
)

// Every goroutine is waited for, but for four of fasthttp's that end by
// themselves, or run as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).workerFunc"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// settingsFor is a plain configuration with these workers, all serving "m".
func settingsFor(urls ...string) *Settings {
	s := &Settings{
		MaxBody: 32 << 20, BodyMemory: 256 << 20,
		Timeouts: Timeouts{
			Header: 10 * time.Second, Body: time.Minute, Connect: 2 * time.Second,
			FirstByte: 30 * time.Second, Idle: 30 * time.Second, Write: 30 * time.Second,
		},
		Retry:        Retry{Attempts: 2, Budget: 0.2},
		ReplyHeaders: true,
		Routing:      Routing{PoolOptions: kvroute.PoolOptions{Policy: kvroute.RoundRobin, MaxQueued: 16}, Queue: true, QueueTimeout: 5 * time.Second},
		Models:       []Model{{Name: "m", Default: true}},
	}
	for i, u := range urls {
		s.Workers = append(s.Workers, Worker{Name: fmt.Sprintf("w%d", i), URL: u, Models: []string{"m"}})
	}
	return s
}

// A testProxy is a proxy that serves on loopback until the test ends.
type testProxy struct {
	*Proxy
	addr  string
	admin string
	tls   bool
	log   *logtest.Buffer
}

func startProxy(t testing.TB, s *Settings) *testProxy {
	t.Helper()
	return startProxyOn(t, s, nil)
}

// startTLSProxy is startProxy for clients that speak TLS.
func startTLSProxy(t testing.TB, s *Settings) *testProxy {
	t.Helper()
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	return startProxyOn(t, s, &tls.Config{Certificates: certified.TLS.Certificates})
}

func startProxyOn(t testing.TB, s *Settings, conf *tls.Config) *testProxy {
	t.Helper()
	log := &logtest.Buffer{}
	p, err := New(zerolog.New(log).Level(zerolog.DebugLevel), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(s); err != nil {
		t.Fatal(err)
	}
	tp := &testProxy{Proxy: p, tls: conf != nil, log: log}
	var served sync.WaitGroup
	listen := func(serve func(net.Listener) error) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served.Add(1)
		go func() {
			defer served.Done()
			if err := serve(ln); err != nil {
				t.Errorf("serve: %v", err)
			}
		}()
		return ln.Addr().String()
	}
	tp.addr = listen(func(ln net.Listener) error { return p.Serve(ln, conf) })
	tp.admin = listen(func(ln net.Listener) error { return p.ServeAdmin(ln, p.adminRoutes()) })
	waitUntil(t, "the proxy serves", func() bool {
		c, err := net.Dial("tcp", tp.addr)
		if err != nil {
			return false
		}
		defer func() { _ = c.Close() }()
		c = tp.spoken(c)
		_, err = fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		b, _ := io.ReadAll(c)
		return err == nil && len(b) > 0
	})
	p.patience.admin, p.patience.rest = time.Minute, time.Minute // what leaks is told, what is slow is not
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		served.Wait()
	})
	p.waitForProbes(t)
	return tp
}

// adminRoutes are the admin listener's as `kvasir serve` has them, without a reload.
func (p *Proxy) adminRoutes() fasthttp.RequestHandler {
	return admin.Handler(&admin.Options{
		Log: p.log, Hosts: p.AdminHosts, Metrics: p.Metrics(),
		Readiness: p.Readiness, Fleet: p.Fleet, Cache: p.Cache, Explain: p.Explain,
		Classifier: func() admin.Classifier {
			c, attack, model := p.Judging()
			return admin.Classifier{Classifier: c, Attack: attack, Model: model}
		},
	})
}

// waitForProbes waits until every worker has answered once, or could not be asked. Apply does so for a quarter of a
// second only, after which requests meet workers whose models nobody knows.
func (p *Proxy) waitForProbes(t testing.TB) {
	t.Helper()
	late := time.After(patience)
	for _, b := range p.state.Load().backends {
		select {
		case <-b.answered:
		case <-late:
			t.Fatalf("worker %q was not asked within %v", b.Name(), patience)
		}
	}
}

// patience bounds every wait, as a machine under load is slow. It is shorter than settingsFor's clocks of 30 s, so that
// what ends only by them is no success.
const patience = 25 * time.Second

// waitUntil waits for a condition; there are no sleeps in tests besides this one.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A testWorker answers each request on its listener with handle. Probes are
// answered by itself.
type testWorker struct {
	url   string
	ln    net.Listener
	conns sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]struct{}
	requests []string // bodies, as they came
	heads    []http.Header
	closed   int // connections that the proxy closed
}

// handle gets the connection after a request was read from it, and says
// whether the connection may take another.
func startWorker(t testing.TB, handle func(c net.Conn, body string) bool) *testWorker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &testWorker{url: "http://" + ln.Addr().String(), ln: ln, open: make(map[net.Conn]struct{})}
	w.conns.Add(1)
	go w.accept(handle)
	t.Cleanup(w.close)
	return w
}

func (w *testWorker) accept(handle func(net.Conn, string) bool) {
	defer w.conns.Done()
	for {
		c, err := w.ln.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.open[c] = struct{}{}
		w.mu.Unlock()
		w.conns.Add(1)
		go w.serve(c, handle)
	}
}

func (w *testWorker) serve(c net.Conn, handle func(net.Conn, string) bool) {
	defer w.conns.Done()
	defer func() {
		_ = c.Close()
		w.mu.Lock()
		delete(w.open, c)
		w.mu.Unlock()
	}()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			w.mu.Lock()
			w.closed++
			w.mu.Unlock()
			return
		}
		body, _ := io.ReadAll(req.Body)
		if req.Method == http.MethodGet {
			_, _ = io.WriteString(c, probeReply(req.URL.Path))
			return // a connection of its own, so that requests begin on fresh ones
		}
		w.mu.Lock()
		w.requests = append(w.requests, string(body))
		w.heads = append(w.heads, req.Header)
		w.mu.Unlock()
		if !handle(c, string(body)) {
			return
		}
	}
}

func probeReply(path string) string {
	if strings.HasSuffix(path, "/v1/models") {
		return httpReply(200, "application/json", `{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm","max_model_len":4096}]}`)
	}
	return httpReply(200, "application/json", `{"version":"0.32.0"}`)
}

func (w *testWorker) close() {
	_ = w.ln.Close()
	w.mu.Lock()
	for c := range w.open {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.conns.Wait()
}

func (w *testWorker) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests...)
}

// untilClosed blocks until the proxy has closed c.
func untilClosed(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
}

// httpReply is a whole HTTP reply with a length.
func httpReply(status int, contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), contentType, len(body), body)
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

// chunk frames s as one chunk.
func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// delta is one event of a chat stream.
func delta(content string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}]}` + "\n\n"
}

// choice is a chunk of chat with this choice.
func choice(members string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,` + members + `}]}` + "\n\n"
}

const (
	roleEvent   = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	finishEvent = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"

	plainChat  = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamChat = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	chatReply  = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`
)

// post is a request as bytes.
func post(path, body string, headers ...string) string {
	kind := "Content-Type: application/json\r\n"
	if slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type:") }) {
		kind = ""
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: kvasir\r\n%sContent-Length: %d\r\n%s\r\n%s",
		path, kind, len(body), strings.Join(append(headers, ""), "\r\n"), body)
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// dial opens a connection as the proxy's clients speak.
func (p *testProxy) dial(t testing.TB) net.Conn {
	t.Helper()
	return p.spoken(dial(t, p.addr))
}

func (p *testProxy) spoken(c net.Conn) net.Conn {
	if p.tls {
		return tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the test's own
	}
	return c
}

// A received is what a client got of its answer.
type received struct {
	*http.Response
	body string
	err  error // of reading the body: io.ErrUnexpectedEOF for a broken end
}

// ask sends one request on a connection of its own and reads the answer.
func (p *testProxy) ask(t testing.TB, path, body string, headers ...string) received {
	t.Helper()
	c := p.dial(t)
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, post(path, body, headers...)); err != nil {
		t.Logf("%v: it may have been refused before all of it was sent", err)
	}
	return receive(t, bufio.NewReader(c))
}

func receive(t testing.TB, r *bufio.Reader) received {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("cannot read the reply: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	return received{resp, string(b), err}
}
