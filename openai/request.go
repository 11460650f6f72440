// Request: what Kvasir knows of a request body, as sub-slices and byte ranges of it.

package openai

import (
	"bytes"
	"math"
)

// A Request is one parsed body. The zero value is ready; Parse resets it, so
// that one Request serves many bodies without allocating. Everything in it is
// valid until the body is reused, and nothing of it may outlive the body.
//
// Spans are of the body as the client sent it, byte order mark included. A zero
// Span means absent.
type Request struct {
	Body  []byte
	Whole Span // the top-level object, braces included; absent for a form
	kind  Kind // of the route

	Model   []byte // decoded; empty only where the route can do without
	modelAt Span   // the JSON string, or the form field's value; null counts as given

	Stream bool  // the client asked for a stream
	Usage  Usage // what it asked to be told of the stream's tokens

	MessagesAt Span   // the array of messages, on the routes that read one
	AskedAt    Span   // the value of prompt or input, on the routes that need one
	Fields     Fields // single parameters
	Choice     Choice // which workers are to answer
	Content    Content
	Turns      Turns

	Parameters []ParameterAt // the members of the top-level object, in the body's order
	Crowded    bool          // it has more members than Parameters has room for
	strip      []Span        // members that only Kvasir itself may send, in the body's order

	form   form
	parser *parser // keeps its memory from one body to the next; nil until the first
}

// Usage is stream_options. Absent and null mean false.
type Usage struct {
	Include    bool // include_usage: the usage at the end of the stream
	Continuous bool // continuous_usage_stats: with every event
	at         Span // the value of stream_options; null counts as given
	includeAt  Span // the value of include_usage in it; null counts as given
}

// Fields are where the values of single parameters stand. Null counts as absent
// but for those marked "or null", where an edit may have to replace it.
type Fields struct {
	Tools        Span // array
	Temperature  Span // number, or null
	CacheSalt    Span // any value
	Instructions Span // any value, or null: the system prompt of /v1/responses
	System       Span // string or array of parts, or null: the system prompt of /v1/messages

	n             Span // integer, or null
	bestOf        Span // any value, or null: best_of
	maxTokens     Span // integer, or null: max_tokens
	maxCompletion Span // integer, or null: max_completion_tokens of chat; engines take it before max_tokens
	maxOutput     Span // integer, or null: max_output_tokens of /v1/responses

	effort         Span // any value, or null: reasoning_effort
	reasoning      Span // any value, or null: reasoning of /v1/responses
	nestedEffort   Span // any value, or null: effort in reasoning
	templateArgs   Span // any value, or null: chat_template_kwargs
	enableThinking Span // any value, or null: enable_thinking in templateArgs
	thinking       Span // any value, or null: thinking in templateArgs

	stream         Span // boolean, or null
	user           Span // any value
	seed           Span // any value
	responseFormat Span // any value: response_format
}

// Content is what a body has for a model to read.
type Content struct {
	Texts    []Text // in the body's order
	Unread   int    // parts that nobody here can read and that a model may take for text: files, token ids, unknown types
	TokenIDs []Span // values that have token ids in them, each counted in Unread
	Media    int    // images, audio and video
	Tools    int    // tools and functions on offer

	Adapters []Adapter // members that name an adapter, or another model
	template Span      // the first chat_template
}

// WantsForm says whether a program reads the answer: the request offers tools, or asks for an answer
// of a certain form.
func (r *Request) WantsForm() bool {
	if r.Content.Tools > 0 {
		return true
	}
	for _, p := range r.Parameters {
		switch value := p.Value.Of(r.Body); string(p.Key.Of(r.Body)) {
		case "response_format", "text", "output_config", "output_format": // {"type": "text"} is no form
			if bytes.Contains(value, []byte(`"json_`)) || bytes.Contains(value, []byte(`"grammar"`)) || bytes.Contains(value, []byte(`"regex"`)) {
				return true
			}
		case "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "json_schema", "regex", "ebnf":
			if string(value) != "null" {
				return true
			}
		}
	}
	return false
}

// Turns are the messages or input items of a conversation.
type Turns struct {
	All     int // of anybody
	User    int // of the user
	Results int // of tools, also within a message of the user's

	last     Span
	lastUser Span
	systems  []systemAt
}

// A systemAt is where a message with a system prompt stands.
type systemAt struct {
	whole   Span
	content Span // null counts as given
}

// maxSystems is for how many system messages memory is kept between requests.
const maxSystems = 64

// A ParameterAt is where a member of the top-level object stands.
type ParameterAt struct {
	Key   Span // as it is written, without its quotes
	Value Span // null counts as given
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
		return parseForm(r, contentType)
	}
	if r.parser == nil {
		r.parser = new(parser)
	}
	return r.parser.parse(r, needsOf(rt.Path))
}

// Reset forgets the body and keeps the memory, unless it has grown far beyond
// what requests use.
func (r *Request) Reset() {
	empty := Request{parser: r.parser, strip: r.strip[:0], Parameters: r.Parameters[:0]}
	empty.Content.Texts = emptied(r.Content.Texts, 4096)
	empty.Turns.systems = emptied(r.Turns.systems, maxSystems)
	if *r = empty; r.parser != nil {
		r.parser.texts.json.reset()
	}
}
