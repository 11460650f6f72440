// Calls of tools: recorded from a body or from the pieces of a stream, and replayed.

package answer

import (
	"strconv"

	"kvasir/openai"
)

// callPieces are streamed calls while they are put together.
type callPieces struct {
	held  []heldCall // by their index
	bytes int        // of them all
}

// A heldCall is one call of which pieces have come. Its strings are as written
// in JSON, escapes and all: pieces follow each other in that form too.
type heldCall struct {
	id, kind, name []byte
	arguments      []byte
}

const maxCalls = 64

// recordCalls reads the calls of a message or a delta.
func recordCalls(d *draft, w *openai.Walker) {
	a := &d.answer
	switch {
	case !d.tools || w.Peek() != '[':
		d.unknown(w)
	case w.Event:
		recordCallPieces(d, w)
	default:
		if a.Calls = appendLine(nil, w.Value(), callsLimit); a.Calls == nil || !openai.UniqueNames(a.Calls) {
			d.spoil(flawCalls)
		} else if string(a.Calls) == "[]" {
			a.Calls = nil
		}
	}
}

// recordCallPieces reads the pieces of calls that a delta brings.
func recordCallPieces(d *draft, w *openai.Walker) {
	w.Enter('[')
	for w.Element() {
		at := *w // the index may stand behind what it numbers
		n := indexOf(at)
		if n < 0 || n > len(d.calls.held) || n >= maxCalls || !w.Enter('{') {
			w.Skip()
			d.spoil(flawCalls)
			continue
		}
		if n == len(d.calls.held) {
			d.calls.held = append(d.calls.held, heldCall{})
		}
		for w.Key() {
			recordCallPiece(d, w, &d.calls.held[n])
		}
	}
}

// indexOf is the number in the index of the object that begins here, -1 without
// one.
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

// recordCallPiece reads one member of a piece of the call c.
func recordCallPiece(d *draft, w *openai.Walker, c *heldCall) {
	switch string(w.Name) {
	case "index":
		w.Skip()
	case "id":
		recordCallString(d, w, &c.id, false)
	case "type":
		recordCallString(d, w, &c.kind, false)
	case "function":
		if !w.Enter('{') {
			d.unknown(w)
			return
		}
		for w.Key() {
			switch string(w.Name) {
			case "name":
				recordCallString(d, w, &c.name, false)
			case "arguments":
				recordCallString(d, w, &c.arguments, true)
			default:
				d.unknown(w)
			}
		}
	default:
		d.unknown(w)
	}
}

// recordCallString takes a string as it is written. One that does not grow
// comes whole: once, or again as it was.
func recordCallString(d *draft, w *openai.Walker, to *[]byte, grows bool) {
	if w.Peek() != '"' {
		d.unknown(w)
		return
	}
	s, _ := w.Text()
	switch {
	case d.calls.bytes+len(s) > callsLimit:
		d.spoil(flawLength)
	case grows || len(*to) == 0:
		*to = append(*to, s...)
		d.calls.bytes += len(s)
	case len(s) > 0 && string(s) != string(*to):
		d.spoil(flawCalls)
	}
}

// join makes the array of calls that a body would have had, nil if they come to
// none.
func (p *callPieces) join() []byte {
	out := []byte{'['}
	for i := range p.held {
		c := &p.held[i]
		if i > 0 {
			out = append(out, ',')
		}
		kind := c.kind
		if len(kind) == 0 {
			kind = []byte("function")
		}
		out = append(append(out, `{"id":"`...), c.id...)
		out = append(append(out, `","type":"`...), kind...)
		out = append(append(out, `","function":{"name":"`...), c.name...)
		out = append(append(out, `","arguments":"`...), c.arguments...)
		out = append(out, `"}}`...)
	}
	if out = append(out, ']'); len(out) > callsLimit || !isLineOfJSON(out, '[') {
		return nil
	}
	return out
}

// appendNumberedCalls appends the calls as a chunk has them: each with its index.
func appendNumberedCalls(dst, calls []byte) []byte {
	w := openai.Walk(calls)
	dst = append(dst, '[')
	for n, ok := 0, w.Enter('['); ok && w.Element(); n++ {
		at := w.Span()
		call := at.Of(calls)
		if n > 0 {
			dst = append(dst, ',')
		}
		if len(call) < 2 || call[0] != '{' || hasIndex(call) {
			dst = append(dst, call...)
			continue
		}
		dst = append(strconv.AppendInt(append(dst, `{"index":`...), int64(n), 10), ',')
		dst = append(dst, call[1:]...)
	}
	return append(dst, ']')
}

func hasIndex(call []byte) bool {
	w := openai.Walk(call)
	for ok := w.Enter('{'); ok && w.Key(); w.Skip() {
		if string(w.Name) == "index" {
			return true
		}
	}
	return false
}
