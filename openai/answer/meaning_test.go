// What events mean, by hand and in every transcript; and what replies count.

package answer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

// marks is a meaning in words.
func (m meaning) marks() string {
	var words []string
	for _, mark := range []struct {
		set  bool
		name string
	}{{m.comment, "comment"}, {m.content, "content"}, {m.failure, "failure"}, {m.done, "done"}, {m.finished, "finished"}, {m.usageOnly, "usageOnly"}} {
		if mark.set {
			words = append(words, mark.name)
		}
	}
	if m.usage != NoUsage {
		words = append(words, fmt.Sprintf("%d/%d/%d", m.usage.Prompt, m.usage.Completion, m.usage.Cached))
	}
	return strings.Join(words, " ")
}

func TestMeaning(t *testing.T) {
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":null}]}` + "\n\n"
	delta := func(d string) string { return strings.Replace(chunk, "%s", d, 1) }
	for _, c := range []struct {
		kind  openai.Kind
		event string
		want  string
	}{
		{openai.KindChat, ": keep-alive\n\n", "comment"},
		{openai.KindChat, "event: token_ids\n: \"[1,2]\"\n\n", "comment"},
		{openai.KindChat, "\n", "comment"},
		{openai.KindChat, "data:\n\n", "comment"},
		{openai.KindChat, "id: 3\nretry: 10\n\n", "comment"},

		{openai.KindChat, delta(`{"role":"assistant","content":""}`), ""},
		{openai.KindChat, delta(`{"role":"assistant","content":null,"reasoning_content":null}`), ""},
		{openai.KindChat, delta(`{"role":"assistant"}`), ""},
		{openai.KindChat, delta(`{}`), ""},
		{openai.KindChat, delta(`null`), ""},
		{openai.KindChat, delta(`{"token_ids":[1,2]}`), ""},
		{openai.KindChat, delta(`{"content":null,"tool_calls":[]}`), ""},
		{openai.KindChat, delta(`{"content":"hi"}`), "content"},
		{openai.KindChat, delta(`{"content": " "}`), "content"},
		{openai.KindChat, delta(`{"reasoning":"hm"}`), "content"},
		{openai.KindChat, delta(`{"content":"","reasoning_content":"hm"}`), "content"},
		{openai.KindChat, delta(`{"refusal":"no"}`), "content"},
		{openai.KindChat, delta(`{"content":null,"tool_calls":[{"index":0}]}`), "content"},
		{openai.KindChat, delta(`{"function_call":{"name":"f"}}`), "content"},
		{openai.KindChat, delta(`{"audio":{"id":"a"}}`), "content"},
		{openai.KindChat, delta(`{"content":[{"type":"text"}]}`), "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{},"token_ids":[172],"finish_reason":null}]}` + "\n\n", ""},
		{openai.KindChat, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "content finished"},
		{openai.KindChat, `data: {"choices":[{"delta":{"content":"x"},"finish_reason" : "length"}]}` + "\n\n", "content finished"},
		{openai.KindChat, `data: {"choices":[{"finish_reason":"","delta":{}}]}` + "\n\n", ""},
		{openai.KindChat, `data: {"choices":[{"delta":{},"finish_reason":null},{"delta":{},"finish_reason":"stop"}]}` + "\n\n", "content finished"},
		{openai.KindChat, "data: [DONE]\n\n", "content done"},
		{openai.KindChat, "data:[DONE]\r\n\r\n", "content done"},
		{openai.KindChat, "\ndata: [DONE]\n\n", "content done"}, // the LF that an event before it, which ended in CR, had behind it
		{openai.KindText, "data: [DONE]\n\n", "content done"},
		{openai.KindResponses, "data: [DONE]\n\n", "content"},
		{openai.KindOpaque, "data: [DONE]\n\n", "content"},

		{openai.KindChat, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n", "usageOnly 5/2/4"},
		{openai.KindChat, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":null}}` + "\n\n", "usageOnly 5/2/-1"},
		{openai.KindChat, `data: {"choices":[],"usage":null}` + "\n\n", ""},
		{openai.KindChat, `data: {"choices":[],"prompt_filter_results":[{}]}` + "\n\n", ""},
		{openai.KindChat, `data: {"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n\n", "content 5/1/-1"},
		{openai.KindChat, `data: {"choices":[{"delta":{"content":""}}],"usage":{"prompt_tokens":-5,"completion_tokens":1.5,"prompt_tokens_details":{"cached_tokens":1e3}}}` + "\n\n", ""},

		{openai.KindText, `data: {"choices":[{"index":0,"text":"","finish_reason":null}]}` + "\n\n", ""},
		{openai.KindText, `data: {"choices":[{"index":0,"text":"x","finish_reason":null}],"usage":null}` + "\n\n", "content"},
		{openai.KindText, `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\n", "content finished"},

		{openai.KindChat, `data: {"error": {"message": "m", "code": 500}}` + "\n\n", "failure"},
		{openai.KindChat, `data: {"error":"busy"}` + "\n\n", "failure"},
		{openai.KindChat, `data: {"choices":[{"delta":{"content":"x"}}],"error":{"message":"m"}}` + "\n\n", "failure"},
		{openai.KindChat, `data: {"error":null,"choices":[{"delta":{"content":"x"}}]}` + "\n\n", "content"},
		{openai.KindChat, `data: {"error":"","choices":[{"delta":{"content":"x"}}]}` + "\n\n", "content"},
		{openai.KindText, `data: {"object":"error","message":"m","code":503}` + "\n\n", "failure"},
		{openai.KindOpaque, `data: {"error":{"message":"m"}}` + "\n\n", "failure"},
		{openai.KindChat, "event: error\ndata: it broke\n\n", "failure"},
		{openai.KindChat, "data: {\"a\":1}\nevent: error\n\n", "failure"},
		{openai.KindChat, "event: error\n: {\"message\":\"m\"}\n\n", "failure"},

		// Words that mean something, where they mean nothing.
		{openai.KindChat, delta(`{"content":"\"error\": [DONE] \"finish_reason\":\"stop\" \"usage\":{}"}`), "content"},
		{openai.KindChat, delta(`{"content":"error"}`), "content"},
		{openai.KindChat, delta(`{"content":"usage"}`), "content"},
		{openai.KindChat, delta(`{"content":"finish_reason"}`), "content"},
		{openai.KindChat, delta(`{"content":"[DONE]"}`), "content"},
		{openai.KindChat, delta(`{"content":"data: [DONE]\n\nevent: error\n\n"}`), "content"},
		{openai.KindChat, delta(`{"tool_calls":[{"function":{"arguments":"{\"error\":{\"message\":1}}"}}]}`), "content"},
		{openai.KindChat, delta(`{"content":"a\\"}`), "content"},
		{openai.KindChat, delta(`{"role":"assistant","content":"","meta":{"error":{"code":1},"usage":{"prompt_tokens":1}}}`), "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{"role":"assistant"},"error":{"code":1},"usage":{"prompt_tokens":1},"finish_reason":null}]}` + "\n\n", ""},
		{openai.KindChat, "data: [DONE", "content"},

		// What is not understood belongs to the client.
		{openai.KindChat, "data: hello\n\n", "content"},
		{openai.KindChat, `data: [{"error":1}]` + "\n\n", "content"},
		{openai.KindChat, `data: {"message":"Model not found","type":"Not Found","code":404}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{"role":"assistant"}}]` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{"role":"assistant"}}]}}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{"role":"assistant"}}],}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[{"delta":{"role":"assistant"} "x":1}]}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[],"a":[{]}}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[],"a":"b}` + "\n\n", "content"},
		{openai.KindChat, `data: {"choices":[],"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}\n\n", ""},
		{openai.KindChat, `data: {"choices":[],"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + "}\n\n", "content"},

		// One object over several data lines.
		{openai.KindChat, "data: {\"choices\":[\ndata: {\"delta\":\r\n: a comment\r\ndata\rid: 7\ndata:{\"role\":\"assistant\"}}\n" +
			"data: ],\"usage\":null}\n\n", ""},
		{openai.KindChat, "data:\ndata: {\"choices\":\ndata: [{\"delta\":{\"content\":\"x\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", "content finished"},
		{openai.KindChat, "data: {\"choices\":[],\ndata: \"error\":{}}\n\n", "failure"},
		{openai.KindChat, "data: {\"choices\":[]\n: no more\n\n", "content"},

		{openai.KindResponses, "event: response.created\ndata: {\"response\":{\"error\":null,\"usage\":null},\"type\":\"response.created\"}\n\n", ""},
		{openai.KindResponses, "event: response.queued\ndata: {}\n\n", ""},
		{openai.KindResponses, "data: {\"type\":\"response.output_item.added\"}\n\n", ""},
		{openai.KindResponses, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n", "content"},
		{openai.KindResponses, "data: {\"type\":\"response.function_call_arguments.done\"}\n\n", "content"},
		{openai.KindResponses, "event: response.created\ndata: {\"type\":\"response.output_text.delta\"}\n\n", "content"},
		{openai.KindResponses, "data: {\"type\":\"response.incomplete\",\"response\":{\"usage\":{\"input_tokens\":3,\"input_tokens_details\":{\"cached_tokens\":2},\"output_tokens\":1}}}\n\n", "content done 3/1/2"},
		{openai.KindResponses, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n", "failure done"},
		{openai.KindResponses, "data: {\"type\":\"error\",\"message\":\"m\"}\n\n", "failure"},
		{openai.KindChat, "data: {\"type\":\"error\",\"choices\":[]}\n\n", ""},

		{openai.KindMessages, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":30,\"output_tokens\":0}}}\n\n", "30/0/-1"},
		{openai.KindMessages, "event: ping\ndata: {\"type\":\"ping\"}\n\n", ""},
		{openai.KindMessages, "event: content_block_delta\ndata: {\"delta\":{\"text\":\"x\"}}\n\n", "content"},
		{openai.KindMessages, "data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":3,\"cache_read_input_tokens\":9}}\n\n", "content -1/3/9"},
		{openai.KindMessages, "data: {\"type\":\"message_stop\"}\n\n", "content done"},
		{openai.KindMessages, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", "failure"},

		{openai.KindOpaque, `data: {"choices":[{"delta":{"role":"assistant"}}]}` + "\n\n", "content"},
		{openai.KindForm, `data: {"type":"transcript.text.done","usage":{"input_tokens":1,"output_tokens":2}}` + "\n\n", "content 1/2/-1"},
	} {
		if got := meaningOf(c.kind, []byte(c.event)).marks(); got != c.want {
			t.Errorf("kind %d %q:\n got %q\nwant %q", c.kind, c.event, got, c.want)
		}
		sameLate(t, c.kind, []byte(c.event))
	}
}

// sameLate checks that lateMeaningOf says what meaningOf says, but for content.
func sameLate(t *testing.T, k openai.Kind, event []byte) {
	t.Helper()
	want, got := meaningOf(k, event), lateMeaningOf(k, event)
	want.content = !want.comment && !want.failure
	if got != want {
		t.Errorf("kind %d %q:\n late %q\nexact %q", k, event, got.marks(), want.marks())
	}
}

// Every stream of every engine, an event a line.
func TestMeaningOfTranscripts(t *testing.T) {
	for name, want := range map[string]string{
		"vllm/chat_stream":                         "-|content*7|content finished|content done",
		"vllm/chat_stream_usage":                   "-|content*7|content finished|usageOnly 23/8/0|content done",
		"vllm/chat_stream_stop_eos":                "-|content finished|content done",
		"vllm/chat_stream_tools_required":          "-|content*3|content finished|content done",
		"vllm/chat_stream_n2":                      "-*2|content*3|content finished|content|content finished|usageOnly 23/6/0|content done",
		"vllm/emoji_split_stream":                  "-*4|content|-*3|content*4|content finished|content done",
		"vllm/completion_stream":                   "content*4|content finished|usageOnly 4/5/0|content done",
		"vllm/sse_keepalive_queued":                "comment*10|-|content*2|content finished|content done",
		"vllm/responses_stream":                    "-*4|content*5|content done 30/3/0",
		"vllm/messages_stream":                     "30/0/-1|-|content*3|-|content 30/3/0|content done",
		"vllm/generate_tokens_stream":              "content*4",
		"vllm/pd/24_decode_stream_kv_load_failure": "-|failure|content done",
		"vllm/pd/engine_killed_stream":             "-|content*9|failure|content done",
		"vllm/pd/sigterm_stream":                   "-|content*10",
		"sglang/chat_stream":                       "-|content*5|content finished|content done",
		"sglang/chat_stream_usage":                 "-|content*6|content finished|usageOnly 33/6/32|content done",
		"sglang/completion_stream":                 "content*2|content finished|content done",
	} {
		tr := answertest.Find(t, name)
		var got []string
		last, times := "", 0
		flush := func() {
			if times > 1 {
				last += fmt.Sprintf("*%d", times)
			}
			if times > 0 {
				got = append(got, last)
			}
		}
		for _, event := range tr.Events() {
			marks := meaningOf(tr.Kind, []byte(event)).marks()
			if marks == "" {
				marks = "-"
			}
			if marks != last || times == 0 {
				flush()
				last, times = marks, 0
			}
			times++
			sameLate(t, tr.Kind, []byte(event))
		}
		flush()
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s:\n got %s\nwant %s", name, s, want)
		}
	}
}

// Every finished stream of the four routes says so, and no other does.
func TestEveryStreamsEnd(t *testing.T) {
	for _, tr := range answertest.Transcripts(t) {
		if tr.Events() == nil || tr.Kind == openai.KindOpaque {
			continue
		}
		ended := false
		for _, event := range tr.Events() {
			v := lateMeaningOf(tr.Kind, []byte(event))
			ended = ended || v.done || v.finished
		}
		if ended == tr.Cut {
			t.Errorf("%s: ended %v, cut %v", tr.Name, ended, tr.Cut)
		}
	}
}

// Every whole reply counts what encoding/json reads, by a walk over all of it
// and from its end.
func TestUsageOfEveryTranscript(t *testing.T) {
	counted := 0
	for _, tr := range answertest.Transcripts(t) {
		if tr.Events() != nil {
			continue
		}
		var reply struct {
			Usage *struct {
				Prompt     *int `json:"prompt_tokens"`
				Input      *int `json:"input_tokens"`
				Completion *int `json:"completion_tokens"`
				Output     *int `json:"output_tokens"`
				CacheRead  *int `json:"cache_read_input_tokens"`
				Details    struct {
					Cached *int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
				InputDetails struct {
					Cached *int `json:"cached_tokens"`
				} `json:"input_tokens_details"`
			}
		}
		want := NoUsage
		if json.Unmarshal(tr.Body, &reply) == nil && reply.Usage != nil {
			u := reply.Usage
			counted++
			for _, f := range []struct {
				to   *int
				from []*int
			}{
				{&want.Prompt, []*int{u.Prompt, u.Input}},
				{&want.Completion, []*int{u.Completion, u.Output}},
				{&want.Cached, []*int{u.Details.Cached, u.InputDetails.Cached, u.CacheRead}},
			} {
				for _, from := range f.from {
					if from != nil {
						*f.to = *from
					}
				}
			}
		}
		if got, near := walkedUsage(tr.Kind, tr.Body), UsageOf(tr.Kind, tr.Body); got != want || near != want {
			t.Errorf("%s: %+v, and %+v near the end, want %+v", tr.Name, got, near, want)
		}
	}
	if counted < 40 {
		t.Errorf("only %d replies with usage", counted)
	}
}

func TestMeaningAllocations(t *testing.T) {
	var streams []answertest.Transcript
	for _, tr := range answertest.Transcripts(t) {
		if tr.Events() != nil {
			streams = append(streams, tr)
		}
	}
	whole := answertest.Find(t, "vllm/chat_plain").Body
	if n := testing.AllocsPerRun(20, func() {
		for i := range streams {
			var s openai.EventScanner
			for b := streams[i].Body; ; {
				n := s.Next(b)
				if n == 0 {
					break
				}
				meaningOf(streams[i].Kind, b[:n])
				lateMeaningOf(streams[i].Kind, b[:n])
				b = b[n:]
			}
		}
		walkedUsage(openai.KindChat, whole)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMeaning: lateMeaningOf agrees with meaningOf, and both with the slow twin
// where it has an opinion.
func FuzzMeaning(f *testing.F) {
	for _, tr := range answertest.Transcripts(f) {
		for i, event := range tr.Events() {
			if i%5 == 0 {
				f.Add([]byte(event), uint8(tr.Kind))
			}
		}
	}
	f.Fuzz(func(t *testing.T, event []byte, k uint8) {
		kind := openai.Kind(k % 6)
		sameLate(t, kind, event)
		got := meaningOf(kind, event)
		if want, ok := slowMeaning(kind, event); ok && got != want {
			t.Fatalf("%q: %s, want %s", event, got.marks(), want.marks())
		}
	})
}

// slowMeaning is meaningOf by encoding/json. It has no opinion on other kinds
// than chat and text, more than one line, escapes (keys are compared as
// written), duplicate keys, and what is nearly too deep.
func slowMeaning(k openai.Kind, event []byte) (v meaning, ok bool) {
	line, ok := strings.CutPrefix(string(event), "data: {")
	line, ended := strings.CutSuffix(line, "}\n\n")
	line = "{" + line + "}"
	if !ok || !ended || k != openai.KindChat && k != openai.KindText || strings.ContainsAny(line, "\r\n\\") ||
		strings.Count(line, "{")+strings.Count(line, "[") > 60 || !json.Valid([]byte(line)) || duplicateKey(json.NewDecoder(strings.NewReader(line))) {
		return v, false
	}
	var m map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if d.Decode(&m) != nil {
		return v, false
	}
	v.usage = NoUsage
	if e := m["error"]; e != nil && e != "" || m["object"] == "error" {
		v.failure = true
		return v, true
	}
	usage, counted := m["usage"].(map[string]any)
	slowCount(&v.usage.Prompt, usage["prompt_tokens"])
	slowCount(&v.usage.Completion, usage["completion_tokens"])
	details, _ := usage["prompt_tokens_details"].(map[string]any)
	slowCount(&v.usage.Cached, details["cached_tokens"])
	if strings.Contains(line, `"input_tokens`) || strings.Contains(line, `"output_tokens`) || strings.Contains(line, `"cache_read`) {
		return v, false
	}
	choices, array := m["choices"].([]any)
	v.content = !array
	v.usageOnly = array && len(choices) == 0 && counted
	for _, choice := range choices {
		c, _ := choice.(map[string]any)
		v.finished = v.finished || !isEmpty(c["finish_reason"])
		v.content = v.content || v.finished || !isEmpty(c["text"]) || !isEmpty(c["message"])
		delta, _ := c["delta"].(map[string]any)
		for name, value := range delta {
			v.content = v.content || name != "role" && name != "token_ids" && !isEmpty(value)
		}
	}
	return v, true
}

func slowCount(to *int, value any) {
	if n, ok := value.(json.Number); ok && len(n) <= 15 && strings.Trim(string(n), "0123456789") == "" {
		*to, _ = strconv.Atoi(string(n))
	}
}

func isEmpty(value any) bool {
	switch x := value.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// duplicateKey reads one valid value: has any object in it a key twice?
func duplicateKey(d *json.Decoder) bool {
	token, err := d.Token()
	delim, open := token.(json.Delim)
	if err != nil || !open {
		return false
	}
	seen := map[json.Token]bool{}
	for d.More() {
		if delim == '{' {
			key, _ := d.Token()
			if seen[key] {
				return true
			}
			seen[key] = true
		}
		if duplicateKey(d) {
			return true
		}
	}
	d.Token()
	return false
}

func BenchmarkMeaning(b *testing.B) {
	chat := answertest.Find(b, "vllm/chat_stream").Events()
	logprobs := answertest.Find(b, "vllm/chat_stream_logprobs").Events()
	responses := answertest.Find(b, "vllm/responses_stream").Events()
	messages := answertest.Find(b, "vllm/messages_stream").Events()
	for _, c := range []struct {
		name  string
		kind  openai.Kind
		event string
	}{
		{"chat", openai.KindChat, chat[3]},
		{"chat-finish", openai.KindChat, chat[8]},
		{"chat-logprobs", openai.KindChat, logprobs[1]},
		{"responses", openai.KindResponses, responses[4]},
		{"responses-completed", openai.KindResponses, responses[9]},
		{"messages", openai.KindMessages, messages[3]},
	} {
		event := []byte(c.event)
		b.Run("exact/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				meaningOf(c.kind, event)
			}
		})
		b.Run("late/"+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				lateMeaningOf(c.kind, event)
			}
		})
	}
}

func BenchmarkUsageOf(b *testing.B) {
	chat := answertest.Find(b, "vllm/chat_plain").Body
	vector := []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[` +
		strings.Repeat("-0.012345678,", 4095) + `0.1]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`)
	for _, c := range []struct {
		name string
		kind openai.Kind
		body []byte
	}{{"chat", openai.KindChat, chat}, {"embedding", openai.KindOpaque, vector}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if walkedUsage(c.kind, c.body).Prompt < 0 {
					b.Fatal("no usage")
				}
			}
		})
	}
}
