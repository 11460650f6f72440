// The answer of a model as data, and what is read, kept and told of it.

// Package answer is the reply of a model as data: what a worker's events and
// bodies mean, the answer in them taken down, and told again in the shape and
// the form that a client reads. It knows the shapes of openai's routes, and
// neither connections nor HTTP.
//
// A stream on its way is followed by a Flow, which may have a Recorder take the
// answer down:
//
//	flow := answer.NewFlow(kind, hidesUsage, isUnknown)
//	flow.Recorder = answer.NewRecorder(kind, tools)
//	pass, skip := flow.Scan(payload) // payload[:pass] may go on to the client
//
// What was taken down is kept as bytes, and told to another client, as JSON or
// as a stream:
//
//	recorder.Seal() // the stream has come to its right end
//	if recorder.Storable() {
//		kept = recorder.Answer().AppendTo(nil)
//	}
//	a, err := answer.Parse(kept)
//	replay := answer.NewReplay(&a, kind, answer.NewID(), now, wantsUsage)
//	body := replay.AppendTo(nil, stream)
//
// Each route's shape has a file in which its answers are both recorded and
// replayed: chat.go and text.go (OpenAI's completions), message.go (Anthropic's
// messages), response.go (OpenAI's responses), call.go (calls of tools). An
// Unveiler puts values that a Veil hid from the worker back into an answer.
package answer

import "kvasir/openai"

// An Answer is what a model said, apart from the form in which it came. Once it
// is kept, its slices are never changed: they are shared with whoever replays
// it.
//
//  1. Text and Reasoning are valid UTF-8.
//  2. Pieces ascend, lie on borders of characters, and end at len(Text).
//  3. RawUsage and Calls are JSON without a line break: they may stand in an
//     event.
type Answer struct {
	Model        string // as the worker named it
	Created      int64  // Unix seconds, of the worker; 0: it did not tell
	Text         []byte
	Reasoning    []byte  // nil: none
	ReasoningKey string  // the member it came in: reasoning_content or reasoning
	Finish       string  // stop, length ..., in the words of chat completions
	Fingerprint  string  // system_fingerprint; "": none
	RawUsage     []byte  // the usage object as the worker sent it, in the names of its route; nil: none
	Calls        []byte  // the array tool_calls; nil: none
	Pieces       []int32 // ends of the pieces of Text as they were streamed; nil: it came whole
}

// Bounds of an answer that is kept.
const (
	textLimit  = 1 << 20 // bytes of Text, and of Reasoning
	callsLimit = 256 << 10
	usageLimit = 4 << 10
	nameLimit  = 1 << 10 // bytes of a model, a finish_reason, a fingerprint
)

// The members that reasoning comes in, by their number in a kept answer.
var reasoningKeys = [...]string{"", "reasoning_content", "reasoning"}

// Fits says whether the answer can be told on a route of kind k: calls of tools
// can be told only as chat completions have them.
func (a *Answer) Fits(k openai.Kind) bool { return a.Calls == nil || k == openai.KindChat }
