// Reload, fallback, health and full workers.

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestReloadKeepsConnectionsAndRequestsUnderWay(t *testing.T) {
	finish := make(chan struct{})
	w := startWorker(t, func(c net.Conn, body string) bool {
		if !strings.Contains(body, `"stream":true`) {
			_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
			return err == nil
		}
		_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")))
		<-finish
		_, err := io.WriteString(c, chunk(finishEvent+doneEvent)+"0\r\n\r\n")
		return err == nil
	})
	other := goodWorker(t)
	s := settingsFor(w.url)
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", plainChat)
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post("/v1/chat/completions", streamChat))
	waitUntil(t, "the stream is under way", func() bool { return len(w.seen()) == 2 })

	same := *s
	if err := p.Apply(&same); err != nil {
		t.Fatal(err)
	}
	for _, b := range p.state.Load().backends {
		if b.Conns.Count() == 0 {
			t.Error("the connections of an unchanged worker were closed")
		}
	}
	if err := p.Apply(settingsFor(other.url)); err != nil {
		t.Fatal(err)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 || len(other.seen()) != 1 {
		t.Errorf("after the reload: %d, the new worker saw %d", a.StatusCode, len(other.seen()))
	}
	close(finish)
	if a := receive(t, bufio.NewReader(c)); a.err != nil || a.body != roleEvent+delta("a")+finishEvent+doneEvent {
		t.Errorf("the stream got %q %v", a.body, a.err)
	}
}

// Under load, a reload every few milliseconds loses no request.
func TestReloadUnderLoad(t *testing.T) {
	a, b := goodWorker(t), goodWorker(t)
	one, two := settingsFor(a.url, b.url), settingsFor(b.url)
	p := startProxy(t, one)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			c, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			r := bufio.NewReader(c)
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
				if got := receive(t, r); got.StatusCode != 200 || got.body != chatReply {
					t.Errorf("got %d %q", got.StatusCode, got.body)
					return
				}
			}
		}()
	}
	for i := range 30 {
		next := *one
		if i%2 == 0 {
			next = *two
		}
		if err := p.Apply(&next); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	clients.Wait()
}

func TestFallback(t *testing.T) {
	short := startWorker(t, send(httpReply(400, "application/json", `{"error":{"message":"This model's maximum context length is 8 tokens."}}`)))
	good := goodWorker(t)
	s := settingsFor(good.url)
	s.Workers = append(s.Workers,
		Worker{Name: "dead", URL: "http://127.0.0.1:1", Models: []string{"down"}},
		Worker{Name: "short", URL: short.url, Models: []string{"short"}})
	s.Models = append(s.Models, Model{Name: "down", Fallback: []string{"short", "m"}}, Model{Name: "short", Fallback: []string{"m"}}, Model{Name: "lonely"})
	p := startProxy(t, s)
	for _, name := range []string{"down", "short"} {
		a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"`+name+`"`, 1))
		if a.StatusCode != 200 || a.Header.Get("x-kvasir-fallback") != "m" {
			t.Errorf("%s: %d %q %v", name, a.StatusCode, a.body, a.Header)
		}
	}
	for _, body := range good.seen() {
		if body != plainChat {
			t.Errorf("the worker got %q", body)
		}
	}
}

// A worker's bare 404 says nothing to a client: it is told who lacks which route, in the shape of the
// route that it asked.
func TestWorkerWithoutTheRoute(t *testing.T) {
	const chat = "/v1/chat/completions"
	for _, tc := range []struct{ name, path, body, reply string }{
		{"FastAPI", "/v1/embeddings", `{"model":"m","input":"hi"}`, httpReply(404, "application/json", `{"detail":"Not Found"}`)},
		{"llama.cpp", "/v1/rerank", `{"model":"m","query":"q","documents":["a"]}`, httpReply(404, "application/json", `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`)},
		{"a text", "/v1/responses", `{"model":"m","input":"hi"}`, httpReply(404, "text/plain", "404 page not found\n")},
		{"nothing", chat, plainChat, httpReply(404, "", "")},
		{"messages", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, httpReply(404, "application/json", `{"detail":"Not Found"}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProxy(t, settingsFor(startWorker(t, send(tc.reply)).url))
			a := p.ask(t, tc.path, tc.body)
			if a.StatusCode != 404 || !strings.Contains(a.body, `has no route `+tc.path+`: it answered 404 Not Found`) ||
				!strings.Contains(a.body, `"code":"route_not_served"`) || strings.Contains(a.body, "127.0.0.1") {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
			if anthropic := strings.HasPrefix(a.body, `{"type":"error","error":{`); anthropic != (tc.path == "/v1/messages") {
				t.Errorf("the shape of %q", a.body)
			}
		})
	}
}

func TestWorkersErrorsPass(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reply  string
		status int
		want   string
	}{
		{"OpenAI's own", httpReply(400, "application/json", `{"error":{"message":"m","type":"t","param":null,"code":1}}`), 400, `{"error":{"message":"m","type":"t","param":null,"code":1}}`},
		{"flat", httpReply(400, "application/json", `{"object":"error","message":"flat","type":"BadRequestError","param":null,"code":400}`), 400, `"message":"flat"`},
		{"detail", httpReply(404, "application/json", `{"detail":"No such adapter"}`), 404, `"message":"No such adapter"`},
		{"no model", httpReply(404, "application/json", `{"error":{"message":"The model `+"`x`"+` does not exist","type":"NotFoundError","param":"model","code":404}}`), 404, "does not exist"},
		{"a string", httpReply(401, "application/json", `{"error":"Unauthorized"}`), 401, `"message":"Unauthorized"`},
		{"paths", httpReply(400, "application/json", `{"object":"error","message":"bad value in /usr/lib/python3/site-packages/sglang/srt/x.py"}`), 400, `"message"`},
		{"later", "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n", 503, `"message"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := startProxy(t, settingsFor(startWorker(t, send(tc.reply)).url))
			a := p.ask(t, "/v1/chat/completions", plainChat)
			if a.StatusCode != tc.status || !strings.Contains(a.body, tc.want) || strings.Contains(a.body, "/usr/") {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
			checkErrorShape(t, a.body)
			if tc.name == "later" && a.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
			}
		})
	}
}

func TestFullWorkersQueueThenRefuse(t *testing.T) {
	hold := make(chan struct{})
	w := startWorker(t, func(c net.Conn, _ string) bool {
		<-hold
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	s := settingsFor(w.url)
	s.Workers[0].MaxRequests = 1
	s.Routing.MaxQueued = 1
	p := startProxy(t, s)
	first, second := dial(t, p.addr), dial(t, p.addr)
	_, _ = io.WriteString(first, post("/v1/chat/completions", plainChat))
	waitUntil(t, "the worker is busy", func() bool { return len(w.seen()) == 1 })
	_, _ = io.WriteString(second, post("/v1/chat/completions", plainChat))
	waitUntil(t, "one waits", func() bool { return p.state.Load().pool.QueueLen("m") == 1 })
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("a third gets %d %q", a.StatusCode, a.body)
	}
	close(hold)
	for _, c := range []net.Conn{first, second} {
		if a := receive(t, bufio.NewReader(c)); a.body != chatReply {
			t.Errorf("got %q", a.body)
		}
	}

	off := *s
	off.Routing.Queue = false
	off.Routing.QueueTimeout = time.Minute
	if err := p.Apply(&off); err != nil {
		t.Fatal(err)
	}
}

func TestClocks(t *testing.T) {
	s := settingsFor(startWorker(t, func(c net.Conn, body string) bool {
		if strings.Contains(body, `"stream":true`) {
			_, _ = io.WriteString(c, streamHead+chunk(delta("a")))
		}
		untilClosed(c)
		return false
	}).url)
	s.Timeouts.FirstByte, s.Timeouts.Idle = 100*time.Millisecond, 100*time.Millisecond
	p := startProxy(t, s)
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 504 {
		t.Errorf("a silent worker gives %d %q", a.StatusCode, a.body)
	}
	patient := *s
	patient.Timeouts.FirstByte = patience // a slow machine's first byte comes late
	if err := p.Apply(&patient); err != nil {
		t.Fatal(err)
	}
	if a := p.ask(t, "/v1/chat/completions", streamChat); a.err == nil || !strings.Contains(a.body, "stream_interrupted") {
		t.Errorf("a worker that fell silent gives %q %v", a.body, a.err)
	}
}

func TestLargeEvents(t *testing.T) {
	for _, tc := range []struct {
		size  int
		whole bool
	}{{60 << 10, true}, {200 << 10, true}, {3 << 20, true}, {5 << 20, false}} {
		t.Run(fmt.Sprint(tc.size), func(t *testing.T) {
			big := delta(strings.Repeat("x", tc.size))
			w := startWorker(t, func(c net.Conn, _ string) bool {
				_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")))
				for rest := big; rest != ""; {
					n := min(len(rest), 10_000)
					_, _ = io.WriteString(c, chunk(rest[:n]))
					rest = rest[n:]
				}
				_, err := io.WriteString(c, chunk(finishEvent+usageEvent+doneEvent)+"0\r\n\r\n")
				return err == nil
			})
			p := startProxy(t, settingsFor(w.url))
			a := p.ask(t, "/v1/chat/completions", streamChat)
			want := roleEvent + delta("a") + big + finishEvent + doneEvent
			if tc.whole && (a.err != nil || a.body != want) {
				t.Errorf("%d bytes of %d, %v", len(a.body), len(want), a.err)
			}
			if !tc.whole && (a.err == nil || !strings.Contains(a.body, "stream_interrupted")) {
				t.Errorf("an endless event passed: %d bytes, %v", len(a.body), a.err)
			}
		})
	}
}

func TestInterimReplies(t *testing.T) {
	w := startWorker(t, send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+httpReply(200, "application/json", chatReply)))
	p := startProxy(t, settingsFor(w.url))
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 || a.body != chatReply {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
}

// The budget keeps a failing pool from being hit harder for failing.
func TestRetryBudget(t *testing.T) {
	a, b := startWorker(t, die), startWorker(t, die)
	p := startProxy(t, settingsFor(a.url, b.url))
	const requests = 60
	began := time.Now()
	for range requests {
		p.ask(t, "/v1/chat/completions", plainChat)
	}
	// A retry for five requests, three more each second, and a second's worth at the beginning.
	most := requests + requests/5 + 3*(2+int(time.Since(began).Seconds()))
	if sent := len(a.seen()) + len(b.seen()); sent > most {
		t.Errorf("%d requests became %d, at most %d", requests, sent, most)
	}
}
