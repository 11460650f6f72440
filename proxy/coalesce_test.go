// Coalescing: who asks a worker, and what becomes of the others when somebody goes.

package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/sim"
)

// A leader that hangs up does not fail the others, before the first byte and
// after; the last to go stops the worker.
func TestLeaderHangsUp(t *testing.T) {
	for _, lead := range []string{streamChat, plainChat} {
		for _, began := range []bool{false, true} {
			for _, stay := range []bool{true, false} {
				t.Run(fmt.Sprintf("streams %v, began %v, others stay %v", lead == streamChat, began, stay), func(t *testing.T) {
					w := startGated(t)
					p := startProxy(t, cachedSettings(t, w.url))
					leader := p.send(t, chatPath, lead)
					s := w.step(t)
					followers := p.follow(t, chatPath, plainChat, streamChat)
					parts := []string{streamHead + chunk(roleEvent), chunk(delta("hello ")), chunk(delta("world")), chunk(finishEvent+usageEvent+doneEvent) + "0\r\n\r\n"}
					if lead == plainChat {
						whole := httpReply(200, "application/json", strings.Replace(chatReply, "hello", "hello world", 1))
						parts = []string{whole[:20], whole[20:200], whole[200:]}
					}
					if began {
						s.say(parts[:2]...)
						parts = parts[2:]
					}
					_ = leader.Close()
					<-leader.got
					waitUntil(t, "the leader is lost", func() bool { return p.coalesced.Stats().Orphaned == 1 })
					if !stay {
						for _, f := range followers {
							select {
							case <-s.lost:
								t.Fatal("the worker was stopped while somebody waited")
							default:
							}
							_ = f.Close()
							<-f.got
						}
						gone := time.Now()
						select {
						case <-s.lost:
							t.Logf("the worker was stopped after %v", time.Since(gone))
						case <-time.After(patience):
							t.Fatal("the worker goes on for nobody")
						}
						waitUntil(t, "all are booked", func() bool { return strings.Count(p.log.String(), `"end":"client_gone"`) == 3 })
						waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
						return
					}
					s.say(parts...)
					for i, f := range followers {
						if got := says(t, f.answer(t)); got != helloWorld {
							t.Errorf("follower %d got %+v", i, got)
						}
					}
					waitUntil(t, "the leader is booked", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
					waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 })
					if after := p.ask(t, chatPath, plainChat); after.Header.Get("x-kvasir-cache") != "hit" || len(w.seen()) != 1 {
						t.Errorf("after: %v, %d calls", after.Header, len(w.seen()))
					}
				})
			}
		}
	}
}

// A leader's client that closes its connection as soon as it has its answer has
// had it.
func TestLeaderLeavesWithItsAnswer(t *testing.T) {
	p := startProxy(t, cachedSettings(t, goodWorker(t).url))
	const times = 100
	for i := range times {
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, post(chatPath, strings.Replace(plainChat, "hi", fmt.Sprint("hi ", i), 1), "Connection: close"))
		if got := receive(t, bufio.NewReader(c)); got.StatusCode != 200 {
			t.Fatal(got.Status)
		}
		_ = c.Close()
	}
	waitUntil(t, "all are booked", func() bool { return strings.Count(p.log.String(), `"end":"`) == times })
	if gone := strings.Count(p.log.String(), `"end":"client_gone"`); gone > 0 {
		t.Errorf("%d of %d are said to have gone", gone, times)
	}
}

// After a failure the next one tries, and only one.
func TestLeaderFails(t *testing.T) {
	const fault = `{"error":{"message":"overloaded","type":"x","code":503}}`
	for name, fails := range map[string]func(*step){
		"an error": func(s *step) { s.say(httpReply(503, "application/json", fault)) },
		"no reply": func(s *step) { close(s.next) },
		"an event": func(s *step) {
			s.say(streamHead + chunk(roleEvent+`data: {"error":{"message":"x","code":500}}`+"\n\n"+doneEvent) + "0\r\n\r\n")
		},
		"a cut stream": func(s *step) { s.say(streamHead + chunk(roleEvent)); close(s.next) },
		"an event too late": func(s *step) {
			s.say(streamHead + chunk(roleEvent+delta("hel")+`data: {"error":{"message":"x","code":500}}`+"\n\n"+doneEvent) + "0\r\n\r\n")
		},
		"a cut after it began": func(s *step) { s.say(streamHead + chunk(roleEvent+delta("hel"))); close(s.next) },
	} {
		t.Run(name, func(t *testing.T) {
			w := startGated(t)
			s := cachedSettings(t, w.url)
			s.Retry.Attempts = 0
			p := startProxy(t, s)
			leader := p.send(t, chatPath, streamChat)
			first := w.step(t)
			followers := p.follow(t, chatPath, plainChat, plainChat, plainChat)
			fails(first)
			second := w.step(t)
			waitUntil(t, "the others follow it", func() bool { return p.waiting() == 2 })
			if len(w.steps) > 0 {
				t.Error("more than one went on")
			}
			// The second leader asks in its own form: a body.
			second.say(httpReply(200, "application/json", strings.Replace(chatReply, "hello", "hello world", 1)))
			for i, f := range followers {
				if got := says(t, f.answer(t)); got != helloWorld {
					t.Errorf("follower %d got %+v", i, got)
				}
			}
			if r := leader.answer(t); r.StatusCode == 200 && r.err == nil && !strings.Contains(r.body, `"error"`) {
				t.Errorf("the leader got %q", r.body)
			}
			if n := len(w.seen()); n != 2 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// Whoever waits is ended by a shutdown as whoever asks is.
func TestShutdownEndsACoalescedCall(t *testing.T) {
	w := startGated(t)
	p := startProxy(t, cachedSettings(t, w.url))
	p.send(t, chatPath, streamChat)
	s := w.step(t)
	plain := p.follow(t, chatPath, plainChat)[0]
	streaming := dial(t, p.addr)
	_, _ = io.WriteString(streaming, post(chatPath, streamChat))
	waitUntil(t, "both follow", func() bool { return p.waiting() == 2 })
	s.say(streamHead + chunk(roleEvent+delta("hel")))
	readUntil(t, streaming, `"content":"hel"`)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if r := plain.answer(t); r.StatusCode != 503 {
		t.Errorf("%d %q", r.StatusCode, r.body)
	}
	rest, _ := io.ReadAll(streaming)
	if end := string(rest); !strings.Contains(end, "is shutting down") || strings.HasSuffix(end, "0\r\n\r\n") {
		t.Errorf("%q", end)
	}
	<-s.lost
}

// A thousand equal requests at once are one call, half of them streams, though
// the leader's client is killed in the middle.
func TestAThousandEqualRequests(t *testing.T) {
	engine, err := sim.NewServer(sim.Options{Model: "m", Speedup: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = engine.Serve(ln) })
	t.Cleanup(func() { _ = engine.Close(); served.Wait() })
	s := cachedSettings(t, "http://"+ln.Addr().String())
	p := startProxy(t, s)
	leader := dial(t, p.addr)
	_, _ = io.WriteString(leader, post(chatPath, streamChat))
	readUntil(t, leader, `"content":"`)
	const others = 999
	bodies := make([]string, others)
	for i := range bodies {
		bodies[i] = [...]string{plainChat, streamChat}[i%2]
	}
	clients := make([]*client, others)
	for i, b := range bodies {
		clients[i] = p.send(t, chatPath, b)
		if i == others/2 {
			_ = leader.Close()
		}
	}
	first := says(t, clients[0].answer(t))
	if first.Finish != "stop" || len(first.Text) < 50 {
		t.Fatalf("%+v", first)
	}
	waits := 0
	for i, c := range clients[1:] {
		r := c.answer(t)
		if got := says(t, r); got != first || r.err != nil {
			t.Fatalf("%d: %v\n got %+v\nwant %+v", i, r.err, got, first)
		}
		if r.Header.Get("x-kvasir-cache") == "wait" {
			waits++
		}
	}
	metrics, err := http.Get("http://" + ln.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = metrics.Body.Close() }()
	b, _ := io.ReadAll(metrics.Body)
	calls := 0.0
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "vllm:request_success_total{") {
			var n float64
			_, _ = fmt.Sscan(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), &n)
			calls += n
		}
	}
	t.Logf("%d of %d waited, the others came later", waits, others)
	if calls != 1 || waits == 0 {
		t.Errorf("%v calls", calls)
	}
}

// A leader whose client does not read holds nobody up, and has it all in the end.
func TestSlowLeaderHoldsNobodyUp(t *testing.T) {
	const parts = 100
	part := strings.Repeat("0123456789", 1<<10)
	for name, start := range map[string]func(testing.TB, *Settings) *testProxy{"plain": startProxy, "TLS": startTLSProxy} {
		for _, version := range []string{"HTTP/1.1", "HTTP/1.0"} { // whose answers have no last chunk
			t.Run(name+" "+version, func(t *testing.T) {
				w := startGated(t)
				p := start(t, cachedSettings(t, w.url))
				leader := p.dial(t)
				_, _ = io.WriteString(leader, strings.Replace(post(chatPath, streamChat), "HTTP/1.1", version, 1))
				s := w.step(t)
				followers := p.follow(t, chatPath, streamChat, plainChat)
				s.say(streamHead + chunk(roleEvent))
				for range parts {
					s.say(chunk(delta(part)))
				}
				go s.say(chunk(finishEvent+usageEvent+doneEvent) + "0\r\n\r\n")
				for i, f := range followers {
					if got := says(t, f.answer(t)); got.Text != strings.Repeat(part, parts) {
						t.Errorf("follower %d got %d bytes", i, len(got.Text))
					}
				}
				resp, err := http.ReadResponse(bufio.NewReader(leader), nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				if got := says(t, received{resp, string(b), err}); err != nil || got.Text != strings.Repeat(part, parts) {
					t.Errorf("the leader got %d bytes, %v", len(got.Text), err)
				}
			})
		}
	}
}

// Whoever comes and goes, and whenever: every call ends, nobody is forgotten,
// and who stays has all of the answer.
func TestCallsThatManyLeave(t *testing.T) {
	text := strings.Repeat("word ", 200)
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, err := io.WriteString(c, streamHead+chunk(roleEvent))
		for range 200 {
			if err == nil {
				_, err = io.WriteString(c, chunk(delta("word ")))
			}
		}
		if err == nil {
			_, err = io.WriteString(c, chunk(finishEvent+usageEvent+doneEvent)+"0\r\n\r\n")
		}
		return err == nil
	})
	s := cachedSettings(t, w.url)
	s.Workers[0].MaxRequests = 4
	p := startProxy(t, s)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			body := strings.Replace([...]string{streamChat, plainChat}[i%2], "hi", fmt.Sprint("hi ", i%7), 1)
			c, err := net.Dial("tcp", p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, post(chatPath, body, "Connection: close"))
			if i%3 > 0 { // leaves at once, or somewhere in the middle
				_, _ = io.CopyN(io.Discard, c, int64(i%3-1)*int64(i)*50)
				return
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(resp.Body)
			if got := strings.Count(string(b), "word "); err != nil || resp.StatusCode != 200 || got*5 != len(text) {
				t.Errorf("%d: %d %v, %d words", i, resp.StatusCode, err, got)
			}
		})
	}
	all.Wait()
	waitUntil(t, "all calls are over", func() bool { return p.coalesced.Stats().Calls == 0 })
	waitUntil(t, "nobody waits", func() bool {
		return p.metric(t, "kvasir_coalesced_followers") == "0" && p.metric(t, "kvasir_requests_in_flight") == "0" && p.metric(t, "kvasir_panics_total") == "0"
	})
	t.Logf("%d calls for 7 questions", len(w.seen()))
}

// Equal texts in one scope are one question.
func TestCoalesceKey(t *testing.T) {
	keyOf := func(scope byte, text string) coalesceKey {
		asks := func(*[cache.Dim]float32) bool { return false }
		return coalesceKeyOf(&cache.Query{Scope: cache.Scope{scope}, Text: []byte(text), Embed: asks})
	}
	a, b := keyOf(1, "the first"), keyOf(1, " the second\n")
	if a == b || b != keyOf(1, "the second") || b == keyOf(2, "the second") {
		t.Error("keys")
	}
}
