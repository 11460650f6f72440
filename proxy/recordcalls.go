// Recorded calls: the pieces of streamed tool calls, joined.
package proxy

// A heldCall is a call that comes in pieces. Its strings are as written in
// JSON, escapes and all: their pieces follow each other in that form too.
type heldCall struct {
	id, kind, name []byte
	arguments      []byte
	input          bool // it has arguments, if only empty ones
}

const maxCalls = 64

// toolCalls reads the calls of a message or a delta.
func (r *recorder) toolCalls(w *replyWalker) {
	switch {
	case !r.tools || w.peek() != '[':
		r.unknown(w)
	case w.sse:
		r.callPieces(w)
	default:
		calls := w.value()
		if r.calls = lineOf(nil, calls, callsLimit); r.calls == nil || !single(r.calls) {
			r.spoil("tool_calls")
		} else if string(r.calls) == "[]" {
			r.calls = nil
		}
	}
}

// callPieces reads the pieces of calls that a delta brings.
func (r *recorder) callPieces(w *replyWalker) {
	w.enter('[')
	for w.element() {
		at := *w // the index may stand behind what it numbers
		n := at.indexOf()
		if n < 0 || n > len(r.held) || n >= maxCalls || !w.enter('{') {
			w.skip()
			r.spoil("tool_calls")
			continue
		}
		if n == len(r.held) {
			r.held = append(r.held, heldCall{})
		}
		for w.key() {
			r.callPiece(w, &r.held[n])
		}
	}
}

// indexOf is the number in the index of the object that begins here, -1 without one.
func (w *replyWalker) indexOf() int {
	n := -1
	if !w.enter('{') {
		return n
	}
	for w.key() {
		if string(w.name) == "index" {
			n = w.count()
		} else {
			w.skip()
		}
	}
	return n
}

func (r *recorder) callPiece(w *replyWalker, c *heldCall) {
	switch string(w.name) {
	case "index":
		w.skip()
	case "id":
		r.piece(w, &c.id, false)
	case "type":
		r.piece(w, &c.kind, false)
	case "function":
		if !w.enter('{') {
			r.unknown(w)
			return
		}
		for w.key() {
			switch string(w.name) {
			case "name":
				r.piece(w, &c.name, false)
			case "arguments":
				c.input = true
				r.piece(w, &c.arguments, true)
			default:
				r.unknown(w)
			}
		}
	default:
		r.unknown(w)
	}
}

// piece takes a string as it is written. One that does not grow is said once,
// or again as it was.
func (r *recorder) piece(w *replyWalker, to *[]byte, grows bool) {
	if w.peek() != '"' {
		r.unknown(w)
		return
	}
	s, _ := w.text()
	switch {
	case r.heldBytes+len(s) > callsLimit:
		r.spoil("length")
	case grows || len(*to) == 0:
		*to = append(*to, s...)
		r.heldBytes += len(s)
	case len(s) > 0 && string(s) != string(*to):
		r.spoil("tool_calls")
	}
}

// joinCalls makes the array of calls that a whole answer would have had.
func (r *recorder) joinCalls() {
	out := []byte{'['}
	for i := range r.held {
		c := &r.held[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, `{"id":"`...), c.id...)
		out = append(append(out, `","type":"`...), orFunction(c.kind)...)
		out = append(append(out, `","function":{"name":"`...), c.name...)
		out = append(append(out, `","arguments":"`...), c.arguments...)
		out = append(out, `"}}`...)
	}
	r.calls = append(out, ']')
	if len(r.calls) > callsLimit || !isLineOfJSON(r.calls, '[') {
		r.calls = nil
		r.spoil("tool_calls")
	}
}

func orFunction(kind []byte) []byte {
	if len(kind) == 0 {
		return []byte("function")
	}
	return kind
}
