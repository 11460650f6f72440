// System prompts: one put into a body, in the place of the client's or before it.

package openai

// SetSystemPrompt makes the model read prompt first: before the client's own
// system prompt if insert says so, else in its place. It says whether the route
// has a place for one; if not, nothing is changed.
func SetSystemPrompt(s *Splices, r *Request, prompt string, insert bool) bool {
	switch r.kind {
	case KindChat:
		setSystemMessage(s, r, prompt, insert)
	case KindResponses:
		setInstructions(s, r, r.Fields.Instructions, "instructions", prompt, insert)
	case KindMessages:
		setInstructions(s, r, r.Fields.System, "system", prompt, insert)
	default:
		return false
	}
	return true
}

// setSystemMessage puts prompt into the first system message, or into one of its
// own. If it comes in the place of the client's, further ones go.
func setSystemMessage(s *Splices, r *Request, prompt string, insert bool) {
	systems := r.Turns.systems
	if len(systems) == 0 {
		at := r.MessagesAt.Start + 1
		s.Replace(Span{at, at}, append(AppendString([]byte(`{"role":"system","content":`), prompt), "},"...))
		return
	}
	if first := systems[0]; first.content.Given() {
		writePrompt(s, r, first.content, prompt, insert)
	} else {
		insertMember(s, first.whole, "content", AppendString(nil, prompt))
	}
	if !insert {
		for _, more := range systems[1:] {
			s.Remove(more.whole)
		}
	}
}

// setInstructions puts prompt into a parameter of the top level.
func setInstructions(s *Splices, r *Request, at Span, name, prompt string, insert bool) {
	if at.Given() {
		writePrompt(s, r, at, prompt, insert)
	} else {
		insertMember(s, r.Whole, name, AppendString(nil, prompt))
	}
}

// writePrompt puts prompt in the place of the text or parts that stand at at, or
// before them.
func writePrompt(s *Splices, r *Request, at Span, prompt string, insert bool) {
	inner := Span{at.Start + 1, at.Start + 1}
	switch first := r.Body[at.Start]; {
	case insert && first == '"' && at.End-at.Start > 2:
		quoted := AppendString(nil, prompt+"\n\n")
		s.Replace(inner, quoted[1:len(quoted)-1])
	case insert && first == '[':
		part := append(AppendString([]byte(`{"type":"text","text":`), prompt), '}')
		if r.Body[SkipSpace(r.Body, int(inner.Start))] != ']' {
			part = append(part, ',')
		}
		s.Replace(inner, part)
	default:
		s.Replace(at, AppendString(nil, prompt))
	}
}
