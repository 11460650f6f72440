// Lost clients, slow readers, and shutdown: who must be let go, and when.

package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// In each situation the client leaves, and the worker's connection must close.
func TestLostClientClosesTheWorkersConnection(t *testing.T) {
	for _, how := range []string{"close", "reset", "half-close"} {
		for _, tc := range []struct {
			name, body, says string
			await            string // the client leaves after it has read this
		}{
			{"before the first byte of a stream", streamChat, "", ""},
			{"waiting for a plain answer", plainChat, "", ""},
			{"after the head of a stream", streamChat, streamHead, ""},
			{"after the role of a stream", streamChat, streamHead + chunk(roleEvent), ""},
			{"idle between two events", streamChat, streamHead + chunk(roleEvent) + chunk(delta("a")), delta("a")},
			{"in a long plain body", plainChat, "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + strings.Repeat("x", 200_000), "xxxx"},
		} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				asked, closed := make(chan struct{}), make(chan struct{})
				w := startWorker(t, func(c net.Conn, _ string) bool {
					_, _ = io.WriteString(c, tc.says)
					close(asked)
					untilClosed(c)
					close(closed)
					return false
				})
				p := startProxy(t, settingsFor(w.url))
				c := dial(t, p.addr).(*net.TCPConn)
				_, _ = io.WriteString(c, post("/v1/chat/completions", tc.body))
				<-asked
				if tc.await != "" {
					readUntil(t, c, tc.await)
				}
				switch how {
				case "close":
					_ = c.Close()
				case "reset":
					_ = c.SetLinger(0)
					_ = c.Close()
				case "half-close":
					_ = c.CloseWrite()
				}
				select {
				case <-closed:
				case <-time.After(patience):
					t.Fatal("the worker's connection is still open")
				}
				waitUntil(t, "the request is booked", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
			})
		}
	}
}

func readUntil(t *testing.T, r io.Reader, want string) {
	t.Helper()
	var got []byte
	b := make([]byte, 4096)
	for !strings.Contains(string(got), want) {
		n, err := r.Read(b)
		if err != nil {
			t.Fatalf("cannot read until %q: %v", want, err)
		}
		got = append(got, b[:n]...)
	}
}

func TestLostClientLeavesTheQueue(t *testing.T) {
	hold := make(chan struct{})
	w := startWorker(t, func(c net.Conn, _ string) bool {
		<-hold
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	s := settingsFor(w.url)
	s.Workers[0].MaxRequests = 1
	p := startProxy(t, s)
	first := dial(t, p.addr)
	_, _ = io.WriteString(first, post("/v1/chat/completions", plainChat))
	waitUntil(t, "the worker is busy", func() bool { return len(w.seen()) == 1 })
	second := dial(t, p.addr)
	_, _ = io.WriteString(second, post("/v1/chat/completions", plainChat))
	waitUntil(t, "one waits", func() bool { return p.state.Load().pool.QueueLen("m") == 1 })
	_ = second.Close()
	waitUntil(t, "nobody waits", func() bool { return p.state.Load().pool.QueueLen("m") == 0 })
	close(hold)
	if a := receive(t, bufio.NewReader(first)); a.body != chatReply {
		t.Errorf("got %q", a.body)
	}
}

// A kept connection that the worker closed in the meantime is no failure.
func TestStaleConnectionIsReplaced(t *testing.T) {
	n := 0
	w := startWorker(t, func(c net.Conn, _ string) bool {
		n++
		_, _ = io.WriteString(c, httpReply(200, "application/json", chatReply))
		return false // closes without saying so
	})
	p := startProxy(t, settingsFor(w.url))
	c := dial(t, p.addr)
	r := bufio.NewReader(c)
	for range 5 {
		_, _ = io.WriteString(c, post("/v1/chat/completions", plainChat))
		if a := receive(t, r); a.StatusCode != 200 || a.body != chatReply {
			t.Fatalf("got %d %q", a.StatusCode, a.body)
		}
	}
	if got := len(w.seen()); got != 5 {
		t.Errorf("the worker saw %d requests", got)
	}
	if strings.Contains(p.log.String(), `"retries":1`) {
		t.Error("a stale connection counted as a retry")
	}
}

func TestDrainLetsStreamsFinish(t *testing.T) {
	finish := make(chan struct{})
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")))
		<-finish
		_, err := io.WriteString(c, chunk(finishEvent+doneEvent)+"0\r\n\r\n")
		return err == nil
	})
	p := startProxy(t, settingsFor(w.url))
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post("/v1/chat/completions", streamChat))
	waitUntil(t, "the worker is asked", func() bool { return len(w.seen()) == 1 })
	drained := make(chan struct{})
	go func() { p.Drain(0, time.Minute, nil); close(drained) }()
	waitUntil(t, "nobody is let in", func() bool {
		late, err := net.Dial("tcp", p.addr)
		if err == nil {
			_ = late.Close()
		}
		return err != nil
	})
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.HasPrefix(got, "HTTP/1.1 503") {
		t.Errorf("/readyz says %q", got)
	}
	if got := fetchFrom(t, p.admin, "/livez"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("/livez says %q", got)
	}
	close(finish)
	a := receive(t, bufio.NewReader(c))
	if a.err != nil || a.body != roleEvent+delta("a")+finishEvent+doneEvent {
		t.Errorf("got %q %v", a.body, a.err)
	}
	<-drained
}

func TestDrainEndsWhatDoesNotFinish(t *testing.T) {
	w := startWorker(t, func(c net.Conn, body string) bool {
		if strings.Contains(body, `"stream":true`) {
			_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")))
		}
		untilClosed(c)
		return false
	})
	p := startProxy(t, settingsFor(w.url))
	streamed, plain := dial(t, p.addr), dial(t, p.addr)
	_, _ = io.WriteString(streamed, post("/v1/chat/completions", streamChat))
	_, _ = io.WriteString(plain, post("/v1/chat/completions", plainChat))
	waitUntil(t, "both are under way", func() bool { return len(w.seen()) == 2 })
	var begun bytes.Buffer
	readUntil(t, io.TeeReader(streamed, &begun), delta("a")) // else it is refused as the plain one
	p.Drain(0, 0, nil)
	if a := receive(t, bufio.NewReader(io.MultiReader(&begun, streamed))); a.err == nil || !strings.Contains(a.body, `"code":"stream_interrupted"`) || !strings.HasPrefix(a.body, roleEvent+delta("a")) {
		t.Errorf("the stream got %q %v", a.body, a.err)
	}
	if a := receive(t, bufio.NewReader(plain)); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("the plain request got %d %q", a.StatusCode, a.body)
	}
}

// fetchFrom asks a listener and returns the whole reply.
func fetchFrom(t testing.TB, addr, path string) string {
	t.Helper()
	c := dial(t, addr)
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
	b, _ := io.ReadAll(c)
	return string(b)
}

// A reader that stopped must neither hold the worker's answer in memory nor
// keep the worker for ever.
func TestSlowReaderIsDropped(t *testing.T) {
	closed := make(chan int, 1)
	event := delta(strings.Repeat("x", 1000))
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, streamHead)
		n := 0
		for {
			k, err := io.WriteString(c, chunk(event))
			if n += k; err != nil {
				closed <- n
				return false
			}
		}
	})
	s := settingsFor(w.url)
	s.Timeouts.Write = 300 * time.Millisecond
	p := startProxy(t, s)
	c := dial(t, p.addr).(*net.TCPConn)
	_ = c.SetReadBuffer(4 << 10)
	_, _ = io.WriteString(c, post("/v1/chat/completions", streamChat))
	select {
	case n := <-closed:
		t.Logf("the worker could send %d KiB", n>>10)
	case <-time.After(patience):
		t.Fatal("the worker still sends")
	}
}
