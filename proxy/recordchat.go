// Recorded completions: the answers of /v1/chat/completions and /v1/completions.
package proxy

// object reads a chat completion, a completion, or a chunk of one.
func (r *recorder) object(w *replyWalker) {
	if !w.enter('{') {
		r.spoil("data")
		return
	}
	for w.key() {
		switch string(w.name) {
		case "choices":
			r.choices(w)
		case "usage":
			r.readUsage(w)
		case "model":
			r.name(w, &r.model)
		case "system_fingerprint":
			r.name(w, &r.fingerprint)
		case "created":
			if n := w.count(); n > 0 && r.created == 0 {
				r.created = int64(n)
			}
		case "id", "object", "service_tier", "metadata", "metrics", "provider", "obfuscation", "timings", "x_groq":
			w.skip()
		default:
			r.unknown(w)
		}
	}
	if !w.end() {
		r.spoil("data")
	}
}

func (r *recorder) choices(w *replyWalker) {
	if !w.enter('[') {
		w.skip()
		r.spoil("choices")
		return
	}
	for count := 0; w.element(); count++ {
		if count > 0 || !w.enter('{') {
			w.skip()
			r.spoil("choices")
			continue
		}
		for w.key() {
			r.choice(w)
		}
	}
}

// choice reads one member of the one choice.
func (r *recorder) choice(w *replyWalker) {
	switch string(w.name) {
	case "delta", "message":
		if r.kind == kindChat && w.enter('{') {
			for w.key() {
				r.said(w)
			}
			return
		}
		r.unknown(w)
	case "text":
		if r.kind == kindText {
			r.addText(w)
			return
		}
		r.unknown(w)
	case "finish_reason":
		if s, ok := w.text(); ok && len(s) > 0 {
			r.finishes(string(s))
		}
	case "index":
		if w.count() != 0 {
			r.spoil("choices")
		}
	case "stop_reason", "matched_stop", "native_finish_reason": // which token it was
		w.skip()
	default:
		r.unknown(w)
	}
}

// said reads one member of a message or a delta.
func (r *recorder) said(w *replyWalker) {
	switch name := string(w.name); name {
	case "role":
		w.skip()
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
