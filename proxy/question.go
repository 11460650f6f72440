// Question: the text of a request that may be worded otherwise and still have the same answer.
package proxy

// question finds the text that asks: that of the last user turn, or where there
// are no turns the prompt. Of a turn in several parts it is the last part that
// is text; the parts before it belong to what must be the same, so that their
// borders cannot be forged. It is the span of a JSON string; zero where there is
// no such text. last says that nothing was said after it.
func (r *request) question() (at span, last bool) {
	switch r.kind {
	case kindText:
		return r.stringAt(r.askedAt), true
	case kindResponses:
		if at := r.stringAt(r.askedAt); at.given() {
			return at, true
		}
	case kindChat, kindMessages:
	default:
		return span{}, false
	}
	if !r.userTurn.given() {
		return span{}, false
	}
	return r.lastText(r.userTurn), r.userTurn == r.turn
}

// stringAt is at if there is a string that is not empty.
func (r *request) stringAt(at span) span {
	if !at.given() || r.body[at.start] != '"' || at.end-at.start == 2 {
		return span{}
	}
	return at
}

// lastText finds the content of a turn, or its last part that is text. The turn
// is valid JSON by now; a key written with escapes is not recognised, and what
// is not recognised is no question.
func (r *request) lastText(turn span) (at span) {
	w := replyWalker{b: r.body[:turn.end], i: int(turn.start)}
	for ok := w.enter('{'); ok && w.key(); {
		switch {
		case string(w.name) != "content":
			w.skip()
		case !w.enter('['):
			at = w.span()
		default:
			for w.element() {
				if text := w.textPart(); text.given() {
					at = text
				}
			}
		}
	}
	if w.bad {
		return span{}
	}
	return r.stringAt(at)
}

// textPart steps over a content part and returns where its text stands, if that
// is all that it is.
func (w *replyWalker) textPart() (at span) {
	if !w.enter('{') {
		w.skip()
		return span{}
	}
	isText := false
	for w.key() {
		switch string(w.name) {
		case "type":
			kind, _ := w.text()
			isText = string(kind) == "text" || string(kind) == "input_text"
		case "text":
			at = w.span()
		default:
			w.skip()
		}
	}
	if !isText {
		return span{}
	}
	return at
}

// span steps over the next value and returns where it stands.
func (w *replyWalker) span() span {
	w.peek()
	start := w.i
	w.skip()
	return span{int32(start), int32(w.i)}
}
