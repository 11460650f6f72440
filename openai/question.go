// Question: the text of a request that could be worded differently and have the same answer.

package openai

// Question finds the text that asks: that of the user's last turn, or the prompt
// where there are no turns. If a turn has several parts, it is the last part that
// is text. The parts before it count as context, which must be the same: so nobody
// can make one request look like another by where its parts end. at is the span of
// a JSON string, zero where there is no such text; last says that nothing was said
// after it.
func (r *Request) Question() (at Span, last bool) {
	switch r.kind {
	case KindText:
		return r.stringAt(r.AskedAt), true
	case KindResponses:
		if at := r.stringAt(r.AskedAt); at.Given() {
			return at, true
		}
	case KindChat, KindMessages:
	default:
		return Span{}, false
	}
	if !r.Turns.lastUser.Given() {
		return Span{}, false
	}
	return r.lastText(r.Turns.lastUser), r.Turns.lastUser == r.Turns.last
}

// stringAt is at if there is a string that is not empty.
func (r *Request) stringAt(at Span) Span {
	if !at.Given() || r.Body[at.Start] != '"' || at.End-at.Start == 2 {
		return Span{}
	}
	return at
}

// lastText finds the content of a turn, or its last part that is text. The turn
// is valid JSON by now. A key written with escapes is not recognised: then there is
// no question.
func (r *Request) lastText(turn Span) (at Span) {
	w := Walk(r.Body[:turn.End])
	w.I = int(turn.Start)
	for ok := w.Enter('{'); ok && w.Key(); {
		switch {
		case string(w.Name) != "content":
			w.Skip()
		case !w.Enter('['):
			at = w.Span()
		default:
			for w.Element() {
				if text := textPart(&w); text.Given() {
					at = text
				}
			}
		}
	}
	if w.Bad {
		return Span{}
	}
	return r.stringAt(at)
}

// textPart steps over a content part and returns where its text stands, if that
// is all that it is.
func textPart(w *Walker) (at Span) {
	if !w.Enter('{') {
		w.Skip()
		return Span{}
	}
	isText := false
	for w.Key() {
		switch string(w.Name) {
		case "type":
			kind, _ := w.Text()
			isText = string(kind) == "text" || string(kind) == "input_text"
		case "text":
			at = w.Span()
		default:
			w.Skip()
		}
	}
	if !isText {
		return Span{}
	}
	return at
}
