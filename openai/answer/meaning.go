// Meanings: what one event of a worker's stream, or a whole reply, says of how the answer goes.

package answer

import (
	"bytes"

	"kvasir/openai"
)

// A meaning is what one event means for the stream that it belongs to.
type meaning struct {
	comment   bool // no data: comments, a ping, a bare event name
	content   bool // a client would show or need it; before the first such event another worker may still be asked
	failure   bool // the worker reports an error in place of an answer
	done      bool // the stream's own end: [DONE], response.completed, message_stop
	finished  bool // chat and text: a choice has its finish_reason
	usageOnly bool // chat and text: no choice, only the usage that include_usage asks for
	usage     Usage
}

// meaningOf reads one whole event of a stream of kind k. Data that is not
// understood is content: it belongs to the client. The event is looked at only
// during the call.
//
//   - failure: data with a top-level `error` that is not null or "", or with
//     "object":"error" (SGLang, TensorRT-LLM), or `event: error`; for responses
//     and messages also type "error" and response.failed.
//   - content: as readChoice, responseMeaning and messageMeaning say; never
//     together with failure.
//   - done: of a stream of responses also response.failed and
//     response.incomplete.
func meaningOf(k openai.Kind, event []byte) meaning {
	m := meaning{usage: NoUsage}
	name, data := openai.EventFields(event)
	switch {
	case string(name) == "error":
		m.failure = true
		return m
	case len(data) == 0:
		m.comment = true
		return m
	case data[0] != '{':
		m.content = true
		m.done = (k == openai.KindChat || k == openai.KindText) && bytes.HasPrefix(data, []byte("[DONE]"))
		return m
	}
	w := openai.WalkEvent(data)
	o, ok := readObject(k, &w)
	switch {
	case !ok:
		m.content = true
		return m
	case o.failure:
		m.failure = true
		return m
	}
	m.usage = o.usage
	switch k {
	case openai.KindChat, openai.KindText:
		m.content = o.shown || !o.choices
		m.finished = o.finished
		m.usageOnly = o.choices && !o.choice && o.counted
	case openai.KindResponses:
		m.content, m.failure, m.done = responseMeaning(eventType(o.kind, name))
	case openai.KindMessages:
		m.content, m.failure, m.done = messageMeaning(eventType(o.kind, name))
	default:
		m.content = true
	}
	return m
}

// eventType prefers the type in the data to the event's name: SDKs go by it.
func eventType(typ, name []byte) []byte {
	if len(typ) > 0 {
		return typ
	}
	return name
}

// responseMeaning is what an event of /v1/responses means by its type.
func responseMeaning(typ []byte) (content, failure, done bool) {
	switch string(typ) {
	case "error":
		return false, true, false
	case "response.failed":
		return false, true, true
	case "response.completed", "response.incomplete":
		return true, false, true
	case "response.created", "response.in_progress", "response.queued", "response.output_item.added",
		"response.content_part.added", "response.reasoning_summary_part.added":
		return false, false, false
	}
	return true, false, false
}

// messageMeaning is what an event of /v1/messages means by its type.
func messageMeaning(typ []byte) (content, failure, done bool) {
	switch string(typ) {
	case "error":
		return false, true, false
	case "message_stop":
		return true, false, true
	case "message_start", "content_block_start", "content_block_stop", "ping":
		return false, false, false
	}
	return true, false, false
}

// lateMeaningOf is meaningOf for a stream whose content has begun. It is
// cheaper, and says content wherever there is data; every other field is as
// meaningOf says.
//
// A chunk between the first and the last has a finish_reason of null and no
// usage. That is seen without reading it: a quote inside a JSON string is
// escaped, so that "usage" with both quotes bare is never a part of a longer
// text. It may be a whole string ("content":"usage"); then the event is read.
func lateMeaningOf(k openai.Kind, event []byte) meaning {
	if (k == openai.KindChat || k == openai.KindText) && midChunk(event) {
		return meaning{content: true, usage: NoUsage}
	}
	m := meaningOf(k, event)
	m.content = !m.comment && !m.failure
	return m
}

// midChunk says that an event is one data line with an object that has no
// error, no usage and no finish_reason.
func midChunk(event []byte) bool {
	const start, end = "data: {", "\n\n"
	n := len(event) - len(end)
	return n > len(start) && string(event[:len(start)]) == start && string(event[n:]) == end &&
		bytes.IndexByte(event, '\n') == n && bytes.IndexByte(event, '\r') < 0 &&
		!hasMember(event, `"error"`, 2) && !hasMember(event, `"usage"`, 4) && !hasMember(event, `"finish_reason"`, 7)
}

// hasMember says whether key stands in b with anything but null behind it. It
// looks for the key's byte at pivot, chosen to be rare in chunks: bytes.Index
// looks for the quote, which is everywhere, and was slower than reading the
// whole object.
func hasMember(b []byte, key string, pivot int) bool {
	const null = ":null"
	for i := pivot; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], key[pivot])
		if n < 0 {
			return false
		}
		i += n
		if at := b[i-pivot:]; len(at) >= len(key) && string(at[:len(key)]) == key {
			at = at[len(key):]
			if len(at) <= len(null) || string(at[:len(null)]) != null || at[len(null)] != ',' && at[len(null)] != '}' {
				return true
			}
		}
	}
	return false
}

// An object is what a reply, or the data of an event, says at its top level.
type object struct {
	kind     []byte // "type", as written
	choices  bool   // there is an array of choices
	choice   bool   // it has at least one
	shown    bool   // one of them shows something
	finished bool   // one of them has its finish_reason
	failure  bool
	counted  bool // there is a usage object
	usage    Usage
}

// readObject walks one JSON object. It returns false if there is none, or a
// broken one.
func readObject(k openai.Kind, w *openai.Walker) (o object, ok bool) {
	o.usage = NoUsage
	if !w.Enter('{') {
		return o, false
	}
	for w.Key() {
		switch string(w.Name) {
		case "error":
			o.failure = !noError(w) || o.failure
		case "object":
			if s, _ := w.Text(); string(s) == "error" {
				o.failure = true
			}
		case "type":
			o.kind, _ = w.Text()
		case "choices":
			o.readChoices(w)
		case "usage":
			o.counted = o.usage.read(w) || o.counted
		case "response", "message":
			o.readNested(k, w)
		default:
			w.Skip()
		}
	}
	return o, w.End()
}

// noError steps over the next value and says whether it is null or an empty
// string.
func noError(w *openai.Walker) bool {
	if w.Peek() == '"' {
		return len(w.String()) == 0
	}
	return w.Null()
}

// readNested reads the usage in the response of an event of responses, and in
// the message of message_start.
func (o *object) readNested(k openai.Kind, w *openai.Walker) {
	if k != openai.KindResponses && k != openai.KindMessages || !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if string(w.Name) == "usage" {
			o.counted = o.usage.read(w) || o.counted
		} else {
			w.Skip()
		}
	}
}

func (o *object) readChoices(w *openai.Walker) {
	if !w.Enter('[') {
		w.Skip()
		return
	}
	o.choices = true
	for w.Element() {
		o.choice = true
		if !w.Enter('{') {
			w.Skip()
			continue
		}
		for w.Key() {
			o.readChoice(w)
		}
	}
}

// readChoice reads one member of a choice. A choice shows something if its text
// is not empty, or it is finished, or its delta has a member that is not empty
// besides the role and token ids: content, reasoning, reasoning_content,
// refusal, tool_calls, function_call, audio and whatever engines add.
func (o *object) readChoice(w *openai.Walker) {
	switch string(w.Name) {
	case "delta":
		if !w.Enter('{') {
			w.Skip()
			return
		}
		for w.Key() {
			switch string(w.Name) {
			case "role", "token_ids":
				w.Skip()
			default:
				o.shown = !w.Empty() || o.shown
			}
		}
	case "text", "message":
		o.shown = !w.Empty() || o.shown
	case "finish_reason":
		if !w.Empty() {
			o.shown, o.finished = true, true
		}
	default:
		w.Skip()
	}
}
