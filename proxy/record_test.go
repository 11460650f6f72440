// Recordings of what real engines said, and of what cannot be taken down.
package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"kvasir/openai"
)

// seen is what a client makes of a body: the slow twin of the recorder.
type seen struct {
	text, reasoning, finish, model string
	choices                        int
	calls                          bool
}

func (s *seen) choice(c map[string]any) {
	for _, key := range []string{"delta", "message"} {
		if m, ok := c[key].(map[string]any); ok {
			text, _ := m["content"].(string)
			s.text += text
			for _, key := range []string{"reasoning", "reasoning_content"} {
				text, _ := m[key].(string)
				s.reasoning += text
			}
			calls, _ := m["tool_calls"].([]any)
			s.calls = s.calls || len(calls) > 0
		}
	}
	text, _ := c["text"].(string)
	s.text += text
	if f, ok := c["finish_reason"].(string); ok {
		s.finish = f
	}
	if n, _ := c["index"].(float64); int(n) >= s.choices {
		s.choices = int(n) + 1
	}
}

func (s *seen) object(t testing.TB, data string) {
	var o map[string]any
	if err := json.Unmarshal([]byte(data), &o); err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	if m, ok := o["response"].(map[string]any); ok {
		o = m
	}
	if m, ok := o["model"].(string); ok {
		s.model = m
	}
	if o["object"] == "response" {
		if text, ok := at(o, "output 0 content 0 text").(string); ok {
			s.text = text
			s.finish = map[any]string{"completed": "stop", "incomplete": "length"}[o["status"]]
		}
		return
	}
	choices, _ := o["choices"].([]any)
	for _, c := range choices {
		s.choice(c.(map[string]any))
	}
	if m, ok := o["message"].(map[string]any); ok {
		s.model = m["model"].(string)
	}
	content, _ := o["content"].([]any)
	for _, block := range append(content, o["delta"]) {
		if b, ok := block.(map[string]any); ok {
			text, _ := b["text"].(string)
			s.text += text
			if _, ok := b["stop_reason"]; ok {
				o = b
			}
		}
	}
	if why, ok := o["stop_reason"].(string); ok {
		s.finish = map[string]string{"end_turn": "stop", "max_tokens": "length"}[why]
	}
}

// clientOf reads a whole transcript as a client does.
func clientOf(t *testing.T, tr transcript) (s seen) {
	if tr.events() == nil {
		s.object(t, string(tr.body))
		return s
	}
	for _, e := range tr.events() {
		for line := range strings.Lines(e) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
				s.object(t, data)
			}
		}
	}
	return s
}

// unlimited is a body as if the answer had ended by itself.
func unlimited(body []byte) []byte {
	return []byte(strings.NewReplacer(
		`reason":"length"`, `reason":"stop"`, `reason":"max_tokens"`, `reason":"end_turn"`,
		`{"reason":"max_output_tokens"}`, `null`, `"status":"incomplete"`, `"status":"completed"`,
	).Replace(string(body)))
}

// recordIn gives the recorder a body in reads that end anywhere.
func recordIn(k openai.Kind, tr transcript, size func() int) *recorder {
	r := &recorder{kind: k}
	if tr.events() == nil {
		r.body(tr.body)
		r.seal()
		return r
	}
	var s eventFlow
	s.begin(k, false)
	s.recorder = r
	var held []byte
	for rest := tr.body; len(rest) > 0; {
		n := min(size(), len(rest))
		held, rest = append(held, rest[:n]...), rest[n:]
		pass, skip := s.scan(held)
		held = held[pass+skip:]
	}
	s.last(held)
	r.seal()
	return r
}

// What transcripts show that an answer cannot say, by their names.
var unfaithful = map[string]string{
	"vllm/chat_n2": "choices", "vllm/chat_stream_n2": "choices", "sglang/chat_n2": "choices",
	"vllm/chat_logprobs": "logprobs", "vllm/chat_stream_logprobs": "logprobs", "sglang/chat_logprobs": "logprobs",
	"vllm/chat_return_token_ids": "token_ids", "vllm/chat_stream_return_token_ids": "prompt_token_ids", "vllm/emoji_split_stream": "prompt_token_ids",
	"vllm/completion_token_ids_prompt": "token_ids", "vllm/continue_final_message": "token_ids", "sglang/chat_return_token_ids": "prompt_token_ids",
	"vllm/chat_tools_named": "tool_calls", "vllm/chat_tools_required": "tool_calls",
	"vllm/chat_stream_tools_named": "tool_calls", "vllm/chat_stream_tools_required": "tool_calls",
	"vllm/pd/1_prefill": "kv_transfer_params", "vllm/pd/3_prefill": "kv_transfer_params", "vllm/pd/7_prefill_warm": "kv_transfer_params",
	"vllm/pd/12_prefill_longer": "kv_transfer_params", "vllm/pd/14_prefill_short": "kv_transfer_params", "vllm/pd/20_prefill_then_wait": "kv_transfer_params",
	"vllm/pd/24_decode_stream_kv_load_failure": "error", "vllm/pd/engine_killed_stream": "error",
}

func TestEveryTranscriptIsRecorded(t *testing.T) {
	good, bad, stored := 0, 0, 0
	for _, tr := range readTranscripts(t) {
		k := tr.kind
		if rt := (openai.Route{Kind: k}); !rt.Recorded() || tr.cut || !bytes.HasPrefix(tr.response, []byte("HTTP/1.1 200 ")) {
			continue
		}
		random := rand.New(rand.NewSource(1))
		var first *recorder
		for _, size := range []func() int{
			func() int { return len(tr.body) }, func() int { return 1 }, func() int { return 7 }, func() int { return 1 + random.Intn(400) },
		} {
			r := recordIn(k, tr, size)
			if first == nil {
				first = r
			} else if !reflect.DeepEqual(r, first) {
				t.Errorf("%s: in pieces %+v\nin one %+v", tr.name, r, first)
			}
		}
		if first.flaw != unfaithful[tr.name] {
			t.Errorf("%s: flaw %q, want %q", tr.name, first.flaw, unfaithful[tr.name])
		}
		if first.flaw != "" {
			bad++
			continue
		}
		good++
		want := clientOf(t, tr)
		got := seen{
			text: string(first.text), reasoning: string(first.reasoning), finish: first.finish, model: first.model, choices: want.choices,
		}
		if got != want || !first.over || first.faithful() != (want.finish == "stop" || want.finish == "length") {
			t.Errorf("%s:\n got %+v\nwant %+v, faithful %v", tr.name, got, want, first.faithful())
		}
		if first.storable() && want.finish != "stop" {
			t.Errorf("%s: would be stored", tr.name)
		}
		stopped := tr // all of them were stopped at a length
		stopped.body = unlimited(tr.body)
		if r := recordIn(k, stopped, func() int { return 100 }); r.storable() != (strings.TrimSpace(want.text) != "") {
			t.Errorf("%s: stopped, storable %v", tr.name, r.storable())
		} else if r.storable() {
			stored++
		}
		if again, err := readAnswer(first.append(nil)); err != nil || !reflect.DeepEqual(again, first.answer) {
			t.Errorf("%s: kept as %+v, %v", tr.name, again, err)
		}
		if first.usage != nil && !bytes.Contains(tr.body, first.usage) {
			t.Errorf("%s: usage %s", tr.name, first.usage)
		}
	}
	if good < 40 || bad < 20 || stored < 40 {
		t.Errorf("%d good, %d of them to be stored, %d bad", good, stored, bad)
	}
}

// choice is a chunk of chat with this choice.
func choice(members string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,` + members + `}]}` + "\n\n"
}

func recordEvents(r *recorder, events ...string) *recorder {
	for _, e := range events {
		r.event([]byte(e))
	}
	r.seal()
	return r
}

func TestRecordedStreams(t *testing.T) {
	const stop = `"delta":{},"finish_reason":"stop"`
	for _, c := range []struct {
		name   string
		events []string
		want   answer
	}{
		{"escapes, characters and pieces", []string{
			roleEvent, choice(`"delta":{"content":"a\u00e9\n"}`), choice(`"delta":{"content":""}`), choice(`"delta":{"content":"\ud83d\ude00世"}`), choice(stop), doneEvent,
		}, answer{model: "m", created: 1, text: []byte("aé\n😀世"), pieces: []int32{4, 11}, finish: "stop"}},
		{"reasoning", []string{
			choice(`"delta":{"role":"assistant","reasoning":"hm"}`), choice(`"delta":{"reasoning":"\n"}`), choice(`"delta":{"content":"b","reasoning":null}`), choice(stop), doneEvent,
		}, answer{model: "m", created: 5, text: []byte("b"), pieces: []int32{1}, reasoning: []byte("hm\n"), reasoningKey: "reasoning", finish: "stop"}},
		{"usage with every event, the last one counts", []string{
			`data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}` + "\n\n", choice(stop), usageEvent, doneEvent,
		}, answer{model: "m", created: 5, text: []byte("a"), pieces: []int32{1}, finish: "stop", usage: []byte(`{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`)}},
		{"comments, and an event over two lines", []string{
			": keep-alive\n\n", "data: {\"model\":\"org\\/m\",\ndata: \"usage\":{\ndata: },\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", doneEvent,
		}, answer{model: "org/m", text: []byte("a"), pieces: []int32{1}, finish: "stop"}},
		{"calls in pieces", []string{
			choice(`"delta":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","index":0,"function":{"name":"f"}}]}`),
			choice(`"delta":{"tool_calls":[{"function":{"arguments":"{\"a\\n"},"index":0}]}`),
			choice(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}},{"index":1,"id":"y","function":{"name":"g","arguments":"{}"}}]}`),
			choice(`"delta":{},"finish_reason":"tool_calls"`), doneEvent,
		}, answer{model: "m", created: 5, finish: "tool_calls", calls: []byte(
			`[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\\n\":1}"}},{"id":"y","type":"function","function":{"name":"g","arguments":"{}"}}]`)}},
	} {
		r := recordEvents(&recorder{kind: openai.KindChat, tools: true}, c.events...)
		if !reflect.DeepEqual(r.answer, c.want) || !r.storable() {
			t.Errorf("%s: flaw %q, storable %v\n got %+v\nwant %+v", c.name, r.flaw, r.storable(), r.answer, c.want)
		}
	}
}

func TestRecordedCallsOfABody(t *testing.T) {
	const calls = `[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]`
	body := `{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":` + calls + `},"finish_reason":"tool_calls"}]}`
	r := &recorder{kind: openai.KindChat, tools: true}
	r.body([]byte(body))
	if r.seal(); !r.storable() || string(r.calls) != calls {
		t.Errorf("flaw %q, %s", r.flaw, r.calls)
	}
	r = &recorder{kind: openai.KindChat}
	r.body([]byte(body))
	if r.seal(); r.flaw != "tool_calls" || r.storable() {
		t.Errorf("though calls are not to be stored: flaw %q", r.flaw)
	}
}

// What must never be stored, and why not.
func TestNeverStored(t *testing.T) {
	hello, stop := choice(`"delta":{"content":"hello"}`), choice(`"delta":{},"finish_reason":"stop"`)
	long := choice(`"delta":{"content":"` + strings.Repeat("a", recordLimit/3) + `"}`)
	for _, c := range []struct {
		name     string
		events   []string
		flaw     string
		faithful bool // others may follow it all the same
	}{
		{"without its end mark", []string{hello, stop}, "", true},
		{"without a finish_reason", []string{hello, doneEvent}, "", false},
		{"cut at a length", []string{hello, choice(`"delta":{},"finish_reason":"length"`), doneEvent}, "", true},
		{"filtered", []string{hello, choice(`"delta":{},"finish_reason":"content_filter"`), doneEvent}, "", false},
		{"aborted", []string{hello, choice(`"delta":{},"finish_reason":"abort"`), doneEvent}, "", false},
		{"without a word", []string{choice(`"delta":{"content":" \n"}`), stop, doneEvent}, "", true},
		{"an error event", []string{hello, "data: {\"error\":{\"message\":\"x\"}}\n\n", doneEvent}, "error", false},
		{"a named error event", []string{hello, "event: error\ndata: {}\n\n", doneEvent}, "error", false},
		{"a refusal", []string{choice(`"delta":{"refusal":"no"}`), stop, doneEvent}, "refusal", false},
		{"a call", []string{hello, choice(`"delta":{"tool_calls":[{"index":0}]}`), stop, doneEvent}, "tool_calls", false},
		{"an old call", []string{hello, choice(`"delta":{"function_call":{"name":"f"}}`), stop, doneEvent}, "tool_calls", false},
		{"audio", []string{hello, choice(`"delta":{"audio":{"id":"a"}}`), stop, doneEvent}, "audio", false},
		{"annotations", []string{hello, choice(`"delta":{"annotations":[{"type":"url_citation"}]}`), stop, doneEvent}, "annotations", false},
		{"logprobs", []string{choice(`"delta":{"content":"a"},"logprobs":{"content":[]}`), stop, doneEvent}, "logprobs", false},
		{"content in parts", []string{choice(`"delta":{"content":[{"type":"text"}]}`), stop, doneEvent}, "content", false},
		{"another choice", []string{hello, `data: {"choices":[{"index":1,"delta":{"content":"b"}}]}` + "\n\n", stop, doneEvent}, "choices", false},
		{"two choices at once", []string{`data: {"choices":[{"index":0},{"index":1}]}` + "\n\n", stop, doneEvent}, "choices", false},
		{"two ends", []string{hello, stop, choice(`"delta":{},"finish_reason":"length"`), doneEvent}, "finish_reason", false},
		{"more behind the end", []string{hello, stop, doneEvent, hello}, "more", false},
		{"citations", []string{hello, stop, `data: {"choices":[],"citations":["x"]}` + "\n\n", doneEvent}, "member", false},
		{"half a character", []string{choice(`"delta":{"content":"\ud83d"}`), choice(`"delta":{"content":"\ude00"}`), stop, doneEvent}, "string", false},
		{"no UTF-8", []string{choice(`"delta":{"content":"` + "\xff" + `"}`), stop, doneEvent}, "string", false},
		{"broken JSON", []string{hello, `data: {"choices":[{"index":0` + "\n\n", stop, doneEvent}, "data", false},
		{"no JSON", []string{hello, "data: hi\n\n", stop, doneEvent}, "data", false},
		{"longer than is stored", []string{long, stop, doneEvent}, "", true},
		{"longer than is followed", []string{long, long, long, hello, stop, doneEvent}, "length", false},
		{"reasoning in two members", []string{choice(`"delta":{"reasoning":"a","reasoning_content":"a"}`), hello, stop, doneEvent}, "reasoning", false},
	} {
		r := recordEvents(&recorder{kind: openai.KindChat}, c.events...)
		if r.flaw != c.flaw || r.faithful() != c.faithful || r.storable() {
			t.Errorf("%s: flaw %q, faithful %v, storable %v", c.name, r.flaw, r.faithful(), r.storable())
		}
	}
	whole := recordEvents(&recorder{kind: openai.KindChat}, hello, stop, doneEvent)
	if whole.sure = false; whole.faithful() || whole.storable() {
		t.Error("stored although its framing was cut")
	}
	big := &recorder{kind: openai.KindChat}
	big.spoil("length")
	if recordEvents(big, hello, stop, doneEvent); big.storable() || len(big.text) > 0 {
		t.Error("goes on after a flaw")
	}
}

// The end of an event whose beginning went on in pieces is no event.
func TestEventInPiecesIsNotRecorded(t *testing.T) {
	r := &recorder{kind: openai.KindChat}
	var s eventFlow
	s.begin(openai.KindChat, false)
	s.recorder = r
	event := []byte(delta("first") + delta(strings.Repeat("a", holdLimit)))
	pass, _ := s.scan(event[:len(event)-2])
	pass, _ = s.scan(event[pass : len(event)-2])
	s.scan(event[len(event)-2:])
	if s.scan([]byte(finishEvent + doneEvent)); pass == 0 || r.flaw != "length" {
		t.Errorf("passed %d, flaw %q", pass, r.flaw)
	}
}

// FuzzRecorder: whatever a worker sends, what is storable can be kept and read.
func FuzzRecorder(f *testing.F) {
	f.Add(byte(openai.KindChat), []byte(roleEvent+delta("a")+finishEvent+usageEvent+doneEvent))
	f.Add(byte(openai.KindChat), []byte(chatReply))
	f.Fuzz(func(t *testing.T, k byte, data []byte) {
		r := &recorder{kind: openai.Kind(k % 6), tools: true}
		if bytes.HasPrefix(data, []byte("{")) {
			r.body(data)
		} else {
			var s eventFlow
			s.begin(r.kind, false)
			s.recorder = r
			for rest := data; ; {
				pass, skip := s.scan(rest)
				if rest = rest[pass+skip:]; pass+skip == 0 {
					s.last(rest)
					break
				}
			}
		}
		if r.seal(); !r.storable() {
			return
		}
		again, err := readAnswer(r.append(nil))
		if err != nil || !reflect.DeepEqual(again, r.answer) {
			t.Fatalf("%+v is kept as %+v, %v", r.answer, again, err)
		}
	})
}

// An event that is taken down costs what its text costs.
func TestAllocationsOfARecordedEvent(t *testing.T) {
	event := []byte(delta("abc"))
	r := &recorder{kind: openai.KindChat}
	r.text, r.pieces = make([]byte, 0, 1<<20), make([]int32, 0, 1<<18)
	r.event(event)
	if n := testing.AllocsPerRun(1000, func() { r.event(event) }); n > 0 || r.flaw != "" {
		t.Errorf("%.1f allocations an event, flaw %q", n, r.flaw)
	}
}

func BenchmarkRecordedEvent(b *testing.B) {
	event := []byte(delta("abc"))
	b.ReportAllocs()
	for b.Loop() {
		r := &recorder{kind: openai.KindChat}
		for range 100 {
			r.event(event)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
}

// Many calls, each small enough, are together too much to be held.
func TestCallsAreBoundedTogether(t *testing.T) {
	r := &recorder{kind: openai.KindChat, tools: true}
	for i := range 8 {
		r.event(fmt.Appendf(nil, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":"f","arguments":"%s"}}]},"finish_reason":null}]}`+"\n\n",
			i, i, strings.Repeat("a", callsLimit/4)))
	}
	if r.flaw != "length" || r.heldBytes > callsLimit {
		t.Errorf("flaw %q, %d bytes are held", r.flaw, r.heldBytes)
	}
}

// Readers of JSON do not agree on which of two members of one name counts: such an
// answer is for nobody else.
func TestTwiceIsNeverStored(t *testing.T) {
	usage := `"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`
	chat := func(members string) string {
		return `{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` + members + `,"finish_reason":"stop"}],` + usage + `}`
	}
	message := func(text string) string {
		return `{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text",` + text + `}],"stop_reason":"end_turn"}`
	}
	response := func(part, more string) string {
		return `{"id":"a","object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text",` + part + `}]}]` + more + `}`
	}
	call := func(members string) string {
		return `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"x","type":"function","function":{` + members + `}}]},"finish_reason":"tool_calls"}]}`
	}
	for _, c := range []struct {
		kind  openai.Kind
		body  string
		twice bool
	}{
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a"}`), false},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","content":"b"}`), true},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","Content":""}`), true},
		{openai.KindChat, chat(`"message":{"role":"assistant","content":"a","c\u006fntent":""}`), true},
		{openai.KindChat, chat(`"message":{"role":"a","content":"a"},"message":{"content":"b"}`), true},
		{openai.KindChat, chat(`"message":{"content":"a","role":"assistant","role":"user"}`), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, usage+`,"choices":[]`, 1), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, usage+`,"id":"b"`, 1), true},
		{openai.KindChat, strings.Replace(chat(`"message":{"content":"a"}`), usage, `"usage":{"prompt_tokens":1,"prompt_tokens":9}`, 1), true},
		{openai.KindText, `{"choices":[{"index":0,"text":"a","text":"b","finish_reason":"stop"}]}`, true},
		{openai.KindMessages, message(`"text":"a"`), false},
		{openai.KindMessages, message(`"text":"a","text":"b"`), true},
		{openai.KindResponses, response(`"text":"a"`, ``), false},
		{openai.KindResponses, response(`"text":"a","text":"b"`, ``), true},
		{openai.KindResponses, response(`"text":"a"`, `,"instructions":"a","Instructions":"b"`), true},
		{openai.KindChat, call(`"name":"f","arguments":"{}"`), false},
		{openai.KindChat, call(`"name":"f","arguments":"{}","name":"g"`), true},
	} {
		r := &recorder{kind: c.kind, tools: true}
		r.body([]byte(c.body))
		r.seal()
		if (r.flaw != "") != c.twice || r.storable() == c.twice || r.faithful() == c.twice {
			t.Errorf("%s: flaw %q, storable %v", c.body, r.flaw, r.storable())
		}
	}
	stop := choice(`"delta":{},"finish_reason":"stop"`)
	for _, event := range []string{
		choice(`"delta":{"content":"a","content":"b"}`), choice(`"delta":{"content":"a"},"delta":{"content":"b"}`),
		"data: {\"model\":\"m\",\ndata: \"choices\":[{\"delta\":{\"content\":\"a\"}}],\"choices\":[]}\n\n",
	} {
		if r := recordEvents(&recorder{kind: openai.KindChat}, event, stop, doneEvent); r.flaw != flawTwice || r.faithful() {
			t.Errorf("%s: flaw %q", event, r.flaw)
		}
	}
	if r := recordEvents(&recorder{kind: openai.KindChat}, choice(`"delta":{"content":"a"}`), choice(`"delta":{"content":"a"}`), stop, doneEvent); !r.storable() {
		t.Errorf("one event after the other is no member twice: flaw %q", r.flaw)
	}
}
