// Recording: a worker's answer is taken down while it passes.

package answer

import (
	"bytes"

	"kvasir/openai"
)

// A Recorder takes an answer down from what a worker says: event by event, or
// from a whole body. It is to see the bytes as the worker sent them, before
// hidden values are put back into them.
//
//	r := answer.NewRecorder(kind, tools)
//	r.Event(event) // of each event; or once r.Body(body)
//	r.Seal()       // after the last, if the framing says that all has come
//
// These rules hold at any time:
//
//  1. A recording without a flaw has all that the worker said, but for what no
//     client asked for: ids, times, and how the engine fares.
//  2. What is in the answer's text stays as it is; text is only added.
type Recorder struct {
	draft  draft
	names  openai.Names // of the event or body that is being read
	sealed bool         // the answer has come to its right end, as its framing tells
}

// RecordLimit is how many bytes of text, or of reasoning, are taken down for
// others that wait for the same answer. It is stored only up to 1 MiB.
const RecordLimit = 4 << 20

// Flaws are why a recording cannot stand for the answer. Each is a label of
// kvasir_cache_unkept_total; a member that the answer has no place for is one by
// its own name, if that is known.
const (
	FlawError     = "error"         // an error in place of the answer, or in it: the next try may do better
	FlawData      = "data"          // no JSON, or not all of it
	flawTwice     = "twice"         // a member comes twice in an object: readers of JSON do not agree which counts
	flawMore      = "more"          // something behind the end
	flawLength    = "length"        // more than is taken down
	flawString    = "string"        // half a character, a lone surrogate
	flawChoices   = "choices"       // more than one
	flawFinish    = "finish_reason" // two that differ, or a long one
	flawContent   = "content"       // more than one text, or of another type
	flawReasoning = "reasoning"     // in both of its members: told twice, or two texts
	flawCalls     = "tool_calls"    // in no known form, or none are to be recorded
	flawRefusal   = "refusal"
	flawName      = "name"   // one over nameLimit
	flawState     = "state"  // the worker remembers the answer: it can be asked for by its id
	flawType      = "type"   // another object than the route's
	flawMember    = "member" // one that nobody knows
)

// NewRecorder is a recorder of an answer on a route of kind k, which
// Route.Recorded must allow. With tools, calls of tools are taken down as well;
// without, they are a flaw.
func NewRecorder(k openai.Kind, tools bool) *Recorder {
	return &Recorder{draft: draft{kind: k, tools: tools}}
}

// Answer is what was taken down so far. It grows with each event, and is whole
// after Seal; its slices are never changed.
func (r *Recorder) Answer() *Answer { return &r.draft.answer }

// Flaw says why the recording cannot stand for the answer, as a label; "": it
// can, so far.
func (r *Recorder) Flaw() string { return r.draft.flaw }

// Spoil says that the recording cannot stand for the answer, and why: FlawData if
// there is no whole body to take down. Only the first reason is kept.
func (r *Recorder) Spoil(why string) { r.draft.spoil(why) }

// Faithful says whether the recording is a whole answer that may be given to
// others who ask the same now: one that ended by itself, or at the length that
// was asked for.
func (r *Recorder) Faithful() bool {
	a := &r.draft.answer
	if r.draft.flaw != "" || !r.sealed {
		return false
	}
	return a.Finish == "stop" || a.Finish == "length" || a.Finish == "tool_calls" && a.Calls != nil
}

// Storable says whether the recording may be given to others at any later time.
// It was not cut off at a length, has its end mark, and is not empty.
func (r *Recorder) Storable() bool { return r.Unkept() == "" }

// Unkept says why the answer is not Storable, as a label; "": it is.
func (r *Recorder) Unkept() string {
	a := &r.draft.answer
	switch {
	case r.draft.flaw != "":
		return r.draft.flaw
	case !r.draft.over || !r.sealed:
		return "cut"
	case !r.Faithful() || a.Finish == "length":
		return flawFinish
	case len(a.Text) > textLimit || len(a.Reasoning) > textLimit:
		return flawLength
	case a.Calls == nil && len(bytes.TrimSpace(a.Text)) == 0:
		return "empty"
	}
	return ""
}

// Event takes down one whole event. It keeps no part of its bytes.
func (r *Recorder) Event(event []byte) {
	d := &r.draft
	if d.flaw != "" {
		return
	}
	name, data := openai.EventFields(event)
	switch {
	case string(name) == "error":
		d.spoil(FlawError)
		return
	case len(data) == 0:
		return
	case d.over:
		d.spoil(flawMore)
		return
	case data[0] != '{':
		d.over = bytes.HasPrefix(data, []byte("[DONE]")) && d.kind != openai.KindMessages && d.kind != openai.KindResponses
		if !d.over {
			d.spoil(FlawData)
		}
		return
	}
	w := r.walker(openai.WalkEvent(data))
	switch d.kind {
	case openai.KindMessages:
		recordMessageEvent(d, &w)
	case openai.KindResponses:
		recordResponseEvent(d, name, &w)
	default:
		recordCompletion(d, &w)
	}
	r.checkNames()
}

// Body takes down a whole body of JSON. It keeps no part of its bytes.
func (r *Recorder) Body(body []byte) {
	d := &r.draft
	w := r.walker(openai.Walk(body))
	switch d.kind {
	case openai.KindMessages:
		recordMessage(d, &w)
	case openai.KindResponses:
		if recordResponse(d, &w); !w.End() {
			d.spoil(FlawData)
		}
	default:
		recordCompletion(d, &w)
	}
	r.checkNames()
	r.names = openai.Names{} // they point into the body
	d.answer.Pieces = nil    // it came in one
	d.over = true
}

// walker is w with the names of members looked at.
func (r *Recorder) walker(w openai.Walker) openai.Walker {
	r.names.Reset()
	w.Names = &r.names
	return w
}

func (r *Recorder) checkNames() {
	if r.names.Twice {
		r.draft.spoil(flawTwice)
	}
}

// Seal closes the recording of an answer that has come to its right end.
func (r *Recorder) Seal() {
	d := &r.draft
	if r.sealed = true; d.flaw != "" {
		return
	}
	if d.kind != openai.KindMessages || bytes.Contains(d.counts, []byte(`"input_tokens"`)) { // some tell it in the first event alone
		d.answer.RawUsage = d.counts
	}
	d.counts = nil
	if len(d.calls.held) > 0 {
		if d.answer.Calls = d.calls.join(); d.answer.Calls == nil {
			d.spoil(flawCalls)
		}
	}
}
