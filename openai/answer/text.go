// Completions, the older form of /v1/completions, replayed; chat.go records them.

package answer

import "kvasir/openai"

// appendTextCompletion appends a completion.
func appendTextCompletion(dst []byte, of *source) []byte {
	a := of.answer
	dst = append(of.appendHead(dst, "cmpl-", "text_completion"), `"choices":[{"index":0,"text":`...)
	dst = append(openai.AppendString(dst, a.Text), `,"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, a.Finish), "}]"...)
	return append(appendUsage(append(appendFingerprint(dst, a), ','), a, noCompletionUsage), '}')
}

// textChunks are the events of a completion.
type textChunks struct {
	head []byte // of each, up to the first of its choices
}

// chunk appends the beginning of a chunk.
func (c *textChunks) chunk(dst []byte, of *source) []byte {
	if c.head == nil {
		c.head = of.chunkHead("cmpl-", "text_completion")
	}
	return append(dst, c.head...)
}

func (c *textChunks) say(dst []byte, of *source, piece []byte) []byte {
	dst = append(c.chunk(dst, of), `{"index":0,"text":`...)
	return append(openai.AppendString(dst, piece), chunkEnd...)
}

// close appends the finish_reason and the stream's end.
func (c *textChunks) close(dst []byte, of *source, usage bool) []byte {
	dst = append(c.chunk(dst, of), `{"index":0,"text":"","logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, of.answer.Finish), "}]"...)
	dst = append(appendFingerprint(dst, of.answer), "}\n\n"...)
	if usage {
		dst = appendUsageChunk(c.chunk(dst, of), of.answer)
	}
	return append(dst, doneText...)
}
