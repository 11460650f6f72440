// Replies in TensorRT-LLM's format: the fields of its protocol module in their order. No
// recording of a real server was available.

package sim

import (
	"math/rand/v2"
	"strconv"
)

// trtWire writes one request's reply or events. They have no field that could show the
// simulation; only the text shows it.
type trtWire struct {
	doneEnd
	chat  bool
	start []byte // beginning of every event, up to the choices
}

func newTRTWire(c *completion, created int64) *trtWire {
	return &trtWire{doneEnd: doneEnd{(*failure).flatEvent}, chat: c.chat, start: eventStart(c, created)}
}

// endsApart reports false: the finish_reason comes with the last token.
func (w *trtWire) endsApart() bool { return false }

func (w *trtWire) appendRole(b []byte, choice int, u *usage) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(choice), 10)
	return append(appendTRTChunkUsage(append(b, `,"delta":{"role":"assistant","content":""}}]`...), u), "}\n\n"...)
}

// appendChunk appends the event of one token, without null fields.
func (w *trtWire) appendChunk(b []byte, c chunk) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(c.choice), 10)
	if w.chat {
		b = appendTRTDelta(append(b, `,"delta":{`...), c)
	} else {
		b = appendString(append(b, `,"text":`...), c.text)
	}
	if c.reason != "" {
		b = appendString(append(b, `,"finish_reason":`...), c.reason)
	}
	if c.stop != "" {
		b = appendString(append(b, `,"stop_reason":`...), c.stop)
	}
	return append(appendTRTChunkUsage(append(b, "}]"...), c.usage), "}\n\n"...)
}

func appendTRTDelta(b []byte, c chunk) []byte {
	switch {
	case c.callID != "":
		b = appendString(append(b, `"tool_calls":[{"id":`...), c.callID)
		b = appendString(append(b, `,"type":"function","index":0,"function":{"name":`...), c.call.name)
		return append(b, `}}]}`...)
	case c.call != nil:
		b = appendString(append(b, `"tool_calls":[{"index":0,"function":{"arguments":`...), c.text)
		return append(b, `}}]}`...)
	}
	return append(appendString(append(b, `"content":`...), c.text), '}')
}

func appendTRTChunkUsage(b []byte, u *usage) []byte {
	if u == nil {
		return b
	}
	return append(appendCounts(append(b, `,"usage":{`...), *u), '}')
}

func (w *trtWire) appendUsageEvent(b []byte, u usage) []byte {
	return append(appendTRTUsage(append(append(b, w.start...), `],"usage":`...), u), "}\n\n"...)
}

func appendTRTUsage(b []byte, u usage) []byte {
	b = appendCounts(append(b, '{'), u)
	return append(strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.cached), 10), "}}"...)
}

// appendReply appends a whole reply. A context server's reply has the prompt's tokens, for the
// generation server.
func (w *trtWire) appendReply(b []byte, c *completion, created int64, u usage, handOver []byte) []byte {
	object := `,"object":"text_completion","created":`
	if w.chat {
		object = `,"object":"chat.completion","created":`
	}
	b = append(appendString(append(b, `{"id":`...), c.id), object...)
	b = append(strconv.AppendInt(b, created, 10), `,"model":`...)
	b = append(appendString(b, c.model), `,"choices":[`...)
	for i := range c.answers {
		a := &c.answers[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = appendTRTMessage(b, a, w.chat, c.tool)
		b = appendString(append(b, `,"logprobs":null,"finish_reason":`...), a.reason)
		b = append(appendNullable(append(b, `,"stop_reason":`...), a.stopString), `,"disaggregated_params":`...)
		if handOver == nil {
			b = append(b, "null"...)
		}
		b = append(append(b, handOver...), `,"avg_decoded_tokens_per_iter":1.0}`...)
	}
	b = append(appendTRTUsage(append(b, `],"usage":`...), u), `,"prompt_token_ids":`...)
	if handOver == nil {
		return append(b, "null}"...)
	}
	return append(appendIDs(append(b, '['), c.prompts[0]), "]}"...)
}

func appendTRTMessage(b []byte, a *answer, chat bool, call *toolCall) []byte {
	if !chat {
		return append(appendString(append(b, `,"text":`...), a.text), `,"token_ids":null`...)
	}
	b = append(b, `,"message":{"role":"assistant","content":`...)
	if call == nil {
		return append(appendString(b, a.text), `,"reasoning_content":null,"reasoning":null,"tool_calls":[]}`...)
	}
	b = append(b, `"","reasoning_content":null,"reasoning":null,"tool_calls":[{"id":`...)
	b = appendString(b, string(appendHex64([]byte("chatcmpl-tool-"), rand.Uint64())))
	b = appendString(append(b, `,"type":"function","function":{"name":`...), call.name)
	return append(appendString(append(b, `,"arguments":`...), a.text), `}}]}`...)
}
