// Replays as OpenAI's responses: the object and the events that it is put together from.
package proxy

import (
	"strconv"

	"kvasir/openai"
)

// A responseReplay is a replay on /v1/responses.
type responseReplay struct{ *replay }

// incomplete says why a response is not complete; "": it is.
func (r responseReplay) incomplete() string {
	switch r.finish {
	case "length", "max_tokens", "max_output_tokens":
		return "max_output_tokens"
	case "content_filter":
		return r.finish
	}
	return ""
}

// status is that of a response and its items at their end.
func (r responseReplay) status() string {
	if r.incomplete() != "" {
		return "incomplete"
	}
	return "completed"
}

// object appends the response: whole, or as it is before the first word.
func (r responseReplay) object(dst []byte, whole bool) []byte {
	status, why := "in_progress", ""
	if whole {
		status, why = r.status(), r.incomplete()
	}
	dst = append(r.appendID(append(dst, `{"id":"`...), "resp-"), `","object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, r.at, 10)
	dst = append(append(append(dst, `,"status":"`...), status...), `","error":null,"incomplete_details":`...)
	if why == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(append(append(dst, `{"reason":"`...), why...), `"}`...)
	}
	dst = append(dst, `,"instructions":null,"metadata":{},"model":`...)
	dst = append(openai.AppendString(dst, r.model), `,"output":[`...)
	if whole {
		if r.reasoning != nil {
			dst = append(r.item(dst, blockReasoning, true), ',')
		}
		dst = r.item(dst, blockText, true)
	}
	dst = append(dst, `],"parallel_tool_calls":true,"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,`...)
	if !whole {
		return append(dst, `"usage":null}`...)
	}
	return append(r.appendUsage(dst), '}')
}

// item appends an item of the output.
func (r responseReplay) item(dst []byte, b block, whole bool) []byte {
	dst = r.appendItemID(append(dst, `{"id":`...), b)
	status := "in_progress"
	if whole {
		status = r.status()
	}
	if b == blockReasoning {
		dst = append(append(append(dst, `,"type":"reasoning","status":"`...), status...), `","summary":[],"content":[`...)
		if whole {
			dst = appendPart(dst, b, r.reasoning)
		}
		return append(dst, "]}"...)
	}
	dst = append(append(append(dst, `,"type":"message","status":"`...), status...), `","role":"assistant","content":[`...)
	if whole {
		dst = appendPart(dst, b, r.text)
	}
	return append(dst, "]}"...)
}

func (r responseReplay) appendItemID(dst []byte, b block) []byte {
	prefix := "msg-"
	if b == blockReasoning {
		prefix = "rs-"
	}
	return append(r.appendID(append(dst, '"'), prefix), '"')
}

// appendPart appends the one part of an item.
func appendPart(dst []byte, b block, text []byte) []byte {
	if b == blockReasoning {
		return append(openai.AppendString(append(dst, `{"type":"reasoning_text","text":`...), text), '}')
	}
	dst = append(dst, `{"type":"output_text","text":`...)
	return append(openai.AppendString(dst, text), `,"annotations":[],"logprobs":[]}`...)
}

// event begins the next event; it ends with eventEnd.
func (r responseReplay) event(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, name...), `","sequence_number":`...)
	dst = append(strconv.AppendInt(dst, int64(r.number), 10), ',')
	r.number++
	return dst
}

const eventEnd = "}\n\n"

// place appends where in the response an event about the block belongs.
func (r responseReplay) place(dst []byte, b block) []byte {
	dst = append(r.appendItemID(append(dst, `"item_id":`...), b), `,"output_index":`...)
	return append(strconv.AppendInt(dst, int64(r.blocks), 10), `,"content_index":0`...)
}

func (r responseReplay) open(dst []byte) []byte {
	for _, name := range [...]string{"response.created", "response.in_progress"} {
		dst = append(r.object(append(r.event(dst, name), `"response":`...), false), eventEnd...)
	}
	return dst
}

// begin goes on to the block b, if it is not the one at hand.
func (r responseReplay) begin(dst []byte, b block) []byte {
	if r.block == b {
		return dst
	}
	dst = r.end(dst)
	r.block = b
	dst = r.itemEvent(dst, "response.output_item.added", false)
	dst = append(r.place(r.event(dst, "response.content_part.added"), b), `,"part":`...)
	return append(appendPart(dst, b, nil), eventEnd...)
}

func (r responseReplay) itemEvent(dst []byte, event string, whole bool) []byte {
	dst = strconv.AppendInt(append(r.event(dst, event), `"output_index":`...), int64(r.blocks), 10)
	return append(r.item(append(dst, `,"item":`...), r.block, whole), eventEnd...)
}

// piece appends a piece of the block b.
func (r responseReplay) piece(dst []byte, b block, piece []byte) []byte {
	dst = r.begin(dst, b)
	if r.block == blockReasoning {
		dst = append(r.place(r.event(dst, "response.reasoning_text.delta"), r.block), `,"delta":`...)
		return append(openai.AppendString(dst, piece), eventEnd...)
	}
	dst = append(r.place(r.event(dst, "response.output_text.delta"), r.block), `,"logprobs":[],"delta":`...)
	return append(openai.AppendString(dst, piece), eventEnd...)
}

// end ends the block at hand, whose text must be whole.
func (r responseReplay) end(dst []byte) []byte {
	whole := r.text
	switch r.block {
	case blockNone:
		return dst
	case blockReasoning:
		whole = r.reasoning
		dst = append(r.place(r.event(dst, "response.reasoning_text.done"), r.block), `,"text":`...)
	case blockText:
		dst = append(r.place(r.event(dst, "response.output_text.done"), r.block), `,"logprobs":[],"text":`...)
	}
	dst = append(openai.AppendString(dst, whole), eventEnd...)
	dst = append(r.place(r.event(dst, "response.content_part.done"), r.block), `,"part":`...)
	dst = append(appendPart(dst, r.block, whole), eventEnd...)
	dst = r.itemEvent(dst, "response.output_item.done", true)
	r.blocks++
	r.block = blockNone
	return dst
}

func (r responseReplay) close(dst []byte) []byte {
	dst = r.end(r.begin(dst, blockText))
	return append(r.object(append(r.event(dst, "response."+r.status()), `"response":`...), true), eventEnd...)
}
