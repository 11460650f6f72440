// Recording: a worker's answer is taken down while it passes.
package proxy

import (
	"bytes"

	"kvasir/openai"
)

// A recorder makes an answer of what a worker says: event by event, or of a
// whole body. It sees the bytes before hidden values are put back into them.
//
//  1. A recording without a flaw says all that the worker said, but for what
//     no client asked of it: ids, times, how the engine fares.
//  2. What is in the answer's text stays as it is; text is only added.
type recorder struct {
	answer
	kind  openai.Kind
	tools bool // calls of tools may be in it

	flaw string // why the answer alone cannot stand for what was said; "": it can
	over bool   // its own end mark has come, or it is a whole body
	sure bool   // it has come to its right end as its framing tells

	names openai.Names // of the event or body under way

	held      []heldCall // streamed calls, by their index
	heldBytes int        // of them
	counts    []byte     // the last usage, as long as there may be another
}

// recordLimit is how long a text may be that others follow; it is stored only
// up to answerLimit.
const recordLimit = 4 << 20

// spoil says that the recording cannot stand for the answer. The first reason stays.
func (r *recorder) spoil(why string) {
	if r.flaw == "" {
		r.flaw = why
	}
}

// faithful says whether the recording is a whole answer that may be given to
// others: one that ended by itself or at the length that was asked for.
func (r *recorder) faithful() bool {
	if r.flaw != "" || !r.sure {
		return false
	}
	return r.finish == "stop" || r.finish == "length" || r.finish == "tool_calls" && r.calls != nil
}

// storable says whether it is one that may be given at any later time: not cut
// off at a length, with its end mark, and not without a word.
func (r *recorder) storable() bool {
	return r.faithful() && r.over && r.finish != "length" && len(r.text) <= answerLimit && len(r.reasoning) <= answerLimit &&
		(r.calls != nil || len(bytes.TrimSpace(r.text)) > 0)
}

// event takes down one whole event.
func (r *recorder) event(event []byte) {
	if r.flaw != "" {
		return
	}
	name, data := openai.EventFields(event)
	switch {
	case string(name) == "error":
		r.spoil(flawError)
		return
	case len(data) == 0:
		return
	case r.over:
		r.spoil("more") // behind the end
		return
	case data[0] != '{':
		r.over = bytes.HasPrefix(data, []byte("[DONE]")) && r.kind != openai.KindMessages && r.kind != openai.KindResponses
		if !r.over {
			r.spoil("data")
		}
		return
	}
	w := r.reader(openai.WalkEvent(data))
	switch r.kind {
	case openai.KindMessages:
		r.messageEvent(&w)
	case openai.KindResponses:
		r.responseEvent(name, &w)
	default:
		r.object(&w)
	}
	r.checkNames()
}

// reader is w with the names of members looked at.
func (r *recorder) reader(w openai.Walker) openai.Walker {
	r.names.Reset()
	w.Names = &r.names
	return w
}

func (r *recorder) checkNames() {
	if r.names.Twice {
		r.spoil(flawTwice)
	}
}

// flawTwice is a member that comes twice.
const flawTwice = "twice"

// body takes down a whole body.
func (r *recorder) body(body []byte) {
	w := r.reader(openai.Walk(body))
	switch r.kind {
	case openai.KindMessages:
		r.wholeMessage(&w)
	case openai.KindResponses:
		if r.wholeResponse(&w); !w.End() {
			r.spoil("data")
		}
	default:
		r.object(&w)
	}
	r.checkNames()
	r.names = openai.Names{} // nothing of the body is kept
	r.pieces = nil
	r.over = true
}

// wholeBody takes down a body if it is one that can be: JSON, and all there.
func (r *recorder) wholeBody(body []byte, good bool) {
	if good {
		r.body(body)
	} else {
		r.spoil("data")
	}
}

// seal closes the recording of an answer that has come to its right end.
func (r *recorder) seal() {
	if r.sure = true; r.flaw != "" {
		return
	}
	if r.kind != openai.KindMessages || bytes.Contains(r.counts, []byte(`"input_tokens"`)) { // some say it in the first event alone
		r.usage = r.counts
	}
	r.counts = nil
	if len(r.held) > 0 {
		r.joinCalls()
	}
}

// flawError is an error in place of an answer: the next try may do better.
const flawError = "error"

// unkept says why the answer is not to be stored: a label.
func (r *recorder) unkept() string {
	switch {
	case r.flaw != "":
		return r.flaw
	case !r.over || !r.sure:
		return "cut"
	case !r.faithful() || r.finish == "length":
		return "finish_reason"
	case len(r.text) > answerLimit || len(r.reasoning) > answerLimit:
		return "length"
	}
	return "empty"
}
