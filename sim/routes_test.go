// The routes beside chats and completions: responses, messages, and answers by a
// schema.

package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fetch posts a body and decodes the reply, which must have this status.
func fetch[T any](t *testing.T, address, path, body, status string) (v T) {
	t.Helper()
	r := parseReply(t, post(t, address, path, body))
	if !strings.HasPrefix(r.status, status) {
		t.Fatalf("%s %.300s: %s %s, want %s", path, body, r.status, r.body, status)
	}
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

type errorReply struct {
	Type  string
	Error struct{ Message, Type, Param string }
}

// typed returns the types of a stream's events, each once in a row, and what the events of one
// type say in a member.
func typed(t *testing.T, events []string, kind, member string) (types []string, text string) {
	t.Helper()
	for _, e := range events {
		name, data, ok := strings.Cut(e, "\ndata: ")
		var v map[string]any
		if !ok || !strings.HasSuffix(data, "\n\n") || json.Unmarshal([]byte(data), &v) != nil {
			t.Fatalf("%q is no event with a name", e)
		}
		if name != "event: "+fmt.Sprint(v["type"]) {
			t.Errorf("the name and the type of %q differ", e)
		}
		types = append(types, v["type"].(string))
		if v["type"] != kind {
			continue
		}
		if delta, ok := v["delta"].(map[string]any); ok {
			v = delta
		}
		text += fmt.Sprint(v[member])
	}
	return slices.Compact(types), text
}

type responseReply struct {
	ID, Status string
	Output     []struct {
		Type, Name, Arguments string
		CallID                string `json:"call_id"`
		Content               []struct{ Text string }
	}
	Usage struct {
		Input   int `json:"input_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	}
	Previous string `json:"previous_response_id"`
}

type chatReply struct {
	Choices []struct {
		Message struct{ Content string }
		Reason  string `json:"finish_reason"`
	}
	Usage struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

type messageReply struct {
	Content []struct {
		Type, Text, Name string
		Input            json.RawMessage
	}
	StopReason string `json:"stop_reason"`
	Sequence   string `json:"stop_sequence"`
	Usage      struct {
		Input  int `json:"input_tokens"`
		Cached int `json:"cache_read_input_tokens"`
	}
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string","enum":["Oslo","Rome"]}},"required":["city"]}`

// The same conversation is the same prompt on each of the three routes: the same answer, and after
// the first one it is cached.
func TestOneConversationOnThreeRoutes(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	long := strings.Repeat("one two three four five six seven. ", 20)
	turns := `{"role":"user","content":"` + long + `"},{"role":"assistant","content":"Yes."},{"role":"user","content":"And?"}`
	chat := fetch[chatReply](t, address, "/v1/chat/completions", `{"messages":[{"role":"system","content":"Be brief."},`+turns+`]}`, "200")
	whole := (chat.Usage.Prompt - 1) / 16 * 16
	text := chat.Choices[0].Message.Content

	response := fetch[responseReply](t, address, "/v1/responses", `{"instructions":"Be brief.","input":[`+turns+`]}`, "200")
	if response.Output[0].Content[0].Text != text || response.Usage.Input != chat.Usage.Prompt || response.Usage.Details.Cached != whole {
		t.Errorf("responses: %+v, want the chat's %q, %d tokens, %d cached", response, text, chat.Usage.Prompt, whole)
	}
	parts := strings.Replace(turns, `"Yes."`, `[{"type":"text","text":"Ye"},{"type":"text","text":"s.","cache_control":{"type":"ephemeral"}}]`, 1)
	for _, body := range []string{
		`{"max_tokens":400,"system":"Be brief.","messages":[` + turns + `]}`,
		`{"max_tokens":400,"system":[{"type":"text","text":"x-anthropic-billing-header: 7"},{"type":"text","text":"Be brief."}],"messages":[` + parts + `]}`,
	} {
		message := fetch[messageReply](t, address, "/v1/messages", body, "200")
		if message.Content[0].Text != text || message.Usage.Input != chat.Usage.Prompt || message.Usage.Cached != whole {
			t.Errorf("messages: %+v, want the chat's %q, %d tokens, %d cached", message, text, chat.Usage.Prompt, whole)
		}
		count := fetch[struct {
			Input int `json:"input_tokens"`
		}](t, address, "/v1/messages/count_tokens", body, "200")
		if count.Input != chat.Usage.Prompt {
			t.Errorf("count_tokens says %d of %d", count.Input, chat.Usage.Prompt)
		}
	}
}

func TestResponsesGoOn(t *testing.T) {
	address, s := startServer(t, Options{Name: "w", Speedup: 1000})
	long := strings.Repeat("one two three four five six seven. ", 20)
	first := fetch[responseReply](t, address, "/v1/responses", `{"instructions":"Be brief.","input":"`+long+`"}`, "200")
	body := `{"input":"And then?","previous_response_id":"` + first.ID + `"}`
	second := fetch[responseReply](t, address, "/v1/responses", body, "200")
	if second.Previous != first.ID {
		t.Errorf("previous_response_id %q", second.Previous)
	}
	answer, err := json.Marshal(first.Output[0].Content[0].Text)
	if err != nil {
		t.Fatal(err)
	}
	// The instructions are not carried over.
	chat := fetch[chatReply](t, address, "/v1/chat/completions", `{"messages":[{"role":"user","content":"`+long+
		`"},{"role":"assistant","content":`+string(answer)+`},{"role":"user","content":"And then?"}]}`, "200")
	if chat.Usage.Prompt != second.Usage.Input || chat.Choices[0].Message.Content != second.Output[0].Content[0].Text {
		t.Errorf("the response has %d tokens before it, the chat %d", second.Usage.Input, chat.Usage.Prompt)
	}
	streamed := parseReply(t, post(t, address, "/v1/responses", `{"input":"Go on","stream":true,"previous_response_id":"`+second.ID+`"}`))
	_, text := typed(t, streamed.events, "response.output_text.delta", "delta")
	if !strings.Contains(text, "simulated answer") {
		t.Errorf("streamed %q", text)
	}
	if n := len(s.responses.order); n != 3 {
		t.Errorf("%d conversations are kept, want 3", n)
	}

	third := fetch[responseReply](t, address, "/v1/responses", `{"input":"x","store":false}`, "200")
	for _, id := range []string{third.ID, "resp_none"} {
		refused := fetch[errorReply](t, address, "/v1/responses", `{"input":"x","previous_response_id":"`+id+`"}`, "404")
		if refused.Error.Message != "Response with id '"+id+"' not found." || refused.Error.Param != "response_id" {
			t.Errorf("%+v", refused)
		}
	}
}

func TestResponsesAreBounded(t *testing.T) {
	var r responses
	put := func(i, size int) { r.put(fmt.Sprint(i), []message{textMessage("user", strings.Repeat("x", size))}) }
	for i := range maxResponses + 5 {
		put(i, 10)
	}
	if _, ok := r.get("4"); ok || len(r.byID) != maxResponses || len(r.order) != maxResponses {
		t.Errorf("%d are kept, the oldest: %v", len(r.byID), ok)
	}
	for i := range 10 {
		put(i, maxResponseBytes/4)
	}
	if len(r.byID) != 3 || r.bytes > maxResponseBytes {
		t.Errorf("%d of a quarter of the bytes each are kept, %d bytes", len(r.byID), r.bytes)
	}
	put(77, maxResponseBytes)
	if _, ok := r.get("77"); ok || len(r.byID) != 3 {
		t.Error("one over the bound pushes others out")
	}
	put(9, 1)
	put(9, 1)
	if len(r.order) != len(r.byID) {
		t.Error("an id that comes again is counted twice")
	}
}

func TestResponsesCallFunctions(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	tools := `"tools":[{"type":"function","name":"get_weather","parameters":` + weatherSchema + `}],"tool_choice":"required"`
	r := fetch[responseReply](t, address, "/v1/responses", `{"input":"Weather?",`+tools+`}`, "200")
	if o := r.Output[0]; o.Type != "function_call" || o.Name != "get_weather" || o.Arguments != `{"city": "Oslo"}` || o.CallID == "" {
		t.Errorf("%+v", r)
	}
	streamed := parseReply(t, post(t, address, "/v1/responses", `{"input":"Weather?","stream":true,`+tools+`}`))
	types, arguments := typed(t, streamed.events, "response.function_call_arguments.delta", "delta")
	want := []string{"response.created", "response.in_progress", "response.output_item.added", "response.function_call_arguments.delta",
		"response.function_call_arguments.done", "response.output_item.done", "response.completed"}
	if !slices.Equal(types, want) || arguments != `{"city": "Oslo"}` {
		t.Errorf("%q, arguments %q", types, arguments)
	}
	next := fetch[responseReply](t, address, "/v1/responses", `{"previous_response_id":"`+r.ID+`","input":[{"type":"function_call_output","call_id":"`+
		r.Output[0].CallID+`","output":"Rain"}]}`, "200")
	again := fetch[responseReply](t, address, "/v1/responses", `{"input":[{"role":"user","content":"Weather?"},{"type":"function_call","call_id":"`+
		r.Output[0].CallID+`","name":"get_weather","arguments":"{\"city\": \"Oslo\"}"},{"type":"function_call_output","call_id":"`+
		r.Output[0].CallID+`","output":[{"type":"input_text","text":"Rain"}]}]}`, "200")
	if next.Output[0].Content[0].Text != again.Output[0].Content[0].Text {
		t.Error("a stored call and one that is sent again give two prompts")
	}
	for body, why := range map[string]string{
		`{"input":"x","tools":[{"type":"web_search"}]}`:                  "only functions",
		`{"input":[{"type":"item_reference","id":"x"}]}`:                 "item_reference",
		`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`: "only text",
		`{"input":"x","background":true}`:                                "background",
		`{"input":7}`:                                                    "valid string",
		`{}`:                                                             "Field required",
	} {
		if refused := fetch[errorReply](t, address, "/v1/responses", body, "400"); !strings.Contains(refused.Error.Message, why) {
			t.Errorf("%s: %+v", body, refused)
		}
	}
}

func TestMessagesCallTools(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000, Faults: true})
	tools := `"max_tokens":99,"tools":[{"name":"get_weather","input_schema":` + weatherSchema + `}],"tool_choice":{"type":"any"}`
	user := `{"role":"user","content":"Weather?"}`
	r := fetch[messageReply](t, address, "/v1/messages", `{"messages":[`+user+`],`+tools+`}`, "200")
	if b := r.Content[0]; b.Type != "tool_use" || b.Name != "get_weather" || string(b.Input) != `{"city":"Oslo"}` || r.StopReason != "tool_use" {
		t.Errorf("%+v", r)
	}
	streamed := parseReply(t, post(t, address, "/v1/messages", `{"stream":true,"messages":[`+user+`],`+tools+`}`))
	types, input := typed(t, streamed.events, "content_block_delta", "partial_json")
	want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if !slices.Equal(types, want) || input != `{"city": "Oslo"}` || !strings.Contains(streamed.body, `"stop_reason":"tool_use"`) {
		t.Errorf("%q, input %q", types, input)
	}
	result := fetch[messageReply](t, address, "/v1/messages", `{"max_tokens":9,"messages":[`+user+`,{"role":"assistant","content":[{"type":"tool_use",`+
		`"id":"a","name":"get_weather","input":{"city":"Oslo"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",`+
		`"content":[{"type":"text","text":"Rain"}]},{"type":"text","text":"So?"}]}]}`, "200")
	if result.StopReason != "max_tokens" || result.Content[0].Text == "" {
		t.Errorf("%+v", result)
	}
	stopped := fetch[messageReply](t, address, "/v1/messages", `{"max_tokens":99,"stop_sequences":[" simulated"],"messages":[`+user+`]}`, "200")
	if stopped.StopReason != "stop_sequence" || stopped.Sequence != " simulated" {
		t.Errorf("%+v", stopped)
	}

	for body, why := range map[string]string{
		`{"max_tokens":9,"messages":[` + user + `],"model":"other"}`:                 "does not exist",
		`{"max_tokens":0,"messages":[` + user + `]}`:                                 "at least 1",
		`{"max_tokens":9,"messages":[]}`:                                             "at least one message",
		`{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"image"}]}]}`: "not a multimodal model",
		`{"max_tokens":9,"messages":[` + user + `],"tools":[{"name":"f","input_schema":{"type":"nosuch"}}],"tool_choice":{"type":"any"}}`: "Invalid type",
	} {
		status := "400"
		if strings.Contains(body, "other") {
			status = "404"
		}
		refused := fetch[errorReply](t, address, "/v1/messages", body, status)
		if refused.Type != "error" || !strings.Contains(refused.Error.Message, why) {
			t.Errorf("%s: %+v", body, refused)
		}
	}
	// What is no request at all the framework refuses, in a form of its own.
	for _, body := range []string{`{"messages":[` + user + `]}`, `{"max_tokens":9,"messages":[` + user + `],"tools":[{"name":"f"}]}`} {
		if refused := fetch[errorReply](t, address, "/v1/messages", body, "400"); !strings.Contains(refused.Error.Message, "missing") {
			t.Errorf("%s: %+v", body, refused)
		}
	}
}

// A stream that fails ends as its route's clients expect.
func TestTypedStreamsFail(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000, Faults: true})
	for path, body := range map[string]string{
		"/v1/responses": `{"input":"x","stream":true}`,
		"/v1/messages":  `{"max_tokens":99,"stream":true,"messages":[{"role":"user","content":"x"}]}`,
	} {
		r := parseReply(t, post(t, address, path, body, "x-sim-fault: error-after=5"))
		types, _ := typed(t, r.events, "", "")
		if !r.ended || len(r.events) != 6 || types[len(types)-1] != "error" {
			t.Errorf("%s: %q, ended: %v", path, types, r.ended)
		}
	}
	refused := parseReply(t, post(t, address, "/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, "x-sim-fault: status=503"))
	if !strings.HasPrefix(refused.status, "503") || !strings.HasPrefix(refused.body, `{"type":"error","error":{`) {
		t.Errorf("%s %s", refused.status, refused.body)
	}
}

func TestStructuredOutputs(t *testing.T) {
	address := start(t, Options{Name: "w", Speedup: 1000})
	format := func(schema string) string {
		return `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":` + schema + `}}`
	}
	const weather = `{"city": "Oslo"}`
	for fields, want := range map[string]string{
		format(weatherSchema): weather,
		`"response_format":{"type":"text"},"stop":["simulated"]`: "",
		`"structured_outputs":{"json":` + weatherSchema + `}`:    weather,
		`"guided_json":` + weatherSchema:                         weather,
		`"structured_outputs":{"json":"{\"type\":\"null\"}"}`:    "null",
		`"structured_outputs":{"choice":["yes"]}`:                "yes",
		`"guided_choice":["no"]`:                                 "no",
		`"structured_outputs":{"regex":"[0-9]{3}-x|y"}`:          "000-x",
		`"guided_regex":"a+b"`:                                   "ab",
	} {
		whole := fetch[chatReply](t, address, "/v1/chat/completions", hello(fields), "200")
		text, reason := streamText(t, parseReply(t, post(t, address, "/v1/chat/completions", hello(`"stream":true,`+fields))).events)
		got := whole.Choices[0]
		if want != "" && got.Message.Content != want || got.Reason != "stop" || text != got.Message.Content || reason != "stop" {
			t.Errorf("%s: %+v, streamed %q (%s), want %q", fields, got, text, reason, want)
		}
	}
	object := fetch[chatReply](t, address, "/v1/chat/completions", hello(`"response_format":{"type":"json_object"}`), "200")
	var v map[string]any
	if err := json.Unmarshal([]byte(object.Choices[0].Message.Content), &v); err != nil || v["simulated"] != true {
		t.Errorf("%v: %+v", err, object)
	}
	cut := fetch[chatReply](t, address, "/v1/chat/completions", hello(`"max_tokens":2,`+format(weatherSchema)), "200")
	if cut.Choices[0].Reason != "length" || cut.Choices[0].Message.Content == weather {
		t.Errorf("%+v", cut)
	}
	completed := fetch[struct{ Choices []struct{ Text string } }](t, address, "/v1/completions", `{"prompt":"x","max_tokens":50,`+format(weatherSchema)+`}`, "200")
	if completed.Choices[0].Text != weather {
		t.Errorf("%+v", completed)
	}
	response := fetch[responseReply](t, address, "/v1/responses", `{"input":"x","text":{"format":{"type":"json_schema","name":"x","schema":`+weatherSchema+`}}}`, "200")
	if response.Output[0].Content[0].Text != weather {
		t.Errorf("%+v", response)
	}
	message := fetch[messageReply](t, address, "/v1/messages", `{"max_tokens":50,"messages":[{"role":"user","content":"x"}],`+
		`"output_config":{"format":{"type":"json_schema","schema":`+weatherSchema+`}}}`, "200")
	if message.Content[0].Text != weather {
		t.Errorf("%+v", message)
	}
	for fields, why := range map[string]string{
		format(`{"type":"string","minLength":9,"maxLength":3}`): "cannot make JSON for this schema",
		`"response_format":{"type":"json_schema"}`:              "must be provided",
		`"response_format":{"type":"xml"}`:                      "none of text, json_object, json_schema",
		`"structured_outputs":{"grammar":"root ::= x"}`:         "reads no grammars",
		`"guided_regex":"(?=x)y"`:                               "regular expression",
	} {
		if refused := fetch[errorReply](t, address, "/v1/chat/completions", hello(fields), "400"); !strings.Contains(refused.Error.Message, why) {
			t.Errorf("%s: %+v", fields, refused)
		}
	}
}

func FuzzRoutes(f *testing.F) {
	for _, body := range []string{
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"text":{"format":{"type":"json_object"}}}`,
		`{"max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{}}]}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"}}`,
		`{"input":"x","instructions":null,"metadata":{"a":"b"},"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"},"temperature":"1"}`,
		`{"messages":[{"role":"system","content":[null]}],"max_tokens":1}`,
	} {
		f.Add([]byte(body))
	}
	s := &Server{options: small, dialect: &vllm}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, read := range []func(*dialect, Options, *fields, string) *completion{readAnthropic, s.readResponse} {
			fields := decodeFields(body)
			var c *completion
			if fields.failure == nil {
				c = read(&vllm, small, fields, "id")
			}
			if fields.failure != nil {
				if !json.Valid(fields.failure.body()) || !json.Valid(fields.failure.anthropic()) {
					t.Fatalf("refused with %s", fields.failure.body())
				}
				continue
			}
			c.write(small)
			if reply := c.form(c, 1).appendReply(nil, c, 1, usage{}, nil); !json.Valid(reply) {
				t.Fatalf("reply %s", reply)
			}
			c.end()
			w := c.form(c, 1)
			stream := w.appendRole(nil, 0, &usage{})
			for i := range c.answers[0].tokens {
				stream = w.appendChunk(stream, chunk{text: c.answers[0].piece(i), call: c.tool})
			}
			stream = w.appendEnd(w.appendUsageEvent(stream, usage{}))
			for e := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
				if _, data, ok := strings.Cut(e, "\ndata: "); !ok || !json.Valid([]byte(data)) {
					t.Fatalf("event %q", e)
				}
			}
		}
	})
}
