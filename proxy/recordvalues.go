// Recorded values: the strings, names and counts of what a worker says.
package proxy

import (
	"bytes"
	"encoding/json"

	"kvasir/openai"
)

// unknown steps over a member that the answer has no place for. One that says
// something cannot be left out.
func (r *recorder) unknown(w *openai.Walker) {
	why := flawOf(w.Name)
	if !w.Empty() {
		r.spoil(why)
	}
}

// flawOf is the member's name as a label: that of one nobody knows is the
// worker's text.
func flawOf(name []byte) string {
	switch string(name) {
	case flawError:
		return flawError
	case "tool_calls", "function_call":
		return "tool_calls"
	case "refusal", "logprobs", "audio", "annotations", "content", "token_ids", "prompt_token_ids", "kv_transfer_params", "stop_sequence":
		return string(name)
	}
	return "member"
}

// addText adds a piece to the text.
func (r *recorder) addText(w *openai.Walker) {
	before := len(r.text)
	if r.add(w, &r.text) && len(r.text) > before {
		r.pieces = append(r.pieces, int32(len(r.text)))
	}
}

// add appends the string that stands next; null and what is empty add nothing.
func (r *recorder) add(w *openai.Walker, to *[]byte) bool {
	if w.Peek() != '"' {
		r.unknown(w)
		return false
	}
	start := w.I
	w.String()
	if w.Bad {
		return false
	}
	quoted := w.B[start:w.I]
	escaped, good := openai.ValidString(quoted)
	switch {
	case !good:
		r.spoil("string") // half a character, a lone surrogate
		return false
	case len(*to)+len(quoted) > recordLimit:
		r.spoil("length")
		return false
	case escaped:
		*to = openai.AppendUnescaped(*to, quoted[1:len(quoted)-1])
	default:
		*to = append(*to, quoted[1:len(quoted)-1]...)
	}
	return true
}

// name notes a short string, once: engines repeat it in every event.
func (r *recorder) name(w *openai.Walker, to *string) {
	if *to != "" || w.Peek() != '"' {
		w.Skip()
		return
	}
	var name []byte
	if r.add(w, &name); len(name) > nameLimit {
		r.spoil("name")
		return
	}
	*to = string(name)
}

// readUsage keeps the usage as it stands, the last if there are several. One
// that is too long or broken is left out: nobody's answer hangs on it.
func (r *recorder) readUsage(w *openai.Walker) {
	if w.Peek() != '{' {
		w.Skip()
		return
	}
	if r.counts = lineOf(r.counts[:0], w.Value(), usageLimit); r.counts != nil && !openai.UniqueNames(r.counts) {
		r.spoil(flawTwice)
	}
}

// lineOf appends raw JSON on one line, nil if it is none or too long.
func lineOf(dst, raw []byte, most int) []byte {
	if len(raw) == 0 || len(raw) > most {
		return nil
	}
	if isLineOfJSON(raw, raw[0]) {
		return append(dst, raw...)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil || !isLineOfJSON(b.Bytes(), raw[0]) {
		return nil
	}
	return append(dst, b.Bytes()...)
}
