// Verdicts: what one event of a worker's stream means, and what its replies count.
package proxy

import (
	"bytes"

	"kvasir/openai"
)

// A tokenCounts is what a worker counted, in tokens; -1: it did not say.
type tokenCounts struct {
	promptTokens     int
	completionTokens int
	cachedTokens     int // of the prompt, found in the worker's prefix cache
}

var noCounts = tokenCounts{-1, -1, -1}

// A verdict is what one event means.
type verdict struct {
	comment   bool // no data: comments, a ping, a bare event name
	content   bool // a client would show or need it; false before that: another worker may still be tried
	failure   bool // the worker reports an error in place of an answer
	done      bool // the stream's own end: [DONE], response.completed, message_stop
	finished  bool // chat and text: a choice has its finish_reason
	usageOnly bool // chat and text: no choice, only the usage that include_usage asks for
	tokenCounts
}

// weigh reads one whole event of a stream of kind k. Data that is not
// understood is content: it belongs to the client. It looks at the event only
// during the call.
//
//   - failure: data with a top-level `error` that is not null or "", or with
//     "object":"error" (SGLang, TensorRT-LLM), or `event: error`; for responses
//     and messages also type "error" and response.failed.
//   - content: what readChoice, judgeResponses and judgeMessages say; never with failure.
//   - done of a responses stream is also response.failed and .incomplete.
func weigh(k openai.Kind, event []byte) verdict {
	v := verdict{tokenCounts: noCounts}
	name, data := openai.EventFields(event)
	switch {
	case string(name) == "error":
		v.failure = true
		return v
	case len(data) == 0:
		v.comment = true
		return v
	case data[0] != '{':
		v.content = true
		v.done = (k == openai.KindChat || k == openai.KindText) && bytes.HasPrefix(data, []byte("[DONE]"))
		return v
	}
	w := openai.WalkEvent(data)
	o, ok := readObject(k, &w)
	switch {
	case !ok:
		v.content = true
		return v
	case o.failure:
		v.failure = true
		return v
	}
	v.tokenCounts = o.tokenCounts
	switch k {
	case openai.KindChat, openai.KindText:
		v.content = o.shown || !o.choices
		v.finished = o.finished
		v.usageOnly = o.choices && !o.choice && o.counted
	case openai.KindResponses:
		v.judgeResponses(eventType(o.kind, name))
	case openai.KindMessages:
		v.judgeMessages(eventType(o.kind, name))
	default:
		v.content = true
	}
	return v
}

// eventType prefers the type in the data: SDKs go by it.
func eventType(typ, name []byte) []byte {
	if len(typ) > 0 {
		return typ
	}
	return name
}

// judgeResponses judges an event of /v1/responses by its type.
func (v *verdict) judgeResponses(typ []byte) {
	switch string(typ) {
	case "error":
		v.failure = true
	case "response.failed":
		v.failure, v.done = true, true
	case "response.completed", "response.incomplete":
		v.content, v.done = true, true
	case "response.created", "response.in_progress", "response.queued", "response.output_item.added",
		"response.content_part.added", "response.reasoning_summary_part.added":
	default:
		v.content = true
	}
}

// judgeMessages judges an event of /v1/messages by its type.
func (v *verdict) judgeMessages(typ []byte) {
	switch string(typ) {
	case "error":
		v.failure = true
	case "message_stop":
		v.content, v.done = true, true
	case "message_start", "content_block_start", "content_block_stop", "ping":
	default:
		v.content = true
	}
}

// late is weigh for a stream whose content has begun: it is cheaper, and
// its content is always true where there is data. Every other field is as
// weigh says.
//
// A chunk between the first and the last says finish_reason null and no usage.
// That is seen without reading it: a quote inside a JSON string is escaped, so
// "usage" with both quotes bare is never part of a longer text. It may be a
// whole string ("content":"usage"), and then the exact way decides.
func late(k openai.Kind, event []byte) verdict {
	if (k == openai.KindChat || k == openai.KindText) && midChunk(event) {
		return verdict{content: true, tokenCounts: noCounts}
	}
	v := weigh(k, event)
	v.content = !v.comment && !v.failure
	return v
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

// usageOf returns what a whole JSON reply of a route of kind k counts.
func usageOf(k openai.Kind, body []byte) tokenCounts {
	w := openai.Walk(body)
	o, ok := readObject(k, &w)
	if !ok {
		return noCounts
	}
	return o.tokenCounts
}

// A replyObject is what a reply or the data of an event says at its top level.
type replyObject struct {
	kind     []byte // "type", as written
	choices  bool   // there is an array of choices
	choice   bool   // with at least one in it
	shown    bool   // which shows something
	finished bool   // or has its finish_reason
	failure  bool
	counted  bool // there is a usage object
	tokenCounts
}

// readObject walks one JSON object; false if it is none, or broken.
func readObject(k openai.Kind, w *openai.Walker) (o replyObject, ok bool) {
	o.tokenCounts = noCounts
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
			o.readUsage(w)
		case "response", "message":
			o.readNested(k, w)
		default:
			w.Skip()
		}
	}
	return o, w.End()
}

// noError steps over the next value: is it null or an empty string?
func noError(w *openai.Walker) bool {
	if w.Peek() == '"' {
		return len(w.String()) == 0
	}
	return w.Null()
}

// readNested finds the usage in the response of a responses event and in the
// message of message_start.
func (o *replyObject) readNested(k openai.Kind, w *openai.Walker) {
	if k != openai.KindResponses && k != openai.KindMessages || !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if string(w.Name) == "usage" {
			o.readUsage(w)
		} else {
			w.Skip()
		}
	}
}

func (o *replyObject) readChoices(w *openai.Walker) {
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

// readChoice reads one member of a choice. A choice shows something when its
// text is not empty, or it is finished, or its delta has any member that is
// not empty besides the role and token ids: content, reasoning,
// reasoning_content, refusal, tool_calls, function_call, audio and whatever
// engines add.
func (o *replyObject) readChoice(w *openai.Walker) {
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

// readUsage reads the counts in the names of chat and text, and in those of
// responses and messages. A count that is not there leaves the former one:
// messages say the prompt's first and the completion's last.
func (o *replyObject) readUsage(w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		return
	}
	o.counted = true
	for w.Key() {
		switch string(w.Name) {
		case "prompt_tokens", "input_tokens":
			countInto(w, &o.promptTokens)
		case "completion_tokens", "output_tokens":
			countInto(w, &o.completionTokens)
		case "cache_read_input_tokens":
			countInto(w, &o.cachedTokens)
		case "prompt_tokens_details", "input_tokens_details":
			o.readDetails(w)
		default:
			w.Skip()
		}
	}
}

func (o *replyObject) readDetails(w *openai.Walker) {
	if !w.Enter('{') {
		w.Skip()
		return
	}
	for w.Key() {
		if string(w.Name) == "cached_tokens" {
			countInto(w, &o.cachedTokens)
		} else {
			w.Skip()
		}
	}
}

// countInto steps over the next value and stores it in n if it is a count.
func countInto(w *openai.Walker, n *int) {
	if c := w.Count(); c >= 0 {
		*n = c
	}
}
