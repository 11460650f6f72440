// Replays as Anthropic's messages: the object and its events.
package proxy

import (
	"strconv"

	"kvasir/openai"
)

// A messageReplay is a replay on /v1/messages.
type messageReplay struct{ *replay }

// stopReason is why the answer ended, in the words of messages.
func (r messageReplay) stopReason() string {
	switch r.finish {
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	}
	return r.finish
}

// object appends the message.
func (r messageReplay) object(dst []byte) []byte {
	dst = append(r.head(dst), `,"content":[`...)
	if r.reasoning != nil {
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = append(openai.AppendString(dst, r.reasoning), `,"signature":""},`...)
	}
	dst = append(dst, `{"type":"text","text":`...)
	dst = append(openai.AppendString(dst, r.text), `}],"stop_reason":`...)
	dst = append(openai.AppendString(dst, r.stopReason()), `,"stop_sequence":null,`...)
	return append(r.appendUsage(dst), '}')
}

func (r messageReplay) head(dst []byte) []byte {
	dst = append(r.appendID(append(dst, `{"id":"`...), "msg-"), `","type":"message","role":"assistant","model":`...)
	return openai.AppendString(dst, r.model)
}

func messageEvent(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	return append(append(dst, name...), '"')
}

// open appends message_start, which says how long the prompt was.
func (r messageReplay) open(dst []byte) []byte {
	prompt := replyObject{tokenCounts: noCounts}
	w := openai.Walk(r.usage)
	prompt.readUsage(&w)
	dst = r.head(append(messageEvent(dst, "message_start"), `,"message":`...))
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(max(prompt.promptTokens, 0)), 10)
	return append(dst, `,"output_tokens":0}}`+eventEnd...)
}

// begin goes on to the block b, if it is not the one at hand.
func (r messageReplay) begin(dst []byte, b block) []byte {
	if r.block == b {
		return dst
	}
	dst = r.end(dst)
	r.block = b
	dst = append(r.place(messageEvent(dst, "content_block_start")), `,"content_block":{"type":`...)
	if b == blockReasoning {
		return append(dst, `"thinking","thinking":"","signature":""}`+eventEnd...)
	}
	return append(dst, `"text","text":""}`+eventEnd...)
}

func (r messageReplay) place(dst []byte) []byte {
	return strconv.AppendInt(append(dst, `,"index":`...), int64(r.blocks), 10)
}

// piece appends a piece of the block b.
func (r messageReplay) piece(dst []byte, b block, piece []byte) []byte {
	dst = r.begin(dst, b)
	dst = append(r.place(messageEvent(dst, "content_block_delta")), `,"delta":{"type":`...)
	if r.block == blockReasoning {
		dst = append(dst, `"thinking_delta","thinking":`...)
	} else {
		dst = append(dst, `"text_delta","text":`...)
	}
	return append(append(openai.AppendString(dst, piece), '}'), eventEnd...)
}

// end ends the block at hand.
func (r messageReplay) end(dst []byte) []byte {
	if r.block == blockNone {
		return dst
	}
	dst = append(r.place(messageEvent(dst, "content_block_stop")), eventEnd...)
	r.blocks++
	r.block = blockNone
	return dst
}

func (r messageReplay) close(dst []byte) []byte {
	dst = r.end(r.begin(dst, blockText))
	dst = append(messageEvent(dst, "message_delta"), `,"delta":{"stop_reason":`...)
	dst = append(openai.AppendString(dst, r.stopReason()), `,"stop_sequence":null},`...)
	dst = append(r.appendUsage(dst), eventEnd...)
	return append(messageEvent(dst, "message_stop"), eventEnd...)
}
