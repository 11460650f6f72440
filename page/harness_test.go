// The harness: a page on a real listener, over a Kvasir that tests make up.

package page

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/edge"
	"kvasir/openai"
	"kvasir/proxy/health"
	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

// patience bounds every wait; a machine under load is slow.
const patience = 30 * time.Second

func testOptions() *Options {
	return &Options{
		Version:     "test",
		Readiness:   func() health.Readiness { return health.Readiness{Status: "ready", Code: 200} },
		Busy:        func() (int, int) { return 2, 1 },
		Connections: func() int { return 1000 },
		Workers:     func(time.Time) []roster.Worker { return []roster.Worker{{Name: "w", State: "up", TakesRequests: true}} },
		Thresholds: func() Thresholds {
			return Thresholds{Category: 0.6, Attack: 0.7, AttackAction: "block", PII: 0.7, PIIAction: "redact"}
		},
		Cache:         func() *cache.Cache { return nil },
		Configuration: func() any { return map[string]string{"file": "kvasir.yaml"} },
		Drain: func(name string, _ bool) (int, error) {
			if name != "w" && name != "team/w:8000" {
				return 0, errors.New("there is no worker")
			}
			return 3, nil
		},
		Explain: func(*fasthttp.RequestCtx, string) (*record.Record, *openai.Error) { return ended(), nil },
		Ask: func(context.Context, string, http.Header, []byte) (*http.Response, error) {
			return nil, errors.New("nobody is there")
		},
	}
}

// A served page.
type served struct {
	*Page
	addr string
	once sync.Once
	end  func()
}

// serve has a page answer on a listener until the test ends.
func serve(t testing.TB, o *Options) *served {
	t.Helper()
	p := &served{Page: New(o)}
	watch, err := edge.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	r := apidoc.New()
	p.Routes(r, func(next fasthttp.RequestHandler) fasthttp.RequestHandler { return next }, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	var service edge.Service
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := service.Serve(&fasthttp.Server{
			Handler: func(ctx *fasthttp.RequestCtx) {
				defer edge.Forget(ctx)
				if err := edge.Receive(ctx, &edge.Budget{}, 1<<20, false); err != nil {
					t.Error(err)
				}
				r.Handler(ctx)
			},
			HeaderReceived: func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
				edge.LeaveBody(h)
				return fasthttp.RequestConfig{}
			},
			CloseOnShutdown: true,
		}, &edge.Listener{Listener: ln, Watcher: watch}); err != nil {
			t.Error(err)
		}
	})
	p.end = func() {
		p.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := service.Shutdown(ctx); err != nil {
			t.Errorf("streams go on after the page has ended: %v", err)
		}
		serving.Wait()
		watch.Close()
	}
	t.Cleanup(func() { p.once.Do(p.end) })
	return p
}

// get asks for JSON.
func (p *served) get(t testing.TB, path string, into any) (status int) {
	t.Helper()
	return p.ask(t, http.MethodGet, path, "", into)
}

func (p *served) ask(t testing.TB, method, path, body string, into any) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return resp.StatusCode
}

// A watching is a client of the live stream.
type watching struct {
	t    testing.TB
	conn net.Conn
	body *bufio.Reader
	resp *http.Response
}

// watch opens the live stream.
func (p *served) watch(t testing.TB) *watching {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &watching{t, conn, bufio.NewReader(resp.Body), resp}
}

// next reads one event.
func (w *watching) next(into any) (name string, err error) {
	for {
		line, err := w.body.ReadString('\n')
		if err != nil {
			return "", err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "event: "):
			name = line[7:]
		case strings.HasPrefix(line, "data: "):
			if err := json.Unmarshal([]byte(line[6:]), into); err != nil {
				w.t.Fatalf("%v in %s", err, line)
			}
		case line == "" && name != "":
			return name, nil
		}
	}
}

// until reads events up to the first of that name.
func (w *watching) until(name string) map[string]any {
	w.t.Helper()
	for {
		var data map[string]any
		switch is, err := w.next(&data); {
		case err != nil:
			w.t.Fatalf("waiting for %s: %v", name, err)
		case is == name:
			return data
		}
	}
}

// waitUntil waits for a condition.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

// workersNow are workers that a test changes while they are shown.
type workersNow struct {
	list  atomic.Pointer[[]roster.Worker]
	asked atomic.Int64
}

func (w *workersNow) set(all ...roster.Worker) { w.list.Store(&all) }

func (w *workersNow) get(time.Time) []roster.Worker {
	w.asked.Add(1)
	return *w.list.Load()
}

func named(names ...string) (all []roster.Worker) {
	for _, name := range names {
		all = append(all, roster.Worker{Name: name, State: "up", TakesRequests: true})
	}
	return all
}

func requestsNamed(n int) string { return fmt.Sprintf("request-%d", n) }
