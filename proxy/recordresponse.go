// Recorded responses: the answers of /v1/responses.
package proxy

import (
	"bytes"

	"kvasir/openai"
)

// responseEvent reads one event of a stream of responses. The text comes in
// deltas, and once more with all that there is of the response in the last event.
func (r *recorder) responseEvent(name []byte, w *openai.Walker) {
	switch string(name) {
	case "response.output_text.delta":
		r.responseDelta(w, false)
	case "response.reasoning_text.delta":
		r.responseDelta(w, true)
	case "response.completed", "response.incomplete":
		r.over = true
		r.lastResponse(w)
	case "response.created", "response.in_progress", "response.queued",
		"response.output_item.added", "response.output_item.done", "response.content_part.added", "response.content_part.done",
		"response.output_text.done", "response.reasoning_text.done", "response.reasoning_part.added", "response.reasoning_part.done":
		// the last event says it again
	case "response.failed", "response.cancelled":
		r.spoil(flawError)
	default: // calls, refusals, summaries, annotations
		r.spoil("content")
	}
}

func (r *recorder) responseDelta(w *openai.Walker, thought bool) {
	for ok := w.Enter('{'); ok && w.Key(); {
		switch string(w.Name) {
		case "delta":
			if thought {
				r.add(w, &r.reasoning)
			} else {
				r.addText(w)
			}
		case "logprobs":
			r.unknown(w)
		default: // which item and part it belongs to: there is one that is text
			w.Skip()
		}
	}
	if !w.End() {
		r.spoil("data")
	}
}

func (r *recorder) lastResponse(w *openai.Walker) {
	for ok := w.Enter('{'); ok && w.Key(); {
		if string(w.Name) == "response" {
			r.wholeResponse(w)
		} else {
			w.Skip()
		}
	}
	if !w.End() {
		r.spoil("data")
	}
}

// wholeResponse reads the object. What it says of the request, and of the
// engine's defaults, is none of the answer.
func (r *recorder) wholeResponse(w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		r.spoil("data")
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "model":
			r.name(w, &r.model)
		case "usage":
			r.readUsage(w)
		case "created_at":
			if n := w.Count(); n > 0 {
				r.created = int64(n)
			}
		case "status":
			switch s, _ := w.Text(); string(s) {
			case "completed":
				r.finishes("stop")
			case "incomplete": // incomplete_details say why
			default:
				r.spoil(flawError)
			}
		case "incomplete_details":
			r.incompleteDetails(w)
		case "error":
			r.unknown(w)
		case "store":
			if w.Peek() == 't' {
				r.spoil("state") // it can be asked for by its id
			}
			w.Skip()
		case "output":
			r.responseOutput(w)
		default:
			w.Skip()
		}
	}
}

func (r *recorder) incompleteDetails(w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if s, _ := w.Text(); string(s) == "max_output_tokens" {
			r.finishes("length")
		} else {
			r.finishes(string(s))
		}
	}
}

// responseOutput reads the items. They say what the deltas said, or come alone.
func (r *recorder) responseOutput(w *openai.Walker) {
	streamed := len(r.text)+len(r.reasoning) > 0
	whole := recorder{kind: r.kind}
	if !w.Enter('[') {
		w.Skip()
		r.spoil("data")
		return
	}
	for w.Element() {
		whole.responseItem(w)
	}
	switch {
	case whole.flaw != "":
		r.spoil(whole.flaw)
	case streamed && !(bytes.Equal(r.text, whole.text) && bytes.Equal(r.reasoning, whole.reasoning)):
		r.spoil("content")
	case !streamed:
		r.text, r.reasoning = whole.text, whole.reasoning
	}
	if len(r.reasoning) > 0 {
		r.reasoningKey = reasoningKeys[1]
	}
}

// responseItem reads one item: the message, or the reasoning before it.
func (r *recorder) responseItem(w *openai.Walker) {
	if !w.Enter('{') {
		r.unknown(w)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "id", "role", "status", "phase":
			w.Skip()
		case "type":
			if s, _ := w.Text(); string(s) != "message" && string(s) != "reasoning" {
				r.spoil("tool_calls")
			}
		case "content":
			if !w.Enter('[') {
				r.unknown(w)
				continue
			}
			for w.Element() {
				r.responsePart(w)
			}
		default: // a summary, encrypted reasoning
			r.unknown(w)
		}
	}
}

// responsePart reads a part, of which there is one of each type.
func (r *recorder) responsePart(w *openai.Walker) {
	if !w.Enter('{') {
		r.unknown(w)
		return
	}
	var said []byte
	to := &r.text
	for w.Key() {
		switch string(w.Name) {
		case "type":
			switch s, _ := w.Text(); string(s) {
			case "output_text":
			case "reasoning_text":
				if to = &r.reasoning; len(r.text) > 0 {
					r.spoil("content") // thought after it spoke
				}
			default:
				r.spoil("refusal")
			}
		case "text":
			r.add(w, &said)
		default: // annotations, logprobs
			r.unknown(w)
		}
	}
	if len(*to) > 0 {
		r.spoil("content")
	}
	*to = said
}
