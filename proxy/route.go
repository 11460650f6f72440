// Routes: what the OpenAI listener serves, one row each.
package proxy

// A kind says how the bodies of a route are read and how its streams end.
type kind uint8

const (
	kindOpaque    kind = iota // only the model is read; framing alone says the end
	kindChat                  // /v1/chat/completions: finish_reason or [DONE]
	kindText                  // /v1/completions: finish_reason or [DONE]
	kindResponses             // /v1/responses: response.completed, .failed or .incomplete
	kindMessages              // /v1/messages: message_stop
	kindForm                  // multipart/form-data, the model in a field
)

// A route is one path that is passed on to a worker.
type route struct {
	path string
	kind kind
}

// generates says whether an answer of the route is generated text, which every
// engine counts unless it is asked not to. Tokenizing, say, costs nobody a token.
func (r *route) generates() bool {
	switch r.kind {
	case kindChat, kindText, kindResponses, kindMessages:
		return true
	}
	return false
}

// costs says whether an answer of the route is counted against a key's tokens:
// cutting a text into tokens is not.
func (r *route) costs() bool {
	switch r.path {
	case "/tokenize", "/detokenize", "/v1/messages/count_tokens":
		return false
	}
	return true
}

// countsUsage says whether a stream of the route ends with its usage when asked.
func (r *route) countsUsage() bool { return r.kind == kindChat || r.kind == kindText }

// routes are the paths passed to a worker that has them. All are POST.
var routes = []route{
	{"/v1/chat/completions", kindChat},
	{"/v1/completions", kindText},
	{"/v1/responses", kindResponses},
	{"/v1/messages", kindMessages},
	{"/v1/messages/count_tokens", kindOpaque},
	{"/v1/embeddings", kindOpaque},
	{"/v1/rerank", kindOpaque},
	{"/v1/score", kindOpaque},
	{"/tokenize", kindOpaque},
	{"/detokenize", kindOpaque},
	{"/v1/audio/transcriptions", kindForm},
	{"/v1/audio/translations", kindForm},
	{"/v1/audio/speech", kindOpaque},
	{"/v1/images/generations", kindOpaque},
	{"/v1/images/edits", kindForm},
	{"/v1/images/variations", kindForm},
}
