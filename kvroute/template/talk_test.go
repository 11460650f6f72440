// Conversations for the comparison with jinja2: every shape that clients send.

package template

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var words = []string{
	"Hello", "what's the weather in Köln?", "  two spaces  ", "\n\nlines\n", "<|im_start|>system\n", "naïve 日本語 テスト", "👩‍👩‍👧 ok",
	"\"quoted\" and 'single'", "a\\b\\n", "<b>&amp;</b>", "{{ not a tag }} {% raw %}", "tab\there", "\u00a0nbsp\u3000", "x" + "\u2028" + "y",
	"<think>\nso\n</think>\n\nYes.", "<think>open", "</think>", "<tool_response>\nr\n</tool_response>", "1e16", "", "None", "\x7f\x01",
	"def f(x):\n    return x\n", "[INST] no [/INST]", "/no_think", "مرحبا", "ẞtraße", "end of text.",
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func say(r *rand.Rand) string {
	n := 1 + r.IntN(3)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = pick(r, words...)
	}
	return strings.Join(parts, pick(r, " ", "\n", ""))
}

// data is any JSON value.
func data(r *rand.Rand, depth int) any {
	switch r.IntN(9 - 2*min(depth, 2)) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.IntN(2000) - 1000)
	case 3:
		return pick(r, 0.5, 1.0, -3.25, 1e16, 1e22, 1e-5, 0.1, 123456.789, 1e15)
	case 4:
		return say(r)
	case 5, 6:
		l := NewList()
		for range r.IntN(4) {
			l.Items = append(l.Items, data(r, depth+1))
		}
		return l
	default:
		d := NewDict(4)
		for range r.IntN(5) {
			d.Set(pick(r, "a", "city", "zz", "items", "Größe", "<k>", "type", "10", "n\"q"), data(r, depth+1))
		}
		return d
	}
}

func dict(pairs ...any) *Dict {
	d := NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

func object(r *rand.Rand) *Dict {
	for {
		if d, ok := data(r, 0).(*Dict); ok {
			return d
		}
	}
}

func aTool(r *rand.Rand) *Dict {
	properties := NewDict(3)
	for _, name := range []string{"city", "unit", "days", "filter"}[:1+r.IntN(4)] {
		p := dict("type", pick[any](r, "string", "integer", "array", NewList("string", "null")), "description", say(r))
		if r.IntN(3) == 0 {
			p.Set("enum", NewList("celsius", "<f>", "ü"))
		}
		if r.IntN(5) == 0 {
			p.Set("items", dict("type", "string"))
		}
		if r.IntN(5) == 0 {
			p.Set("default", data(r, 1))
		}
		properties.Set(name, p)
	}
	f := dict("name", pick(r, "get_weather", "search", "run_code"), "description", say(r),
		"parameters", dict("type", "object", "properties", properties, "required", NewList("city")))
	if r.IntN(6) == 0 {
		f.Delete("parameters")
	}
	if r.IntN(6) == 0 {
		f.Set("description", nil)
	}
	if r.IntN(5) == 0 {
		f.Set("strict", true)
	}
	return dict("type", "function", "function", f)
}

func content(r *rand.Rand, parts bool) any {
	if !parts || r.IntN(2) == 0 {
		return say(r)
	}
	l := NewList()
	for range 1 + r.IntN(3) {
		l.Items = append(l.Items, dict("type", "text", "text", say(r)))
	}
	return l
}

// talk is the variables of one rendering. odd lets roles come in any order.
func talk(r *rand.Rand) *Dict {
	odd, parts, messages := r.IntN(6) == 0, r.IntN(5) == 0, NewList()
	add := func(pairs ...any) *Dict {
		m := dict(pairs...)
		messages.Items = append(messages.Items, m)
		return m
	}
	if r.IntN(2) == 0 {
		add("role", pick(r, "system", "system", "system", "developer"), "content", content(r, parts))
	}
	calls := 0
	for range 1 + r.IntN(4) {
		add("role", "user", "content", content(r, parts))
		if odd && r.IntN(2) == 0 {
			add("role", pick(r, "user", "system", "tool", "nobody"), "content", content(r, parts))
		}
		if r.IntN(3) == 0 {
			m := add("role", "assistant", "content", pick[any](r, nil, "", say(r)))
			tools := NewList()
			var ids []string
			for range 1 + r.IntN(2) {
				calls++
				id := fmt.Sprintf("call%05d", calls)
				ids = append(ids, id)
				var arguments any = object(r)
				if r.IntN(4) == 0 {
					arguments = `{"city": "Köln"}`
				}
				tools.Items = append(tools.Items, dict("id", id, "type", "function",
					"function", dict("name", "get_weather", "arguments", arguments)))
			}
			m.Set("tool_calls", tools)
			if r.IntN(3) == 0 {
				m.Set("reasoning_content", say(r))
			}
			for _, id := range ids {
				add("role", "tool", "tool_call_id", id, "name", "get_weather", "content", pick(r, `{"temperature": 20}`, say(r)))
			}
		}
		m := add("role", "assistant", "content", content(r, parts))
		if r.IntN(4) == 0 {
			m.Set("reasoning_content", say(r))
			m.Set("reasoning", say(r))
		}
	}
	if r.IntN(4) > 0 {
		add("role", "user", "content", content(r, parts))
	}
	vars := dict("messages", messages, "tools", nil, "documents", nil, "add_generation_prompt", r.IntN(4) > 0,
		"bos_token", "<s>", "eos_token", "</s>", "pad_token", "<pad>")
	switch r.IntN(8) {
	case 0, 1, 2:
		l := NewList()
		for range 1 + r.IntN(3) {
			l.Items = append(l.Items, aTool(r))
		}
		vars.Set("tools", l)
	case 3:
		vars.Set("tools", NewList())
	case 4:
		vars.Set("documents", NewList(dict("title", "T "+say(r), "text", say(r))))
	}
	if r.IntN(3) == 0 {
		vars.Set("enable_thinking", r.IntN(2) == 0)
		vars.Set("thinking", r.IntN(2) == 0)
	}
	if r.IntN(4) == 0 {
		vars.Set("reasoning_effort", pick(r, "low", "high", "none", "medium"))
	}
	if r.IntN(8) == 0 {
		vars.Delete("bos_token")
	}
	return vars
}
