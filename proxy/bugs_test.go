// Bugs that were: one test each, named after what went wrong.

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/wire"
)

// The head of a reply over 4 KiB lay in a buffer that was lent to the next
// request while this one's body still grew: its client got another's headers.
func TestLargeHeadSurvivesALargeBody(t *testing.T) {
	w := startWorker(t, func(c net.Conn, body string) bool {
		mark := strings.Repeat(body[len(body)-3:len(body)-2], 5000)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX-Mark: %s\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n%s", mark, strings.Repeat(" ", 60000))
		return err == nil
	})
	p := startProxy(t, settingsFor(w.url))
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				mark := string(rune('a' + i))
				a := p.ask(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],"user":"`+mark+`"}`)
				if got := a.Header.Get("X-Mark"); got != strings.Repeat(mark, 5000) {
					t.Errorf("asked with %s, got %.20q, %d bytes", mark, got, len(got))
					return
				}
			}
		}()
	}
	all.Wait()
}

// A client that hung up on a hung worker was booked as a success of the worker.
func TestLostClientIsNoSuccessOfTheWorker(t *testing.T) {
	var hang atomic.Bool
	w := startWorker(t, func(c net.Conn, _ string) bool {
		if !hang.Load() {
			return false
		}
		untilClosed(c)
		return false
	})
	s := settingsFor(w.url)
	s.Retry.Attempts = 0
	p := startProxy(t, s)
	for range 4 {
		p.ask(t, "/v1/chat/completions", plainChat)
	}
	hang.Store(true)
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
	waitUntil(t, "the worker is asked", func() bool { return len(w.seen()) == 5 })
	_ = c.Close()
	waitUntil(t, "it is booked", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
	hang.Store(false)
	p.ask(t, "/v1/chat/completions", plainChat)
	if !strings.Contains(p.log.String(), "worker is ejected") {
		t.Error("five failures in a row did not eject the worker: a lost client broke the row")
	}
}

// With nobody else to ask, a failure was logged and counted as a retry and took
// from the budget.
func TestNoRetryIsCountedWithoutAnotherWorker(t *testing.T) {
	w := startWorker(t, send(httpReply(503, "application/json", `{"error":{"message":"full","type":"x","param":null,"code":null}}`)))
	p := startProxy(t, settingsFor(w.url))
	for range 6 {
		if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 503 {
			t.Fatalf("got %d", a.StatusCode)
		}
	}
	if strings.Contains(p.log.String(), `"retries":1`) {
		t.Error("a retry is logged that nobody made")
	}
	if got := p.metric(t, "kvasir_retries_denied_total"); got != "0" {
		t.Errorf("the budget was asked for %s retries that could not be", got)
	}
}

func (p *testProxy) metric(t testing.TB, name string) string {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// A request that waited for a worker when the shutdown ran out of time was hung
// up on without a word.
func TestStopAnswersTheQueue(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool { untilClosed(c); return false })
	s := settingsFor(w.url)
	s.Workers[0].MaxRequests = 1
	p := startProxy(t, s)
	first, second := dial(t, p.addr), dial(t, p.addr)
	_, _ = io.WriteString(first, post("/v1/chat/completions", plainChat))
	waitUntil(t, "the worker is busy", func() bool { return len(w.seen()) == 1 })
	_, _ = io.WriteString(second, post("/v1/chat/completions", plainChat))
	waitUntil(t, "one waits", func() bool { return p.state.Load().pool.QueueLen("m") == 1 })
	go p.Drain(0, 0, nil)
	for _, c := range []net.Conn{first, second} {
		if a := receive(t, bufio.NewReader(c)); a.StatusCode != 503 || !strings.Contains(a.body, "shutting down") {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	}
}

// A worker's own CORS headers let pages in that server.cors does not name.
func TestWorkersCORSIsNotOurs(t *testing.T) {
	w := startWorker(t, send("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"))
	s := settingsFor(w.url)
	if a := startProxy(t, s).ask(t, "/v1/chat/completions", plainChat, "Origin: https://evil.example"); len(a.Header.Values("Access-Control-Allow-Origin")) != 0 {
		t.Errorf("got %q", a.Header.Values("Access-Control-Allow-Origin"))
	}
	s = settingsFor(w.url)
	s.CORS = []string{"https://app.example"}
	if a := startProxy(t, s).ask(t, "/v1/chat/completions", plainChat, "Origin: https://app.example"); len(a.Header.Values("Access-Control-Allow-Origin")) != 1 {
		t.Errorf("got %q", a.Header.Values("Access-Control-Allow-Origin"))
	}
}

// A header of the configuration came second, behind the client's own of that name.
func TestConfiguredHeadersCannotBeForged(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Workers[0].Headers = map[string]string{"X-Tenant": "ours"}
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", plainChat, "x-tenant: forged", "X-Other: kept")
	if got := w.heads[0].Values("X-Tenant"); len(got) != 1 || got[0] != "ours" || w.heads[0].Get("X-Other") != "kept" {
		t.Errorf("the worker got %q", got)
	}
}

// A worker that asked for its models anew after a reload had none until it
// answered, and requests got 503 meanwhile.
func TestReloadKeepsWhatWorkersServe(t *testing.T) {
	var mu sync.Mutex
	slow := false
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		wait := slow
		mu.Unlock()
		switch {
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, chatReply)
		case wait:
			<-hold
		default:
			_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
		}
	})}
	var served sync.WaitGroup
	served.Add(1)
	go func() { defer served.Done(); _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close(); served.Wait() })
	t.Cleanup(func() { close(hold) })
	s := settingsFor("http://" + ln.Addr().String())
	s.Workers[0].Models = nil
	p := startProxy(t, s)
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 {
		t.Fatalf("got %d %q", a.StatusCode, a.body)
	}
	mu.Lock()
	slow = true
	mu.Unlock()
	next := *s
	next.Timeouts.Connect++
	if err := p.Apply(&next); err != nil {
		t.Fatal(err)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.StatusCode != 200 {
		t.Errorf("after a reload: %d %q", a.StatusCode, a.body)
	}
}

// A fallback model that nobody serves ended the list, and told the client of a
// model he had not asked for; a model whose workers never answered had no fallback.
func TestFallbackGoesOnToTheEnd(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	dead := Worker{Name: "dead", URL: "http://127.0.0.1:1", Models: []string{"a"}}
	mute := Worker{Name: "mute", URL: "http://127.0.0.1:1"}
	s.Models = append(s.Models, Model{Name: "a", Fallback: []string{"nobody", "m"}}, Model{Name: "b", Fallback: []string{"m"}}, Model{Name: "c", Fallback: []string{"nobody"}})
	s.Workers = append(s.Workers, dead, mute)
	p := startProxy(t, s)
	for _, model := range []string{"a", "b"} {
		a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"`+model+`"`, 1))
		if a.StatusCode != 200 || a.Header.Get("x-kvasir-fallback") != "m" {
			t.Errorf("%s: got %d %q, fallback %q", model, a.StatusCode, a.body, a.Header.Get("x-kvasir-fallback"))
		}
	}
	if a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"c"`, 1)); a.StatusCode != 503 {
		t.Errorf("c: got %d %q", a.StatusCode, a.body)
	}
}

// A key that may have one model was answered by its fallback.
func TestFallbackIsHeldToTheKey(t *testing.T) {
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Workers = append(s.Workers, Worker{Name: "dead", URL: "http://127.0.0.1:1", Models: []string{"a"}})
	s.Models = append(s.Models, Model{Name: "a", Fallback: []string{"m"}})
	p := startProxy(t, keyed(s, Key{Name: "one", Models: []string{"a"}}))
	if a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"a"`, 1), "Authorization: Bearer sk-one"); a.StatusCode == 200 {
		t.Errorf("got %d by %q", a.StatusCode, a.Header.Get("x-kvasir-fallback"))
	}
}

// Load is no reason to change the model.
func TestBusyModelDoesNotFallBack(t *testing.T) {
	busy := startWorker(t, send(httpReply(429, "application/json", `{"error":{"message":"slow down","type":"x","param":null,"code":null}}`)))
	w := goodWorker(t)
	s := settingsFor(w.url)
	s.Workers = append(s.Workers, Worker{Name: "busy", URL: busy.url, Models: []string{"a"}})
	s.Models = append(s.Models, Model{Name: "a", Fallback: []string{"m"}})
	p := startProxy(t, s)
	if a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"a"`, 1)); a.StatusCode != 429 {
		t.Errorf("got %d by %q", a.StatusCode, a.Header.Get("x-kvasir-fallback"))
	}
}

// A body that is no JSON and whose length nobody knows, such as speech, waited
// until 64 KiB of it had come.
func TestStreamedSpeechIsNotHeldBack(t *testing.T) {
	more := make(chan struct{})
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk("first"))
		<-more
		_, err := io.WriteString(c, chunk("second")+"0\r\n\r\n")
		return err == nil
	})
	p := startProxy(t, settingsFor(w.url))
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post("/v1/audio/speech", `{"model":"m","input":"hi","voice":"x"}`))
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err == nil {
		_, err = io.ReadFull(resp.Body, make([]byte, 5))
	}
	close(more)
	if err != nil {
		t.Fatalf("the first bytes did not come: %v", err)
	}
	if rest, err := io.ReadAll(resp.Body); string(rest) != "second" || err != nil {
		t.Errorf("got %q %v", rest, err)
	}
}

// A worker that answers before it has read the whole request, and hangs up, was
// taken for dead: its answer was lost.
func TestEarlyAnswerToALargeRequest(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Add(1)
	go func() {
		defer served.Done()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			if n, _ := c.Read(b); strings.HasPrefix(string(b[:n]), "GET ") {
				_, _ = io.WriteString(c, probeReply(strings.Fields(string(b[:n]))[1]))
			} else {
				_, _ = io.WriteString(c, strings.Replace(httpReply(413, "application/json", `{"error":{"message":"too much","type":"x","param":null,"code":null}}`), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); served.Wait() })
	p := startProxy(t, settingsFor("http://"+ln.Addr().String()))
	a := p.ask(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("x", 20<<20)+`"}]}`)
	if a.StatusCode != 413 || !strings.Contains(a.body, "too much") {
		t.Errorf("got %d %.200q", a.StatusCode, a.body)
	}
}

// A client that asks first whether it may send was told to go on, and refused then.
func TestExpectIsAnsweredWithTheRefusal(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.MaxBody = 1000
	p := startProxy(t, s)
	got := raw(t, p.addr, chatHead+"Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 413") {
		t.Errorf("got %q", got)
	}
	checkErrorShape(t, got[strings.Index(got, "\r\n\r\n")+4:])
}

// A client's connection was closed after ten quiet seconds, the clock of
// request heads: Go's client and load balancers keep theirs for longer.
func TestQuietConnectionStays(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Timeouts.Header = 300 * time.Millisecond
	p := startProxy(t, s)
	c := dial(t, p.addr)
	r := bufio.NewReader(c)
	for range 2 {
		_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
		if a := receive(t, r); a.StatusCode != 200 {
			t.Fatalf("got %d", a.StatusCode)
		}
		_ = c.SetReadDeadline(time.Now().Add(600 * time.Millisecond))
		if _, err := r.ReadByte(); !wire.IsTimeout(err) {
			t.Fatalf("the connection did not stay: %v", err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	}
}

// A gateway whose only worker prefills for others said that it was ready.
func TestPrefillAloneIsNotReady(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Workers[0].Role = "prefill"
	p := startProxy(t, s)
	resp, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if r := p.Readiness(); r.Up != 1 || r.All != 1 {
		t.Errorf("%d of %d workers are up", r.Up, r.All)
	}
}

// The clock of writes to clients was that of the start, though the configuration
// calls it hot; and a change of any clock closed every kept connection.
func TestClocksFollowAReload(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		for _, err := io.WriteString(c, streamHead); err == nil; _, err = io.WriteString(c, chunk(delta(strings.Repeat("a", 50_000)))) {
			continue
		}
		return false
	})
	s := settingsFor(w.url)
	p := startProxy(t, s)
	before := p.state.Load().backends
	next := *s
	next.Timeouts.Idle++
	if err := p.Apply(&next); err != nil {
		t.Fatal(err)
	}
	for k, b := range p.state.Load().backends {
		if before[k] != b {
			t.Error("another idle clock made a worker anew")
		}
	}
	again := next
	again.Timeouts.Write = 100 * time.Millisecond
	if err := p.Apply(&again); err != nil {
		t.Fatal(err)
	}
	c := dial(t, p.addr) // and reads nothing
	_, _ = io.WriteString(c, post("/v1/chat/completions", streamChat))
	waitUntil(t, "the reader is dropped", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
}

// The slash of org/model comes escaped from OpenAI's SDKs.
func TestModelWithASlashIsFound(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Workers[0].Models = []string{"Qwen/Qwen3 8B"}
	p := startProxy(t, s)
	for _, id := range []string{"Qwen/Qwen3%208B", "Qwen%2FQwen3%208B", "Qwen%2fQwen3%208B"} {
		resp, err := http.Get("http://" + p.addr + "/v1/models/" + id)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: got %d", id, resp.StatusCode)
		}
	}
}

// A stream kept its prompt in memory until its end.
func TestStreamsForgetTheirPrompts(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, streamHead+chunk(delta("a")))
		untilClosed(c)
		return false
	})
	p := startProxy(t, settingsFor(w.url))
	const streams, size = 16, 4 << 20
	body := post("/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"`+strings.Repeat("a", size)+`"}]}`)
	before := liveHeap()
	for range streams {
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, body)
		readUntil(t, c, delta("a"))
		w.mu.Lock()
		w.requests = nil
		w.mu.Unlock()
	}
	if grown := liveHeap() - before; grown > streams*size/4 {
		t.Errorf("%d streams with prompts of %d MiB hold %d MiB", streams, size>>20, grown>>20)
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	for range 3 { // what lies in pools goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
