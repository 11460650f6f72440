// Requests as clients send them, in every shape that changes tokens.

package prompt

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvasir/kvroute/template"
)

var words = []string{
	"Hello", "what's the weather in Köln?", "  two spaces  ", "\n\nlines\n", "<|im_start|>system\n", "naïve 日本語 テスト", "👩‍👩‍👧 ok",
	"\"quoted\" and 'single'", "a\\b\\n", "<b>&amp;</b>", "{{ not a tag }}", "tab\there", "\u00a0nbsp\u3000", "</s>", "<｜User｜>",
	"<think>\nso\n</think>\n\nYes.", "</think>", "<tool_response>\nr\n</tool_response>", "1234567", "", "\x7f\x01", "<start_of_turn>",
	"def f(x):\n    return x\n", "[INST] no [/INST]", "مرحبا", "x-anthropic-billing-header: a\nkept", "<|eot_id|>", "end of text.",
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func say(r *rand.Rand) string {
	parts := make([]string, 1+r.IntN(3))
	for i := range parts {
		parts[i] = pick(r, words...)
	}
	return strings.Join(parts, pick(r, " ", "\n", ""))
}

func dict(pairs ...any) *template.Dict {
	d := template.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

func content(r *rand.Rand) any {
	if r.IntN(6) > 0 {
		return say(r)
	}
	l := template.NewList()
	for range 1 + r.IntN(3) {
		l.Items = append(l.Items, dict("type", "text", "text", say(r)))
	}
	return l
}

func aTool(r *rand.Rand) *template.Dict {
	parameters := dict("type", "object", "properties", dict("city", dict("description", say(r), "type", "string"), "a", dict("type", "number")))
	f := dict("parameters", parameters, "name", pick(r, "get_weather", "search"), "x", int64(1))
	if r.IntN(3) > 0 {
		f.Set("description", say(r))
	}
	if r.IntN(3) == 0 {
		f.Set("strict", true)
	}
	t := dict("function", f)
	if r.IntN(5) > 0 {
		t.Set("type", "function")
	}
	return t
}

// aTalk is the messages of a conversation of so many turns.
func aTalk(r *rand.Rand, turns int) *template.List {
	l := template.NewList()
	add := func(pairs ...any) *template.Dict {
		m := dict(pairs...)
		l.Items = append(l.Items, m)
		return m
	}
	if r.IntN(2) == 0 {
		add("role", pick(r, "system", "system", "system", "developer"), "content", content(r))
	}
	for i := range turns {
		add("role", "user", "content", content(r))
		if r.IntN(12) == 0 {
			add("role", pick(r, "user", "system", "developer"), "content", content(r))
		}
		if r.IntN(3) == 0 {
			m := add("content", pick[any](r, nil, "", say(r)), "role", "assistant")
			calls := template.NewList()
			for k := range 1 + r.IntN(2) {
				arguments := pick(r, `{"city": "Köln", "a": 1.50}`, `{}`, "", "[]", "{broken", `{"n": {"z": 1, "b": [true, null, "é\n"]}}`)
				calls.Items = append(calls.Items, dict("type", "function", "function", dict("name", "get_weather", "arguments", arguments),
					"id", fmt.Sprintf("call%05d", 10*i+k)))
			}
			m.Set("tool_calls", calls)
			if r.IntN(3) == 0 {
				m.Set(pick(r, "reasoning_content", "reasoning"), say(r))
			}
			for k := range calls.Items {
				add("role", "tool", "tool_call_id", fmt.Sprintf("call%05d", 10*i+k), "content", content(r))
			}
		}
		if i+1 < turns || r.IntN(4) == 0 {
			m := add("role", "assistant", "content", content(r))
			if r.IntN(4) == 0 {
				m.Set("reasoning_content", say(r))
			}
			if r.IntN(8) == 0 {
				m.Set("tool_calls", template.NewList())
			}
		}
	}
	return l
}

// aRequest is a whole request.
func aRequest(r *rand.Rand) *template.Dict {
	d := dict("model", "m", "messages", aTalk(r, 1+r.IntN(4)))
	if r.IntN(3) == 0 {
		d.Set("tools", template.NewList(aTool(r), aTool(r)))
	}
	if r.IntN(4) == 0 {
		d.Set("chat_template_kwargs", dict("enable_thinking", pick[any](r, true, false, nil), "unknown", int64(1)))
	}
	if r.IntN(5) == 0 {
		d.Set("reasoning_effort", pick(r, "low", "none", "high"))
	}
	switch r.IntN(8) {
	case 0:
		d.Set("add_generation_prompt", false)
	case 1:
		d.Set("add_generation_prompt", false)
		d.Set("continue_final_message", true)
	}
	if r.IntN(10) == 0 {
		d.Set("add_special_tokens", true)
	}
	return d
}

func encode(tb testing.TB, d *template.Dict) []byte {
	tb.Helper()
	body, err := template.AppendJSON(nil, d)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

const realFiles = "../../.cache/tokenizer-files/"

// longTalk is a conversation of about so many bytes, as an assistant that writes code has them.
func longTalk(size int) *template.List {
	r := rand.New(rand.NewPCG(3, 4))
	vocabulary := strings.Fields("the function returns a value for each request that was sent to server and then it writes an error " +
		"into log when connection closes before response has been read Überprüfung naïve 日本語 x := range items { return nil } if err != nil {")
	l := template.NewList(dict("role", "system", "content", "You are a helpful assistant that writes Go."))
	for total := 0; total < size; {
		for _, role := range []string{"user", "assistant"} {
			var b strings.Builder
			for b.Len() < 1200 {
				b.WriteString(vocabulary[r.IntN(len(vocabulary))])
				b.WriteByte(" \n"[r.IntN(10)/9])
				if r.IntN(12) == 0 {
					fmt.Fprintf(&b, "v%d = \"%x\"\n", r.IntN(1000), r.IntN(1<<30))
				}
			}
			total += b.Len()
			l.Items = append(l.Items, dict("role", role, "content", b.String()))
		}
	}
	l.Items = append(l.Items, dict("role", "user", "content", "And now?"))
	return l
}

func realModel(tb testing.TB, name string) *Model {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(realFiles, name)); err != nil {
		tb.Skip("SKIP real part: tokenizer-files: scripts/parts.sh tokenizer-files brings it")
	}
	m, err := NewLibrary(Options{}).Model(name, realFiles+name, Hints{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
