// Hand-overs that fail, and clients that leave: what each of the two workers then hears.

package proxy

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/upstream"
)

// Prompts that are long enough to be handed over where that is not a must.
var (
	handedChat   = strings.Replace(plainChat, "hi", strings.Repeat("one two three ", 1000), 1)
	handedStream = strings.Replace(streamChat, "hi", strings.Repeat("one two three ", 1000), 1)
)

// autoSettings is handoverSettings with a decode worker that may compute a prompt itself.
func autoSettings(engine string, prefills, decodes []string) *Settings {
	s := handoverSettings(engine, prefills, decodes)
	s.Routing.Disaggregate = kvroute.Auto
	return s
}

// prefillCases are what a prefill worker does wrong, and whether it is its fault.
var prefillCases = []struct {
	name   string
	prefil func(net.Conn, string) bool
	fault  string // label of kvasir_worker_failures_total; "": it is not to blame
	reason string // of kvasir_handover_fallbacks_total
	always int    // status where no fallback is allowed
}{
	{"dies", die, "no_reply", "no_reply", 502},
	{"dies over its reply", sendAndClose("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"), "no_reply", "no_reply", 502},
	{"fails inside", send(httpReply(500, "application/json", `{"error":{"message":"bug"}}`)), "500", "500", 500},
	{"is a bad gateway", send(httpReply(502, "text/html", "")), "502", "502", 502},
	{"is full", send(httpReply(503, "application/json", `{"error":{"message":"full"}}`)), "", "503", 503},
	{"refuses", send(httpReply(400, "application/json", `{"error":{"message":"no","type":"x"}}`)), "", "400", 400},
	{"has no parameters", send(httpReply(200, "application/json", chatReply)), "no_parameters", "no_parameters", 502},
	{"has null for parameters", send(httpReply(200, "application/json", `{"choices":[],"kv_transfer_params":null}`)), "no_parameters", "no_parameters", 502},
	{"lacks the parameter that kills", send(httpReply(200, "application/json", strings.Replace(nixlReply, "remote_request_id", "x", 1))), "no_parameters", "no_parameters", 502},
	{"has null for it", send(httpReply(200, "application/json", strings.Replace(nixlReply, `"remote_request_id":"r"`, `"remote_request_id":null`, 1))), "no_parameters", "no_parameters", 502},
	{"is cut behind its parameters", send(httpReply(200, "application/json", nixlReply[:len(nixlReply)-1])), "no_parameters", "no_parameters", 502},
	{"streams", send(streamHead, chunk(roleEvent), chunk(doneEvent), "0\r\n\r\n"), "no_parameters", "no_parameters", 502},
	{"sends us on", send("HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), "bad_reply", "bad_reply", 502},
}

// The decode worker computes the prompt when the prefill worker did not, with
// the request as it came: the client notices nothing, and no retry is used up.
func TestFailedPrefillFallsBack(t *testing.T) {
	for _, tc := range prefillCases {
		t.Run(tc.name, func(t *testing.T) {
			from := startWorker(t, tc.prefil)
			to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
			s := autoSettings("vllm", []string{from.url}, []string{to.url})
			s.Retry.Attempts = 0
			p := startProxy(t, s)
			a := p.ask(t, "/v1/chat/completions", handedChat)
			if a.StatusCode != 200 || a.body != chatReply || a.Header.Get("x-kvasir-worker") != "w1" {
				t.Errorf("got %d %q of %s", a.StatusCode, a.body, a.Header.Get("x-kvasir-worker"))
			}
			if got := to.seen(); len(got) != 1 || got[0] != handedChat {
				t.Errorf("the decode worker got %q", got)
			}
			if n := len(from.seen()); n != 1 {
				t.Errorf("the prefill worker was asked %d times", n)
			}
			if got := p.metric(t, `kvasir_handover_fallbacks_total{reason="`+tc.reason+`"}`); got != "1" {
				t.Errorf("%q fallbacks are counted", got)
			}
			if got := p.metric(t, `kvasir_worker_failures_total{reason="`+tc.fault+`",worker="w0"}`); tc.fault != "" && got != "1" {
				t.Errorf("%q failures of the prefill worker are counted", got)
			}
			if log := p.log.String(); tc.fault == "" && strings.Contains(p.metricsPage(t), `kvasir_worker_failures_total{`) {
				t.Errorf("a worker is blamed: %s", log)
			}
		})
	}
}

func (p *testProxy) metricsPage(t *testing.T) string {
	t.Helper()
	return fetchFrom(t, p.admin, "/metrics")
}

func TestFailedPrefillWithoutFallback(t *testing.T) {
	for _, tc := range prefillCases {
		t.Run(tc.name, func(t *testing.T) {
			from := startWorker(t, tc.prefil)
			to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
			s := autoSettings("vllm", []string{from.url}, []string{to.url})
			s.Routing.Disaggregate = kvroute.Always
			p := startProxy(t, s)
			if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != tc.always {
				t.Errorf("got %d %q, want %d", a.StatusCode, a.body, tc.always)
			}
			if got := to.seen(); len(got) != 0 {
				t.Errorf("the decode worker got %q", got)
			}
		})
	}
}

// Another prefill worker is tried before the decode worker has to do it.
func TestFailedPrefillGoesToAnother(t *testing.T) {
	bad := startWorker(t, die)
	good := startWorker(t, send(httpReply(200, "application/json", nixlReply)))
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	for _, mode := range []kvroute.Disaggregate{kvroute.Auto, kvroute.Always} {
		s := autoSettings("vllm", []string{bad.url, good.url}, []string{to.url})
		s.Routing.Disaggregate = mode
		p := startProxy(t, s)
		before := len(bad.seen())
		for len(bad.seen()) == before { // round robin begins anywhere
			if a := p.ask(t, "/v1/chat/completions", handedChat); a.body != chatReply {
				t.Fatalf("%s: got %d %q", mode, a.StatusCode, a.body)
			}
		}
		if got := p.metric(t, `kvasir_retries_total{reason="no_reply"}`); got != "1" {
			t.Errorf("%s: %q retries are counted", mode, got)
		}
	}
	for _, body := range to.seen() {
		if !strings.Contains(body, nixlParams) {
			t.Errorf("the decode worker had to prefill: %s", body)
		}
	}
}

// kvLoadFailure is how vLLM says in a stream that the blocks did not come over.
const kvLoadFailure = `data: {"error": {"message": "Internal server error", "type": "InternalServerError", "param": null, "code": 500}}` + "\n\n"

// The blocks that do not come over are computed anew, by the same decode worker:
// it is well, and nobody was sent anything.
func TestFailedTransferIsMadeGood(t *testing.T) {
	whole := roleEvent + delta("a") + finishEvent + doneEvent
	for _, tc := range []struct{ name, client, bad, good, want string }{
		{"streamed", handedStream, streamHead + chunk(roleEvent) + chunk(kvLoadFailure) + chunk(doneEvent) + "0\r\n\r\n", streamHead + chunk(whole) + "0\r\n\r\n", whole},
		{"not streamed", handedChat, httpReply(500, "application/json", `{"error":{"message":"Internal server error","code":500}}`), httpReply(200, "application/json", chatReply), chatReply},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := startWorker(t, send(httpReply(200, "application/json", nixlReply)))
			to := startWorker(t, func(c net.Conn, body string) bool {
				reply := tc.good
				if strings.Contains(body, "kv_transfer_params") {
					reply = tc.bad
				}
				_, err := io.WriteString(c, reply)
				return err == nil
			})
			p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url}))
			a := p.ask(t, "/v1/chat/completions", tc.client)
			if a.StatusCode != 200 || a.err != nil || a.body != tc.want {
				t.Errorf("got %d %q %v", a.StatusCode, a.body, a.err)
			}
			if n, m := len(from.seen()), len(to.seen()); n != 1 || m != 2 {
				t.Errorf("asked %d and %d times", n, m)
			}
			if got := p.metric(t, `kvasir_worker_failures_total{reason="transfer",worker="w0"}`); got != "1" {
				t.Errorf("%q failed transfers are counted", got)
			}
			if got := p.metric(t, `kvasir_retries_total{reason="transfer"}`); got != "1" {
				t.Errorf("%q retries are counted", got)
			}
		})
	}
}

// A decode worker that dies after the hand-over costs a second prefill: what
// the first one said is used once.
func TestDeadDecodeWorkerIsRetriedFromPrefill(t *testing.T) {
	var n atomic.Int32
	from := startWorker(t, func(c net.Conn, _ string) bool {
		reply := strings.Replace(nixlReply, `"remote_request_id":"r"`, `"remote_request_id":"r`+string('0'+n.Add(1))+`"`, 1)
		_, err := io.WriteString(c, httpReply(200, "application/json", reply))
		return err == nil
	})
	bad := startWorker(t, sendAndClose(streamHead, chunk(roleEvent)))
	good := startWorker(t, send(streamHead, chunk(roleEvent), chunk(delta("a")), chunk(finishEvent), chunk(doneEvent), "0\r\n\r\n"))
	p := startProxy(t, autoSettings("vllm", []string{from.url}, []string{bad.url, good.url}))
	for len(bad.seen()) == 0 {
		if a := p.ask(t, "/v1/chat/completions", handedStream); a.err != nil || a.body != roleEvent+delta("a")+finishEvent+doneEvent {
			t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
		}
	}
	used := map[string]bool{}
	for _, body := range append(bad.seen(), good.seen()...) {
		_, rest, _ := strings.Cut(body, `"remote_request_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		if used[id] || id == "" {
			t.Errorf("parameters %q are used twice, or none", id)
		}
		used[id] = true
	}
	if got := p.metric(t, `kvasir_worker_failures_total{reason="no_reply",worker="w1"}`); got != "1" {
		t.Errorf("%q failures of the dead worker are counted", got)
	}
}

// A decode worker of SGLang's that dies over the hand-over may be told by the prefill worker first, whose fault it is not:
// another one is asked. (The client got 500, and five such prompts set the prefill worker aside.)
func TestUnfetchedPromptGoesToAnother(t *testing.T) {
	status := make(chan int, 1) // of the prefill worker, by which other one is asked
	from := startWorker(t, func(c net.Conn, _ string) bool {
		reply := httpReply(200, "application/json", chatReply)
		if <-status == 500 {
			reply = httpReply(500, "application/json", `{"object":"error","message":"Prefill transfer failed for request rank=0 req.rid='a'`+
				` req.bootstrap_room=1 with exception KVTransferError(bootstrap_room=1): the other side is gone","type":"InternalServerError","code":500}`)
		}
		_, err := io.WriteString(c, reply)
		return err == nil
	})
	dead := startWorker(t, func(c net.Conn, _ string) bool {
		status <- 500
		untilClosed(c)
		return false
	})
	good := startWorker(t, func(c net.Conn, _ string) bool {
		status <- 200
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	p := startProxy(t, autoSettings("sglang", []string{from.url}, []string{dead.url, good.url}))
	for len(dead.seen()) == 0 {
		if a := p.ask(t, "/v1/chat/completions", handedChat); a.body != chatReply || a.Header.Get("x-kvasir-worker") != "w2" {
			t.Fatalf("got %d %q of %s", a.StatusCode, a.body, a.Header.Get("x-kvasir-worker"))
		}
	}
	if got := p.metric(t, `kvasir_retries_total{reason="transfer"}`); got != "1" {
		t.Errorf("%q retries are counted", got)
	}
	if page := p.metricsPage(t); strings.Contains(page, `kvasir_worker_failures_total{`) {
		t.Error("a worker is blamed")
	}
}

// A prefill worker that refuses a prompt in which that word is says nothing of the blocks.
func TestRefusedPromptIsNoUnfetchedOne(t *testing.T) {
	refusal := `{"object":"error","message":"no such role: KVTransferError","code":400}`
	from := startWorker(t, send(httpReply(400, "application/json", refusal)))
	silent := func(c net.Conn, _ string) bool { untilClosed(c); return false }
	p := startProxy(t, autoSettings("sglang", []string{from.url}, []string{startWorker(t, silent).url, startWorker(t, silent).url}))
	if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != 400 || !strings.Contains(a.body, "no such role") {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	if n := len(from.seen()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// legs are two workers whose reply a test holds back; each says when it was
// asked and when its connection was closed.
type legs struct {
	from, to            *testWorker
	asked, closed       chan struct{} // of the prefill worker
	askedToo, closedToo chan struct{} // of the decode worker
}

// startLegs starts both; prefilled and firstWord are what they say before they wait.
func startLegs(t *testing.T, prefilled, firstWord string) *legs {
	l := &legs{asked: make(chan struct{}), closed: make(chan struct{}), askedToo: make(chan struct{}), closedToo: make(chan struct{})}
	wait := func(say string, asked, closed chan struct{}) func(net.Conn, string) bool {
		return func(c net.Conn, _ string) bool {
			_, _ = io.WriteString(c, say)
			close(asked)
			untilClosed(c)
			close(closed)
			return false
		}
	}
	l.from = startWorker(t, wait(prefilled, l.asked, l.closed))
	l.to = startWorker(t, wait(firstWord, l.askedToo, l.closedToo))
	return l
}

// A lost client stops whichever leg is under way, and both where both are.
func TestLostClientStopsBothLegs(t *testing.T) {
	const first = streamHead
	for _, tc := range []struct {
		name, engine, prefilled, firstWord, await string
		prefill, decode                           bool // who is under way when the client leaves
	}{
		{"vLLM, in the prefill leg", "vllm", "", "", "", true, false},
		{"vLLM, before the first byte", "vllm", httpReply(200, "application/json", nixlReply), "", "", false, true},
		{"vLLM, after the role", "vllm", httpReply(200, "application/json", nixlReply), first + chunk(roleEvent), "", false, true},
		{"vLLM, between two events", "vllm", httpReply(200, "application/json", nixlReply), first + chunk(roleEvent) + chunk(delta("a")), delta("a"), false, true},
		{"SGLang, before the first byte", "sglang", "", "", "", true, true},
		{"SGLang, after the role", "sglang", "", first + chunk(roleEvent), "", true, true},
		{"SGLang, between two events", "sglang", "", first + chunk(roleEvent) + chunk(delta("a")), delta("a"), true, true},
		{"TensorRT-LLM, in the context leg", "trtllm", "", "", "", true, false},
		{"TensorRT-LLM, in the generation leg", "trtllm", httpReply(200, "application/json", contextReply), "", "", false, true},
	} {
		for _, how := range []string{"close", "reset", "half-close"} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				l := startLegs(t, tc.prefilled, tc.firstWord)
				p := startProxy(t, autoSettings(tc.engine, []string{l.from.url}, []string{l.to.url}))
				c := dial(t, p.addr).(*net.TCPConn)
				_, _ = io.WriteString(c, post("/v1/chat/completions", handedStream))
				<-l.asked
				if tc.decode {
					<-l.askedToo
				}
				if tc.await != "" {
					readUntil(t, c, tc.await)
				}
				left := time.Now()
				switch how {
				case "close":
					_ = c.Close()
				case "reset":
					_ = c.SetLinger(0)
					_ = c.Close()
				case "half-close":
					_ = c.CloseWrite()
				}
				for _, leg := range []struct {
					on     bool
					closed chan struct{}
				}{{tc.prefill, l.closed}, {tc.decode, l.closedToo}} {
					if !leg.on {
						continue
					}
					select {
					case <-leg.closed:
					case <-time.After(patience):
						t.Fatal("a worker's connection is still open")
					}
				}
				t.Logf("both are closed after %v", time.Since(left))
				waitUntil(t, "the request is booked", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
				if got := p.metric(t, `kvasir_handovers_total{result="stopped"}`); got != "1" {
					t.Errorf("%q hand-overs are counted as stopped", got)
				}
				if tc.decode || len(l.to.seen()) == 0 {
					return
				}
				t.Error("the decode worker was asked for nobody")
			})
		}
	}
}

// A prefill worker that fails stops SGLang's decode worker, which would wait for
// its blocks for minutes, and the other way round.
func TestBesideLegsStopEachOther(t *testing.T) {
	closed := make(chan struct{}, 8)
	wait := func(c net.Conn, _ string) bool {
		untilClosed(c)
		closed <- struct{}{}
		return false
	}
	for _, tc := range []struct {
		name   string
		prefil func(net.Conn, string) bool
		status int // SGLang's decode workers cannot do without
	}{
		{"dies", die, 502},
		{"fails", send(httpReply(500, "application/json", `{"error":{"message":"bug"}}`)), 500},
		{"refuses", send(httpReply(400, "application/json", `{"object":"error","message":"too long"}`)), 400},
		{"gives it up", send(httpReply(200, "application/json", strings.Replace(chatReply, `"stop"`, `"abort"`, 1))), 502},
	} {
		t.Run("the prefill worker "+tc.name, func(t *testing.T) {
			asked := make(chan struct{})
			from := startWorker(t, func(c net.Conn, body string) bool {
				<-asked // else the decode worker would not be
				return tc.prefil(c, body)
			})
			to := startWorker(t, func(c net.Conn, body string) bool {
				if strings.Contains(body, "bootstrap_room") {
					close(asked)
					return wait(c, body)
				}
				_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
				return err == nil
			})
			p := startProxy(t, autoSettings("sglang", []string{from.url}, []string{to.url}))
			if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != tc.status {
				t.Errorf("got %d %q", a.StatusCode, a.body)
			}
			<-closed
		})
	}
	t.Run("the decode worker dies", func(t *testing.T) {
		asked := make(chan struct{})
		from := startWorker(t, func(c net.Conn, body string) bool {
			close(asked)
			return wait(c, body)
		})
		bad := startWorker(t, func(net.Conn, string) bool {
			<-asked
			return false
		})
		s := autoSettings("sglang", []string{from.url}, []string{bad.url})
		p := startProxy(t, s)
		if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != 502 {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
		<-closed
	})
}

// What the prefill worker's reply took out of the pool of connections comes back.
func TestHandoverKeepsConnections(t *testing.T) {
	for engine, reply := range map[string]string{"vllm": nixlReply, "sglang": chatReply, "trtllm": contextReply} {
		var conns atomic.Int32
		var seen sync.Map // net.Conn -> true
		from := startWorker(t, func(c net.Conn, _ string) bool {
			if _, known := seen.LoadOrStore(c, true); !known {
				conns.Add(1)
			}
			_, err := io.WriteString(c, httpReply(200, "application/json", reply))
			return err == nil
		})
		to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
		p := startProxy(t, autoSettings(engine, []string{from.url}, []string{to.url}))
		const requests = 20
		for i := range requests {
			if a := p.ask(t, "/v1/chat/completions", handedChat); a.body != chatReply {
				t.Fatalf("%s: got %d %q", engine, a.StatusCode, a.body)
			}
			// A leg that runs beside may give its connection back behind the answer.
			waitUntil(t, "it is booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="done"}`) == strconv.Itoa(i+1) })
		}
		// A few: probes borrow them, and what is booked is given back a moment later.
		if n := conns.Load(); n > requests/2 {
			t.Errorf("%s: %d connections to the prefill worker", engine, n)
		}
	}
}

// A hand-over waits neither for ever nor too long: what the prefill worker said
// is not used after Connector.Good, nor when it was gone meanwhile.
func TestWhatWasSaidExpires(t *testing.T) {
	const good = 20 * time.Second
	now := time.Now()
	for _, tc := range []struct {
		name    string
		said    time.Time
		life    uint64
		expired bool
	}{
		{"fresh", now.Add(-time.Second), 0, false},
		{"nothing is used of it", time.Time{}, 3, false},
		{"20 s", now.Add(-good), 0, false},
		{"later", now.Add(-good - 1), 0, true},
		{"the server was gone", now, 1, true},
	} {
		h := &handover{by: &upstream.Connector{Good: good}, from: &backend{Worker: &upstream.Worker{}}, said: tc.said}
		h.from.Life.Store(tc.life)
		h.decode.h, h.prefill.h = h, h
		if got := h.expired(now); got != tc.expired {
			t.Errorf("%s: expired is %t", tc.name, got)
		}
		if tc.name != "20 s" {
			if got := h.decode.Bind(io.NopCloser(nil)); got == tc.expired {
				t.Errorf("%s: the decode leg is bound: %t", tc.name, got)
			}
		}
		if !h.prefill.Bind(io.NopCloser(nil)) {
			t.Errorf("%s: the prefill leg is not bound", tc.name)
		}
	}
}

// An answer to what was sent too late is not the client's, however it looks.
func TestAnswerToWhatWasSentTooLate(t *testing.T) {
	x := &exchange{}
	h := &handover{x: x, by: &upstream.Connector{Good: 20 * time.Second}, from: &backend{Worker: &upstream.Worker{}}, said: time.Now()}
	x.call.Sent = h.said.Add(h.by.Good)
	if err := h.commit(); err != nil {
		t.Errorf("in time: %v", err)
	}
	h.committed = false
	x.call.Heard = x.call.Sent.Add(time.Minute)
	if err := h.commit(); err != nil {
		t.Errorf("a whole answer may take its time: %v", err)
	}
	h.committed, x.facts.streamed = false, true
	if err := h.commit(); !errors.Is(err, errExpired) || !h.late {
		t.Errorf("read too late: %v", err)
	}
	h.late, x.facts.streamed = false, false
	x.call.Sent = x.call.Sent.Add(1)
	if err := h.commit(); !errors.Is(err, errExpired) || !h.late {
		t.Errorf("sent too late: %v", err)
	}
}

// A prefill worker that is gone between its reply and the decode leg is asked anew.
func TestRestartedPrefillWorkerIsAskedAnew(t *testing.T) {
	var p *testProxy
	var restarted atomic.Bool
	from := startWorker(t, func(c net.Conn, _ string) bool {
		if !restarted.Swap(true) {
			for w, b := range p.state.Load().backends {
				if w.Name() == "w0" {
					b.Life.Add(1)
				}
			}
		}
		_, err := io.WriteString(c, httpReply(200, "application/json", nixlReply))
		return err == nil
	})
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p = startProxy(t, autoSettings("vllm", []string{from.url}, []string{to.url}))
	if a := p.ask(t, "/v1/chat/completions", handedChat); a.StatusCode != 200 || a.body != chatReply {
		t.Fatalf("got %d %q", a.StatusCode, a.body)
	}
	if n, m := len(from.seen()), len(to.seen()); n != 2 || m != 1 {
		t.Errorf("asked %d and %d times", n, m)
	}
	if got := p.metric(t, `kvasir_handovers_total{result="expired"}`); got != "1" {
		t.Errorf("%q hand-overs have expired", got)
	}
}

// Workers of different engines do not hand over, and say so once.
func TestDifferentEnginesKeepApart(t *testing.T) {
	from := startWorker(t, send(httpReply(200, "application/json", nixlReply)))
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	s := autoSettings("vllm", []string{from.url}, []string{to.url})
	s.Workers[0].Engine = "sglang"
	p := startProxy(t, s)
	for range 2 {
		if a := p.ask(t, "/v1/chat/completions", handedChat); a.body != chatReply {
			t.Errorf("got %d %q", a.StatusCode, a.body)
		}
	}
	if got := p.metric(t, `kvasir_handover_fallbacks_total{reason="no_protocol"}`); got != "2" {
		t.Errorf("%q are counted", got)
	}
	if n := strings.Count(p.log.String(), "cannot hand a request over"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}

// A prefill worker that has died since it computed a prompt stays ejected when that prompt's answer ends. (Each end of
// an answer had it tried again, so that the retries were used up by requests that it could not take.)
func TestEndOfAnAnswerRaisesNoDead(t *testing.T) {
	asked, hold := make(chan struct{}), make(chan struct{})
	for engine, reply := range map[string]string{"vllm": nixlReply, "sglang": chatReply} {
		from := startWorker(t, send(httpReply(200, "application/json", reply)))
		to := startWorker(t, func(c net.Conn, _ string) bool {
			asked <- struct{}{}
			<-hold
			_, _ = io.WriteString(c, streamHead+chunk(roleEvent)+chunk(delta("a")))
			<-hold
			_, err := io.WriteString(c, chunk(finishEvent+doneEvent)+"0\r\n\r\n")
			return err == nil
		})
		p := startProxy(t, autoSettings(engine, []string{from.url}, []string{to.url}))
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, post("/v1/chat/completions", handedStream))
		b := p.backendOf(t, "w0")
		b.stop() // a good probe would raise it
		<-asked
		waitUntil(t, "the prompt is computed", func() bool { return b.Active() == 0 })
		hold <- struct{}{}
		readUntil(t, c, delta("a"))
		for range 5 {
			b.Failed(time.Now(), "connect")
		}
		hold <- struct{}{}
		readUntil(t, c, doneEvent)
		waitUntil(t, "the hand-over is booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="done"}`) == "1" })
		if got := b.Status(time.Now()).State; got != kvroute.Ejected {
			t.Errorf("%s: the prefill worker is %v", engine, got)
		}
	}
}

// The prompt's worker has an empty slot as soon as it is done.
func TestPrefillSlotIsFreeWhileTheAnswerStreams(t *testing.T) {
	hold := make(chan struct{})
	for engine, reply := range map[string]string{"vllm": nixlReply, "sglang": chatReply} {
		from := startWorker(t, send(httpReply(200, "application/json", reply)))
		to := startWorker(t, func(c net.Conn, _ string) bool {
			_, _ = io.WriteString(c, streamHead+chunk(roleEvent)+chunk(delta("a")))
			<-hold
			_, err := io.WriteString(c, chunk(finishEvent+doneEvent)+"0\r\n\r\n")
			return err == nil
		})
		p := startProxy(t, autoSettings(engine, []string{from.url}, []string{to.url}))
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, post("/v1/chat/completions", handedStream))
		readUntil(t, c, delta("a"))
		active := func(name string) int {
			for w := range p.state.Load().backends {
				if w.Name() == name {
					return w.Active()
				}
			}
			return -1
		}
		waitUntil(t, "the prefill worker is free", func() bool { return active("w0") == 0 })
		if n := active("w1"); n != 1 {
			t.Errorf("%s: %d requests at the decode worker", engine, n)
		}
		hold <- struct{}{}
		readUntil(t, c, doneEvent)
		waitUntil(t, "the decode worker is free", func() bool { return active("w1") == 0 })
	}
}
