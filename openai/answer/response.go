// OpenAI's responses, the answers of /v1/responses, recorded and replayed.

package answer

import (
	"bytes"
	"strconv"

	"kvasir/openai"
)

// recordResponseEvent reads one event of a stream of responses. The text comes
// in deltas, and once more in the last event with all that there is of the
// response.
func recordResponseEvent(d *draft, name []byte, w *openai.Walker) {
	switch string(name) {
	case "response.output_text.delta":
		recordResponseDelta(d, w, blockText)
	case "response.reasoning_text.delta":
		recordResponseDelta(d, w, blockReasoning)
	case "response.completed", "response.incomplete":
		d.over = true
		recordLastResponse(d, w)
	case "response.created", "response.in_progress", "response.queued",
		"response.output_item.added", "response.output_item.done", "response.content_part.added", "response.content_part.done",
		"response.output_text.done", "response.reasoning_text.done", "response.reasoning_part.added", "response.reasoning_part.done":
		// the last event says it again
	case "response.failed", "response.cancelled":
		d.spoil(FlawError)
	default: // calls, refusals, summaries, annotations
		d.spoil(flawContent)
	}
}

// recordResponseDelta reads a piece of the text or of the reasoning.
func recordResponseDelta(d *draft, w *openai.Walker, of block) {
	for ok := w.Enter('{'); ok && w.Key(); {
		switch string(w.Name) {
		case "delta":
			if of == blockReasoning {
				d.add(w, &d.answer.Reasoning)
			} else {
				d.addText(w)
			}
		case "logprobs":
			d.unknown(w)
		default: // which item and part it belongs to: only one of them is text
			w.Skip()
		}
	}
	if !w.End() {
		d.spoil(FlawData)
	}
}

// recordLastResponse reads the event that has the whole response.
func recordLastResponse(d *draft, w *openai.Walker) {
	for ok := w.Enter('{'); ok && w.Key(); {
		if string(w.Name) == "response" {
			recordResponse(d, w)
		} else {
			w.Skip()
		}
	}
	if !w.End() {
		d.spoil(FlawData)
	}
}

// recordResponse reads the object. What it repeats of the request and of the
// engine's defaults is no part of the answer.
func recordResponse(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		d.spoil(FlawData)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "model":
			d.name(w, &d.answer.Model)
		case "usage":
			d.usage(w)
		case "created_at":
			if n := w.Count(); n > 0 {
				d.answer.Created = int64(n)
			}
		case "status":
			switch s, _ := w.Text(); string(s) {
			case "completed":
				d.finish("stop")
			case "incomplete": // incomplete_details say why
			default:
				d.spoil(FlawError)
			}
		case "incomplete_details":
			recordIncompleteDetails(d, w)
		case "error":
			d.unknown(w)
		case "store":
			if w.Peek() == 't' {
				d.spoil(flawState)
			}
			w.Skip()
		case "output":
			recordOutput(d, w)
		default:
			w.Skip()
		}
	}
}

// recordIncompleteDetails notes why a response is not complete, in the words of
// chat completions.
func recordIncompleteDetails(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if s, _ := w.Text(); string(s) == "max_output_tokens" {
			d.finish("length")
		} else {
			d.finish(string(s))
		}
	}
}

// recordOutput reads the items. They are to say what the deltas said, if there
// were any.
func recordOutput(d *draft, w *openai.Walker) {
	a := &d.answer
	streamed := len(a.Text)+len(a.Reasoning) > 0
	whole := draft{kind: d.kind}
	if !w.Enter('[') {
		w.Skip()
		d.spoil(FlawData)
		return
	}
	for w.Element() {
		recordItem(&whole, w)
	}
	switch {
	case whole.flaw != "":
		d.spoil(whole.flaw)
	case streamed && !(bytes.Equal(a.Text, whole.answer.Text) && bytes.Equal(a.Reasoning, whole.answer.Reasoning)):
		d.spoil(flawContent)
	case !streamed:
		a.Text, a.Reasoning = whole.answer.Text, whole.answer.Reasoning
	}
	if len(a.Reasoning) > 0 {
		a.ReasoningKey = reasoningKeys[1]
	}
}

// recordItem reads one item of the output: the message, or the reasoning before
// it.
func recordItem(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.unknown(w)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "id", "role", "status", "phase":
			w.Skip()
		case "type":
			if s, _ := w.Text(); string(s) != "message" && string(s) != "reasoning" {
				d.spoil(flawCalls)
			}
		case "content":
			if !w.Enter('[') {
				d.unknown(w)
				continue
			}
			for w.Element() {
				recordPart(d, w)
			}
		default: // a summary, encrypted reasoning
			d.unknown(w)
		}
	}
}

// recordPart reads a part of an item's content, of which there is one of each
// type.
func recordPart(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.unknown(w)
		return
	}
	var said []byte
	to := &d.answer.Text
	for w.Key() {
		switch string(w.Name) {
		case "type":
			switch s, _ := w.Text(); string(s) {
			case "output_text":
			case "reasoning_text":
				if to = &d.answer.Reasoning; len(d.answer.Text) > 0 {
					d.spoil(flawContent) // thought after it spoke
				}
			default:
				d.spoil(flawRefusal)
			}
		case "text":
			d.add(w, &said)
		default: // annotations, logprobs
			d.unknown(w)
		}
	}
	if len(*to) > 0 {
		d.spoil(flawContent)
	}
	*to = said
}

// incompleteReason says why a response that finished so is not complete; "": it
// is.
func incompleteReason(finish string) string {
	switch finish {
	case "length", "max_tokens", "max_output_tokens":
		return "max_output_tokens"
	case "content_filter":
		return finish
	}
	return ""
}

// endStatus is that of a response and its items at their end.
func endStatus(finish string) string {
	if incompleteReason(finish) != "" {
		return "incomplete"
	}
	return "completed"
}

// noResponseUsage is the usage of responses where no worker counted.
const noResponseUsage = `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`

// appendResponse appends a response: whole, or as it is before the first word.
func appendResponse(dst []byte, of *source, whole bool) []byte {
	a := of.answer
	status, why := "in_progress", ""
	if whole {
		status, why = endStatus(a.Finish), incompleteReason(a.Finish)
	}
	dst = append(of.appendID(append(dst, `{"id":"`...), "resp-"), `","object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, of.at, 10)
	dst = append(append(append(dst, `,"status":"`...), status...), `","error":null,"incomplete_details":`...)
	if why == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(append(append(dst, `{"reason":"`...), why...), `"}`...)
	}
	dst = append(dst, `,"instructions":null,"metadata":{},"model":`...)
	dst = append(openai.AppendString(dst, a.Model), `,"output":[`...)
	if whole {
		if a.Reasoning != nil {
			dst = append(appendItem(dst, of, blockReasoning, true), ',')
		}
		dst = appendItem(dst, of, blockText, true)
	}
	dst = append(dst, `],"parallel_tool_calls":true,"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,`...)
	if !whole {
		return append(dst, `"usage":null}`...)
	}
	return append(appendUsage(dst, a, noResponseUsage), '}')
}

// appendItem appends an item of the output: whole, or as it is before its first
// word.
func appendItem(dst []byte, of *source, b block, whole bool) []byte {
	dst = appendItemID(append(dst, `{"id":`...), of, b)
	status := "in_progress"
	if whole {
		status = endStatus(of.answer.Finish)
	}
	text := of.answer.Text
	if b == blockReasoning {
		text = of.answer.Reasoning
		dst = append(append(append(dst, `,"type":"reasoning","status":"`...), status...), `","summary":[],"content":[`...)
	} else {
		dst = append(append(append(dst, `,"type":"message","status":"`...), status...), `","role":"assistant","content":[`...)
	}
	if whole {
		dst = appendPart(dst, b, text)
	}
	return append(dst, "]}"...)
}

func appendItemID(dst []byte, of *source, b block) []byte {
	prefix := "msg-"
	if b == blockReasoning {
		prefix = "rs-"
	}
	return append(of.appendID(append(dst, '"'), prefix), '"')
}

// appendPart appends the one part of an item.
func appendPart(dst []byte, b block, text []byte) []byte {
	if b == blockReasoning {
		return append(openai.AppendString(append(dst, `{"type":"reasoning_text","text":`...), text), '}')
	}
	dst = append(dst, `{"type":"output_text","text":`...)
	return append(openai.AppendString(dst, text), `,"annotations":[],"logprobs":[]}`...)
}

// responseEvents are the events of a response, as far as they have come.
type responseEvents struct {
	block  block // of the item that is open
	index  int   // of that item, or of the next
	number int   // of the next event
}

// event begins the next event, which ends with eventEnd.
func (e *responseEvents) event(dst []byte, name string) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, name...), `","sequence_number":`...)
	dst = append(strconv.AppendInt(dst, int64(e.number), 10), ',')
	e.number++
	return dst
}

// partEvent begins an event about the part of the item that is open.
func (e *responseEvents) partEvent(dst []byte, of *source, name string) []byte {
	dst = appendItemID(append(e.event(dst, name), `"item_id":`...), of, e.block)
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(e.index), 10)
	return append(dst, `,"content_index":0`...)
}

// itemEvent appends an event about the item that is open.
func (e *responseEvents) itemEvent(dst []byte, of *source, name string, whole bool) []byte {
	dst = strconv.AppendInt(append(e.event(dst, name), `"output_index":`...), int64(e.index), 10)
	return append(appendItem(append(dst, `,"item":`...), of, e.block, whole), eventEnd...)
}

// open appends what comes before the first item.
func (e *responseEvents) open(dst []byte, of *source) []byte {
	for _, name := range [...]string{"response.created", "response.in_progress"} {
		dst = append(appendResponse(append(e.event(dst, name), `"response":`...), of, false), eventEnd...)
	}
	return dst
}

// openItem ends the item that is open and begins that of b, unless it is the
// one that is open.
func (e *responseEvents) openItem(dst []byte, of *source, b block) []byte {
	if e.block == b {
		return dst
	}
	dst = e.closeItem(dst, of)
	e.block = b
	dst = e.itemEvent(dst, of, "response.output_item.added", false)
	dst = append(e.partEvent(dst, of, "response.content_part.added"), `,"part":`...)
	return append(appendPart(dst, b, nil), eventEnd...)
}

// piece appends a piece of the block b.
func (e *responseEvents) piece(dst []byte, of *source, b block, piece []byte) []byte {
	dst = e.openItem(dst, of, b)
	if b == blockReasoning {
		dst = append(e.partEvent(dst, of, "response.reasoning_text.delta"), `,"delta":`...)
	} else {
		dst = append(e.partEvent(dst, of, "response.output_text.delta"), `,"logprobs":[],"delta":`...)
	}
	return append(openai.AppendString(dst, piece), eventEnd...)
}

// closeItem ends the item that is open, if one is. Its text must be whole.
func (e *responseEvents) closeItem(dst []byte, of *source) []byte {
	text := of.answer.Text
	switch e.block {
	case blockNone:
		return dst
	case blockReasoning:
		text = of.answer.Reasoning
		dst = append(e.partEvent(dst, of, "response.reasoning_text.done"), `,"text":`...)
	case blockText:
		dst = append(e.partEvent(dst, of, "response.output_text.done"), `,"logprobs":[],"text":`...)
	}
	dst = append(openai.AppendString(dst, text), eventEnd...)
	dst = append(e.partEvent(dst, of, "response.content_part.done"), `,"part":`...)
	dst = append(appendPart(dst, e.block, text), eventEnd...)
	dst = e.itemEvent(dst, of, "response.output_item.done", true)
	e.index++
	e.block = blockNone
	return dst
}

// close appends the end of the response. One without text has an empty message.
func (e *responseEvents) close(dst []byte, of *source) []byte {
	dst = e.closeItem(e.openItem(dst, of, blockText), of)
	return append(appendResponse(append(e.event(dst, "response."+endStatus(of.answer.Finish)), `"response":`...), of, true), eventEnd...)
}
