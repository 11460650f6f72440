// TensorRT-LLM's API and its hand-over between two simulated workers over HTTP.

package sim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

func newTRTPair(t *testing.T, p, d Options) *pair {
	t.Helper()
	p.Engine, d.Engine = "trtllm", "trtllm"
	return newPair(t, p, d)
}

// context runs the first leg and returns the choice's parameters and the prompt's tokens.
func (x *pair) context(name, params string) (handedOver, tokens string, whole reply) {
	x.t.Helper()
	body := x.ask(name, `"model":"tiny-qwen","max_tokens":24,"disaggregated_params":`+params)
	whole = parseReply(x.t, post(x.t, x.pa, chat, body))
	var got struct {
		Choices []struct {
			Params json.RawMessage `json:"disaggregated_params"`
			Reason string          `json:"finish_reason"`
		}
		Tokens json.RawMessage `json:"prompt_token_ids"`
	}
	if err := json.Unmarshal([]byte(whole.body), &got); err != nil || len(got.Choices) != 1 || got.Choices[0].Reason != "length" {
		x.t.Fatalf("%v in %s %s", err, whole.status, whole.body)
	}
	return string(got.Choices[0].Params), string(got.Tokens), whole
}

// generate runs the second leg; tokens, if given, replace those of the messages.
func (x *pair) generate(name, params, tokens string) reply {
	x.t.Helper()
	params = strings.Replace(params, `"context_only"`, `"generation_only"`, 1)
	fields := `"model":"tiny-qwen","max_tokens":24,"disaggregated_params":` + params
	if tokens != "" {
		fields += `,"prompt_token_ids":` + tokens
	}
	return parseReply(x.t, post(x.t, x.da, chat, x.ask(name, fields)))
}

func (x *pair) trtPlain(name string) string {
	x.t.Helper()
	address := start(x.t, x.d.options)
	return textOf(x.t, parseReply(x.t, post(x.t, address, chat, x.ask(name, `"model":"tiny-qwen","max_tokens":24`))))
}

// handedOverForm is a context reply without its numbers and texts.
const handedOverForm = `{"id":"chatcmpl-ID","object":"chat.completion","created":N,"model":"tiny-qwen","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"TEXT","reasoning_content":null,"reasoning":null,"tool_calls":[]},"logprobs":null,` +
	`"finish_reason":"length","stop_reason":null,"disaggregated_params":{"request_type":"context_only","first_gen_tokens":[N],` +
	`"first_gen_log_probs":null,"first_gen_logits":null,"ctx_request_id":N,"encoded_opaque_state":"STATE","draft_tokens":null,` +
	`"disagg_request_id":null,"ctx_dp_rank":0,"ctx_info_endpoint":null,"schedule_style":null,"conversation_id":null,"ctx_usage":null,` +
	`"return_prompt_token_ids_b64":false},"avg_decoded_tokens_per_iter":1.0}],"usage":{"prompt_tokens":N,"total_tokens":N,` +
	`"completion_tokens":N,"prompt_tokens_details":{"cached_tokens":N}},"prompt_token_ids":[...]}`

func TestContextThenGeneration(t *testing.T) {
	x := newTRTPair(t, Options{}, Options{})
	params, tokens, whole := x.context("Two legs.", `{"request_type":"context_only"}`)
	got := form(whole.body)
	for pattern, by := range map[string]string{`"first_gen_tokens":\[\d+\]`: `"first_gen_tokens":[N]`,
		`"ctx_request_id":\d{18,}`: `"ctx_request_id":N`, `"encoded_opaque_state":"[A-Za-z0-9+/=]+"`: `"encoded_opaque_state":"STATE"`,
		`"prompt_token_ids":\[\d+(,\d+)+\]`: `"prompt_token_ids":[...]`} {
		got = regexp.MustCompile(pattern).ReplaceAllString(got, by)
	}
	if got != handedOverForm {
		t.Errorf("got  %s\nwant %s", got, handedOverForm)
	}
	if st := stats(x.p); st.Held != 1 {
		t.Errorf("%+v", st)
	}
	want := x.trtPlain("Two legs.")
	if text := textOf(t, x.generate("Ignored, the tokens count.", params, tokens)); text != want {
		t.Errorf("the hand-over gives %q, one server %q", text, want)
	}
	x.idle()
	x.trtCounters(0, 0)

	// Streamed, from messages, and with the caller's id.
	params, _, _ = x.context("Two legs.", `{"request_type":"context_only","disagg_request_id":4611686018427387905}`)
	if !strings.Contains(params, `"ctx_request_id":4611686018427387905,`) || !strings.Contains(params, `"disagg_request_id":4611686018427387905`) {
		t.Error(params)
	}
	params = strings.Replace(params, `"context_only"`, `"generation_only"`, 1)
	r := parseReply(t, post(t, x.da, chat, x.ask("Two legs.", `"model":"tiny-qwen","max_tokens":24,"stream":true,`+
		`"stream_options":{"include_usage":true},"disaggregated_params":`+params)))
	if text, reason := streamText(t, r.events); text != want || reason != "length" || !r.ended {
		t.Errorf("streamed %q (%s), want %q", text, reason, want)
	}
	if usage := r.events[len(r.events)-2]; !regexp.MustCompile(`"cached_tokens":[1-9]\d*\}\}\}\n\n$`).MatchString(usage) {
		t.Errorf("the context server's cached tokens are not in %s", usage)
	}
	x.idle()

	// A text completion takes the tokens as its prompt.
	r = parseReply(t, post(t, x.pa, "/v1/completions", `{"model":"tiny-qwen","prompt":"one two three","max_tokens":9,"disaggregated_params":{"request_type":"context_only"}}`))
	var reply struct {
		Choices []struct {
			Params json.RawMessage `json:"disaggregated_params"`
		}
		Tokens json.RawMessage `json:"prompt_token_ids"`
	}
	if err := json.Unmarshal([]byte(r.body), &reply); err != nil {
		t.Fatal(err)
	}
	params = strings.Replace(string(reply.Choices[0].Params), `"context_only"`, `"generation_only"`, 1)
	r = parseReply(t, post(t, x.da, "/v1/completions", fmt.Sprintf(`{"model":"tiny-qwen","prompt":%s,"max_tokens":9,"disaggregated_params":%s}`, reply.Tokens, params)))
	if r.status != "200 OK" || !strings.Contains(r.body, `"completion_tokens":9`) {
		t.Errorf("%s %s", r.status, r.body)
	}
	x.idle()
}

// trtCounters checks the workers' internal counts of leases and transfers; this engine has no
// metrics for them.
func (x *pair) trtCounters(late, failed int) {
	x.t.Helper()
	x.p.driver.mu.Lock()
	l := x.p.driver.leases.late
	x.p.driver.mu.Unlock()
	x.d.driver.mu.Lock()
	f := x.d.driver.metrics.failedTransfers
	x.d.driver.mu.Unlock()
	if l != late || f != failed {
		x.t.Errorf("%d late, %d failed, want %d, %d", l, f, late, failed)
	}
}

func TestGenerationRefuses(t *testing.T) {
	x := newTRTPair(t, Options{}, Options{})
	hasty := newTRTPair(t, Options{}, Options{TransferTimeout: 20 * time.Millisecond}) // for a worker that does not answer
	params, _, _ := x.context("Refused.", `{"request_type":"context_only"}`)
	state := regexp.MustCompile(`"encoded_opaque_state":"([^"]*)"`)
	inside, err := base64.StdEncoding.DecodeString(state.FindStringSubmatch(params)[1])
	if err != nil {
		t.Fatal(err)
	}
	with := func(from, to string) string {
		changed := strings.Replace(string(inside), from, to, 1)
		if changed == string(inside) {
			t.Fatalf("no %s in %s", from, inside)
		}
		return state.ReplaceAllLiteralString(params, `"encoded_opaque_state":"`+base64.StdEncoding.EncodeToString([]byte(changed))+`"`)
	}
	unreachable := with(fmt.Sprintf(`"port":%d`, x.p.sideAt.Port), `"port":1`)
	for _, c := range []struct{ params, status, says string }{
		{`{"request_type":"generation_only"}`, "400 Bad Request", "generation_only needs"},
		{`{"request_type":"neither"}`, "400 Bad Request", "Unknown request type: neither. Must be context_only, generation_only or context_and_generation"},
		{`{"request_type":"context_only","opaque":1}`, "400 Bad Request", "Extra inputs are not permitted"},
		{`{"request_type":7}`, "400 Bad Request", `"object":"error"`}, {`"x"`, "400 Bad Request", `"object":"error"`},
		{regexp.MustCompile(`"ctx_request_id":\d+`).ReplaceAllString(params, `"ctx_request_id":12`), "400 Bad Request", "is not the state of context request 12"},
		{state.ReplaceAllString(params, `"encoded_opaque_state":"!"`), "400 Bad Request", "is not the state"},
		{with(`"engine":"`, `"engine":"x`), "500 Internal Server Error", "Internal server error"},
		{with(`"blocks":[`, `"blocks":[9999999,`), "500 Internal Server Error", "Internal server error"},
		{unreachable, "500 Internal Server Error", "Internal server error"},
	} {
		pair := x
		if c.params == unreachable {
			pair = hasty
		}
		r := pair.generate("Refused.", c.params, "")
		if r.status != c.status || !strings.Contains(r.body, c.says) || !strings.HasPrefix(r.body, `{"object":"error","message":"`) {
			t.Errorf("%s: %s %s", c.params, r.status, r.body)
		}
	}
	x.trtCounters(0, 2)
	for _, fields := range []string{`"model":"m","kv_transfer_params":{}`, `"model":"m","bootstrap_room":1`, `"model":"m","no_such_field":1`, `"max_tokens":3`,
		`"model":"m","n":2,"disaggregated_params":{"request_type":"context_only"}`, `"model":"m","prompt_token_ids":"x"`} {
		if r := parseReply(t, post(t, x.pa, chat, hello(fields))); r.status != "400 Bad Request" {
			t.Errorf("%s: %s %s", fields, r.status, r.body)
		}
	}
	// Another first token gives another text, as does another prompt; an expired lease is
	// counted.
	first := regexp.MustCompile(`"first_gen_tokens":\[\d+\]`).ReplaceAllString(params, `"first_gen_tokens":[97]`)
	if got := textOf(t, x.generate("Refused.", first, "")); got == x.trtPlain("Refused.") {
		t.Error("first_gen_tokens has no effect")
	}
	if got := textOf(t, x.generate("Other.", params, "")); got == x.trtPlain("Other.") {
		t.Error("the KV of another prompt gives the right text")
	}
	x.trtCounters(1, 2)
}

func TestTRTLostClients(t *testing.T) {
	x := newTRTPair(t, Options{Speedup: 0.001}, Options{})
	conn := x.open(x.pa, x.ask("Lost.", `"model":"m","disaggregated_params":{"request_type":"context_only"}`))
	until(t, "it runs", func() bool { return stats(x.p).Running == 1 })
	conn.Close()
	x.idle()

	x = newTRTPair(t, Options{}, Options{Bandwidth: 1e-6, Speedup: 1})
	params, _, _ := x.context("Lost.", `{"request_type":"context_only"}`)
	conn = x.open(x.da, x.ask("Lost.", `"model":"m","disaggregated_params":`+strings.Replace(params, "context_only", "generation_only", 1)))
	until(t, "it waits", func() bool { return stats(x.d).Loading == 1 })
	conn.Close()
	x.idle()
	x.trtCounters(0, 0)
}

func TestTRTSmallRoutes(t *testing.T) {
	address := start(t, Options{Engine: "trtllm", Model: "m"})
	for path, want := range map[string]string{
		"/v1/models": `"owned_by":"tensorrt_llm"}]}`, "/version": `{"version":"1.4.0rc1+kvasir.sim"}`, "/health": "200 OK",
		"/prometheus/metrics": `trtllm_kv_cache_tokens_per_block{engine_type="simulated",model_name="m"} 16.0`, "/nothing": `{"detail":"Not Found"}`,
		"/server_info": `"version"`,
	} {
		if r := string(exchange(t, address, []byte("GET "+path+" HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n"))); !strings.Contains(r, want) {
			t.Errorf("%s: no %s in %s", path, want, r)
		}
	}
	if r := parseReply(t, post(t, address, "/_internal/tokenize", `{"prompt":"a b"}`)); r.body != `{"count":2,"tokens":[97,268435554]}` {
		t.Error(r.body)
	}
}

func FuzzHandover(f *testing.F) {
	f.Add([]byte(`{"request_type":"context_only","disagg_request_id":9223372036854775807}`))
	f.Add([]byte(`{"request_type":"generation_only","first_gen_tokens":[1],"ctx_request_id":5,"encoded_opaque_state":"eyJjb250ZXh0Ijo1LCJwb3J0IjoxfQ=="}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		fields := decodeFields([]byte(`{"disaggregated_params":` + string(params) + `}`))
		if fields.failure != nil {
			return
		}
		if x := readHandover(fields); x != nil && (fields.failure != nil || x.hold == x.load) {
			t.Fatalf("%+v and %v", x, fields.failure)
		}
	})
}
