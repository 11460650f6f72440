// Tests of what is kept of prompts and answers, of its bounds, and of what must not be seen.

package content

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"kvasir/openai"
	"kvasir/openai/answer"
)

// routes are those that generate text.
var routes = map[string]openai.Kind{
	"/v1/chat/completions": openai.KindChat, "/v1/completions": openai.KindText,
	"/v1/responses": openai.KindResponses, "/v1/messages": openai.KindMessages,
}

// asked is what is kept of a body. What stands in it as hide gives way to [X].
func asked(t testing.TB, route, body, hide string) *Talk {
	t.Helper()
	var r openai.Request
	if err := r.Parse(openai.Route{Path: route, Kind: routes[route]}, []byte(body), nil); err != nil {
		t.Fatalf("%.200s: %s", body, err.Message)
	}
	var hidden openai.Splices
	for at := 0; hide != ""; {
		n := strings.Index(body[at:], hide)
		if n < 0 {
			break
		}
		hidden.Replace(openai.Span{Start: int32(at + n), End: int32(at + n + len(hide))}, []byte("[X]"))
		at += n + len(hide)
	}
	k := New(routes[route], &Budget{}, bug)
	k.Asked(&r, &hidden)
	return k
}

// bug fails the test.
func bug(fault any, _ string) { panic(fault) }

// kept is what was kept, one line each.
func (t *Talk) kept(end string) string {
	return strings.TrimSpace(strings.Join(slices.DeleteFunc([]string{t.System, t.Input, t.Output(end)}, func(s string) bool { return s == "" }), "\n"))
}

func TestPrompts(t *testing.T) {
	for _, c := range []struct{ name, route, body, want string }{
		{"chat", "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"content":"Say \"SECRET\"\u00e9","role":"user"}]}`,
			`[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},{"role":"user","parts":[{"type":"text","content":"Say \"[X]\"\u00e9"}]}]`},
		{"parts", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"What is SECRET?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
			`[{"role":"user","parts":[{"type":"text","content":"What is [X]?"},{"type":"other","kind":"image_url"}]}]`},
		{"tools", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"SECRET\"}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"12 C in SECRET"}]}`,
			`[{"role":"user","parts":[{"type":"text","content":"Weather?"}]},` +
				`{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"c1","name":"weather","arguments":{"city":"[X]"}}]},` +
				`{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"12 C in [X]"}]}]`},
		{"arguments that are no JSON", "/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","function_call":{"name":"f","arguments":"{\"city"}}]}`,
			`[{"role":"assistant","parts":[{"type":"tool_call","id":null,"name":"f","arguments":"{\"city"}]}]`},
		{"completions", "/v1/completions", `{"model":"m","prompt":"Once SECRET"}`, `[{"role":"user","parts":[{"type":"text","content":"Once [X]"}]}]`},
		{"prompts", "/v1/completions", `{"model":"m","prompt":["a","b"]}`, `[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]`},
		{"token ids", "/v1/completions", `{"model":"m","prompt":[1,2,3]}`, `[{"role":"user","parts":[{"type":"token_ids"}]}]`},
		{"responses", "/v1/responses", `{"model":"m","instructions":"Be SECRET.","input":"Hello"}`,
			`[{"type":"text","content":"Be [X]."}]` + "\n" + `[{"role":"user","parts":[{"type":"text","content":"Hello"}]}]`},
		{"items", "/v1/responses", `{"model":"m","instructions":null,"input":[{"role":"user","content":[{"type":"input_text","text":"Hello"},{"type":"input_file","file_data":"AAAA"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
			{"type":"function_call","id":"i","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"SECRET"},
			{"type":"web_search_call","id":"w"}]}`,
			`[{"role":"user","parts":[{"type":"text","content":"Hello"},{"type":"other","kind":"input_file"}]},` +
				`{"role":"assistant","parts":[{"type":"reasoning","content":"hm"}]},` +
				`{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"f","arguments":{}}]},` +
				`{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"[X]"}]},` +
				`{"role":"assistant","parts":[{"type":"other","kind":"web_search_call"}]}]`},
		{"messages", "/v1/messages", `{"model":"m","max_tokens":1,"system":[{"type":"text","text":"Be SECRET."}],"messages":[{"role":"user","content":"Hello"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"f","input":{"a":"SECRET"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"SECRET"}]}]}]}`,
			`[{"type":"text","content":"Be [X]."}]` + "\n" + `[{"role":"user","parts":[{"type":"text","content":"Hello"}]},` +
				`{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"t1","name":"f","arguments":{"a":"[X]"}}]},` +
				`{"role":"user","parts":[{"type":"tool_call_response","id":"t1","response":[{"type":"text","content":"[X]"}]}]}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := asked(t, c.route, c.body, "SECRET")
			if got := k.kept(""); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			wellFormed(t, k)
		})
	}
}

// events are server-sent ones, each of a line of data, or of a name, a bar and data.
func events(lines ...string) (all []string) {
	for _, l := range lines {
		if name, data, named := strings.Cut(l, "|"); named {
			all = append(all, "event: "+name+"\ndata: "+data+"\n\n")
		} else {
			all = append(all, "data: "+l+"\n\n")
		}
	}
	return all
}

func TestAnswers(t *testing.T) {
	const call = `[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"I ask."},{"type":"tool_call","id":"c1","name":"f","arguments":{"a":1}}],"finish_reason":"tool_call"}]`
	for _, c := range []struct {
		name, route string
		body        string
		events      []string
		end         string
		want        string
	}{
		{name: "chat", route: "/v1/chat/completions",
			body: `{"choices":[{"index":0,"message":{"role":"assistant","content":"I ask.","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}`, want: call},
		{name: "chat, streamed", route: "/v1/chat/completions", events: events(
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, `{"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}`,
			`{"choices":[{"index":0,"delta":{"content":"I "}}]}`, `{"choices":[{"delta":{"content":"ask."},"index":0}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`), want: call},
		{name: "two choices", route: "/v1/chat/completions",
			body: `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"},{"index":1,"message":{"content":"b","refusal":null},"finish_reason":"length"}]}`,
			want: `[{"role":"assistant","parts":[{"type":"text","content":"a"}],"finish_reason":"stop"},{"role":"assistant","parts":[{"type":"text","content":"b"}],"finish_reason":"length"}]`},
		{name: "cut", route: "/v1/chat/completions", events: events(`{"choices":[{"index":0,"delta":{"content":"Once"}}]}`), end: "interrupted",
			want: `[{"role":"assistant","parts":[{"type":"text","content":"Once"}],"finish_reason":"interrupted"}]`},
		{name: "half a character", route: "/v1/chat/completions", events: events(`{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`, "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xff\"},\"finish_reason\":\"stop\"}]}"),
			want: `[{"role":"assistant","parts":[{"type":"text","content":"\\ud83da` + "\uFFFD" + `"}],"finish_reason":"stop"}]`},
		{name: "completions", route: "/v1/completions", events: events(`{"choices":[{"index":0,"text":" upon"}]}`, `{"choices":[{"index":0,"text":" a time","finish_reason":"length"}]}`),
			want: `[{"role":"assistant","parts":[{"type":"text","content":" upon a time"}],"finish_reason":"length"}]`},
		{name: "messages", route: "/v1/messages",
			body: `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I ask."},{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}],"stop_reason":"tool_use"}`, want: call},
		{name: "messages, streamed", route: "/v1/messages", events: events(
			`message_start|{"type":"message_start","message":{"id":"m","content":[],"stop_reason":null}}`,
			`content_block_start|{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`content_block_delta|{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`content_block_delta|{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I ask."}}`,
			`content_block_start|{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}`,
			`content_block_delta|{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`,
			`content_block_delta|{"type":"content_block_delta","index":2,"delta":{"partial_json":":1}","type":"input_json_delta"}}`,
			`message_delta|{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `message_stop|{"type":"message_stop"}`), want: call},
		{name: "responses", route: "/v1/responses",
			body: `{"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"I ask."}]},{"type":"function_call","id":"i","call_id":"c1","name":"f","arguments":"{\"a\":1}"}]}`, want: call},
		{name: "responses, streamed", route: "/v1/responses", events: events(
			`response.output_text.delta|{"type":"response.output_text.delta","delta":"I ask."}`,
			`response.output_item.done|{"item":{"type":"message","content":[{"type":"output_text","text":"I ask."}]}}`,
			`response.completed|{"response":{"status":"completed","output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"I ask."}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}]}}`), want: call},
		{name: "responses, cut", route: "/v1/responses", end: "client_gone", events: events(
			`response.reasoning_summary_text.delta|{"delta":"hm"}`, `response.output_text.delta|{"delta":"I "}`, `response.output_text.delta|{"delta":"ask."}`,
			`response.output_item.done|{"item":{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}}`),
			want: strings.Replace(call, `"finish_reason":"tool_call"`, `"finish_reason":"client_gone"`, 1)},
		{name: "responses, failed", route: "/v1/responses", events: events(
			`response.output_text.delta|{"delta":"Once"}`, `response.failed|{"response":{"status":"failed","error":{"code":"server_error"},"output":[]}}`),
			want: `[{"role":"assistant","parts":[{"type":"text","content":"Once"}],"finish_reason":"error"}]`},
		{name: "responses at their end", route: "/v1/responses", body: `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"I"}]}]}`,
			want: `[{"role":"assistant","parts":[{"type":"text","content":"I"}],"finish_reason":"length"}]`},
		{name: "no answer", route: "/v1/chat/completions", body: `{"error":"no"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := New(routes[c.route], &Budget{}, bug)
			k.Begin()
			if c.body != "" {
				k.Body([]byte(c.body))
			}
			for _, e := range c.events {
				k.Tap().Event([]byte(e))
			}
			if got := k.kept(c.end); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			wellFormed(t, k)
		})
	}
}

// An answer that no worker gives is told as one that a worker gave; another attempt forgets the first.
func TestTold(t *testing.T) {
	k := New(openai.KindChat, &Budget{}, bug)
	k.Begin()
	k.Body([]byte(`{"choices":[{"index":0,"message":{"content":"of a worker that died"}}]}`))
	k.Told(&answer.Answer{Text: []byte("a\n\"b\""), Reasoning: []byte("hm"), Finish: "content_filter",
		Calls: []byte(`[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]`)})
	const want = `[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"a\n\"b\""},{"type":"tool_call","id":"c1","name":"f","arguments":{}}],"finish_reason":"content_filter"}]`
	if got := k.Output(""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// wellFormed wants JSON in UTF-8 within the bounds.
func wellFormed(t testing.TB, k *Talk) {
	t.Helper()
	const more = 4 << 10 // marks and brackets
	for text, most := range map[string]int{k.System: MessageBytes + more, k.Input: PromptBytes + more, k.Output("end"): AnswerBytes + maxChoices*128 + more} {
		if text != "" && !json.Valid([]byte(text)) || !utf8.ValidString(text) || len(text) > most {
			t.Errorf("%d bytes, of at most %d: %.300s ... %s", len(text), most, text, text[max(0, len(text)-300):])
		}
	}
}

// A long text, many messages, many parts and many calls are cut where the room ends, and say so.
func TestBounds(t *testing.T) {
	long := strings.Repeat(`é\n\u00e9\ud83d\ude00x`, 5<<20/20)
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"a long text":   {`{"model":"m","messages":[{"role":"user","content":"` + long + `"}]}`, []string{"[cut by Kvasir: 163", " of 6029312 bytes"}},
		"many messages": {`{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("old ", 300)+`"},`, 1000) + `{"role":"user","content":"the question"}]}`, []string{`{"role":"kvasir","parts":[{"type":"text","content":"[cut by Kvasir: 9`, "earlier messages", "the question"}},
		"many parts":    {`{"model":"m","messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, 60000) + `{"type":"text","text":"b"}]}]}`, []string{"[cut by Kvasir: more parts]"}},
		"empty ones":    {`{"model":"m","messages":[` + strings.Repeat(`{"role":"user"},`, 100000) + `{"role":"user","content":"the question"}]}`, []string{"[cut by Kvasir: 99", "the question"}},
		"big arguments": {`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"` + strings.Repeat("i", 1000) + `","function":{"name":"f","arguments":"` + long + `"}}]}]}`, []string{"[cut by Kvasir: 16"}},
		"a big object":  {`{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{"a":"` + long + `"}}]}]}`, []string{"[cut by Kvasir: 16"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := asked(t, "/v1/chat/completions", c.body, "")
			wellFormed(t, k)
			for _, want := range c.want {
				if !strings.Contains(k.Input, want) {
					t.Errorf("%q is not in %.300s ... %s", want, k.Input, k.Input[max(0, len(k.Input)-300):])
				}
			}
		})
	}
	t.Run("a long answer", func(t *testing.T) {
		k := New(openai.KindChat, &Budget{}, bug)
		k.Begin()
		for range 1000 {
			k.Event([]byte(events(`{"choices":[{"index":0,"delta":{"content":"` + long[:20*400] + `"}}]}`)[0]))
		}
		wellFormed(t, k)
		if got := k.Output(""); !strings.Contains(got, "[cut by Kvasir: 6") || len(got) < AnswerBytes {
			t.Errorf("%d bytes: ... %s", len(got), got[len(got)-200:])
		}
	})
	t.Run("many calls", func(t *testing.T) {
		k := New(openai.KindChat, &Budget{}, bug)
		k.Begin()
		k.Body([]byte(`{"choices":[` + strings.Repeat(`{"message":{"tool_calls":[`+strings.Repeat(`{"id":"`+strings.Repeat("i", 300)+`","function":{"name":"f"}},`, 99)+`{}]}},`, 99) + `{}]}`))
		wellFormed(t, k)
	})
}

// A value that must not be seen is not, wherever the text is cut.
func TestHiddenAtACut(t *testing.T) {
	for shift := range 40 {
		body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", MessageBytes-60+shift) + ` SECRET ` + strings.Repeat("SECRET ", 5) + strings.Repeat("b", 100) + `"}]}`
		k := asked(t, "/v1/chat/completions", body, "SECRET")
		wellFormed(t, k)
		if strings.Contains(k.Input, "SEC") || strings.Contains(k.Input, "RET") || !strings.Contains(k.Input, "[cut by Kvasir") && shift > 30 {
			t.Errorf("shifted by %d: %s", shift, k.Input[MessageBytes-100:])
		}
	}
}

// A bug costs the content, and not the request.
func TestBug(t *testing.T) {
	told := 0
	k := New(openai.KindChat, &Budget{}, func(any, string) { told++ })
	k.Asked(nil, nil)
	if told != 1 || k.LeftOut != Bug || k.Tap() != nil || k.Output("") != "" {
		t.Errorf("told %d times: %+v", told, k)
	}
}

// Results within results are not walked through again and again.
func TestDeepResults(t *testing.T) {
	const depth = 25
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":` + strings.Repeat(`[{"type":"tool_result","tool_use_id":"t","content":`, depth) + `"the end"` + strings.Repeat(`}]`, depth) + `}]}`
	k := asked(t, "/v1/messages", body, "")
	wellFormed(t, k)
	if n := strings.Count(k.Input, "tool_call_response"); n != deepest+1 || !strings.Contains(k.Input, "the end") {
		t.Errorf("%d levels: %s", n, k.Input)
	}
}

// What is kept of all requests is bounded, and given back.
func TestBudget(t *testing.T) {
	var b Budget
	var r openai.Request
	if err := r.Parse(openai.Route{Path: "/v1/completions", Kind: openai.KindText}, []byte(`{"model":"m","prompt":"a"}`), nil); err != nil {
		t.Fatal(err.Message)
	}
	var all []*Talk
	for n := 0; ; n++ {
		k := New(openai.KindText, &b, bug)
		k.Asked(&r, new(openai.Splices))
		all = append(all, k)
		if k.LeftOut == Full {
			break
		}
	}
	last := all[len(all)-1]
	if last.Input != "" || last.Tap() != nil || b.Taken() > BudgetBytes || len(all) < BudgetBytes/(AnswerBytes+PromptBytes) {
		t.Errorf("after %d: %+v, %d bytes", len(all), last, b.Taken())
	}
	last.Body([]byte(`{"choices":[{"text":"a"}]}`))
	last.Told(&answer.Answer{Text: []byte("a")})
	if got := last.Output(""); got != "" {
		t.Errorf("it keeps %s", got)
	}
	for _, k := range all {
		k.Release()
	}
	if b.Taken() != 0 {
		t.Errorf("%d bytes are still taken", b.Taken())
	}
}

// FuzzAnswer has a worker say anything.
func FuzzAnswer(f *testing.F) {
	f.Add(byte(0), []byte(`{"choices":[{"index":0,"delta":{"content":"\ud83d","tool_calls":[{"index":1,"id":"a","function":{"arguments":"{"}}]}}]}`))
	f.Add(byte(2), []byte(`{"response":{"output":[{"type":"function_call","arguments":"{}"}],"incomplete_details":{"reason":"x"}}}`))
	f.Add(byte(3), []byte(`{"index":1,"content_block":{"type":"tool_use","input":{"a":1}},"message":{"content":[{"type":"text","text":"a"}]}}`))
	kinds := []openai.Kind{openai.KindChat, openai.KindText, openai.KindResponses, openai.KindMessages}
	names := []string{"response.completed", "response.output_item.done", "response.output_text.delta", "message_start"}
	f.Fuzz(func(t *testing.T, pick byte, data []byte) {
		k := New(kinds[pick%4], &Budget{}, bug)
		k.Begin()
		for range 3 {
			k.Event(append(append([]byte("event: "+names[pick>>2%4]+"\ndata: "), data...), "\n\n"...))
		}
		wellFormed(t, k)
		k.Begin()
		k.Body(data)
		wellFormed(t, k)
	})
}

// FuzzPrompt has a client ask anything that is parsed.
func FuzzPrompt(f *testing.F) {
	f.Add(byte(0), []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"SECRET"}]},{"role":"tool","content":"a","tool_call_id":"b"}]}`))
	f.Add(byte(1), []byte(`{"model":"m","prompt":["a",[1]]}`))
	f.Add(byte(2), []byte(`{"model":"m","instructions":["a",1],"input":[{"type":"function_call","arguments":{"a":"SECRET"},"name":"b"}]}`))
	f.Add(byte(3), []byte(`{"model":"m","system":[{"type":"text","text":"a"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[[]]}]}]}`))
	paths := []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"}
	f.Fuzz(func(t *testing.T, pick byte, body []byte) {
		path := paths[pick%4]
		var r openai.Request
		if r.Parse(openai.Route{Path: path, Kind: routes[path]}, body, nil) != nil {
			return
		}
		var hidden openai.Splices
		for _, text := range r.Content.Texts {
			if at := text.Inside(); !text.Bare && !text.Escaped {
				if n := bytes.Index(at.Of(body), []byte("SECRET")); n >= 0 {
					hidden.Replace(openai.Span{Start: at.Start + int32(n), End: at.Start + int32(n+len("SECRET"))}, []byte("[X]"))
				}
			}
		}
		k := New(routes[path], &Budget{}, bug)
		k.Asked(&r, &hidden)
		wellFormed(t, k)
	})
}

// BenchmarkTalk keeps the prompt and the streamed answer of a request: short ones, and ones that fill
// the bounds.
func BenchmarkTalk(b *testing.B) {
	for name, size := range map[string]int{"short": 500, "full": 15 << 10} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat("a", size)
			body := `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"`+text+`"},`, 3) + `{"role":"user","content":"` + text + `"}]}`
			event := []byte(events(`{"choices":[{"index":0,"delta":{"content":"` + text[:size/100] + `"}}]}`)[0])
			var r openai.Request
			if err := r.Parse(openai.Route{Path: "/v1/chat/completions", Kind: openai.KindChat}, []byte(body), nil); err != nil {
				b.Fatal(err.Message)
			}
			var budget Budget
			b.ReportAllocs()
			for b.Loop() {
				k := New(openai.KindChat, &budget, bug)
				k.Asked(&r, new(openai.Splices))
				k.Begin()
				for range 400 {
					k.Event(event)
				}
				_ = k.Output("")
				k.Release()
			}
		})
	}
}
