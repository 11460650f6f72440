// Reading requests: refusals beyond those in vLLM's recordings, and fuzzing of the reader.

package sim

import (
	"encoding/json"
	"strings"
	"testing"
)

var small = Options{Name: "w", Model: "m", MaxModelLen: 4096}.withDefaults()

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ chat, message, param string }{
		{hello(`"top_p":0`), "top_p must be in (0, 1], got 0.0. (parameter=top_p, value=0.0)", "top_p"},
		{hello(`"presence_penalty":2.5`), "presence_penalty must be in [-2, 2], got 2.5.", ""},
		{hello(`"n":129`), "n must be at most 128, got 129.", ""},
		{hello(`"stop":["a",""]`), "stop cannot contain an empty string.", ""},
		{hello(`"min_tokens":9,"max_tokens":8`), "min_tokens must be less than or equal to max_tokens=8, got 9.", ""},
		{hello(`"max_completion_tokens":0,"max_tokens":8`), "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)", "max_tokens"},
		{hello(`"n":1.5`), "1 validation error:\n  {'type': 'int_from_float', 'loc': 'body.n', 'msg': 'Input should be a valid integer, got a number with a fractional part', 'input': '1.5'}", "body.n"},
		{hello(`"stream":"perhaps"`), "1 validation error:\n  {'type': 'bool_type', 'loc': 'body.stream', 'msg': 'Input should be a valid boolean', 'input': 'perhaps'}", "body.stream"},
		{`{"messages":{}}`, "1 validation error:\n  {'type': 'list_type', 'loc': 'body.messages', 'msg': 'Input should be a valid list', 'input': '<dict of 0 items>'}", "body.messages"},
		{`{"messages":[{"content":"x"}]}`, "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages.0.role', 'msg': 'Field required', 'input': '<dict of 1 items>'}", "body.messages.0.role"},
		{`{"messages":[{"role":"user","content":5}]}`, "1 validation error:\n  {'type': 'string_type', 'loc': 'body.messages.0.content', 'msg': 'Input should be a valid string', 'input': '5'}", "body.messages.0.content"},
		{hello(`"tools":[{"function":{"name":"f"}}],"tool_choice":{"function":{"name":"g"}}`), "The tool specified in `tool_choice` does not match any of the specified `tools` (parameter=tool_choice)", "tool_choice"},
		{`{"a":1 "b"}`, "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.7', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': \"Expecting ',' delimiter\"}}", "body.7"},
		{`{"é":"abc`, "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.5', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Unterminated string starting at'}}", "body.5"},
		{`{"a":`, "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.5', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}", "body.5"},
	} {
		f := decodeFields([]byte(c.chat))
		if f.failure == nil {
			readChat(dialects["vllm"], small, f, "")
		}
		if f.failure == nil || f.failure.message != c.message || f.failure.param != c.param || f.failure.status != 400 {
			t.Errorf("%s: %+v, want %s", c.chat, f.failure, c.message)
		}
	}
}

func TestLenience(t *testing.T) {
	for _, body := range []string{
		"\ufeff" + hello(""), hello(`"max_tokens":"8"`), hello(`"max_tokens":8.0`), hello(`"max_tokens":null`),
		hello(`"stream":1`), hello(`"temperature":"0.5"`), `{"messages":0,"messages":[{"role":"user"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
	} {
		f := decodeFields([]byte(body))
		if readChat(dialects["vllm"], small, f, ""); f.failure != nil {
			t.Errorf("%s: %s", body, f.failure.message)
		}
	}
}

func TestAnswerIsCutToTheContext(t *testing.T) {
	f := decodeFields([]byte(`{"prompt":"` + strings.Repeat("word ", 4000) + `","max_tokens":500,"ignore_eos":true}`))
	c := readPrompts(dialects["vllm"], small, f, "")
	if f.failure != nil {
		t.Fatal(f.failure.message)
	}
	c.write(small)
	if got, want := len(c.answers[0].tokens), 4096-len(c.prompts[0]); got != want {
		t.Errorf("%d tokens, want the %d that are left", got, want)
	}
}

// A prompt that fills the context leaves no room for an answer: it is refused, but with a
// different message than a prompt that is too long.
func TestPromptOfTheWholeContext(t *testing.T) {
	f := decodeFields([]byte(`{"prompt":[` + strings.Repeat("7,", 4095) + `7]}`))
	readPrompts(dialects["vllm"], small, f, "")
	if f.failure == nil || !strings.Contains(f.failure.message, "you requested 1 output tokens and your prompt contains at least 4096") {
		t.Errorf("%+v", f.failure)
	}
}

func TestPromptForms(t *testing.T) {
	for prompt, want := range map[string]int{`"one two"`: 1, `["one","two"]`: 2, `[1,2,3]`: 1, `[[1,2],[3]]`: 2} {
		f := decodeFields([]byte(`{"prompt":` + prompt + `,"n":3,"max_tokens":5}`))
		c := readPrompts(dialects["vllm"], small, f, "")
		if f.failure != nil || len(c.prompts) != want {
			t.Errorf("%s: %d prompts, %+v", prompt, len(c.prompts), f.failure)
			continue
		}
		c.write(small)
		if len(c.requests(small)) != 3*want {
			t.Errorf("%s: not three answers a prompt", prompt)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		hello(`"stream":true,"stream_options":{"include_usage":true},"n":2,"stop":["a"],"seed":-1`),
		hello(`"tools":[{"function":{"name":"f","parameters":{"type":"object","required":["a","a"]}}}],"tool_choice":"required"`),
		`{"prompt":["a",""],"max_tokens":3}`, `{"prompt":[[1,4294967295],[2147483649]]}`, `{"messages":[{"role":"a","content":[{"type":`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func(*dialect, Options, *fields, string) *completion{readChat, readPrompts} {
			fields := decodeFields(body)
			var c *completion
			if fields.failure == nil {
				c = read(dialects["vllm"], small, fields, "id")
			}
			if fields.failure != nil {
				if !json.Valid(fields.failure.body()) {
					t.Fatalf("refused with %s", fields.failure.body())
				}
				continue
			}
			c.write(small)
			for i, r := range c.requests(small) {
				if r.PromptTokens+r.MaxTokens > small.MaxModelLen || r.MaxTokens < 1 ||
					len(r.Hashes) != (r.PromptTokens+r.MaxTokens)/small.BlockSize {
					t.Fatalf("answer %d: %d + %d tokens, %d hashes", i, r.PromptTokens, r.MaxTokens, len(r.Hashes))
				}
			}
			if reply := newWire(c, "m", 1).appendReply(nil, c, 1, usage{}, nil); !json.Valid(reply) {
				t.Fatalf("reply %s", reply)
			}
		}
	})
}

func FuzzFault(f *testing.F) {
	f.Add("die-after=3")
	f.Add("slow=20ms")
	f.Fuzz(func(t *testing.T, value string) {
		if fault, err := readFault(value); err == nil && (fault.events < 0 || fault.status != 0 && fault.status < 400) {
			t.Fatalf("%q is read as %+v", value, fault)
		}
	})
}
