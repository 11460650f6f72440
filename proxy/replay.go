// Replays: answers that no worker is asked for, in the shape and the form that the client reads.
package proxy

import (
	"math/rand/v2"
	"strconv"
	"time"

	"kvasir/openai"
	"kvasir/wire"
)

// A replay gives an answer to a client, as a body or as the events of a stream,
// whichever form it came in. Answers of the cache and refusals of guards are
// made by it. Its parts follow real engines' and OpenAI's own replies, member by
// member; testdata/transcripts has them.
//
//	body := r.AppendTo(nil, stream)
//
// or, while the answer still grows, piece by piece:
//
//	events = r.open(nil)
//	events = r.think(nil, piece); events = r.say(nil, piece)
//	events = r.close(nil)
type replay struct {
	*answer             // whole at close and in a body; before that only its model is read
	kind    openai.Kind // of the route
	id      string      // of the reply, behind the prefix of its route
	at      int64       // when it is made, Unix seconds
	counts  bool        // the client asked for usage at the end of the stream
	joined  bool        // one chunk says who speaks, the text, and the end: how semantic routers refuse

	head   []byte // of each chunk, up to its choices
	block  block  // what is being said now
	blocks int    // before it
	number int    // of the next event
}

// A block is one part of an answer: in the streams of responses and messages
// each has a beginning and an end.
type block uint8

const (
	blockNone block = iota
	blockReasoning
	blockText
)

// newReplay is a replay of a kept answer. Its id is its own, and says that no
// worker gave it.
func newReplay(a *answer, k openai.Kind, now int64, counts bool) replay {
	const digits = 16
	id := append(make([]byte, 0, len("cache-")+digits), "cache-"...)
	return replay{answer: a, kind: k, id: string(strconv.AppendUint(id, rand.Uint64()|1<<63, 16)), at: now, counts: counts}
}

// replays says whether the answer can be told on a route of the kind: calls of
// tools only as chat completions have them.
func (a *answer) replays(k openai.Kind) bool { return a.calls == nil || k == openai.KindChat }

const doneText = "data: [DONE]\n\n"

// tell answers the request with a reply of our own, in one write.
func (x *exchange) tell(r *replay) {
	stream := x.req.Stream
	buf := wire.TakeBuffer(r.size(stream))
	body := r.appendTo(buf[:0], stream)
	header, length := jsonHeader, int64(len(body))
	if stream {
		header, length = streamHeader, -1
	}
	x.call.Now = time.Now() // of the writes: no worker was called
	err := x.reply.whole(header, length, body)
	x.answered()
	wire.GiveBuffer(buf)
	if err != nil {
		x.lostClient()
	}
}

// The headers of replies of our own, beside those of every reply.
var (
	jsonHeader   = []byte("Content-Type: application/json\r\n")
	streamHeader = []byte("Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n")
)

// AppendTo appends the whole reply: a body, or all events of a stream.
func (r *replay) appendTo(dst []byte, stream bool) []byte {
	switch {
	case stream:
		return r.events(dst)
	case r.kind == openai.KindChat:
		return r.chat(dst)
	case r.kind == openai.KindText:
		return r.completion(dst)
	case r.kind == openai.KindResponses:
		return responseReplay{r}.object(dst, true)
	default:
		return messageReplay{r}.object(dst)
	}
}

// size is about how long the whole reply is.
func (r *replay) size(stream bool) int {
	n := 1<<10 + len(r.text) + len(r.text)/8 + len(r.reasoning) + len(r.usage) + len(r.calls)
	if stream {
		chunks := min((len(r.text)+len(r.reasoning))/3, 2*maxPieces) + 4
		if r.pieces != nil {
			chunks = min(len(r.pieces), maxPieces) + 4 + min(len(r.reasoning)/3, maxPieces)
		}
		n += chunks * 224
	}
	return n
}

// events appends a stream from its first event to its last.
func (r *replay) events(dst []byte) []byte {
	if r.joined && r.kind == openai.KindChat {
		return r.chatClose(r.chatJoined(dst))
	}
	dst = r.open(dst)
	for p := newPieces(r.reasoning, nil); p.more(); {
		dst = r.think(dst, p.next())
	}
	if r.joined {
		return r.close(r.say(dst, r.text))
	}
	for p := newPieces(r.text, r.pieces); p.more(); {
		dst = r.say(dst, p.next())
	}
	return r.close(dst)
}

// open appends what comes before the first word.
func (r *replay) open(dst []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	case openai.KindResponses:
		dst = responseReplay{r}.open(dst)
	case openai.KindMessages:
		dst = messageReplay{r}.open(dst)
	}
	return dst
}

// think appends a piece of the reasoning, whole characters.
func (r *replay) think(dst, piece []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{"`...)
		dst = append(append(dst, r.reasoningKey...), `":`...)
		dst = append(openai.AppendText(dst, piece), `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	case openai.KindResponses:
		dst = responseReplay{r}.piece(dst, blockReasoning, piece)
	case openai.KindMessages:
		dst = messageReplay{r}.piece(dst, blockReasoning, piece)
	}
	return dst // completions have none
}

// say appends a piece of the text, whole characters.
func (r *replay) say(dst, piece []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{"content":`...)
		dst = append(openai.AppendText(dst, piece), `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	case openai.KindText:
		dst = append(r.chunk(dst, "cmpl-", "text_completion"), `{"index":0,"text":`...)
		dst = append(openai.AppendText(dst, piece), `,"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
	case openai.KindResponses:
		dst = responseReplay{r}.piece(dst, blockText, piece)
	case openai.KindMessages:
		dst = messageReplay{r}.piece(dst, blockText, piece)
	}
	return dst
}

// close appends the end. The answer must be whole by now.
func (r *replay) close(dst []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		if r.calls != nil {
			dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{"tool_calls":`...)
			dst = append(appendNumberedCalls(dst, r.calls), `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
		}
		dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{},"logprobs":null,"finish_reason":`...)
		dst = append(openai.AppendString(dst, r.finish), "}]"...)
		dst = append(r.appendFingerprint(dst), "}\n\n"...)
		return r.chatClose(dst)
	case openai.KindText:
		dst = append(r.chunk(dst, "cmpl-", "text_completion"), `{"index":0,"text":"","logprobs":null,"finish_reason":`...)
		dst = append(openai.AppendString(dst, r.finish), "}]"...)
		dst = append(r.appendFingerprint(dst), "}\n\n"...)
		if r.counts {
			dst = append(r.chunk(dst, "cmpl-", "text_completion"), "],"...)
			dst = append(r.appendFingerprint(r.appendUsage(dst)), "}\n\n"...)
		}
		return append(dst, doneText...)
	case openai.KindResponses:
		return responseReplay{r}.close(dst)
	default:
		return messageReplay{r}.close(dst)
	}
}

// chunk appends the beginning of a chunk, up to the first element of its
// choices. Engines send the same with each token.
func (r *replay) chunk(dst []byte, prefix, object string) []byte {
	if r.head == nil {
		r.head = append(r.begin(append(make([]byte, 0, 192), "data: "...), prefix, object), `"choices":[`...)
	}
	return append(dst, r.head...)
}

// begin appends `{"id":...,"object":...,"created":...,"model":...,`.
func (r *replay) begin(dst []byte, prefix, object string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = r.appendID(dst, prefix)
	dst = append(append(append(dst, `","object":"`...), object...), `","created":`...)
	dst = strconv.AppendInt(dst, r.at, 10)
	dst = append(dst, `,"model":`...)
	return append(openai.AppendString(dst, r.model), ',')
}

// appendID appends an id, which needs no escapes.
func (r *replay) appendID(dst []byte, prefix string) []byte {
	return append(append(dst, prefix...), r.id...)
}

func (r *replay) appendFingerprint(dst []byte) []byte {
	if r.fingerprint == "" {
		return dst
	}
	return openai.AppendString(append(dst, `,"system_fingerprint":`...), r.fingerprint)
}

// appendUsage appends the usage as a member: that of the worker that gave the
// answer, or zeros where no worker did.
func (r *replay) appendUsage(dst []byte) []byte {
	dst = append(dst, `"usage":`...)
	switch {
	case r.usage != nil:
		return append(dst, r.usage...)
	case r.kind == openai.KindResponses:
		return append(dst, `{"input_tokens":0,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}`...)
	case r.kind == openai.KindMessages:
		return append(dst, `{"input_tokens":0,"output_tokens":0}`...)
	}
	return append(dst, `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`...)
}

// chat appends a chat completion.
func (r *replay) chat(dst []byte) []byte {
	dst = append(r.begin(dst, "chatcmpl-", "chat.completion"), `"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if r.calls != nil && len(r.text) == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = openai.AppendText(dst, r.text)
	}
	if r.reasoning != nil {
		dst = append(append(append(dst, `,"`...), r.reasoningKey...), `":`...)
		dst = openai.AppendText(dst, r.reasoning)
	}
	if r.calls != nil {
		dst = append(append(dst, `,"tool_calls":`...), r.calls...)
	}
	dst = append(dst, `},"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, r.finish), "}]"...)
	return append(r.appendUsage(append(r.appendFingerprint(dst), ',')), '}')
}

// chatJoined appends the one chunk of a refusal.
func (r *replay) chatJoined(dst []byte) []byte {
	dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), `{"index":0,"delta":{"role":"assistant","content":`...)
	dst = append(openai.AppendText(dst, r.text), `},"logprobs":null,"finish_reason":`...)
	return append(openai.AppendString(dst, r.finish), "}]}\n\n"...)
}

// chatClose appends what comes behind the last chunk of the answer.
func (r *replay) chatClose(dst []byte) []byte {
	if r.counts {
		dst = append(r.chunk(dst, "chatcmpl-", "chat.completion.chunk"), "],"...)
		dst = append(r.appendFingerprint(r.appendUsage(dst)), "}\n\n"...)
	}
	return append(dst, doneText...)
}

// completion appends a text completion.
func (r *replay) completion(dst []byte) []byte {
	dst = append(r.begin(dst, "cmpl-", "text_completion"), `"choices":[{"index":0,"text":`...)
	dst = append(openai.AppendText(dst, r.text), `,"logprobs":null,"finish_reason":`...)
	dst = append(openai.AppendString(dst, r.finish), "}]"...)
	return append(r.appendUsage(append(r.appendFingerprint(dst), ',')), '}')
}

// appendNumberedCalls appends the calls as a chunk has them: each with its index.
func appendNumberedCalls(dst, calls []byte) []byte {
	w := openai.Walker{B: calls}
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
	w := openai.Walker{B: call}
	for ok := w.Enter('{'); ok && w.Key(); w.Skip() {
		if string(w.Name) == "index" {
			return true
		}
	}
	return false
}
