// Replies in the bytes of SGLang 0.5.23, as recorded in testdata/sglang.

package sim

import (
	"math/rand/v2"
	"strconv"
)

// sglangWire writes one request's reply or events. In streams only the text shows that this is a
// simulation, because SGLang's chunks have no field for it. Replies show it as weight_version.
type sglangWire struct {
	doneEnd
	chat  bool
	start []byte // beginning of every event, up to the choices
}

func newSGLangWire(c *completion, created int64) *sglangWire {
	return &sglangWire{doneEnd: doneEnd{(*failure).flatEvent}, chat: c.chat, start: eventStart(c, created)}
}

// endsApart reports true for a chat: the finish_reason comes alone.
func (w *sglangWire) endsApart() bool { return w.chat }

func (w *sglangWire) appendRole(b []byte, choice int, _ *usage) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(choice), 10)
	return append(b, `,"delta":{"reasoning_content":null,"role":"assistant","content":""},"logprobs":null,`+
		`"finish_reason":null,"matched_stop":null}]}`+"\n\n"...)
}

func (w *sglangWire) appendChunk(b []byte, c chunk) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(c.choice), 10)
	if w.chat {
		b = appendSGLangDelta(append(b, `,"delta":{"reasoning_content":null`...), c)
	} else {
		b = appendString(append(b, `,"text":`...), c.text)
	}
	b = appendNullable(append(b, `,"logprobs":null,"finish_reason":`...), c.reason)
	b = append(appendMatched(b, c.reason, c.stop), "}]"...)
	switch {
	case c.usage != nil && c.reason == "":
		b = appendSGLangUsage(append(b, `,"usage":`...), *c.usage)
	case !w.chat:
		b = append(b, `,"usage":null`...)
	}
	return append(b, "}\n\n"...)
}

func appendSGLangDelta(b []byte, c chunk) []byte {
	switch {
	case c.callID != "":
		b = appendString(append(b, `,"tool_calls":[{"id":`...), c.callID)
		b = appendString(append(b, `,"index":0,"type":"function","function":{"name":`...), c.call.name)
		return append(b, `,"arguments":""}}]}`...)
	case len(c.text) == 0:
		return append(b, '}')
	case c.call != nil:
		b = appendString(append(b, `,"tool_calls":[{"id":null,"index":0,"type":"function","function":{"name":null,"arguments":`...), c.text)
		return append(b, `}}]}`...)
	}
	return append(appendString(append(b, `,"content":`...), c.text), '}')
}

// appendMatched appends what ended an answer: a token id, a stop text, or nothing.
func appendMatched(b []byte, reason, stop string) []byte {
	b = append(b, `,"matched_stop":`...)
	if reason == "stop" && stop == "" {
		return strconv.AppendInt(b, imEnd, 10)
	}
	return appendNullable(b, stop)
}

func (w *sglangWire) appendUsageEvent(b []byte, u usage) []byte {
	b = appendSGLangUsage(append(append(b, w.start...), `],"usage":`...), u)
	return append(b, "}\n\n"...)
}

func appendSGLangUsage(b []byte, u usage) []byte {
	b = appendCounts(append(b, '{'), u)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
	return append(b, `},"reasoning_tokens":0,"completion_tokens_details":null}`...)
}

func (w *sglangWire) appendReply(b []byte, c *completion, created int64, u usage, _ []byte) []byte {
	object := `,"object":"text_completion","created":`
	if w.chat {
		object = `,"object":"chat.completion","created":`
	}
	b = append(appendString(append(b, `{"id":`...), c.id), object...)
	b = append(strconv.AppendInt(b, created, 10), `,"model":`...)
	b = append(appendString(b, c.model), `,"choices":[`...)
	longest := 0
	for i := range c.answers {
		a := &c.answers[i]
		longest = max(longest, len(a.tokens))
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = appendSGLangMessage(b, a, w.chat, c.tool)
		b = appendString(append(b, `,"logprobs":null,"finish_reason":`...), a.reason)
		b = append(appendMatched(b, a.reason, a.stopString), '}')
	}
	b = appendSGLangUsage(append(b, `],"usage":`...), u)
	b = append(b, `,"metadata":{"weight_version":"`+Fingerprint+`","weight_versions":[{"version":"`+Fingerprint+`","start":0,"end":`...)
	return append(strconv.AppendInt(b, int64(longest), 10), "}]}}"...)
}

func appendSGLangMessage(b []byte, a *answer, chat bool, call *toolCall) []byte {
	switch {
	case !chat:
		return appendString(append(b, `,"text":`...), a.text)
	case call == nil:
		b = appendString(append(b, `,"message":{"role":"assistant","content":`...), a.text)
		return append(b, `,"reasoning_content":null}`...)
	}
	b = append(b, `,"message":{"role":"assistant","content":null,"reasoning_content":null,"tool_calls":[{"id":`...)
	b = appendString(b, string(appendHex64([]byte("call_"), rand.Uint64())))
	b = appendString(append(b, `,"index":0,"type":"function","function":{"name":`...), call.name)
	return append(appendString(append(b, `,"arguments":`...), a.text), `}}]}`...)
}
