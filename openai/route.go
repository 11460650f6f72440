// Routes: what the OpenAI listener serves, one row each.

package openai

// A Kind says how the bodies of a route are read and how its streams end.
type Kind uint8

// The kinds of routes, and how a stream of each ends.
const (
	KindOpaque    Kind = iota // model and texts are read; the reply ends where its framing says
	KindChat                  // /v1/chat/completions: finish_reason or [DONE]
	KindText                  // /v1/completions: finish_reason or [DONE]
	KindResponses             // /v1/responses: response.completed, .failed or .incomplete
	KindMessages              // /v1/messages: message_stop
	KindForm                  // multipart/form-data, the model in a field
)

// A Route is one path that is passed on to a worker.
type Route struct {
	Path string
	Kind Kind
}

// Generates says whether an answer of the route is generated text, whose tokens
// every engine counts unless it is asked not to.
func (r *Route) Generates() bool {
	switch r.Kind {
	case KindChat, KindText, KindResponses, KindMessages:
		return true
	}
	return false
}

// Costs says whether a request of the route is counted against its key's tokens.
// Cutting a text into tokens is not.
func (r *Route) Costs() bool {
	switch r.Path {
	case "/tokenize", "/detokenize", "/v1/messages/count_tokens":
		return false
	}
	return true
}

// Judged says whether guards look at the texts of a route. Those of /detokenize
// never come before a model.
func (r *Route) Judged() bool { return r.Path != "/detokenize" }

// Recorded says whether answers of a route can be recorded, for the cache and for
// equal requests.
func (r *Route) Recorded() bool {
	switch r.Kind {
	case KindChat, KindText, KindMessages, KindResponses:
		return true
	}
	return false
}

// CountsUsage says whether a stream of the route ends with its usage when asked.
func (r *Route) CountsUsage() bool { return r.Kind == KindChat || r.Kind == KindText }

// Routes are the paths passed to a worker that has them. All are POST.
var Routes = []Route{
	{"/v1/chat/completions", KindChat},
	{"/v1/completions", KindText},
	{"/v1/responses", KindResponses},
	{"/v1/messages", KindMessages},
	{"/v1/messages/count_tokens", KindOpaque},
	{"/v1/embeddings", KindOpaque},
	{"/v1/rerank", KindOpaque},
	{"/v1/score", KindOpaque},
	{"/tokenize", KindOpaque},
	{"/detokenize", KindOpaque},
	{"/v1/audio/transcriptions", KindForm},
	{"/v1/audio/translations", KindForm},
	{"/v1/audio/speech", KindOpaque},
	{"/v1/images/generations", KindOpaque},
	{"/v1/images/edits", KindForm},
	{"/v1/images/variations", KindForm},
}
