// Drafts: an answer while it is being taken down, and the values that go into it.

package answer

import (
	"bytes"
	"encoding/json"

	"kvasir/openai"
)

// A draft is an answer while it is being taken down. The functions that read
// the objects of each route (recordCompletion, recordMessage, recordResponse
// ...) step through them with a Walker and write what they find into the draft.
type draft struct {
	answer Answer
	kind   openai.Kind
	tools  bool   // calls of tools may be in it
	flaw   string // why the answer alone cannot stand for what was said; "": it can
	over   bool   // the stream's own end mark has come, or it is a whole body
	counts []byte // the last usage, as long as another may follow
	calls  callPieces
}

// spoil says that the draft cannot stand for the answer. The first reason stays.
func (d *draft) spoil(why string) {
	if d.flaw == "" {
		d.flaw = why
	}
}

// finish notes the finish_reason, of which there is one.
func (d *draft) finish(why string) {
	if was := d.answer.Finish; was != "" && was != why || len(why) > nameLimit {
		d.spoil(flawFinish)
	}
	d.answer.Finish = why
}

// unknown steps over a member that the answer has no place for. If it says
// anything, the answer cannot do without it.
func (d *draft) unknown(w *openai.Walker) {
	why := flawOf(w.Name)
	if !w.Empty() {
		d.spoil(why)
	}
}

// flawOf makes a label of a member's name. The names that nobody knows share
// one, since they are the worker's text.
func flawOf(name []byte) string {
	switch string(name) {
	case FlawError:
		return FlawError
	case "tool_calls", "function_call":
		return flawCalls
	case "refusal", "logprobs", "audio", "annotations", "content", "token_ids", "prompt_token_ids", "kv_transfer_params", "stop_sequence":
		return string(name)
	}
	return flawMember
}

// addText adds the string that stands next to the text, as a piece of it.
func (d *draft) addText(w *openai.Walker) {
	a := &d.answer
	before := len(a.Text)
	if d.add(w, &a.Text) && len(a.Text) > before {
		a.Pieces = append(a.Pieces, int32(len(a.Text)))
	}
}

// add appends the string that stands next; null and what is empty add nothing.
func (d *draft) add(w *openai.Walker, to *[]byte) bool {
	if w.Peek() != '"' {
		d.unknown(w)
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
		d.spoil(flawString)
		return false
	case len(*to)+len(quoted) > RecordLimit:
		d.spoil(flawLength)
		return false
	case escaped:
		*to = openai.AppendUnescaped(*to, quoted[1:len(quoted)-1])
	default:
		*to = append(*to, quoted[1:len(quoted)-1]...)
	}
	return true
}

// name notes a short string the first time that it comes: engines repeat it in
// every event.
func (d *draft) name(w *openai.Walker, to *string) {
	if *to != "" || w.Peek() != '"' {
		w.Skip()
		return
	}
	var name []byte
	if d.add(w, &name); len(name) > nameLimit {
		d.spoil(flawName)
		return
	}
	*to = string(name)
}

// usage keeps the usage object as it stands, the last one if there are several.
// One that is too long or broken is left out: no answer depends on it.
func (d *draft) usage(w *openai.Walker) {
	if w.Peek() != '{' {
		w.Skip()
		return
	}
	if d.counts = appendLine(d.counts[:0], w.Value(), usageLimit); d.counts != nil && !openai.UniqueNames(d.counts) {
		d.spoil(flawTwice)
	}
}

// appendLine appends raw JSON on one line. It returns nil if raw is no JSON, or
// longer than most.
func appendLine(dst, raw []byte, most int) []byte {
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
