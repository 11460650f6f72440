// Replies of /v1/messages in the bytes of vLLM 0.32: texts as recorded in testdata/vllm, calls of
// tools by its source (vllm/entrypoints/anthropic/serving.py), since none was recorded.

package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// anthropicWire writes one request's reply or events.
type anthropicWire struct {
	c            *completion
	open         bool // a content block has begun
	reason, stop string
}

func (w *anthropicWire) endsApart() bool { return false }

func (w *anthropicWire) appendRole(b []byte, _ int, u *usage) []byte {
	b = appendString(append(b, "event: message_start\ndata: "+`{"type":"message_start","message":{"id":`...), w.c.id)
	b = appendString(append(b, `,"type":"message","role":"assistant","content":[],"model":`...), w.c.model)
	b = append(b, `,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`...)
	return append(strconv.AppendInt(b, int64(u.prompt), 10), `,"output_tokens":0}}}`+"\n\n"...)
}

func (w *anthropicWire) appendChunk(b []byte, c chunk) []byte {
	if c.reason != "" {
		w.reason, w.stop = c.reason, c.stop
	}
	switch {
	case c.callID != "":
		w.open = true
		b = appendString(append(b, "event: content_block_start\ndata: "+`{"type":"content_block_start","content_block":{"type":"tool_use","id":`...), c.callID)
		return append(appendString(append(b, `,"name":`...), c.call.name), `,"input":{}},"index":0}`+"\n\n"...)
	case len(c.text) == 0:
		return b
	case c.call != nil:
		return w.appendDelta(b, `{"type":"input_json_delta","partial_json":`, c.text)
	}
	if !w.open {
		w.open = true
		b = append(b, "event: content_block_start\ndata: "+`{"type":"content_block_start","content_block":{"type":"text","text":""},"index":0}`+"\n\n"...)
	}
	return w.appendDelta(b, `{"type":"text_delta","text":`, c.text)
}

func (w *anthropicWire) appendDelta(b []byte, start string, text []byte) []byte {
	b = append(append(b, "event: content_block_delta\ndata: "+`{"type":"content_block_delta","delta":`...), start...)
	return append(appendString(b, text), `},"index":0}`+"\n\n"...)
}

// appendUsageEvent ends the content block and tells the usage.
func (w *anthropicWire) appendUsageEvent(b []byte, u usage) []byte {
	if w.open {
		b = append(b, "event: content_block_stop\ndata: "+`{"type":"content_block_stop","index":0}`+"\n\n"...)
	}
	b = appendString(append(b, "event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":`...), stopReason(w.reason, w.stop))
	b = appendNullable(append(b, `,"stop_sequence":`...), w.stop)
	return append(appendAnthropicUsage(append(b, `},"usage":`...), u), "}\n\n"...)
}

func (w *anthropicWire) appendEnd(b []byte) []byte {
	return append(b, "event: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n"...)
}

// appendFailure ends a stream: there is no message_stop then.
func (w *anthropicWire) appendFailure(b []byte, f *failure) []byte {
	b = append(b, "event: error\ndata: "+`{"type":"error","error":{"type":"internal_error","message":`...)
	return append(appendString(b, f.message), "}}\n\n"...)
}

// appendAnthropicUsage appends the counts. input_tokens is the whole prompt, as vLLM counts it.
func appendAnthropicUsage(b []byte, u usage) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens":`...), int64(u.completion), 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":`...), int64(u.created), 10)
	return append(strconv.AppendInt(append(b, `,"cache_read_input_tokens":`...), int64(u.cached), 10), '}')
}

// stopReason returns Anthropic's word for why an answer ended.
func stopReason(reason, stop string) string {
	switch {
	case stop != "":
		return "stop_sequence"
	case reason == "length":
		return "max_tokens"
	case reason == "tool_calls":
		return "tool_use"
	}
	return "end_turn"
}

func (w *anthropicWire) appendReply(b []byte, c *completion, _ int64, u usage, _ []byte) []byte {
	a := &c.answers[0]
	b = appendString(append(b, `{"id":`...), c.id)
	b = append(b, `,"type":"message","role":"assistant","content":[`...)
	switch {
	case c.tool != nil:
		b = appendString(append(b, `{"type":"tool_use","id":`...), newCallID())
		b = append(appendString(append(b, `,"name":`...), c.tool.name), `,"input":`...)
		b = append(appendInput(b, a.text), '}')
	case len(a.text) > 0:
		b = append(appendString(append(b, `{"type":"text","text":`...), a.text), '}')
	}
	b = appendString(append(b, `],"model":`...), c.model)
	b = appendString(append(b, `,"stop_reason":`...), stopReason(a.reason, a.stopString))
	if a.stopString != "" {
		b = appendString(append(b, `,"stop_sequence":`...), a.stopString)
	}
	return append(appendAnthropicUsage(append(b, `,"usage":`...), u), '}')
}

// appendInput appends a call's arguments as JSON; those that max_tokens cut are none.
func appendInput(b, arguments []byte) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, arguments) != nil {
		return append(b, "{}"...)
	}
	return append(b, compact.Bytes()...)
}
