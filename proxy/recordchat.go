// Recorded completions: the answers of /v1/chat/completions and /v1/completions.
package proxy

import "kvasir/openai"

// object reads a chat completion, a completion, or a chunk of one.
func (r *recorder) object(w *openai.Walker) {
	if !w.Enter('{') {
		r.spoil("data")
		return
	}
	for w.Key() {
		switch string(w.Name) {
		case "choices":
			r.choices(w)
		case "usage":
			r.readUsage(w)
		case "model":
			r.name(w, &r.model)
		case "system_fingerprint":
			r.name(w, &r.fingerprint)
		case "created":
			if n := w.Count(); n > 0 && r.created == 0 {
				r.created = int64(n)
			}
		case "id", "object", "service_tier", "metadata", "metrics", "provider", "obfuscation", "timings", "x_groq":
			w.Skip()
		default:
			r.unknown(w)
		}
	}
	if !w.End() {
		r.spoil("data")
	}
}

func (r *recorder) choices(w *openai.Walker) {
	if !w.Enter('[') {
		w.Skip()
		r.spoil("choices")
		return
	}
	for count := 0; w.Element(); count++ {
		if count > 0 || !w.Enter('{') {
			w.Skip()
			r.spoil("choices")
			continue
		}
		for w.Key() {
			r.choice(w)
		}
	}
}

// choice reads one member of the one choice.
func (r *recorder) choice(w *openai.Walker) {
	switch string(w.Name) {
	case "delta", "message":
		if r.kind == openai.KindChat && w.Enter('{') {
			for w.Key() {
				r.said(w)
			}
			return
		}
		r.unknown(w)
	case "text":
		if r.kind == openai.KindText {
			r.addText(w)
			return
		}
		r.unknown(w)
	case "finish_reason":
		if s, ok := w.Text(); ok && len(s) > 0 {
			r.finishes(string(s))
		}
	case "index":
		if w.Count() != 0 {
			r.spoil("choices")
		}
	case "stop_reason", "matched_stop", "native_finish_reason": // which token it was
		w.Skip()
	default:
		r.unknown(w)
	}
}

// said reads one member of a message or a delta.
func (r *recorder) said(w *openai.Walker) {
	switch name := string(w.Name); name {
	case "role":
		w.Skip()
	case "content":
		r.addText(w)
	case "reasoning_content", "reasoning":
		before := len(r.reasoning)
		if !r.add(w, &r.reasoning) || len(r.reasoning) == before {
			return
		}
		if r.reasoningKey != "" && r.reasoningKey != name {
			r.spoil("reasoning") // in both members: once too often, or two texts
		}
		r.reasoningKey = memberName(name)
	case "tool_calls":
		r.toolCalls(w)
	default:
		r.unknown(w)
	}
}

// memberName is the name without the event that it stands in.
func memberName(name string) string {
	for _, known := range reasoningKeys {
		if known == name {
			return known
		}
	}
	return ""
}

// finishes notes the finish_reason, of which there is one.
func (r *recorder) finishes(why string) {
	if r.finish != "" && r.finish != why || len(why) > nameLimit {
		r.spoil("finish_reason")
	}
	r.finish = why
}
