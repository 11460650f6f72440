// Replies in the bytes of vLLM 0.32: key order, null fields and spacing as recorded in
// testdata/vllm.

package sim

import (
	"math/rand/v2"
	"strconv"
	"unicode/utf8"
)

// usage counts a request's tokens.
type usage struct {
	prompt, completion, cached int
	created                    int // prompt tokens whose full blocks were computed for this request
}

// wire writes one request's reply or events.
type wire struct {
	doneEnd
	chat  bool
	model string
	start []byte // beginning of every event, up to the choices
}

func newWire(c *completion, model string, created int64) *wire {
	w := &wire{doneEnd: doneEnd{(*failure).event}, chat: c.chat, model: model}
	object := `,"object":"text_completion","created":`
	if c.chat {
		object = `,"object":"chat.completion.chunk","created":`
	}
	b := append(appendString([]byte(`data: {"id":`), c.id), object...)
	b = append(strconv.AppendInt(b, created, 10), `,"model":`...)
	w.start = append(appendString(b, model), `,"choices":[`...)
	return w
}

// endsApart reports false: the finish_reason comes with the last token.
func (w *wire) endsApart() bool { return false }

var doneEvent = []byte("data: [DONE]\n\n")

// appendRole appends the event that opens a choice of a chat stream.
func (w *wire) appendRole(b []byte, choice int, u *usage) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(choice), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = appendChunkUsage(b, u)
	return append(b, `,"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
}

// chunk is one event of a choice: a piece of text or of a tool call, and the end of the choice if
// reason is not empty.
type chunk struct {
	choice       int
	text         []byte
	call         *toolCall // the event is a piece of this call's arguments
	callID       string    // if not empty, the call's first event: its id and name, without text
	reason, stop string
	usage        *usage // for continuous_usage_stats
	last         bool   // the last event before [DONE]
}

// appendChunk appends the event of one token.
func (w *wire) appendChunk(b []byte, c chunk) []byte {
	b = strconv.AppendInt(append(append(b, w.start...), `{"index":`...), int64(c.choice), 10)
	if w.chat {
		b = append(appendDelta(b, c), `,"logprobs":null,"finish_reason":`...)
	} else {
		b = append(appendString(append(b, `,"text":`...), c.text), `,"logprobs":null,"finish_reason":`...)
	}
	b = appendNullable(b, c.reason)
	switch {
	case !w.chat:
		b = append(appendNullable(append(b, `,"stop_reason":`...), c.stop), `,"prompt_token_ids":null`...)
	case c.reason != "":
		b = appendNullable(append(b, `,"stop_reason":`...), c.stop)
	}
	b = appendChunkUsage(append(b, `,"token_ids":null}]`...), c.usage)
	if c.last {
		b = append(b, fingerprint...)
	}
	return append(b, "}\n\n"...)
}

const fingerprint = `,"system_fingerprint":"` + Fingerprint + `"`

func appendDelta(b []byte, c chunk) []byte {
	switch {
	case c.callID != "":
		b = appendString(append(b, `,"delta":{"content":null,"tool_calls":[{"id":`...), c.callID)
		b = appendString(append(b, `,"type":"function","index":0,"function":{"name":`...), c.call.name)
		return append(b, `}}]}`...)
	case len(c.text) == 0:
		return append(b, `,"delta":{}`...)
	case c.call != nil:
		b = appendString(append(b, `,"delta":{"content":null,"tool_calls":[{"index":0,"function":{"arguments":`...), c.text)
		return append(b, `}}]}`...)
	}
	return append(appendString(append(b, `,"delta":{"content":`...), c.text), '}')
}

// appendUsageEvent appends the event that include_usage asks for.
func (w *wire) appendUsageEvent(b []byte, u usage) []byte {
	b = appendCounts(append(append(b, w.start...), `],"usage":{`...), u)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
	if w.chat || u.created > 0 {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(u.created), 10)
	}
	return append(append(append(b, "}}"...), fingerprint...), "}\n\n"...)
}

func appendChunkUsage(b []byte, u *usage) []byte {
	if u == nil {
		return b
	}
	return append(appendCounts(append(b, `,"usage":{`...), *u), `,"completion_tokens_details":null}`...)
}

func appendCounts(b []byte, u usage) []byte {
	b = strconv.AppendInt(append(b, `"prompt_tokens":`...), int64(u.prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(u.prompt+u.completion), 10)
	return strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(u.completion), 10)
}

// appendReply appends the whole reply of a request that is not streamed; handOver is its
// kv_transfer_params or nil.
func (w *wire) appendReply(b []byte, c *completion, created int64, u usage, handOver []byte) []byte {
	object := `,"object":"text_completion","created":`
	if w.chat {
		object = `,"object":"chat.completion","created":`
	}
	b = append(appendString(append(b, `{"id":`...), c.id), object...)
	b = append(strconv.AppendInt(b, created, 10), `,"model":`...)
	b = append(appendString(b, w.model), `,"choices":[`...)
	for i := range c.answers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = w.appendChoice(b, &c.answers[i], c.tool)
	}
	b = append(append(append(b, `],"service_tier":null`...), fingerprint...), `,"usage":{`...)
	b = appendCounts(b, u)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.cached), 10)
	b = append(b, `,"created_cache_tokens":`...)
	if w.chat || u.created > 0 {
		b = strconv.AppendInt(b, int64(u.created), 10)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
	if w.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null`...)
	}
	b = append(b, `,"kv_transfer_params":`...)
	if handOver == nil {
		b = append(b, "null"...)
	}
	return append(append(b, handOver...), `,"ec_transfer_params":null,"metrics":null}`...)
}

// appendChoice appends the rest of a choice after its index.
func (w *wire) appendChoice(b []byte, a *answer, call *toolCall) []byte {
	if !w.chat {
		b = appendString(append(b, `,"text":`...), a.text)
		b = appendString(append(b, `,"logprobs":null,"finish_reason":`...), a.reason)
		b = appendNullable(append(b, `,"stop_reason":`...), a.stopString)
		return append(b, `,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`...)
	}
	b = append(b, `,"message":{"role":"assistant","content":`...)
	if call != nil {
		b = append(b, `"","refusal":null,"annotations":null,"audio":null,"function_call":null,"tool_calls":[{"id":`...)
		b = appendString(append(appendString(b, newCallID()), `,"type":"function","function":{"name":`...), call.name)
		b = append(appendString(append(b, `,"arguments":`...), a.text), `}}],"reasoning":null}`...)
	} else {
		b = appendString(b, a.text)
		b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}`...)
	}
	b = appendString(append(b, `,"logprobs":null,"finish_reason":`...), a.reason)
	b = appendNullable(append(b, `,"stop_reason":`...), a.stopString)
	return append(b, `,"token_ids":null,"routed_experts":null}`...)
}

func newCallID() string {
	return string(appendHex64([]byte("chatcmpl-tool-"), rand.Uint64()))
}

func appendHex64(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[v>>shift&15])
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendNullable appends a string, or null for an empty one.
func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendString appends s as a JSON string as pydantic writes it: UTF-8 unescaped; only quotes,
// backslashes and control characters are escaped. Invalid UTF-8 becomes U+FFFD.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
