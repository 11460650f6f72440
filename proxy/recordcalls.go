// Recorded calls: the pieces of streamed tool calls, joined.
package proxy

import "kvasir/openai"

// A heldCall is a call that comes in pieces. Its strings are as written in
// JSON, escapes and all: their pieces follow each other in that form too.
type heldCall struct {
	id, kind, name []byte
	arguments      []byte
	input          bool // it has arguments, if only empty ones
}

const maxCalls = 64

// toolCalls reads the calls of a message or a delta.
func (r *recorder) toolCalls(w *openai.Walker) {
	switch {
	case !r.tools || w.Peek() != '[':
		r.unknown(w)
	case w.Event:
		r.callPieces(w)
	default:
		calls := w.Value()
		if r.calls = lineOf(nil, calls, callsLimit); r.calls == nil || !openai.UniqueNames(r.calls) {
			r.spoil("tool_calls")
		} else if string(r.calls) == "[]" {
			r.calls = nil
		}
	}
}

// callPieces reads the pieces of calls that a delta brings.
func (r *recorder) callPieces(w *openai.Walker) {
	w.Enter('[')
	for w.Element() {
		at := *w // the index may stand behind what it numbers
		n := indexOf(at)
		if n < 0 || n > len(r.held) || n >= maxCalls || !w.Enter('{') {
			w.Skip()
			r.spoil("tool_calls")
			continue
		}
		if n == len(r.held) {
			r.held = append(r.held, heldCall{})
		}
		for w.Key() {
			r.callPiece(w, &r.held[n])
		}
	}
}

// indexOf is the number in the index of the object that begins here, -1 without one.
func indexOf(w openai.Walker) int {
	n := -1
	if !w.Enter('{') {
		return n
	}
	for w.Key() {
		if string(w.Name) == "index" {
			n = w.Count()
		} else {
			w.Skip()
		}
	}
	return n
}

func (r *recorder) callPiece(w *openai.Walker, c *heldCall) {
	switch string(w.Name) {
	case "index":
		w.Skip()
	case "id":
		r.piece(w, &c.id, false)
	case "type":
		r.piece(w, &c.kind, false)
	case "function":
		if !w.Enter('{') {
			r.unknown(w)
			return
		}
		for w.Key() {
			switch string(w.Name) {
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
func (r *recorder) piece(w *openai.Walker, to *[]byte, grows bool) {
	if w.Peek() != '"' {
		r.unknown(w)
		return
	}
	s, _ := w.Text()
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
