// The server as its clients see it: answers, faults, lost clients, and the end.

package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start serves a worker on a loopback port until the test ends.
func start(t testing.TB, o Options) (address string) {
	t.Helper()
	address, _ = startServer(t, o)
	return address
}

func startServer(t testing.TB, o Options) (address string, s *Server) {
	t.Helper()
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String(), s
}

// hello returns a small chat request with additional fields.
func hello(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"messages":[{"role":"user","content":"Name three colours."}]` + fields + `}`
}

func TestAnswersAreDeterministic(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	content := func(body string) string {
		var r struct {
			Choices []struct{ Message struct{ Content string } }
		}
		reply := parseReply(t, post(t, address, "/v1/chat/completions", body))
		if err := json.Unmarshal([]byte(reply.body), &r); err != nil {
			t.Fatalf("%v in %s", err, reply.body)
		}
		text := ""
		for _, c := range r.Choices {
			text += c.Message.Content + "\n"
		}
		return text
	}
	first := content(hello(""))
	if again := content(hello("")); again != first {
		t.Errorf("the same request gives %q and %q", first, again)
	}
	for _, other := range []string{hello(`"seed":1`), hello(`"n":2`), `{"messages":[{"role":"user","content":"Hi"}]}`} {
		if content(other) == first {
			t.Errorf("%s gives the same answer", other)
		}
	}
	if two := strings.Split(content(hello(`"n":2`)), "\n"); two[0] == two[1] {
		t.Error("two choices are the same")
	}
}

func TestStreamedIsWhole(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	for _, fields := range []string{`"max_tokens":40`, `"ignore_eos":true,"max_tokens":300`, `"stop":"worker"`, `"seed":3`} {
		whole := parseReply(t, post(t, address, "/v1/chat/completions", hello(fields)))
		streamed := parseReply(t, post(t, address, "/v1/chat/completions", hello(fields+`,"stream":true`)))
		var w struct {
			Choices []struct {
				Message struct{ Content string }
				Reason  string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(whole.body), &w); err != nil {
			t.Fatal(err)
		}
		text, reason := streamText(t, streamed.events)
		if text != w.Choices[0].Message.Content || reason != w.Choices[0].Reason {
			t.Errorf("%s: streamed %q (%s), whole %q (%s)", fields, text, reason,
				w.Choices[0].Message.Content, w.Choices[0].Reason)
		}
	}
}

// streamText joins the text of a chat stream; every event must be one chunk.
func streamText(t *testing.T, events []string) (text, reason string) {
	t.Helper()
	for _, e := range events {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok || !strings.HasSuffix(data, "\n\n") || strings.Count(data, "\n") != 2 {
			t.Fatalf("%q is not one event", e)
		}
		if data == "[DONE]\n\n" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta  struct{ Content string }
				Reason string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v in %q", err, data)
		}
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			reason = orDefault(choice.Reason, reason)
		}
	}
	return text, reason
}

func TestStopString(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	r := parseReply(t, post(t, address, "/v1/completions", `{"prompt":"x","max_tokens":50,"stop":[" answer"]}`))
	if !strings.Contains(r.body, `This is a simulated","logprobs":null,"finish_reason":"stop","stop_reason":" answer"`) {
		t.Error(r.body)
	}
}

// When the model ends by itself, its last token has no text, like a real engine's EOS.
func TestEndByItself(t *testing.T) {
	address := start(t, Options{Speedup: 1000})
	r := parseReply(t, post(t, address, "/v1/chat/completions", hello(`"stream":true`)))
	last := form(r.events[len(r.events)-2])
	if !strings.Contains(last, `"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}],"system_fingerprint":`) {
		t.Error(last)
	}
}

func TestCachedTokens(t *testing.T) {
	address := start(t, Options{Speedup: 1000})
	long := strings.Repeat("one two three four five six seven. ", 40)
	turn := func(messages string) (prompt, cached int, text string) {
		var r struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		reply := parseReply(t, post(t, address, "/v1/chat/completions", `{"messages":[`+messages+`]}`))
		if err := json.Unmarshal([]byte(reply.body), &r); err != nil {
			t.Fatal(err)
		}
		return r.Usage.Prompt, r.Usage.Details.Cached, r.Choices[0].Message.Content
	}
	first := `{"role":"user","content":"` + long + `"}`
	prompt, cached, text := turn(first)
	if cached != 0 {
		t.Errorf("a cold prompt has %d cached tokens", cached)
	}
	if _, cached, _ := turn(first); cached != (prompt-1)/16*16 {
		t.Errorf("a warm prompt of %d has %d cached tokens", prompt, cached)
	}
	answer, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	_, cached, _ = turn(first + `,{"role":"assistant","content":` + string(answer) + `},{"role":"user","content":"And then?"}`)
	if want := prompt + len(appendTokens(nil, text)) - 16; cached < want {
		t.Errorf("the next turn has %d cached tokens of prompt and answer, want at least %d", cached, want)
	}
}

func TestLostClientFreesTheSequence(t *testing.T) {
	for _, fields := range []string{`"stream":true`, `"stream":false`} {
		for _, fault := range []string{"", "hang-after=0", "hang"} {
			t.Run(fields+fault, func(t *testing.T) {
				address, s := startServer(t, Options{Faults: true})
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				body := hello(fields + `,"ignore_eos":true,"max_tokens":30000`)
				if _, err := conn.Write(rawPost("/v1/chat/completions", body, "x-sim-fault: "+fault)); err != nil {
					t.Fatal(err)
				}
				if fault != "hang" {
					until(t, "the sequence runs", func() bool { return stats(s).Running == 1 })
				}
				conn.Close()
				until(t, "the sequence is gone", func() bool {
					st := stats(s)
					return st.Running == 0 && st.Waiting == 0 && st.ActiveBlocks == 0
				})
			})
		}
	}
}

func stats(s *Server) Stats {
	s.driver.mu.Lock()
	defer s.driver.mu.Unlock()
	return s.driver.engine.Stats()
}

// until waits for a condition, and fails after a minute.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestFaults(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000, Faults: true})
	const path = "/v1/chat/completions"
	stream := hello(`"stream":true,"max_tokens":4`) // 1 role, 4 tokens, [DONE]
	whole := hello(`"max_tokens":4`)
	const failed = `data: {"error": {"message": "Simulated fault: status 500", "type": "InternalServerError", "param": null, "code": 500}}` + "\n\n"

	if r := parseReply(t, post(t, address, path, stream, "x-sim-fault: die-after=3")); len(r.events) != 3 || r.ended {
		t.Errorf("die-after=3: %d events, ended %v", len(r.events), r.ended)
	}
	for _, c := range []struct {
		fault  string
		events int // number of events
		at     int // index of the error event
	}{{"error-event", 2, 0}, {"error-after=2", 4, 2}, {"role-then-error", 3, 1}, {"error-after=100", 6, -1}, {"slow=1ms", 6, -1}} {
		r := parseReply(t, post(t, address, path, stream, "x-sim-fault: "+c.fault))
		if len(r.events) != c.events || !r.ended || r.events[len(r.events)-1] != string(doneEvent) {
			t.Errorf("%s: ended %v, events %q", c.fault, r.ended, r.events)
		}
		if c.at >= 0 && r.events[c.at] != failed {
			t.Errorf("%s: event %d is %q", c.fault, c.at, r.events[c.at])
		}
	}
	if r := parseReply(t, post(t, address, path, stream, "x-sim-fault: keepalive")); len(r.events) != 8 || r.events[0] != ": keep-alive\n\n" {
		t.Errorf("keepalive: %q", r.events)
	}
	r := parseReply(t, post(t, address, path, stream, "x-sim-fault: close"))
	if r.headers["transfer-encoding"]+r.headers["content-length"] != "" || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		t.Errorf("close, streamed: %v %q", r.headers, r.body)
	}
	r = parseReply(t, post(t, address, path, whole, "x-sim-fault: close"))
	if r.headers["transfer-encoding"]+r.headers["content-length"] != "" || !json.Valid([]byte(r.body)) {
		t.Errorf("close: %v %q", r.headers, r.body)
	}
	r = parseReply(t, post(t, address, path, whole, "x-sim-fault: truncate-json"))
	if r.headers["content-length"] != itoa(len(r.body)+8) {
		t.Errorf("truncate-json: %d bytes of %s", len(r.body), r.headers["content-length"])
	}
	for _, c := range []struct{ fault, status string }{
		{"status=503", "503 Service Unavailable"}, {"status=429", "429 Too Many Requests"}, {"error-event", "500 Internal Server Error"},
		{"slow=1ms", "200 OK"}, {"", "200 OK"}, {"status=200", "400 Bad Request"}, {"nonsense", "400 Bad Request"},
		{"die-after=-1", "400 Bad Request"}, {"die=3", "400 Bad Request"}, {"slow=fast", "400 Bad Request"},
	} {
		if r := parseReply(t, post(t, address, path, whole, "x-sim-fault: "+c.fault)); r.status != c.status {
			t.Errorf("%s: %s", c.fault, r.status)
		}
	}
}

func TestFaultsThatSayNothing(t *testing.T) {
	address := start(t, Options{Speedup: 1000, Faults: true})
	for _, c := range []struct{ fault, fields string }{
		{"die", `"stream":true`}, {"die", ""}, {"die-after=2", ""},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(rawPost("/v1/chat/completions", hello(c.fields), "x-sim-fault: "+c.fault)); err != nil {
			t.Fatal(err)
		}
		if raw, _ := io.ReadAll(conn); len(raw) != 0 {
			t.Errorf("%s: %q", c.fault, raw)
		}
		conn.Close()
	}
}

func TestFaultsAreOffByDefault(t *testing.T) {
	address := start(t, Options{Speedup: 1000})
	if r := parseReply(t, post(t, address, "/v1/chat/completions", hello(""), "x-sim-fault: status=503")); r.status != "200 OK" {
		t.Error(r.status)
	}
}

// Close cuts streams, also of a client that has pipelined bytes, whose leaving net/http cannot
// notice.
func TestCloseWithRunningStreams(t *testing.T) {
	address, s := startServer(t, Options{Faults: true})
	var conns []net.Conn
	for i := range 6 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := hello(fmt.Sprintf(`"stream":%v,"ignore_eos":true,"max_tokens":30000`, i%2 == 0))
		request := rawPost("/v1/chat/completions", body)
		if i > 3 {
			request = append(request, "GET /health HTTP/1.1\r\n"...)
		}
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	until(t, "all run", func() bool { return stats(s).Running == 6 })
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for i, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		raw, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d is still open", i)
		}
		if strings.HasSuffix(string(raw), "\r\n0\r\n\r\n") || i%2 == 1 && len(raw) > 0 {
			t.Errorf("request %d was answered as if it were whole: %q", i, raw)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestNewServerRefuses(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Role: "boss"}, `cannot make simulated worker "sim-0": role "boss" is none of both, prefill, decode`},
		{Options{Name: "x", Blocks: -1}, `cannot make simulated worker "x": blocks -1 is not between 1 and 2^30`},
		{Options{Speedup: -2}, `cannot make simulated worker "sim-0": speedup -2 is not at least 1e-6`},
		{Options{Blocks: 10}, `cannot make simulated worker "sim-0": max model len 32768 is more than the 160 tokens of the pool (10 blocks of 16)`},
	} {
		if _, err := NewServer(c.options); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	address := start(t, Options{Model: "m", Speedup: 1000})
	post(t, address, "/v1/completions", `{"prompt":"`+strings.Repeat("word ", 50)+`","max_tokens":3}`)
	post(t, address, "/v1/completions", `{"prompt":"`+strings.Repeat("word ", 50)+`","max_tokens":3}`)
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(r.Body)
	r.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	for _, want := range []string{
		`vllm:num_requests_running{engine="0",model_name="m"} 0.0`,
		`vllm:prefix_cache_queries_total{engine="0",model_name="m"} 102.0`,
		`vllm:prefix_cache_hits_total{engine="0",model_name="m"} 48.0`,
		`vllm:prompt_tokens_total{engine="0",model_name="m"} 102.0`,
		`vllm:generation_tokens_total{engine="0",model_name="m"} 6.0`,
		`vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 2.0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 2.0`,
		`vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 2.0`,
		`vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 2.0`,
		`num_gpu_blocks="16384"`,
		"# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.0\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %s", want)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
