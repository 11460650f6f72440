// A worker that says what a test tells it to, when it tells it to, and clients that wait.

package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"

	"kvasir/openai/answer/answertest"
)

// onlyEqual takes no question for another one.
type onlyEqual struct{}

func (onlyEqual) Compare([]byte, []byte, float64) (float64, string) { return 0, "test" }

// cachedSettings are plain ones with a cache that lasts as long as the test.
func cachedSettings(t testing.TB, urls ...string) *Settings {
	t.Helper()
	store, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := settingsFor(urls...)
	s.Cache = cache.New(cache.Options{Store: store, Verifier: onlyEqual{}, Threshold: 0.9, TTL: time.Hour})
	s.CacheOptions.MaxTemperature = 1
	return s
}

// A step is how a gated worker answers one request: it says parts one by one,
// each when it is told to go on.
type step struct {
	conn net.Conn
	body string
	next chan string // what to say; closed: the connection is closed
	lost chan struct{}
}

// say sends parts of a reply. Its connection is not used again: it is read from
// to see whether the proxy closes it.
func (s *step) say(parts ...string) {
	for _, p := range parts {
		if line, rest, ok := strings.Cut(p, "\r\n"); ok && strings.HasPrefix(line, "HTTP/1.1 ") {
			p = line + "\r\nConnection: close\r\n" + rest
		}
		s.next <- p
	}
}

// A gatedWorker hands every request to the test.
type gatedWorker struct {
	*testWorker
	steps chan *step
}

func startGated(t testing.TB) *gatedWorker {
	g := &gatedWorker{steps: make(chan *step, 2000)}
	g.testWorker = startWorker(t, func(c net.Conn, body string) bool {
		s := &step{conn: c, body: body, next: make(chan string), lost: make(chan struct{})}
		g.steps <- s
		go func() {
			untilClosed(c) // nothing more is sent on it
			close(s.lost)
		}()
		for {
			select {
			case part, ok := <-s.next:
				if !ok {
					return false
				}
				if _, err := io.WriteString(c, part); err != nil {
					return false
				}
			case <-s.lost:
				return false
			}
		}
	})
	return g
}

// step waits for the next request.
func (g *gatedWorker) step(t testing.TB) *step {
	t.Helper()
	select {
	case s := <-g.steps:
		return s
	case <-time.After(patience):
		t.Fatal("no request came to the worker")
		return nil
	}
}

// A client sends one request and reads what comes.
type client struct {
	net.Conn
	got chan received
}

// send sends a request; its answer is read in the background.
func (p *testProxy) send(t testing.TB, path, body string, headers ...string) *client {
	t.Helper()
	c := &client{p.dial(t), make(chan received, 1)}
	if _, err := io.WriteString(c, post(path, body, headers...)); err != nil {
		t.Fatal(err)
	}
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			c.got <- received{err: err}
			return
		}
		b, err := io.ReadAll(resp.Body)
		c.got <- received{resp, string(b), err}
	}()
	return c
}

func (c *client) answer(t testing.TB) received {
	t.Helper()
	select {
	case r := <-c.got:
		if r.Response == nil {
			t.Fatalf("no answer: %v", r.err)
		}
		return r
	case <-time.After(time.Minute):
		t.Fatal("no answer in a minute")
		return received{}
	}
}

// follow sends requests and waits until they follow.
func (p *testProxy) follow(t testing.TB, path string, bodies ...string) (all []*client) {
	t.Helper()
	before := p.waiting()
	for _, b := range bodies {
		all = append(all, p.send(t, path, b))
	}
	waitUntil(t, "they follow", func() bool { return p.waiting() == before+len(bodies) })
	return all
}

// waiting is how many requests follow.
func (p *testProxy) waiting() int { return p.coalesced.Stats().Followers }

// says is what a client makes of an answer.
func says(t testing.TB, r received) answertest.Said {
	t.Helper()
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		return answertest.SaidBy(t, r.body)
	}
	if r.err == nil && !strings.HasSuffix(r.body, doneEvent) && !strings.Contains(r.body, "message_stop") && !strings.Contains(r.body, "response.completed") {
		t.Errorf("a stream without its end: %q", r.body)
	}
	return answertest.SaidIn(t, r.body)
}
