// Chat completions, recorded and replayed; and what completions have in common with them.

package answer

import (
	"strconv"

	"kvasir/openai"
)

// recordCompletion reads a chat completion, a completion, or a chunk of one.
func recordCompletion(d *draft, w *openai.Walker) {
	if !w.Enter('{') {
		d.spoil(FlawData)
		return
	}
	a := &d.answer
	for w.Key() {
		switch string(w.Name) {
		case "choices":
			recordChoices(d, w)
		case "usage":
			d.usage(w)
		case "model":
			d.name(w, &a.Model)
		case "system_fingerprint":
			d.name(w, &a.Fingerprint)
		case "created":
			if n := w.Count(); n > 0 && a.Created == 0 {
				a.Created = int64(n)
			}
		case "id", "object", "service_tier", "metadata", "metrics", "provider", "obfuscation", "timings", "x_groq":
			w.Skip()
		default:
			d.unknown(w)
		}
	}
	if !w.End() {
		d.spoil(FlawData)
	}
}

// recordChoices reads the choices, of which there is to be one.
func recordChoices(d *draft, w *openai.Walker) {
	if !w.Enter('[') {
		w.Skip()
		d.spoil(flawChoices)
		return
	}
	for count := 0; w.Element(); count++ {
		if count > 0 || !w.Enter('{') {
			w.Skip()
			d.spoil(flawChoices)
			continue
		}
		for w.Key() {
			recordChoice(d, w)
		}
	}
}

// recordChoice reads one member of the one choice.
func recordChoice(d *draft, w *openai.Walker) {
	switch string(w.Name) {
	case "delta", "message":
		if d.kind == openai.KindChat && w.Enter('{') {
			for w.Key() {
				recordDelta(d, w)
			}
			return
		}
		d.unknown(w)
	case "text":
		if d.kind == openai.KindText {
			d.addText(w)
			return
		}
		d.unknown(w)
	case "finish_reason":
		if s, ok := w.Text(); ok && len(s) > 0 {
			d.finish(string(s))
		}
	case "index":
		if w.Count() != 0 {
			d.spoil(flawChoices)
		}
	case "stop_reason", "matched_stop", "native_finish_reason": // which token it was
		w.Skip()
	default:
		d.unknown(w)
	}
}

// recordDelta reads one member of a message or a delta.
func recordDelta(d *draft, w *openai.Walker) {
	switch name := string(w.Name); name {
	case "role":
		w.Skip()
	case "content":
		d.addText(w)
	case "reasoning_content", "reasoning":
		a := &d.answer
		before := len(a.Reasoning)
		if !d.add(w, &a.Reasoning) || len(a.Reasoning) == before {
			return
		}
		if a.ReasoningKey != "" && a.ReasoningKey != name {
			d.spoil(flawReasoning)
		}
		a.ReasoningKey = reasoningKey(name)
	case "tool_calls":
		recordCalls(d, w)
	default:
		d.unknown(w)
	}
}

// reasoningKey is the name as a constant: not as a part of the event that it
// stands in.
func reasoningKey(name string) string {
	for _, known := range reasoningKeys {
		if known == name {
			return known
		}
	}
	return ""
}

// appendChat appends a chat completion.
func appendChat(dst []byte, of *source) []byte {
	a := of.answer
	dst = append(of.appendHead(dst, "chatcmpl-", "chat.completion"), `"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if a.Calls != nil && len(a.Text) == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = openai.AppendString(dst, a.Text)
	}
	if a.Reasoning != nil {
		dst = append(append(append(dst, `,"`...), a.ReasoningKey...), `":`...)
		dst = openai.AppendString(dst, a.Reasoning)
	}
	if a.Calls != nil {
		dst = append(append(dst, `,"tool_calls":`...), a.Calls...)
	}
	dst = append(dst, `},"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, a.Finish), "}]"...)
	return append(appendUsage(append(appendFingerprint(dst, a), ','), a, noCompletionUsage), '}')
}

// chatChunks are the events of a chat completion.
type chatChunks struct {
	head []byte // of each, up to the first of its choices: engines send the same with each token
}

// chunk appends the beginning of a chunk.
func (c *chatChunks) chunk(dst []byte, of *source) []byte {
	if c.head == nil {
		c.head = of.chunkHead("chatcmpl-", "chat.completion.chunk")
	}
	return append(dst, c.head...)
}

// chunkEnd ends a chunk that is not the last of its choice.
const chunkEnd = `,"logprobs":null,"finish_reason":null}]}` + "\n\n"

func (c *chatChunks) open(dst []byte, of *source) []byte {
	return append(c.chunk(dst, of), `{"index":0,"delta":{"role":"assistant","content":""}`+chunkEnd...)
}

func (c *chatChunks) think(dst []byte, of *source, piece []byte) []byte {
	dst = append(c.chunk(dst, of), `{"index":0,"delta":{"`...)
	dst = append(append(dst, of.answer.ReasoningKey...), `":`...)
	return append(openai.AppendString(dst, piece), "}"+chunkEnd...)
}

func (c *chatChunks) say(dst []byte, of *source, piece []byte) []byte {
	dst = append(c.chunk(dst, of), `{"index":0,"delta":{"content":`...)
	return append(openai.AppendString(dst, piece), "}"+chunkEnd...)
}

// close appends the calls, the finish_reason and the stream's end.
func (c *chatChunks) close(dst []byte, of *source, usage bool) []byte {
	a := of.answer
	if a.Calls != nil {
		dst = append(c.chunk(dst, of), `{"index":0,"delta":{"tool_calls":`...)
		dst = append(appendNumberedCalls(dst, a.Calls), "}"+chunkEnd...)
	}
	dst = append(c.chunk(dst, of), `{"index":0,"delta":{},"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, a.Finish), "}]"...)
	dst = append(appendFingerprint(dst, a), "}\n\n"...)
	return c.end(dst, of, usage)
}

// joined appends the whole stream with one chunk that says who speaks, the
// text, and the end.
func (c *chatChunks) joined(dst []byte, of *source, usage bool) []byte {
	dst = append(c.chunk(dst, of), `{"index":0,"delta":{"role":"assistant","content":`...)
	dst = append(openai.AppendString(dst, of.answer.Text), `},"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, of.answer.Finish), "}]}\n\n"...)
	return c.end(dst, of, usage)
}

// end appends what comes behind the last chunk of the choice.
func (c *chatChunks) end(dst []byte, of *source, usage bool) []byte {
	if usage {
		dst = appendUsageChunk(c.chunk(dst, of), of.answer)
	}
	return append(dst, doneText...)
}

const doneText = "data: [DONE]\n\n"

// noCompletionUsage is the usage of completions where no worker counted.
const noCompletionUsage = `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`

// chunkHead is the beginning of each chunk, up to the first of its choices.
func (s *source) chunkHead(prefix, object string) []byte {
	return append(s.appendHead(append(make([]byte, 0, 192), "data: "...), prefix, object), `"choices":[`...)
}

// appendHead appends `{"id":...,"object":...,"created":...,"model":...,`.
func (s *source) appendHead(dst []byte, prefix, object string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = s.appendID(dst, prefix)
	dst = append(append(append(dst, `","object":"`...), object...), `","created":`...)
	dst = strconv.AppendInt(dst, s.at, 10)
	dst = append(dst, `,"model":`...)
	return append(openai.AppendString(dst, s.answer.Model), ',')
}

// appendUsageChunk appends the rest of the chunk that has no choice but the
// usage.
func appendUsageChunk(dst []byte, a *Answer) []byte {
	dst = appendUsage(append(dst, "],"...), a, noCompletionUsage)
	return append(appendFingerprint(dst, a), "}\n\n"...)
}

// appendFingerprint appends the fingerprint as a member behind others, if there
// is one.
func appendFingerprint(dst []byte, a *Answer) []byte {
	if a.Fingerprint == "" {
		return dst
	}
	return openai.AppendString(append(dst, `,"system_fingerprint":`...), a.Fingerprint)
}
