// Replays: answers that no worker is asked for, in the shape and the form that the client reads.

package answer

import (
	"math/rand/v2"
	"strconv"

	"kvasir/openai"
)

// A Replay tells an answer to a client, as a body or as the events of a stream,
// whichever form it came in: one that the cache kept, one that an equal request
// is getting, a guard's refusal. What it writes follows the replies of real
// engines and of OpenAI, member by member; testdata/transcripts has some of
// them.
//
//	body := r.AppendTo(nil, stream)
//
// or, while the answer still grows, piece by piece:
//
//	events = r.Open(nil)
//	events = r.Think(nil, piece); events = r.Say(nil, piece)
//	events = r.Close(nil)
type Replay struct {
	of     source
	kind   openai.Kind // of the route
	usage  bool        // the client asked for the usage at the end of a stream of completions
	joined bool        // one chunk has who speaks, the text, and the end: this is how semantic routers refuse

	// How far the stream has come: of the route's kind, the others stay empty.
	chat     chatChunks
	text     textChunks
	message  messageEvents
	response responseEvents
}

// A source is what is told, and under what name: the same in every shape.
type source struct {
	answer *Answer // whole when a stream is closed and in a body; before that only its model is read
	id     string  // of the reply, behind the prefix of its shape; it needs no escapes
	at     int64   // when the reply is made, Unix seconds
}

// A block is one part of an answer. In the streams of responses and messages
// each has a beginning and an end.
type block uint8

const (
	blockNone block = iota
	blockReasoning
	blockText
)

// eventEnd ends an event of a response or a message.
const eventEnd = "}\n\n"

// NewReplay is a replay of the answer on a route of kind k, which it Fits. id
// is that of the reply, of characters that JSON need not escape; now is Unix
// seconds. With usage a stream of completions ends with the usage, as its
// client asked. The answer must not change but grow until the replay is over.
func NewReplay(a *Answer, k openai.Kind, id string, now int64, usage bool) Replay {
	return Replay{of: source{answer: a, id: id, at: now}, kind: k, usage: usage}
}

// NewID is an id of a reply that no worker gave, which it says. No two are the
// same.
func NewID() string {
	const digits = 16
	id := append(make([]byte, 0, len("cache-")+digits), "cache-"...)
	return string(strconv.AppendUint(id, rand.Uint64()|1<<63, 16))
}

// Answer is what is told.
func (r *Replay) Answer() *Answer { return r.of.answer }

// AppendTo appends the whole reply: a body, or all events of a stream.
func (r *Replay) AppendTo(dst []byte, stream bool) []byte {
	switch {
	case stream:
		return r.events(dst)
	case r.kind == openai.KindChat:
		return appendChat(dst, &r.of)
	case r.kind == openai.KindText:
		return appendTextCompletion(dst, &r.of)
	case r.kind == openai.KindResponses:
		return appendResponse(dst, &r.of, true)
	default:
		return appendMessage(dst, &r.of)
	}
}

// Size is about how many bytes AppendTo appends, seldom less.
func (r *Replay) Size(stream bool) int {
	a := r.of.answer
	n := 1<<10 + len(a.Text) + len(a.Text)/8 + len(a.Reasoning) + len(a.RawUsage) + len(a.Calls)
	if stream {
		chunks := min((len(a.Text)+len(a.Reasoning))/3, 2*maxPieces) + 4
		if a.Pieces != nil {
			chunks = min(len(a.Pieces), maxPieces) + 4 + min(len(a.Reasoning)/3, maxPieces)
		}
		n += chunks * 224
	}
	return n
}

// events appends a stream from its first event to its last.
func (r *Replay) events(dst []byte) []byte {
	a := r.of.answer
	if r.joined && r.kind == openai.KindChat {
		return r.chat.joined(dst, &r.of, r.usage)
	}
	dst = r.Open(dst)
	for p := PiecesOf(a.Reasoning, nil, 0); p.More(); {
		dst = r.Think(dst, p.Next())
	}
	if r.joined {
		return r.Close(r.Say(dst, a.Text))
	}
	for p := PiecesOf(a.Text, a.Pieces, 0); p.More(); {
		dst = r.Say(dst, p.Next())
	}
	return r.Close(dst)
}

// Open appends what comes before the first word.
func (r *Replay) Open(dst []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		return r.chat.open(dst, &r.of)
	case openai.KindResponses:
		return r.response.open(dst, &r.of)
	case openai.KindMessages:
		return r.message.open(dst, &r.of)
	}
	return dst
}

// Think appends a piece of the reasoning, whole characters. All of it comes
// before the text.
func (r *Replay) Think(dst, piece []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		return r.chat.think(dst, &r.of, piece)
	case openai.KindResponses:
		return r.response.piece(dst, &r.of, blockReasoning, piece)
	case openai.KindMessages:
		return r.message.piece(dst, blockReasoning, piece)
	}
	return dst // completions have none
}

// Say appends a piece of the text, whole characters.
func (r *Replay) Say(dst, piece []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		return r.chat.say(dst, &r.of, piece)
	case openai.KindText:
		return r.text.say(dst, &r.of, piece)
	case openai.KindResponses:
		return r.response.piece(dst, &r.of, blockText, piece)
	case openai.KindMessages:
		return r.message.piece(dst, blockText, piece)
	}
	return dst
}

// Close appends the end. The answer must be whole by now.
func (r *Replay) Close(dst []byte) []byte {
	switch r.kind {
	case openai.KindChat:
		return r.chat.close(dst, &r.of, r.usage)
	case openai.KindText:
		return r.text.close(dst, &r.of, r.usage)
	case openai.KindResponses:
		return r.response.close(dst, &r.of)
	default:
		return r.message.close(dst, &r.of)
	}
}

// appendID appends the id of a reply, or of a part of it, without quotes.
func (s *source) appendID(dst []byte, prefix string) []byte {
	return append(append(dst, prefix...), s.id...)
}

// appendUsage appends the usage as a member: that of the worker that gave the
// answer, or none, which has zeros, where no worker did.
func appendUsage(dst []byte, a *Answer, none string) []byte {
	dst = append(dst, `"usage":`...)
	if a.RawUsage != nil {
		return append(dst, a.RawUsage...)
	}
	return append(dst, none...)
}
