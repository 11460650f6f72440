// Anthropic's messages, the answers of /v1/messages, recorded and replayed.

package answer

import (
	"strconv"

	"kvasir/openai"
)

// recordMessageEvent reads one event of a stream of messages. It does not ask
// which member stands in which event: each is read in the same way wherever it
// is.
func recordMessageEvent(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.spoil(FlawData)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "type":
			switch s, _ := w.Text(); string(s) {
			case "message_stop":
				d.over = true
			case "error":
				d.spoil(FlawError)
			}
		case "message":
			if !w.Enter('{') {
				d.unknown(w)
				continue
			}
			for w.Key() {
				if string(w.Name) == "usage" { // not yet counted
					w.Skip()
				} else {
					recordMessageMember(d, w)
				}
			}
		case "content_block", "delta":
			recordBlock(d, w)
		case "index":
			if w.Count() != 0 {
				d.spoil(flawContent)
			}
		default:
			recordMessageMember(d, w)
		}
	}
	if !w.End() {
		d.spoil(FlawData)
	}
}

// recordMessage reads a body.
func recordMessage(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.spoil(FlawData)
		return
	}
	for w.Key() {
		if string(w.Name) != "type" {
			recordMessageMember(d, w)
		} else if s, _ := w.Text(); string(s) != "message" {
			d.spoil(flawType)
		}
	}
	if !w.End() {
		d.spoil(FlawData)
	}
}

// recordMessageMember reads one member of a message.
func recordMessageMember(d *draft, w *openai.Walker) {
	switch string(w.Name) {
	case "id", "type", "role":
		w.Skip()
	case "model":
		d.name(w, &d.answer.Model)
	case "usage":
		d.usage(w)
	case "stop_reason":
		recordStopReason(d, w)
	case "content":
		if !w.Enter('[') {
			d.unknown(w)
			return
		}
		for count := 0; w.Element(); count++ {
			if count > 0 {
				d.spoil(flawContent)
			}
			recordBlock(d, w)
		}
	default: // stop_sequence among them: a replay has no place for which one it was
		d.unknown(w)
	}
}

// recordBlock reads a block of content, or what a delta adds to it or to the
// message.
func recordBlock(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.unknown(w)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "type":
			if s, _ := w.Text(); string(s) != "text" && string(s) != "text_delta" {
				d.spoil(flawContent) // a call, thinking and its signature, a citation
			}
		case "text":
			d.addText(w)
		case "stop_reason":
			recordStopReason(d, w)
		default:
			d.unknown(w)
		}
	}
}

// recordStopReason notes the stop_reason in the words of chat completions;
// stopReason is its inverse.
func recordStopReason(d *draft, w *openai.Walker) {
	switch s, _ := w.Text(); string(s) {
	case "":
	case "end_turn":
		d.finish("stop")
	case "max_tokens":
		d.finish("length")
	default:
		d.finish(string(s))
	}
}

// stopReason is why an answer ended, in the words of messages.
func stopReason(finish string) string {
	switch finish {
	case "stop":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	}
	return finish
}

// noMessageUsage is the usage of messages where no worker counted.
const noMessageUsage = `{"input_tokens":0,"output_tokens":0}`

// appendMessage appends a message.
func appendMessage(dst []byte, of *source) []byte {
	a := of.answer
	dst = append(appendMessageHead(dst, of), `,"content":[`...)
	if a.Reasoning != nil {
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = append(openai.AppendString(dst, a.Reasoning), `,"signature":""},`...)
	}
	dst = append(dst, `{"type":"text","text":`...)
	dst = append(openai.AppendString(dst, a.Text), `}],"stop_reason":`...)
	dst = append(openai.AppendString(dst, stopReason(a.Finish)), `,"stop_sequence":null,`...)
	return append(appendUsage(dst, a, noMessageUsage), '}')
}

// appendMessageHead appends a message up to its content.
func appendMessageHead(dst []byte, of *source) []byte {
	dst = append(of.appendID(append(dst, `{"id":"`...), "msg-"), `","type":"message","role":"assistant","model":`...)
	return openai.AppendString(dst, of.answer.Model)
}

// messageEvents are the events of a message, as far as they have come.
type messageEvents struct {
	block block // that is open
	index int   // of that block, or of the next
}

// appendMessageEvent begins an event, which ends with eventEnd.
func appendMessageEvent(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	return append(append(dst, name...), '"')
}

// open appends message_start, which tells how long the prompt was.
func (e *messageEvents) open(dst []byte, of *source) []byte {
	prompt := NoUsage
	w := openai.Walk(of.answer.RawUsage)
	prompt.read(&w)
	dst = appendMessageHead(append(appendMessageEvent(dst, "message_start"), `,"message":`...), of)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(max(prompt.Prompt, 0)), 10)
	return append(dst, `,"output_tokens":0}}`+eventEnd...)
}

// openBlock ends the block that is open and begins b, unless b is the one that
// is open.
func (e *messageEvents) openBlock(dst []byte, b block) []byte {
	if e.block == b {
		return dst
	}
	dst = e.closeBlock(dst)
	e.block = b
	dst = append(e.appendIndex(appendMessageEvent(dst, "content_block_start")), `,"content_block":{"type":`...)
	if b == blockReasoning {
		return append(dst, `"thinking","thinking":"","signature":""}`+eventEnd...)
	}
	return append(dst, `"text","text":""}`+eventEnd...)
}

func (e *messageEvents) appendIndex(dst []byte) []byte {
	return strconv.AppendInt(append(dst, `,"index":`...), int64(e.index), 10)
}

// piece appends a piece of the block b.
func (e *messageEvents) piece(dst []byte, b block, piece []byte) []byte {
	dst = e.openBlock(dst, b)
	dst = append(e.appendIndex(appendMessageEvent(dst, "content_block_delta")), `,"delta":{"type":`...)
	if b == blockReasoning {
		dst = append(dst, `"thinking_delta","thinking":`...)
	} else {
		dst = append(dst, `"text_delta","text":`...)
	}
	return append(append(openai.AppendString(dst, piece), '}'), eventEnd...)
}

// closeBlock ends the block that is open, if one is.
func (e *messageEvents) closeBlock(dst []byte) []byte {
	if e.block == blockNone {
		return dst
	}
	dst = append(e.appendIndex(appendMessageEvent(dst, "content_block_stop")), eventEnd...)
	e.index++
	e.block = blockNone
	return dst
}

// close appends the end of the message. One without text has an empty block of
// it.
func (e *messageEvents) close(dst []byte, of *source) []byte {
	dst = e.closeBlock(e.openBlock(dst, blockText))
	dst = append(appendMessageEvent(dst, "message_delta"), `,"delta":{"stop_reason":`...)
	dst = append(openai.AppendString(dst, stopReason(of.answer.Finish)), `,"stop_sequence":null},`...)
	dst = append(appendUsage(dst, of.answer, noMessageUsage), eventEnd...)
	return append(appendMessageEvent(dst, "message_stop"), eventEnd...)
}
