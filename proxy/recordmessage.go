// Recorded messages: the answers of /v1/messages.
package proxy

import "kvasir/openai"

// messageEvent reads one event of a stream of messages. Which member stands in
// which event is not asked: each is read the same wherever it is.
func (r *recorder) messageEvent(w *openai.Walker) {
	if !w.Enter('{') {
		r.spoil("data")
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "type":
			switch s, _ := w.Text(); string(s) {
			case "message_stop":
				r.over = true
			case "error":
				r.spoil(flawError)
			}
		case "message":
			if !w.Enter('{') {
				r.unknown(w)
				continue
			}
			for w.Key() {
				if string(w.Name) == "usage" { // not yet counted
					w.Skip()
				} else {
					r.messageMember(w)
				}
			}
		case "content_block", "delta":
			r.block(w)
		case "index":
			if w.Count() != 0 {
				r.spoil("content")
			}
		default:
			r.messageMember(w)
		}
	}
	if !w.End() {
		r.spoil("data")
	}
}

// wholeMessage reads a body.
func (r *recorder) wholeMessage(w *openai.Walker) {
	if !w.Enter('{') {
		r.spoil("data")
		return
	}
	for w.Key() {
		if string(w.Name) != "type" {
			r.messageMember(w)
		} else if s, _ := w.Text(); string(s) != "message" {
			r.spoil("type")
		}
	}
	if !w.End() {
		r.spoil("data")
	}
}

// messageMember reads one member of a message.
func (r *recorder) messageMember(w *openai.Walker) {
	switch string(w.Name) {
	case "id", "type", "role":
		w.Skip()
	case "model":
		r.name(w, &r.model)
	case "usage":
		r.readUsage(w)
	case "stop_reason":
		r.stops(w)
	case "content":
		if !w.Enter('[') {
			r.unknown(w)
			return
		}
		for count := 0; w.Element(); count++ {
			if count > 0 {
				r.spoil("content")
			}
			r.block(w)
		}
	default: // stop_sequence: which one it was cannot be told
		r.unknown(w)
	}
}

// block reads a block of content, or what a delta adds to it or to the message.
func (r *recorder) block(w *openai.Walker) {
	if !w.Enter('{') {
		r.unknown(w)
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "type":
			if s, _ := w.Text(); string(s) != "text" && string(s) != "text_delta" {
				r.spoil("content") // a call, thinking and its signature, a citation
			}
		case "text":
			r.addText(w)
		case "stop_reason":
			r.stops(w)
		default:
			r.unknown(w)
		}
	}
}

// stops notes the stop_reason in the words of chat completions.
func (r *recorder) stops(w *openai.Walker) {
	switch s, _ := w.Text(); string(s) {
	case "":
	case "end_turn":
		r.finishes("stop")
	case "max_tokens":
		r.finishes("length")
	default:
		r.finishes(string(s))
	}
}
