// The server that clients connect to, with a handler that echoes what it received.

package edge

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"kvasir/openai"
)

// The tests wait for every goroutine except three of fasthttp's, which end by themselves or run
// as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).workerFunc"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// patience bounds every wait, as a machine under load is slow.
const patience = 25 * time.Second

// A testServer serves on loopback until the test ends, and records which functions were called.
type testServer struct {
	addr    string
	watcher *Watcher
	budget  Budget

	mu    sync.Mutex
	notes []string
}

func (s *testServer) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// noted returns which functions were called since the last call of noted.
func (s *testServer) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.notes, ", ")
	s.notes = nil
	return all
}

// startServer serves with handler. A request with a header named Stranger counts as one without a
// valid key.
func startServer(t *testing.T, handler fasthttp.RequestHandler) *testServer {
	t.Helper()
	s := &testServer{}
	s.budget.SetLimit(8 << 20)
	server := Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			s.note("handled %d bytes", len(ctx.Request.Body()))
			handler(ctx)
		},
		Limits: func() Limits { return Limits{Header: patience, Body: patience, MaxBody: 1 << 20} },
		Budget: &s.budget,
		Stranger: func(ctx *fasthttp.RequestCtx) *openai.Error {
			if len(ctx.Request.Header.Peek("Stranger")) == 0 {
				return nil
			}
			return &openai.Error{Status: 401, Message: "who are you"}
		},
		Refuse: func(ctx *fasthttp.RequestCtx, err *openai.Error) {
			s.note("refused %d", err.Status)
			ctx.SetStatusCode(err.Status)
			ctx.SetBodyString(err.Message)
		},
		Unlogged: func(*fasthttp.RequestCtx) { s.note("aside") },
		Panicked: func(ctx *fasthttp.RequestCtx, fault any) {
			s.note("panicked: %v", fault)
			ctx.Response.Reset()
			ctx.SetStatusCode(500)
			ctx.SetConnectionClose()
		},
		Faulty: func() {},
	}
	var err error
	if s.watcher, err = NewWatcher(); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	var service Service
	ended := make(chan error, 1)
	go func() { ended <- service.Serve(server.HTTP(), &Listener{Listener: ln, Watcher: s.watcher}) }()
	t.Cleanup(func() {
		if err := service.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.watcher.Close()
		if held := s.budget.Held(); held != 0 {
			t.Errorf("%d bytes of bodies are not given back", held)
		}
	})
	return s
}

func (s *testServer) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// TestServer: which requests reach the handler, and what is called for the others.
func TestServer(t *testing.T) {
	s := startServer(t, func(ctx *fasthttp.RequestCtx) {
		switch string(ctx.Path()) {
		case "/panics":
			panic("a bug")
		case "/logged":
			ctx.Conn().(*Conn).Logged()
		}
	})
	const head, end = "POST / HTTP/1.1\r\nHost: x\r\n", "Connection: close\r\n\r\n"
	for _, c := range []struct{ name, request, status, notes string }{
		{"a body with a length", head + "Content-Length: 3\r\n" + end + "abc", "200", "handled 3 bytes, aside"},
		{"a chunked body", head + "Transfer-Encoding: chunked\r\n" + end + "3\r\nabc\r\n0\r\n\r\n", "200", "handled 3 bytes, aside"},
		{"no body", head + end, "200", "handled 0 bytes, aside"},
		{"one that its handler logs", "GET /logged HTTP/1.1\r\nHost: x\r\n" + end, "200", "handled 0 bytes"},
		{"two on one connection", head + "Content-Length: 3\r\n\r\nabc" + head + end, "200", "handled 3 bytes, aside, handled 0 bytes, aside"},
		{"a bug", "GET /panics HTTP/1.1\r\nHost: x\r\n\r\n", "500", "handled 0 bytes, panicked: a bug"},
		{"a head of two readings", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", "refused 400"},
		{"a folded line", head + "A: b\r\n c\r\n\r\n", "400", "refused 400"},
		{"another version", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", "505", "refused 505"},
		{"a large head", head + "A: " + strings.Repeat("a", headLimit) + "\r\n\r\n", "431", "refused 431"},
		{"a body beyond the limit", head + "Content-Length: 1048577\r\n\r\n", "413", "refused 413"},
		{"a chunked one beyond the limit", head + "Transfer-Encoding: chunked\r\n\r\n100001\r\n", "413", "refused 413"},
		{"no chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400", "refused 400"},
		{"a stranger's body is stepped over", head + "Stranger: 1\r\nContent-Length: 3\r\n" + end + "abc", "200", "handled 0 bytes, aside"},
		{"a stranger's large body", head + "Stranger: 1\r\nContent-Length: 65537\r\n\r\n", "401", "refused 401"},
		{"asked for before it is sent, too large", head + "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n", "413", "refused 413"},
		{"asked for before it is sent by a stranger", head + "Stranger: 1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n", "401", "refused 401"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := s.dial(t)
			_, _ = io.WriteString(conn, c.request)
			reply, err := io.ReadAll(conn) // all these connections are closed after the reply
			if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 "+c.status+" ") {
				t.Errorf("got %q, %v; want %s", reply, err, c.status)
			}
			if notes := s.noted(); notes != c.notes {
				t.Errorf("called: %s\nwant:   %s", notes, c.notes)
			}
		})
	}
}

// closed is an io.Closer whose channel is closed by Close.
type closed chan struct{}

func (c closed) Close() error { close(c); return nil }

// TestBoundIsClosedOnce: the closer bound to a connection is closed when the client leaves or
// everything stops, and not after Unbind.
func TestBoundIsClosedOnce(t *testing.T) {
	if !NoticesLost {
		t.Skip("on this system a lost client is noticed at the next write")
	}
	conns := make(chan *Conn)
	goOn := make(chan struct{})
	s := startServer(t, func(ctx *fasthttp.RequestCtx) {
		conns <- ctx.Conn().(*Conn)
		select {
		case <-goOn:
		case <-t.Context().Done():
		}
	})
	begin := func() (client net.Conn, served *Conn) {
		client = s.dial(t)
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		return client, <-conns
	}
	wait := func(ch <-chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(patience):
			t.Fatal("nothing was closed")
		}
	}

	client, conn := begin()
	worker := make(closed)
	if !conn.Bind(worker) {
		t.Error("the client is there, and nothing can be bound to it")
	}
	_ = client.Close()
	wait(worker)
	wait(conn.WhenGone())
	if !conn.Gone() || conn.Unbind() || conn.Bind(worker) {
		t.Error("the client is gone, and something is bound to it")
	}
	goOn <- struct{}{}

	client, conn = begin()
	worker = make(closed)
	conn.Bind(worker)
	stopped := conn.WhenGone()
	s.watcher.StopAll()
	wait(worker)
	wait(stopped)
	if conn.Gone() || conn.Unbind() {
		t.Error("all have to stop: the client counts as gone, or is still bound to")
	}
	goOn <- struct{}{}
	_ = client.Close()

	client, conn = begin()
	worker = make(closed)
	conn.Bind(worker)
	if !conn.Unbind() {
		t.Error("what was bound was closed")
	}
	_ = client.Close()
	wait(conn.WhenGone())
	select {
	case <-worker:
		t.Error("what was unbound was closed")
	default:
	}
	goOn <- struct{}{}
}
