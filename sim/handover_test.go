// vLLM's hand-over between two simulated workers over HTTP, compared with recordings of two real
// ones.

package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute/kvevents"
)

const chat = "/v1/chat/completions"

// pair is a prefill and a decode worker.
type pair struct {
	t      *testing.T
	p, d   *Server
	pa, da string // their addresses
}

func newPair(t *testing.T, p, d Options) *pair {
	t.Helper()
	for o, role := range map[*Options]string{&p: "prefill", &d: "decode"} {
		o.Name, o.Model, o.Role = "w", "tiny-qwen", role
		o.BlockSize = 32
		o.MaxModelLen = orDefault(o.MaxModelLen, 8192)
		o.Speedup = orDefault(o.Speedup, 1000)
	}
	x := &pair{t: t}
	x.pa, x.p = startServer(t, p)
	x.da, x.d = startServer(t, d)
	return x
}

const prefillParams = `{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,` +
	`"remote_block_ids":null,"remote_host":null,"remote_port":null}`

// ask returns a chat request with a long prompt that starts with name.
func (x *pair) ask(name, fields string) string {
	return `{"messages":[{"role":"user","content":"` + name + strings.Repeat(" one two three four five", 40) + `"}],` + fields + `}`
}

// prefill runs the first leg and returns the parameters in its reply.
func (x *pair) prefill(name string) (params string) {
	x.t.Helper()
	r := parseReply(x.t, post(x.t, x.pa, chat, x.ask(name, `"max_tokens":1,"kv_transfer_params":`+prefillParams)))
	return paramsOf(x.t, r)
}

func paramsOf(t *testing.T, r reply) string {
	t.Helper()
	var body struct {
		Params json.RawMessage `json:"kv_transfer_params"`
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || len(body.Params) < 10 {
		t.Fatalf("%v in %s %s", err, r.status, r.body)
	}
	return string(body.Params)
}

// decode runs the second leg.
func (x *pair) decode(name, params string) reply {
	x.t.Helper()
	return parseReply(x.t, post(x.t, x.da, chat, x.ask(name, `"max_tokens":24,"kv_transfer_params":`+params)))
}

// plain returns the answer of a separate decode worker without a hand-over and with an empty
// cache.
func (x *pair) plain(name string) string {
	x.t.Helper()
	address, s := startServer(x.t, x.d.options)
	defer s.Close()
	return textOf(x.t, parseReply(x.t, post(x.t, address, chat, x.ask(name, `"max_tokens":24`))))
}

func textOf(t *testing.T, r reply) string {
	t.Helper()
	var body struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || len(body.Choices) != 1 {
		t.Fatalf("%v in %s %s", err, r.status, r.body)
	}
	return body.Choices[0].Message.Content
}

// counters checks the workers' counters: expired and late of the prefill worker, failed of the
// decode worker.
func (x *pair) counters(expired, late, failed int) {
	x.t.Helper()
	p, d := metricsOf(x.t, x.pa), metricsOf(x.t, x.da)
	const labels = `{engine="0",model_name="tiny-qwen"} `
	for _, c := range []struct {
		page, name string
		want       int
	}{
		{p, "vllm:nixl_num_kv_expired_reqs_total", expired}, {p, "vllm:nixl_num_notifications_after_expiry_total", late},
		{d, "vllm:nixl_num_failed_transfers_total", failed},
	} {
		if want := "\n" + c.name + labels + itoa(c.want) + ".0\n"; !strings.Contains(c.page, want) {
			x.t.Errorf("no %q in the metrics", want)
		}
	}
}

func metricsOf(t *testing.T, address string) string {
	t.Helper()
	_, page, _ := strings.Cut(string(exchange(t, address, []byte("GET /metrics HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n"))), "\r\n\r\n")
	return page
}

// idle waits until neither worker has a request or a block in use.
func (x *pair) idle() {
	x.t.Helper()
	for _, s := range []*Server{x.p, x.d} {
		until(x.t, s.options.Role+" is idle", func() bool {
			st := stats(s)
			return st.Running+st.Waiting+st.Held+st.ActiveBlocks == 0
		})
	}
}

var anyParams = regexp.MustCompile(`"kv_transfer_params":\{"do_remote_prefill":true.*\}\}$`)

// TestHandOverWire plays the recorded legs and compares the replies with vLLM's, in the order of
// the recording. A decode leg is sent the parameters that our own prefill worker gave for the leg
// before it.
func TestHandOverWire(t *testing.T) {
	x := newPair(t, Options{}, Options{})
	params := ""
	for _, leg := range []struct {
		name   string
		worker string
		warm   bool // the same request came before
	}{
		{name: "1_prefill", worker: x.pa}, {name: "2_decode", worker: x.da}, {name: "5_agg_reference", worker: x.pa},
		{name: "3_prefill", worker: x.pa}, {name: "4_decode_stream", worker: x.da},
		{name: "6_prefill_stream_true", worker: x.pa},
		{name: "7_prefill_warm", worker: x.pa, warm: true}, {name: "8_decode_after_warm_prefill", worker: x.da},
		{name: "9_decode_params_reused", worker: x.da},
		{name: "12_prefill_longer", worker: x.pa}, {name: "13_decode_prefix_local_rest_remote", worker: x.da},
		{name: "14_prefill_short", worker: x.pa}, {name: "15_decode_short", worker: x.da},
		{name: "16_prefill_error_unknown_model", worker: x.pa}, {name: "18_params_not_object", worker: x.da},
		{name: "19_params_do_remote_decode_on_decode_only", worker: x.da},
		{name: "23_decode_wrong_engine_id", worker: x.da}, {name: "24_decode_stream_kv_load_failure", worker: x.da},
	} {
		t.Run(leg.name, func(t *testing.T) {
			request := readFile(t, "testdata/vllm/pd/"+leg.name+".request")
			if leg.warm {
				exchange(t, leg.worker, request)
			}
			number, _, _ := strings.Cut(leg.name, "_")
			head, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
			if anyParams.Match(body) {
				mine := params
				if number == "23" || number == "24" {
					mine = regexp.MustCompile(`"remote_engine_id":"[^"]*"`).ReplaceAllString(params,
						`"remote_engine_id":"11111111-2222-3333-4444-555555555555"`)
				}
				body = anyParams.ReplaceAllLiteral(body, []byte(`"kv_transfer_params":`+mine+`}`))
				head = regexp.MustCompile(`Content-Length: \d+`).ReplaceAll(head, []byte("Content-Length: "+itoa(len(body))))
				request = append(append(head, "\r\n\r\n"...), body...)
			}
			got := parseReply(t, exchange(t, leg.worker, request))
			want := parseReply(t, readFile(t, "testdata/vllm/pd/"+leg.name+".response"))
			compareReplies(t, leg.name, got, want)
			if strings.Contains(got.body, `"kv_transfer_params":{"do_remote_prefill":true`) {
				params = paramsOf(t, got)
			}
			checkCached(t, leg.name, got, want)
		})
	}
	x.counters(0, 1, 2) // 9 used parameters twice; 23 and 24 failed
	x.p.driver.mu.Lock()
	defer x.p.driver.mu.Unlock()
	if n := len(x.p.driver.leases.held); n != 2 { // those of 6, whose parameters nobody used, and of 7's first run
		t.Errorf("%d leases are left, want 2", n)
	}
}

// checkCached compares whether a reply has cached_tokens with whether vLLM's has; not the number,
// because our tokens differ. Number 5 has a prompt that was prefilled before.
func checkCached(t *testing.T, name string, got, want reply) {
	t.Helper()
	for _, count := range []string{"cached_tokens", "created_cache_tokens"} {
		nonzero := regexp.MustCompile(`"` + count + `":[1-9]`)
		if g, w := nonzero.MatchString(got.body), nonzero.MatchString(want.body); g != w {
			t.Errorf("%s: %s above 0 is %v, vLLM %v", name, count, g, w)
		}
	}
}

// The text, including the first token, equals that of one server; the decode worker computes
// nothing of the prompt.
func TestHandOverIsTheSameText(t *testing.T) {
	x := newPair(t, Options{}, Options{Events: true})
	params := x.prefill("Same.")
	if st := stats(x.p); st.Held != 1 || st.ActiveBlocks == 0 {
		t.Errorf("after the prefill: %+v", st)
	}
	got := x.decode("Same.", params)
	if g, w := textOf(t, got), x.plain("Same."); g != w || g == "" {
		t.Errorf("the hand-over gives %q, one server %q", g, w)
	}
	x.idle()
	x.counters(0, 0, 0)
	page := metricsOf(t, x.da)
	for source, want := range map[string]bool{"local_compute": false, "local_cache_hit": false, "external_kv_transfer": true} {
		line := regexp.MustCompile(`prompt_tokens_by_source_total\{engine="0",model_name="tiny-qwen",source="` + source + `"\} (\d+)\.0\n`)
		if m := line.FindStringSubmatch(page); m == nil || (m[1] != "0") != want {
			t.Errorf("source %s: %q", source, m)
		}
	}

	// A longer prompt with the same beginning: the decode worker fetches only the rest, and still
	// reports P's cached tokens.
	params = x.prefill("Same.")
	if !strings.Contains(x.decode("Same.", params).body, `"cached_tokens":2`) { // P's cached tokens, about 200; not D's
		t.Error("the decode worker does not report the prefill worker's cached tokens")
	}

	// Pulled blocks are in the cache and in the events, on the device tier.
	x.d.driver.mu.Lock()
	defer x.d.driver.mu.Unlock()
	heard := &cache{t: t, tokens: map[uint64][]uint32{}}
	for seq, payload := range x.d.driver.publisher.kept {
		if _, err := new(kvevents.Decoder).Decode(payload, heard); err != nil {
			t.Fatalf("event %d: %v", seq, err)
		}
	}
	prompt := x.d.driver.engine.Stats().QueriedTokens / 2
	if heard.stored < prompt/32 || len(heard.tokens) != x.d.driver.engine.pool.cached.n {
		t.Errorf("%d blocks stored, %d in the cache, for a prompt of %d tokens", heard.stored,
			x.d.driver.engine.pool.cached.n, prompt)
	}
}

// A text completion is handed over like a chat.
func TestHandOverOfACompletion(t *testing.T) {
	x := newPair(t, Options{}, Options{})
	prompt := `"prompt":"` + strings.Repeat("word ", 100) + `"`
	r := parseReply(t, post(t, x.pa, "/v1/completions", `{`+prompt+`,"max_tokens":1,"kv_transfer_params":`+prefillParams+`}`))
	params := paramsOf(t, r)
	if !strings.Contains(params, `"remote_request_id":"cmpl-`) {
		t.Error(params)
	}
	got := parseReply(t, post(t, x.da, "/v1/completions", `{`+prompt+`,"max_tokens":4,"stream":true,"kv_transfer_params":`+params+`}`))
	if len(got.events) != 5 || !got.ended {
		t.Errorf("%d events, ended %v", len(got.events), got.ended)
	}
	x.idle()
}

func TestDeadPrefillWorker(t *testing.T) {
	x := newPair(t, Options{}, Options{TransferTimeout: 100 * time.Millisecond})
	params := x.prefill("Dead.")
	x.p.Close()
	begin := time.Now()
	got := x.decode("Dead.", params)
	want := parseReply(t, readFile(t, "testdata/vllm/pd/11_decode_remote_port_closed.response"))
	compareReplies(t, "11", got, want)
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("it failed after %v, before the time was over", took)
	}
	until(t, "the decode worker is idle", func() bool { st := stats(x.d); return st.ActiveBlocks+st.Loading+st.Waiting == 0 })
	if page := metricsOf(t, x.da); !strings.Contains(page, "failed_transfers_total{engine=\"0\",model_name=\"tiny-qwen\"} 1.0\n") {
		t.Error("the failure is not counted")
	}
}

// A worker restarted at the same port is another engine.
func TestRestartedPrefillWorker(t *testing.T) {
	x := newPair(t, Options{}, Options{TransferTimeout: time.Minute})
	params := x.prefill("Again.")
	o := x.p.options
	o.SideChannel = x.p.sideAt.String()
	x.p.Close()
	again := &pair{t: t, d: x.d, da: x.da}
	again.pa, again.p = startServer(t, o)
	until(t, "the port is free", func() bool { // another process may have it for a moment
		_, _, err := again.p.openSide()
		return err == nil
	})
	if after := again.prefill("Again."); strings.Contains(params, again.p.engineID) || !strings.Contains(after, again.p.engineID) {
		t.Errorf("engine %s, before %s, after %s", again.p.engineID, params, after)
	}
	if got := x.decode("Again.", params); got.status != "500 Internal Server Error" {
		t.Errorf("%s %s", got.status, got.body)
	}
}

func TestExpiredLease(t *testing.T) {
	x := newPair(t, Options{Lease: time.Millisecond, Blocks: 24, MaxModelLen: 768}, Options{})
	params := x.prefill("Late.")
	until(t, "the lease ends", func() bool { return stats(x.p).Held == 0 })
	want := x.plain("Late.")
	if got := textOf(t, x.decode("Late.", params)); got != want {
		t.Errorf("blocks that nobody used since give %q, want %q", got, want)
	}
	x.counters(1, 1, 0)

	params = x.prefill("Reused.")
	until(t, "the lease ends", func() bool { return stats(x.p).Held == 0 })
	for _, other := range []string{"a", "b", "c", "d"} {
		post(t, x.pa, chat, x.ask(other, `"max_tokens":4`))
	}
	got := x.decode("Reused.", params)
	if got.status != "200 OK" || textOf(t, got) == x.plain("Reused.") {
		t.Errorf("blocks that others use now give %s %s", got.status, got.body)
	}
	x.counters(2, 2, 0)
	x.idle()
}

// The parameters of one prompt, sent with another prompt: vLLM reads the blocks that the ids
// name, and its answer fits their content.
func TestParametersOfAnotherPrompt(t *testing.T) {
	x := newPair(t, Options{}, Options{})
	params := x.prefill("One.")
	got := x.decode("Two.", params)
	if got.status != "200 OK" || textOf(t, got) == x.plain("Two.") {
		t.Errorf("%s %s", got.status, got.body)
	}
	x.counters(0, 0, 0)
}

// Without a required field the request hangs, and the engine dies when its client leaves: the
// worst behaviour observed on vLLM.
func TestMissingFieldKillsTheEngine(t *testing.T) {
	for _, field := range []string{"remote_request_id", "remote_engine_id", "remote_host", "remote_port", "remote_block_ids"} {
		t.Run(field, func(t *testing.T) {
			x := newPair(t, Options{}, Options{Speedup: 1})
			params := strings.Replace(x.prefill("Hang."), `"`+field+`":`, `"x_`+field+`":`, 1)
			conn := x.open(x.da, x.ask("Hang.", `"max_tokens":24,"kv_transfer_params":`+params))
			until(t, "it waits", func() bool { return stats(x.d).Loading == 1 })
			streamed := x.open(x.da, x.ask("Other.", `"max_tokens":8000,"ignore_eos":true,"stream":true`))
			whole := x.open(x.da, x.ask("Other.", `"max_tokens":8000,"ignore_eos":true`))
			until(t, "the others run", func() bool { return stats(x.d).Running == 2 })
			conn.Close()

			raw, _ := io.ReadAll(streamed)
			got := parseReply(t, raw)
			const last = `data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", ` +
				`"type": "InternalServerError", "param": null, "code": 500}}` + "\n\n"
			if n := len(got.events); n < 2 || got.events[n-2] != last || got.events[n-1] != string(doneEvent) || !got.ended {
				t.Errorf("the stream ends with %q", got.events[max(n-2, 0):])
			}
			raw, _ = io.ReadAll(whole)
			compareReplies(t, "dead", parseReply(t, raw), parseReply(t, readFile(t, "testdata/vllm/pd/err_engine_dead_500.response")))
			until(t, "nobody listens", func() bool {
				conn, err := net.Dial("tcp", x.da)
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
			if got := parseReply(t, post(t, x.pa, chat, x.ask("Other.", `"max_tokens":4`))); got.status != "200 OK" {
				t.Errorf("the prefill worker says %s", got.status)
			}
		})
	}
}

// open sends a request and returns the connection.
func (x *pair) open(address, body string) net.Conn {
	x.t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(rawPost(chat, body, "Connection: close")); err != nil {
		x.t.Fatal(err)
	}
	return conn
}

// When a client leaves at any step, both workers free its blocks.
func TestLostClientOfAHandOver(t *testing.T) {
	t.Run("in the prefill", func(t *testing.T) {
		x := newPair(t, Options{Speedup: 0.001}, Options{})
		conn := x.open(x.pa, x.ask("Lost.", `"max_tokens":1,"kv_transfer_params":`+prefillParams))
		until(t, "it runs", func() bool { return stats(x.p).Running == 1 })
		conn.Close()
		x.idle()
	})
	t.Run("in the transfer", func(t *testing.T) {
		x := newPair(t, Options{}, Options{Bandwidth: 1e-6, Speedup: 1})
		conn := x.open(x.da, x.ask("Lost.", `"max_tokens":24,"kv_transfer_params":`+x.prefill("Lost.")))
		until(t, "it waits", func() bool { return stats(x.d).Loading == 1 })
		conn.Close()
		x.idle()
		x.counters(0, 0, 0)
	})
	t.Run("before there is room", func(t *testing.T) {
		x := newPair(t, Options{}, Options{Blocks: 256, Speedup: 0.001})
		big := x.open(x.da, x.ask("Big.", `"max_tokens":8000,"ignore_eos":true,"n":20`))
		until(t, "it is full", func() bool { return stats(x.d).Waiting > 0 })
		body := x.ask("Lost.", `"max_tokens":24,"stream":true,"kv_transfer_params":`+x.prefill("Lost."))
		waiting := stats(x.d).Waiting
		conn := x.open(x.da, body)
		until(t, "it waits", func() bool { return stats(x.d).Waiting > waiting })
		conn.Close()
		until(t, "the lease is gone", func() bool { return stats(x.p).Held == 0 })
		big.Close()
		x.idle()
		x.counters(0, 0, 0)
	})
}

// While a decode worker has no room, it asks the prefill worker to keep the blocks.
func TestHeartbeat(t *testing.T) {
	heard := make(chan string, 100_000)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case heard <- r.URL.Path + " " + string(body):
		default:
		}
	}))
	defer fake.Close()
	x := newPair(t, Options{}, Options{Blocks: 256, Speedup: 0.001, Lease: 6 * time.Millisecond})
	x.open(x.da, x.ask("Big.", `"max_tokens":8000,"ignore_eos":true,"n":20`))
	until(t, "it is full", func() bool { return stats(x.d).Waiting > 0 })
	_, port, _ := net.SplitHostPort(fake.Listener.Addr().String())
	conn := x.open(x.da, x.ask("Beat.", `"max_tokens":2,"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":[[1]],`+
		`"remote_engine_id":"e","remote_request_id":"r","remote_host":"127.0.0.1","remote_port":`+port+`}`))
	const ids = `{"engine_id":"e","request_id":"r"}`
	for range 2 {
		if got := <-heard; got != sideBeat+" "+ids {
			t.Fatal(got)
		}
	}
	conn.Close()
	for got := range heard {
		if got == sideFree+" "+ids {
			break
		}
	}

	l := leases{length: 30 * time.Second, held: map[string]*lease{}}
	e := New(Options{})
	l.hold("r", &Sequence{}, 0)
	l.extend("r", 15*time.Second)
	l.extend("nobody", 15*time.Second)
	if next := l.expire(e, 30*time.Second); next != 35*time.Second || l.expired != 0 {
		t.Errorf("a lease of 30 s that was renewed after 15 s ends at %v", next)
	}
	if l.expire(e, 35*time.Second); l.expired != 1 || len(l.held) != 0 {
		t.Errorf("%d expired, %d left", l.expired, len(l.held))
	}
}

// Wrong fields of a valid object are noticed only when they are used, as in vLLM.
func TestWrongParameters(t *testing.T) {
	x := newPair(t, Options{}, Options{TransferTimeout: 10 * time.Millisecond})
	for _, change := range [][2]string{
		{`"remote_port":`, `"remote_port":"no","was":`}, {`"remote_block_ids":[[`, `"remote_block_ids":[[1],[`},
		{`"remote_block_ids":[[1`, `"remote_block_ids":[[99999`}, {`"remote_block_ids":[[`, `"remote_block_ids":[["a",`},
		{`"remote_engine_id":"`, `"remote_engine_id":"x`}, {`"remote_host":"`, `"remote_host":"::no such host::`},
	} {
		o := x.p.options
		fresh := &pair{t: t, d: x.d, da: x.da}
		fresh.pa, fresh.p = startServer(t, o)
		params := fresh.prefill("Wrong.")
		changed := strings.Replace(params, change[0], change[1], 1)
		if changed == params {
			t.Fatalf("no %s in %s", change[0], params)
		}
		if got := x.decode("Wrong.", changed); got.status != "500 Internal Server Error" {
			t.Errorf("%s: %s %s", change[1], got.status, got.body)
		}
	}
	for _, harmless := range []string{`{}`, `null`, `{"do_remote_prefill":false}`, `{"anything":[1]}`} {
		if got := x.decode("Fine.", harmless); got.status != "200 OK" || !strings.Contains(got.body, `"kv_transfer_params":null`) {
			t.Errorf("%s: %s %s", harmless, got.status, got.body)
		}
	}
	for _, refused := range []string{`[]`, `1`, `true`, `"x"`} {
		if got := x.decode("Fine.", refused); got.status != "400 Bad Request" || !strings.Contains(got.body, "dict_type") {
			t.Errorf("%s: %s %s", refused, got.status, got.body)
		}
	}
}

// The side channel refuses requests that are not for it.
func TestSideChannel(t *testing.T) {
	x := newPair(t, Options{}, Options{})
	params := x.prefill("Side.")
	host, port, err := x.p.openSide()
	if err != nil || !strings.Contains(params, `"remote_port":`+itoa(port)) {
		t.Fatalf("%v, port %d in %s", err, port, params)
	}
	address := net.JoinHostPort(host, itoa(port))
	id := x.p.engineID
	for _, c := range []struct{ path, body, status string }{
		{sideRead, `{"engine_id":"` + id + `","request_id":"r","blocks":[1,2]}`, "200 OK"},
		{sideRead, `{"engine_id":"` + id + `","request_id":"r","blocks":[0]}`, "400 Bad Request"},
		{sideRead, `{"engine_id":"` + id + `","request_id":"r","blocks":[16385]}`, "400 Bad Request"},
		{sideRead, `{"engine_id":"x","request_id":"r","blocks":[1]}`, "409 Conflict"},
		{sideRead, `{"engine_id":"` + id + `","more":1}`, "400 Bad Request"},
		{sideBeat, `{"engine_id":"` + id + `","request_id":"r"}`, "204 No Content"},
		{"/v1/chat/completions", `{"engine_id":"` + id + `"}`, "400 Bad Request"},
	} {
		if got := parseReply(t, post(t, address, c.path, c.body)); got.status != c.status {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got.status, c.status)
		}
	}
	if got := parseReply(t, exchange(t, address, []byte("GET / HTTP/1.0\r\n\r\n"))); got.status != "400 Bad Request" {
		t.Error(got.status)
	}
}

func TestTransferTime(t *testing.T) {
	o := Options{BlockSize: 16}.withDefaults()
	if got, want := o.transferTime(1000), 41943040*time.Nanosecond; got != want { // 16,000 tokens of 128 KiB at 50 GB/s
		t.Errorf("%v, want %v", got, want)
	}
	x := newPair(t, Options{}, Options{Bandwidth: 1, Speedup: 1, TransferTimeout: time.Minute})
	params := x.prefill("Time.")
	begin := time.Now()
	x.decode("Time.", params)
	blocks := strings.Count(params[:strings.Index(params, "]]")], ",") - 1
	if took, least := time.Since(begin), x.d.options.transferTime(blocks); took < least || least < 20*time.Millisecond {
		t.Errorf("%d blocks came within %v, the transfer alone takes %v", blocks, took, least)
	}
}

func FuzzSideChannel(f *testing.F) {
	f.Add([]byte(`{"engine_id":"e","request_id":"r","blocks":[1,2,3]}`))
	f.Add([]byte(`{"contents":[18446744073709551615,0]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if a, err := decodeAsk(body); err == nil {
			again, err := json.Marshal(a)
			if b, err2 := decodeAsk(again); err != nil || err2 != nil || len(b.Blocks) != len(a.Blocks) {
				t.Fatalf("%+v: %v, %v", a, err, err2)
			}
		}
		if contents, err := decodeContents(body, 2); err == nil && len(contents) != 2 {
			t.Fatalf("%d contents", len(contents))
		}
	})
}

func FuzzTransfer(f *testing.F) {
	f.Add([]byte(`{"do_remote_prefill":true,"remote_block_ids":[[1,2]],"remote_engine_id":"e","remote_request_id":"r","remote_host":"h","remote_port":1}`))
	f.Add([]byte(`{"do_remote_decode":1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, params []byte) {
		fields := decodeFields([]byte(`{"kv_transfer_params":` + string(params) + `}`))
		if fields.failure != nil {
			return
		}
		x := readTransfer(fields)
		if x != nil && (fields.failure != nil || !x.hold && !x.load) {
			t.Fatalf("%+v and %v", x, fields.failure)
		}
	})
}
