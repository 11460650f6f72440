// Hand-overs to the byte: what each engine's two workers are sent, and what the client gets.

package proxy

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/proxy/respond"
)

// handoverSettings is a configuration with prefill and decode workers of one
// engine, by their URLs, that hands over whatever can be, or fails.
func handoverSettings(engine string, prefills, decodes []string) *Settings {
	s := settingsFor(append(append([]string(nil), prefills...), decodes...)...)
	for i := range s.Workers {
		w := &s.Workers[i]
		w.Engine, w.Role = engine, "decode"
		if i < len(prefills) {
			w.Role = "prefill"
		}
	}
	s.Retry.Budget = 1
	s.Routing.Disaggregate = kvroute.Always
	return s
}

// recorded returns a recorded exchange of vLLM's: the bodies of both ways, and
// the reply as it came.
func recordedPD(t *testing.T, name string) (request, reply string) {
	t.Helper()
	at := filepath.Join("..", "testdata", "transcripts", "vllm", "pd", name)
	b, err := os.ReadFile(at + ".request")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(b), "\r\n\r\n")
	if b, err = os.ReadFile(at + ".response"); err != nil {
		t.Fatal(err)
	}
	return body, strings.Replace(string(b), "connection: close\r\n", "", 1)
}

// without takes the part from mark on out of a body that ends with it.
func without(t *testing.T, body, mark string) string {
	t.Helper()
	before, _, ok := strings.Cut(body, mark)
	if !ok {
		t.Fatalf("no %s in %s", mark, body)
	}
	return before + "}"
}

func TestNixlIsAsRecorded(t *testing.T) {
	for _, tc := range []struct{ prefill, decode string }{
		{"1_prefill", "2_decode"}, {"3_prefill", "4_decode_stream"}, {"7_prefill_warm", "8_decode_after_warm_prefill"},
		{"12_prefill_longer", "13_decode_prefix_local_rest_remote"}, {"14_prefill_short", "15_decode_short"},
	} {
		t.Run(tc.decode, func(t *testing.T) {
			wantPrefill, prefillReply := recordedPD(t, tc.prefill)
			wantDecode, decodeReply := recordedPD(t, tc.decode)
			from, to := startWorker(t, send(prefillReply)), startWorker(t, send(decodeReply))
			s := handoverSettings("vllm", []string{from.url}, []string{to.url})
			for i := range s.Workers {
				s.Workers[i].Models = []string{"tiny-qwen"}
			}
			p := startProxy(t, s)
			a := p.ask(t, "/v1/chat/completions", without(t, wantDecode, `,"kv_transfer_params"`), "X-Request-Id: pd-7")
			if strings.Contains(wantDecode, `"stream":true`) {
				wantPrefill = strings.Replace(wantPrefill, `,"kv_transfer_params"`, `,"stream":false,"kv_transfer_params"`, 1)
			}
			if got := from.seen(); len(got) != 1 || got[0] != wantPrefill {
				t.Errorf("the prefill worker got\n%q\nwant\n%q", got, wantPrefill)
			}
			if got := to.seen(); len(got) != 1 || got[0] != wantDecode {
				t.Errorf("the decode worker got\n%q\nwant\n%q", got, wantDecode)
			}
			if one, other := from.head(0).Get("X-Request-Id"), to.head(0).Get("X-Request-Id"); one != other || len(one) != len(respond.ID{}) {
				t.Errorf("the workers got the X-Request-Id %q and %q, want one of ours", one, other)
			}
			if want := transcriptBody(t, decodeReply); a.StatusCode != 200 || a.err != nil || a.body != want {
				t.Errorf("the client got %d %v\n%s\nwant\n%s", a.StatusCode, a.err, a.body, want)
			}
			if got := a.Header.Get("x-kvasir-worker"); got != "w1" {
				t.Errorf("x-kvasir-worker is %q", got)
			}
		})
	}
}

func transcriptBody(t *testing.T, reply string) string {
	t.Helper()
	resp, err := http.ReadResponse(newReader([]byte(reply)), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// head is the head of the n-th request that the worker got.
func (w *testWorker) head(n int) http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n >= len(w.heads) {
		return http.Header{}
	}
	return w.heads[n]
}

const (
	nixlParams = `"kv_transfer_params":{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2]],` +
		`"remote_engine_id":"e","remote_request_id":"r","remote_host":"h","remote_port":5600,"big":18446744073709551615, "odd" : "\u00e9"}`
	nixlReply = `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"length"}],` +
		`"usage":{"prompt_tokens":7,"completion_tokens":1},` + nixlParams + `}`
	nixlAsked = `"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}`
)

// Each body as it comes, as the prefill worker gets it, and as the decode
// worker does.
func TestNixlBodies(t *testing.T) {
	const begin = `{"model":"m","messages":[{"role":"user","content":"hi"}]`
	for _, tc := range []struct{ name, path, client, prefill, decode string }{
		{"nothing said", "", begin + `}`, begin + `,"max_tokens":1,` + nixlAsked + `}`, begin + `,` + nixlParams + `}`},
		{
			"both limits", "", begin + `,"max_completion_tokens":500,"max_tokens": 9 }`,
			begin + `,"max_completion_tokens":1,"max_tokens": 1,` + nixlAsked + ` }`,
			begin + `,"max_completion_tokens":500,"max_tokens": 9,` + nixlParams + ` }`,
		},
		{
			"a least number", "", begin + `,"min_tokens":5,"max_completion_tokens":8}`,
			begin + `,"max_completion_tokens":1,"max_tokens":1,` + nixlAsked + `}`,
			begin + `,"min_tokens":5,"max_completion_tokens":8,` + nixlParams + `}`,
		},
		{
			"a stream whose usage we ask for", "", begin + `,"stream":true}`,
			begin + `,"stream":false,"max_tokens":1,` + nixlAsked + `}`,
			begin + `,"stream":true,"stream_options":{"include_usage":true},` + nixlParams + `}`,
		},
		{
			"a stream with options in front", "", `{"stream_options":{"include_usage":true},"stream":true,` + begin[1:] + `}`,
			`{"stream":false,` + begin[1:] + `,"max_tokens":1,` + nixlAsked + `}`,
			`{"stream_options":{"include_usage":true},"stream":true,` + begin[1:] + `,` + nixlParams + `}`,
		},
		{
			"the client's own parameters", "", `{"kv_transfer_params":{"do_remote_prefill":true},` + begin[1:] + `,"bootstrap_room":3,"vllm_xargs":{"kv_transfer_params":{},"a":1}}`,
			begin + `,"vllm_xargs":{"a":1},"max_tokens":1,` + nixlAsked + `}`,
			begin + `,"vllm_xargs":{"a":1},` + nixlParams + `}`,
		},
		{
			"completions", "/v1/completions", `{"model":"m","prompt":"hi","n":1,"echo":false}`,
			`{"model":"m","prompt":"hi","n":1,"echo":false,"max_tokens":1,` + nixlAsked + `}`,
			`{"model":"m","prompt":"hi","n":1,"echo":false,` + nixlParams + `}`,
		},
		{
			"completions of tokens", "/v1/completions", `{"model":"m","prompt":[ 1,2]}`,
			`{"model":"m","prompt":[ 1,2],"max_tokens":1,` + nixlAsked + `}`, `{"model":"m","prompt":[ 1,2],` + nixlParams + `}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := startWorker(t, send(httpReply(200, "application/json", nixlReply)))
			to := startWorker(t, func(c net.Conn, body string) bool {
				reply := httpReply(200, "application/json", chatReply)
				if strings.Contains(body, `"stream":true`) {
					reply = streamHead + chunk(roleEvent) + chunk(delta("a")) + chunk(finishEvent) + chunk(doneEvent) + "0\r\n\r\n"
				}
				_, err := io.WriteString(c, reply)
				return err == nil
			})
			p := startProxy(t, handoverSettings("vllm", []string{from.url}, []string{to.url}))
			path := tc.path
			if path == "" {
				path = "/v1/chat/completions"
			}
			if a := p.ask(t, path, tc.client); a.StatusCode != 200 || a.err != nil {
				t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
			}
			if got := from.seen(); len(got) != 1 || got[0] != tc.prefill {
				t.Errorf("the prefill worker got\n%s\nwant\n%s", got, tc.prefill)
			}
			if got := to.seen(); len(got) != 1 || got[0] != tc.decode {
				t.Errorf("the decode worker got\n%s\nwant\n%s", got, tc.decode)
			}
		})
	}
}

// Requests that cannot be handed over are answered by the decode worker alone,
// byte for byte as they came.
func TestNotHandedOver(t *testing.T) {
	from := startWorker(t, send(httpReply(200, "application/json", nixlReply)))
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, handoverSettings("vllm", []string{from.url}, []string{to.url}))
	for _, tc := range [][2]string{
		{"/v1/chat/completions", `{"model":"m","n":2,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/chat/completions", `{"model":"m","prompt_logprobs":1,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/chat/completions", `{"model":"m","min\u005ftokens":4,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/chat/completions", `{"model":"m","use_beam_search":true,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/completions", `{"model":"m","prompt":["a","b"]}`},
		{"/v1/completions", `{"model":"m","prompt":[[1,2],[3]]}`},
		{"/v1/completions", `{"model":"m","prompt":"a","echo":true}`},
		{"/v1/completions", `{"model":"m","prompt":"a","best_of":3}`},
		{"/v1/responses", `{"model":"m","input":"hi"}`},
		{"/v1/messages", `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hi"}]}`},
		{"/v1/embeddings", `{"model":"m","input":"hi"}`},
	} {
		n := len(to.seen())
		if a := p.ask(t, tc[0], tc[1]); a.StatusCode != 200 {
			t.Errorf("%s %s: got %d %q", tc[0], tc[1], a.StatusCode, a.body)
		}
		if got := to.seen(); len(got) != n+1 || got[n] != tc[1] {
			t.Errorf("%s: the decode worker got %q, want %q", tc[0], got[n:], tc[1])
		}
	}
	if got := from.seen(); len(got) != 0 {
		t.Errorf("the prefill worker got %q", got)
	}
}

// A prefill worker that holds no block has nothing to hand over: the decode
// worker computes the prompt, and nobody failed.
func TestNixlWithoutBlocks(t *testing.T) {
	from := startWorker(t, send(httpReply(200, "application/json", strings.Replace(nixlReply, "[[1,2]]", "[[]]", 1))))
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, handoverSettings("vllm", []string{from.url}, []string{to.url}))
	if a := p.ask(t, "/v1/chat/completions", plainChat); a.body != chatReply {
		t.Errorf("got %d %q", a.StatusCode, a.body)
	}
	if got := to.seen(); len(got) != 1 || got[0] != plainChat {
		t.Errorf("the decode worker got %q", got)
	}
	waitUntil(t, "the hand-over is booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="done"}`) == "1" })
}

var bootstrapMembers = regexp.MustCompile(`,"bootstrap_host":"127\.0\.0\.1","bootstrap_port":8998,"bootstrap_room":(\d{1,19})}$`)

// Both of SGLang's workers are asked at once: each waits here for the other.
func TestBootstrap(t *testing.T) {
	one, other := make(chan struct{}), make(chan struct{})
	from := startWorker(t, func(c net.Conn, _ string) bool {
		close(one)
		<-other
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	to := startWorker(t, func(c net.Conn, _ string) bool {
		close(other)
		<-one
		_, err := io.WriteString(c, streamHead+chunk(roleEvent)+chunk(delta("a"))+chunk(finishEvent)+chunk(usageEvent)+chunk(doneEvent)+"0\r\n\r\n")
		return err == nil
	})
	p := startProxy(t, handoverSettings("sglang", []string{from.url}, []string{to.url}))
	a := p.ask(t, "/v1/chat/completions", streamChat)
	if want := roleEvent + delta("a") + finishEvent + doneEvent; a.body != want || a.err != nil {
		t.Fatalf("got %q %v", a.body, a.err)
	}
	got, also := from.seen()[0], to.seen()[0]
	room, same := bootstrapMembers.FindStringSubmatch(got), bootstrapMembers.FindStringSubmatch(also)
	if room == nil || same == nil || room[1] != same[1] {
		t.Fatalf("the workers got %s and %s", got, also)
	}
	if got = strings.TrimSuffix(got, room[0]); got != strings.Replace(streamChat[:len(streamChat)-1], `"stream":true`, `"stream":false`, 1) {
		t.Errorf("the prefill worker got %s", got)
	}
	if also = strings.TrimSuffix(also, room[0]); also != streamChat[:len(streamChat)-1]+`,"stream_options":{"include_usage":true}` {
		t.Errorf("the decode worker got %s", also)
	}
	waitUntil(t, "the hand-over is booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="done"}`) == "1" })
}

const (
	contextParams = `"disaggregated_params":{"request_type":"context_only","first_gen_tokens":[9],"ctx_request_id":9007199254740993,` +
		`"encoded_opaque_state":"AAE=","draft_tokens":null,"disagg_request_id":1}`
	contextReply = `{"id":"c","object":"chat.completion","created":1,"model":"m","prompt_token_ids":[1,2,3],"choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"hel"},` + contextParams + `,"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`
)

func TestContextFirst(t *testing.T) {
	for _, tc := range []struct{ name, path, client, prefill, decode string }{
		{
			"chat", "/v1/chat/completions", streamChat,
			strings.Replace(streamChat[:len(streamChat)-1], "true", "false", 1) + `,"disaggregated_params":{"request_type":"context_only","disagg_request_id":ID}}`,
			streamChat[:len(streamChat)-1] + `,"stream_options":{"include_usage":true},"disaggregated_params":{"request_type":"generation_only",` +
				`"first_gen_tokens":[9],"ctx_request_id":9007199254740993,"encoded_opaque_state":"AAE=","draft_tokens":null,"disagg_request_id":ID,` +
				`"ctx_usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}},"prompt_token_ids":[1,2,3]}`,
		},
		{
			"completions", "/v1/completions", `{"model":"m","prompt":"hi","max_tokens":8}`,
			`{"model":"m","prompt":"hi","max_tokens":8,"disaggregated_params":{"request_type":"context_only","disagg_request_id":ID}}`,
			`{"model":"m","prompt":[1,2,3],"max_tokens":8,"disaggregated_params":{"request_type":"generation_only",` +
				`"first_gen_tokens":[9],"ctx_request_id":9007199254740993,"encoded_opaque_state":"AAE=","draft_tokens":null,"disagg_request_id":ID,` +
				`"ctx_usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			from := startWorker(t, send(httpReply(200, "application/json", contextReply)))
			to := startWorker(t, send(streamHead, chunk(roleEvent), chunk(delta("hel")), chunk(delta("lo")), chunk(finishEvent), chunk(doneEvent), "0\r\n\r\n"))
			p := startProxy(t, handoverSettings("trtllm", []string{from.url}, []string{to.url}))
			if a := p.ask(t, tc.path, tc.client); a.StatusCode != 200 || a.err != nil || !strings.HasSuffix(a.body, finishEvent+doneEvent) {
				t.Fatalf("got %d %q %v", a.StatusCode, a.body, a.err)
			}
			id := regexp.MustCompile(`"disagg_request_id":(\d{13,19})`).FindStringSubmatch(from.seen()[0])
			if id == nil {
				t.Fatalf("the context server got %s", from.seen()[0])
			}
			if got, want := from.seen()[0], strings.Replace(tc.prefill, "ID", id[1], 1); got != want {
				t.Errorf("the context server got\n%s\nwant\n%s", got, want)
			}
			if got, want := to.seen()[0], strings.Replace(tc.decode, "ID", id[1], 1); got != want {
				t.Errorf("the generation server got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Where the first token was the last one, no generation server is asked.
func TestContextFirstIsTheAnswer(t *testing.T) {
	ended := strings.Replace(contextReply, `"finish_reason":"length"`, `"finish_reason":"stop"`, 1)
	from := startWorker(t, send(httpReply(200, "application/json", ended)))
	to := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	p := startProxy(t, handoverSettings("trtllm", []string{from.url}, []string{to.url}))
	want := strings.Replace(strings.Replace(ended, contextParams+",", "", 1), `"prompt_token_ids":[1,2,3],`, "", 1)
	a := p.ask(t, "/v1/chat/completions", plainChat)
	if a.StatusCode != 200 || a.body != want || a.Header.Get("x-kvasir-worker") != "w0" {
		t.Errorf("got %d %s of %s\nwant %s", a.StatusCode, a.body, a.Header.Get("x-kvasir-worker"), want)
	}
	a = p.ask(t, "/v1/chat/completions", strings.Replace(streamChat, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1))
	for _, part := range []string{`"content":"hel"`, `"finish_reason":"stop"`, `"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}`, doneEvent} {
		if strings.Count(a.body, part) != 1 {
			t.Errorf("%s is not there once in %s", part, a.body)
		}
	}
	if a.err != nil || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("got %v %s", a.err, a.Header.Get("Content-Type"))
	}
	if n := len(to.seen()); n != 0 {
		t.Errorf("the generation server was asked %d times", n)
	}
	waitUntil(t, "both are booked", func() bool { return p.metric(t, `kvasir_handovers_total{result="prefill_answered"}`) == "2" })
}

// Behind a Dynamo frontend one request names both workers.
func TestDirect(t *testing.T) {
	frontend := startWorker(t, send(httpReply(200, "application/json", chatReply)))
	s := handoverSettings("dynamo", []string{frontend.url}, []string{frontend.url})
	s.Workers[0].Instance, s.Workers[1].Instance = "7587889", "7587890"
	p := startProxy(t, s)
	a := p.ask(t, "/v1/chat/completions", plainChat, "x-worker-instance-id: 1", "x-prefill-instance-id: 2", "x-dynamo-worker-instance-id: 3")
	if a.body != chatReply {
		t.Fatalf("got %d %q", a.StatusCode, a.body)
	}
	if got := frontend.seen(); len(got) != 1 || got[0] != plainChat {
		t.Errorf("the frontend got %q", got)
	}
	h := frontend.head(0)
	for name, want := range map[string]string{"x-worker-instance-id": "7587890", "x-prefill-instance-id": "7587889", "x-dynamo-worker-instance-id": ""} {
		if got := strings.Join(h.Values(name), ","); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	frontend.mu.Lock()
	frontend.heads = nil
	frontend.mu.Unlock()
	p.ask(t, "/v1/embeddings", `{"model":"m","input":"hi"}`)
	if h := frontend.head(0); h.Get("x-worker-instance-id") != "7587890" || h.Get("x-prefill-instance-id") != "" {
		t.Errorf("alone, a worker is named by %v", h)
	}

	renamed := *s // the frontend's worker was started anew, and has another id
	renamed.Workers = slices.Clone(s.Workers)
	renamed.Workers[1].Instance = "7587891"
	if err := p.Apply(&renamed); err != nil {
		t.Fatal(err)
	}
	asked := len(frontend.seen())
	p.ask(t, "/v1/embeddings", `{"model":"m","input":"hi"}`)
	seen := len(frontend.seen())
	if seen != asked+1 {
		t.Fatalf("%d requests", seen)
	}
	frontend.mu.Lock()
	h = frontend.heads[len(frontend.heads)-1]
	frontend.mu.Unlock()
	if got := h.Get("x-worker-instance-id"); got != "7587891" {
		t.Errorf("after a reload the worker is called %q", got)
	}
}

// A draft changes what it is told to and no other byte.
func TestDraft(t *testing.T) {
	o, ok := openai.ReadOriginal([]byte(` { "a" : 1, "b":[{"c":"}\""}] ,"d":null } `))
	if !ok || len(o.Members) != 3 {
		t.Fatalf("members: %v %v", ok, o)
	}
	d := openai.Draft{Original: o}
	d.Set("b", []byte(`2`))
	d.Drop("d")
	d.SetIfGiven("x", []byte(`3`))
	d.Set("y", []byte(`4`))
	if got, want := string(d.AppendTo(nil)), ` { "a" : 1, "b":2 ,"y":4 } `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "[]", "null", `{"a"`, `{"a":}`, `{"a":1,}`, strings.Repeat(`{"a":`, 80) + strings.Repeat("}", 80)} {
		if _, ok := openai.ReadOriginal([]byte(bad)); ok {
			t.Errorf("%q is taken for an object", bad)
		}
	}
}
