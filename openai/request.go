// Request: what Kvasir knows of a request body, as sub-slices and byte ranges of it.
package openai

import (
	"bytes"
	"math"
)

// A Request is one parsed body. The zero value is ready; parse resets it, so
// that one request serves many bodies without allocating. Everything in it is
// valid until the body is reused, and nothing of it may outlive the body.
//
// Spans are of the body as the client sent it, byte order mark included.
type Request struct {
	textReader
	kind Kind
	open int // where the top-level object begins, behind a byte order mark and white space

	Whole Span // the top-level object, braces included; zero for a form

	Model   []byte // decoded; empty only where the route can do without
	modelAt Span   // the JSON string, or the form field's value; null where it was null

	Stream   bool
	streamAt Span
	Usage    usageOptions

	MessagesAt Span
	AskedAt    Span  // the value of prompt or input, on the routes that need one
	Given      needs // what the body has of what a route can need
	Fields     requestFields
	strip      []Span   // members that only Kvasir itself may send, in the body's order
	Choice     choiceAt // what is said in those of where the request is to go

	boundary []byte     // of a form; empty: it is JSON
	heads    []formHead // of a form, where they are sent otherwise than they came

	Parameters []ParameterAt // the members of the top-level object, in the body's order
	Crowded    bool          // it has more members than are noted
}

// A ParameterAt is where a member of the top-level object stands.
type ParameterAt struct {
	key   int32 // its quote
	Value Span
}

// KeyOf is the key of a member as it is written, without its quotes.
func (r *Request) KeyOf(p ParameterAt) []byte {
	end, _ := r.Str(int(p.key))
	return r.Body[p.key+1 : end-1]
}

// maxParameters is how many members are noted: more than any API has.
const maxParameters = 128

// usageOptions is what the client wants to know of its stream's tokens.
type usageOptions struct {
	at         Span // the value of stream_options
	includeAt  Span // the value of include_usage in it
	Include    bool // the client asked for usage at the end
	Continuous bool // and with every event
}

// requestFields are where the values of single parameters stand, null included
// where a splice may have to replace it; elsewhere null counts as absent.
type requestFields struct {
	Tools          Span
	user           Span
	N              Span // integer
	bestOf         Span
	MaxTokens      Span // integer: max_tokens
	MaxCompletion  Span // integer: max_completion_tokens of chat; engines take it before max_tokens
	MaxOutput      Span // integer: max_output_tokens of /v1/responses
	Temperature    Span // number
	seed           Span
	responseFormat Span
	CacheSalt      Span
	Instructions   Span // of /v1/responses
	System         Span // of /v1/messages
	Effort         Span // reasoning_effort
	Reasoning      Span // of /v1/responses; reasoningEffort is in it
	TemplateArgs   Span // chat_template_kwargs; thinkingArgs are in it
}

// needs is what a route's body must have.
type needs uint8

const (
	needsModel    needs = 1 << iota
	NeedsMessages       // an array of messages
	needsPrompt
	needsInput
	readsItems // input is that of /v1/responses
	readsChat  // messages, if there, are an array of messages
)

// needsOf is what the bodies of a path must have.
func needsOf(path string) needs {
	switch path {
	case "/v1/chat/completions", "/v1/messages":
		return needsModel | NeedsMessages | readsChat
	case "/v1/completions":
		return needsModel | needsPrompt
	case "/v1/responses":
		return needsModel | needsInput | readsItems
	case "/v1/embeddings":
		return needsModel | needsInput | readsChat
	case "/v1/messages/count_tokens", "/tokenize":
		return readsChat // without a model: the default one
	case "/detokenize":
		return 0
	}
	return needsModel
}

// Parse reads the body of a request to rt. It returns nil or a 400 that says
// what is wrong, where, and what to do. body is kept, not copied; contentType
// is read only where the route takes a form.
func (r *Request) Parse(rt Route, body, contentType []byte) *Error {
	r.Reset()
	r.kind = rt.Kind
	if len(body) > math.MaxInt32 {
		return Invalid("", "The body has %d bytes. Send less than 2 GiB.", len(body))
	}
	r.Body = body
	if rt.Kind == KindForm && !IsJSON(contentType) {
		return r.parseForm(contentType)
	}
	r.document(needsOf(rt.Path))
	if r.failed() {
		return r.fault.refusal(body)
	}
	return nil
}

// Reset forgets the body and keeps the memory, unless it has grown far beyond
// what requests use.
func (r *Request) Reset() {
	keep := textReader{message: -1}
	if cap(r.Systems) <= maxSystems {
		keep.Systems = r.Systems[:0]
	}
	if cap(r.Texts) <= 4096 {
		keep.Texts = r.Texts[:0]
	}
	if cap(r.keys.list) <= 4096 {
		keep.keys.list = r.keys.list[:0]
	}
	if cap(r.keys.table) <= 16384 {
		keep.keys.table = r.keys.table
	}
	if cap(r.unescaped) <= 16384 {
		keep.unescaped = r.unescaped[:0]
	}
	*r = Request{textReader: keep, strip: r.strip[:0], Parameters: r.Parameters[:0]}
}

// document reads the whole body: one JSON object and white space around it.
func (r *Request) document(need needs) {
	if bytes.HasPrefix(r.Body, []byte(ByteOrderMark)) {
		r.pos = len(ByteOrderMark)
	}
	r.pos = r.space(r.pos)
	r.open = r.pos
	if r.peek() != '{' || seemsUTF16(r.Body) {
		r.noObject()
		return
	}
	r.members(need)
	if r.failed() {
		return
	}
	r.Whole = Span{int32(r.open), int32(r.pos)}
	if end := r.space(r.pos); end < len(r.Body) {
		r.broken(end, "data after the end of the JSON object")
		return
	}
	r.checkNeeds(need)
}

const ByteOrderMark = "\ufeff"

// noObject stops at a body that is no JSON object.
func (r *Request) noObject() {
	b := r.Body
	switch {
	case r.pos >= len(b):
		r.broken(r.pos, "the body is empty")
	case seemsUTF16(b):
		r.broken(0, "the body seems to be UTF-16 or UTF-32, send UTF-8")
	case b[r.pos] == '-' && bytes.HasPrefix(b[r.pos:], []byte("--")):
		r.broken(r.pos, "the body seems to be a multipart form, which this route does not take")
	case b[r.pos] == '[' || b[r.pos] == '"':
		r.broken(r.pos, "expected a JSON object, but got "+typeAt(b, r.pos))
	default:
		if r.Value(r.pos, 0) >= 0 {
			r.broken(r.pos, "expected a JSON object, but got "+typeAt(b, r.pos))
		}
	}
}

// seemsUTF16 tells whether the body begins with UTF-16's or UTF-32's mark, or
// with a zero byte beside its first character.
func seemsUTF16(b []byte) bool {
	return len(b) > 1 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE || b[0] == 0 || b[1] == 0)
}

// checkNeeds judges what is not there.
func (r *Request) checkNeeds(need needs) {
	if need&readsChat != 0 && r.Given&NeedsMessages != 0 {
		r.Given |= needsInput // embeddings of a conversation
	}
	missing := need &^ r.Given
	switch {
	case missing&needsModel != 0 && len(r.Model) == 0:
		r.missing(r.open, "model")
	case missing&NeedsMessages != 0:
		r.missing(r.open, "messages")
	case missing&needsPrompt != 0:
		r.missing(r.open, "prompt")
	case missing&needsInput != 0:
		r.missing(r.open, "input")
	}
}
