// Refusals as answers: what a guard says in the shape that a route's clients read.
package proxy

import "strconv"

// A refusal is an answer of our own that ends with content_filter.
type refusal struct {
	id      string // part of the answer's id
	model   string
	text    string
	created int64 // Unix seconds
	usage   bool  // the client asked for it at the end of the stream
}

// appendTo appends the whole body: JSON, or the events of a stream.
func (r refusal) appendTo(dst []byte, k kind, stream bool) []byte {
	switch {
	case k == kindChat && stream:
		return r.chatEvents(dst)
	case k == kindChat:
		return r.chat(dst)
	case k == kindText:
		return r.completion(dst, stream)
	case k == kindResponses && stream:
		return r.responseEvents(dst)
	case k == kindResponses:
		return r.response(dst, "incomplete", true)
	case stream:
		return r.messageEvents(dst)
	default:
		return r.message(dst)
	}
}

const (
	noUsage  = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`
	doneText = "data: [DONE]\n\n"
)

// head appends `{"id":...,"object":...,"created":...,"model":...,`.
func (r refusal) head(dst []byte, prefix, object string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendJSONString(dst, r.name(prefix))
	dst = append(append(append(dst, `,"object":"`...), object...), `","created":`...)
	dst = strconv.AppendInt(dst, r.created, 10)
	dst = append(dst, `,"model":`...)
	return append(appendJSONString(dst, r.model), ',')
}

// name is the answer's id, as semantic routers make it.
func (r refusal) name(prefix string) string {
	return prefix + "-" + r.id + "-" + strconv.FormatInt(r.created, 10)
}

func (r refusal) chat(dst []byte) []byte {
	dst = r.head(dst, "chatcmpl", "chat.completion")
	dst = append(dst, `"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = appendJSONString(dst, r.text)
	return append(dst, `},"logprobs":null,"finish_reason":"content_filter"}],`+noUsage+`}`...)
}

func (r refusal) chatEvents(dst []byte) []byte {
	dst = r.head(append(dst, "data: "...), "chatcmpl", "chat.completion.chunk")
	dst = append(dst, `"choices":[{"index":0,"delta":{"role":"assistant","content":`...)
	dst = appendJSONString(dst, r.text)
	dst = append(dst, `},"logprobs":null,"finish_reason":"content_filter"}]}`+"\n\n"...)
	if r.usage {
		dst = r.head(append(dst, "data: "...), "chatcmpl", "chat.completion.chunk")
		dst = append(dst, `"choices":[],`+noUsage+"}\n\n"...)
	}
	return append(dst, doneText...)
}

func (r refusal) completion(dst []byte, stream bool) []byte {
	if stream {
		dst = append(dst, "data: "...)
	}
	dst = r.head(dst, "cmpl", "text_completion")
	dst = append(dst, `"choices":[{"index":0,"text":`...)
	dst = appendJSONString(dst, r.text)
	dst = append(dst, `,"logprobs":null,"finish_reason":"content_filter"}]`...)
	if !stream || r.usage {
		dst = append(dst, ","+noUsage...)
	}
	dst = append(dst, '}')
	if stream {
		dst = append(dst, "\n\n"+doneText...)
	}
	return dst
}

// response appends the object of /v1/responses.
func (r refusal) response(dst []byte, status string, whole bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendJSONString(dst, r.name("resp"))
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, r.created, 10)
	dst = append(append(append(dst, `,"status":"`...), status...), `","error":null,"incomplete_details":`...)
	if whole {
		dst = append(dst, `{"reason":"content_filter"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"instructions":null,"metadata":{},"model":`...)
	dst = appendJSONString(dst, r.model)
	dst = append(dst, `,"output":[`...)
	if whole {
		dst = r.item(dst, true)
	}
	return append(dst, `],"parallel_tool_calls":true,"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,`+
		`"usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}}`...)
}

// item is the one message of a response, part what it says.
func (r refusal) item(dst []byte, whole bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendJSONString(dst, r.name("msg"))
	if !whole {
		return append(dst, `,"type":"message","status":"in_progress","role":"assistant","content":[]}`...)
	}
	dst = append(dst, `,"type":"message","status":"incomplete","role":"assistant","content":[`...)
	return append(r.part(dst, r.text), "]}"...)
}

func (r refusal) part(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"output_text","text":`...)
	return append(appendJSONString(dst, text), `,"annotations":[]}`...)
}

// responseEvents are those that OpenAI's clients put a response together from.
func (r refusal) responseEvents(dst []byte) []byte {
	n := 0
	event := func(name string, fill func([]byte) []byte) {
		dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
		dst = append(append(dst, name...), `","sequence_number":`...)
		dst = append(strconv.AppendInt(dst, int64(n), 10), ',')
		dst = append(fill(dst), "}\n\n"...)
		n++
	}
	const at = `"output_index":0,"content_index":0,`
	id := appendJSONString([]byte(`"item_id":`), r.name("msg"))
	text := appendJSONString(nil, r.text)
	event("response.created", func(b []byte) []byte { return r.response(append(b, `"response":`...), "in_progress", false) })
	event("response.output_item.added", func(b []byte) []byte { return r.item(append(b, `"output_index":0,"item":`...), false) })
	event("response.content_part.added", func(b []byte) []byte {
		return r.part(append(append(b, id...), `,`+at+`"part":`...), "")
	})
	event("response.output_text.delta", func(b []byte) []byte {
		return append(append(append(b, id...), `,`+at+`"logprobs":[],"delta":`...), text...)
	})
	event("response.output_text.done", func(b []byte) []byte {
		return append(append(append(b, id...), `,`+at+`"logprobs":[],"text":`...), text...)
	})
	event("response.content_part.done", func(b []byte) []byte {
		return r.part(append(append(b, id...), `,`+at+`"part":`...), r.text)
	})
	event("response.output_item.done", func(b []byte) []byte { return r.item(append(b, `"output_index":0,"item":`...), true) })
	event("response.incomplete", func(b []byte) []byte { return r.response(append(b, `"response":`...), "incomplete", true) })
	return dst
}

// message appends Anthropic's object.
func (r refusal) message(dst []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendJSONString(dst, r.name("msg"))
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = appendJSONString(dst, r.model)
	dst = append(dst, `,"content":[{"type":"text","text":`...)
	dst = appendJSONString(dst, r.text)
	return append(dst, `}],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`...)
}

func (r refusal) messageEvents(dst []byte) []byte {
	event := func(name, data string) {
		dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
		dst = append(append(append(append(dst, name...), '"'), data...), "}\n\n"...)
	}
	start := appendJSONString([]byte(`,"message":{"id":`), r.name("msg"))
	start = appendJSONString(append(start, `,"type":"message","role":"assistant","model":`...), r.model)
	start = append(start, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`...)
	event("message_start", string(start))
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+string(appendJSONString(nil, r.text))+`}`)
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"refusal","stop_sequence":null},"usage":{"output_tokens":0}`)
	event("message_stop", "")
	return dst
}
