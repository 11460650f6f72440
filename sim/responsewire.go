// Replies of /v1/responses in the bytes of vLLM 0.32: texts as recorded in testdata/vllm, calls of
// functions with the members that the official SDK declares, in their order, since none was
// recorded.

package sim

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// responseWire writes one request's reply or events.
type responseWire struct {
	c        *completion
	ask      *responseAsk
	created  int64
	item     string // its id
	sequence int    // number of the next event
	open     bool   // the output item has begun
	reason   string
}

func newResponseWire(c *completion, ask *responseAsk, created int64) *responseWire {
	w := &responseWire{c: c, ask: ask, created: created, item: newID("msg_")}
	if c.tool != nil {
		w.item = newID("fc_")
		ask.callID = newID("call_")
	}
	return w
}

func newID(prefix string) string { return string(appendHex64([]byte(prefix), rand.Uint64())) }

func (w *responseWire) endsApart() bool { return false }

// begin and end write what is around an event's own members.
func (w *responseWire) begin(b []byte, kind string) []byte {
	return append(append(append(b, "event: "...), kind...), "\ndata: {"...)
}

func (w *responseWire) end(b []byte, kind string) []byte {
	return append(appendString(append(w.number(b), `,"type":`...), kind), "}\n\n"...)
}

// number appends the number of an event.
func (w *responseWire) number(b []byte) []byte {
	b = strconv.AppendInt(append(b, `,"sequence_number":`...), int64(w.sequence), 10)
	w.sequence++
	return b
}

func (w *responseWire) appendRole(b []byte, _ int, _ *usage) []byte {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		b = append(w.begin(b, kind), `"response":`...)
		b = w.end(w.appendObject(b, "in_progress", nil), kind)
	}
	return b
}

func (w *responseWire) appendChunk(b []byte, c chunk) []byte {
	if c.reason != "" {
		w.reason = c.reason
	}
	switch {
	case c.callID != "":
		return w.openItem(b, w.appendCall(nil, nil, "in_progress"))
	case len(c.text) == 0:
		return b
	case c.call != nil:
		b = appendString(append(w.begin(b, "response.function_call_arguments.delta"), `"delta":`...), c.text)
		return w.end(w.appendPlace(b), "response.function_call_arguments.delta")
	}
	if !w.open {
		b = w.openItem(b, w.appendMessage(nil, nil, "in_progress"))
		b = append(w.begin(b, "response.content_part.added"), `"content_index":0`...)
		b = append(w.appendPlace(b), `,"part":{"annotations":[],"text":"","type":"output_text","logprobs":[]}`...)
		b = w.end(b, "response.content_part.added")
	}
	b = appendString(append(w.begin(b, "response.output_text.delta"), `"content_index":0,"delta":`...), c.text)
	b = appendString(append(b, `,"item_id":`...), w.item)
	return w.end(append(b, `,"logprobs":[],"output_index":0`...), "response.output_text.delta")
}

// appendPlace appends which item an event is about.
func (w *responseWire) appendPlace(b []byte) []byte {
	return append(appendString(append(b, `,"item_id":`...), w.item), `,"output_index":0`...)
}

func (w *responseWire) openItem(b, item []byte) []byte {
	w.open = true
	b = append(append(w.begin(b, "response.output_item.added"), `"item":`...), item...)
	return w.end(append(b, `,"output_index":0`...), "response.output_item.added")
}

// appendUsageEvent ends the output item and the response. The last event is response.completed
// also where max_output_tokens cut the answer, as with vLLM.
func (w *responseWire) appendUsageEvent(b []byte, u usage) []byte {
	text := w.c.answers[0].text
	switch {
	case !w.open:
	case w.c.tool != nil:
		b = appendString(append(w.begin(b, "response.function_call_arguments.done"), `"arguments":`...), text)
		b = appendString(append(b, `,"item_id":`...), w.item)
		b = append(appendString(append(b, `,"name":`...), w.c.tool.name), `,"output_index":0`...)
		b = w.end(b, "response.function_call_arguments.done")
	default:
		b = append(w.begin(b, "response.output_text.done"), `"content_index":0`...)
		b = append(appendString(append(b, `,"item_id":`...), w.item), `,"logprobs":[],"output_index":0`...)
		b = w.number(b)
		b = append(appendString(append(b, `,"text":`...), text), `,"type":"response.output_text.done"}`+"\n\n"...)
		b = append(w.begin(b, "response.content_part.done"), `"content_index":0`...)
		b = appendPart(append(w.appendPlace(b), `,"part":`...), text)
		b = w.end(b, "response.content_part.done")
	}
	if w.open {
		b = append(w.begin(b, "response.output_item.done"), `"item":`...)
		b = append(w.appendItem(b, text), `,"output_index":0`...)
		b = w.end(b, "response.output_item.done")
	}
	b = append(w.begin(b, "response.completed"), `"response":`...)
	return w.end(w.appendObject(b, w.status(), &u), "response.completed")
}

// status says how the response ended.
func (w *responseWire) status() string {
	if w.reason == "length" {
		return "incomplete"
	}
	return "completed"
}

func (w *responseWire) appendEnd(b []byte) []byte { return b }

// appendFailure ends a stream with the event by which OpenAI's API tells an error.
func (w *responseWire) appendFailure(b []byte, f *failure) []byte {
	b = strconv.AppendInt(append(w.begin(b, "error"), `"code":"`...), int64(f.status), 10)
	b = appendString(append(b, `","message":`...), f.message)
	return w.end(append(b, `,"param":null`...), "error")
}

// appendItem appends the finished output item.
func (w *responseWire) appendItem(b, text []byte) []byte {
	if w.c.tool != nil {
		return w.appendCall(b, text, "completed")
	}
	return w.appendMessage(b, text, "completed")
}

// appendMessage appends an item with this text; nil: with none yet.
func (w *responseWire) appendMessage(b, text []byte, status string) []byte {
	b = append(appendString(append(b, `{"id":`...), w.item), `,"content":[`...)
	if text != nil {
		b = appendPart(b, text)
	}
	b = appendString(append(b, `],"role":"assistant","status":`...), status)
	return append(b, `,"type":"message","phase":null}`...)
}

func appendPart(b, text []byte) []byte {
	b = appendString(append(b, `{"annotations":[],"text":`...), text)
	return append(b, `,"type":"output_text","logprobs":null}`...)
}

func (w *responseWire) appendCall(b, arguments []byte, status string) []byte {
	b = appendString(append(b, `{"arguments":`...), arguments)
	b = appendString(append(b, `,"call_id":`...), w.ask.callID)
	b = appendString(append(b, `,"name":`...), w.c.tool.name)
	b = appendString(append(b, `,"type":"function_call","id":`...), w.item)
	return append(appendString(append(b, `,"namespace":null,"status":`...), status), '}')
}

func (w *responseWire) appendReply(b []byte, c *completion, _ int64, u usage, _ []byte) []byte {
	w.reason = c.answers[0].reason
	return w.appendObject(b, w.status(), &u)
}

// appendObject appends the response; u is nil until it has ended.
func (w *responseWire) appendObject(b []byte, status string, u *usage) []byte {
	f := w.ask.fields
	b = appendString(append(b, `{"id":`...), w.ask.id)
	b = strconv.AppendInt(append(b, `,"created_at":`...), w.created, 10)
	b = append(b, `,"incomplete_details":`...)
	if status == "incomplete" {
		b = append(b, `{"reason":"max_output_tokens"}`...)
	} else {
		b = append(b, "null"...)
	}
	b = appendGiven(b, f, "instructions", "null")
	b = appendGiven(b, f, "metadata", "null")
	b = appendString(append(b, `,"model":`...), w.ask.model)
	b = append(b, `,"object":"response","output":[`...)
	if text := w.output(); u != nil && text != nil {
		b = w.appendItem(b, text)
	}
	b = appendGiven(append(b, ']'), f, "parallel_tool_calls", "true")
	b = append(append(b, `,"temperature":`...), givenFloat(f, "temperature")...)
	choice, tools := "none", "[]"
	if f.get("tools") != nil {
		choice = "auto"
	}
	b = appendGiven(b, f, "tool_choice", `"`+choice+`"`)
	b = appendGiven(b, f, "tools", tools)
	b = append(append(b, `,"top_p":`...), givenFloat(f, "top_p")...)
	b = strconv.AppendInt(append(b, `,"background":false,"max_output_tokens":`...), int64(w.ask.most), 10)
	b = appendGiven(b, f, "max_tool_calls", "null")
	b = appendGiven(b, f, "previous_response_id", "null")
	b = append(b, `,"prompt":null`...)
	b = appendGiven(b, f, "reasoning", "null")
	b = appendGiven(b, f, "service_tier", `"auto"`)
	b = appendString(append(b, `,"status":`...), status)
	b = appendGiven(b, f, "text", "null")
	b = append(b, `,"top_logprobs":null`...)
	b = appendGiven(b, f, "truncation", `"disabled"`)
	b = appendResponseUsage(append(b, `,"usage":`...), u)
	b = appendGiven(b, f, "user", "null")
	return append(b, `,"presence_penalty":0.0,"frequency_penalty":0.0,"kv_transfer_params":null,"ec_transfer_params":null,`+
		`"input_messages":null,"output_messages":null}`...)
}

// output returns the text of the output item, or nil where there is none.
func (w *responseWire) output() []byte {
	if len(w.c.answers) == 0 || len(w.c.answers[0].text) == 0 && w.c.tool == nil {
		return nil
	}
	return w.c.answers[0].text
}

// appendGiven appends a member as the request has it, or its standard value.
func appendGiven(b []byte, f *fields, name, standard string) []byte {
	b = append(appendString(append(b, ','), name), ':')
	var compact bytes.Buffer
	if raw := f.get(name); raw == nil || json.Compact(&compact, raw) != nil {
		return append(b, standard...)
	}
	return append(b, compact.Bytes()...)
}

func givenFloat(f *fields, name string) string {
	v, ok := f.number(name)
	if !ok {
		return "1.0"
	}
	return pythonFloat(v)
}

func appendResponseUsage(b []byte, u *usage) []byte {
	if u == nil {
		return append(b, "null"...)
	}
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
	b = strconv.AppendInt(append(b, `,"cache_write_tokens":`...), int64(u.created), 10)
	b = strconv.AppendInt(append(b, `,"input_tokens_per_turn":[],"cached_tokens_per_turn":[]},"output_tokens":`...), int64(u.completion), 10)
	b = append(b, `,"output_tokens_details":{"reasoning_tokens":0,"tool_output_tokens":0,"output_tokens_per_turn":[],`+
		`"tool_output_tokens_per_turn":[]},"total_tokens":`...)
	return append(strconv.AppendInt(b, int64(u.prompt+u.completion), 10), '}')
}
