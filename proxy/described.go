// What the document of the OpenAI listener says of the routes that are passed on to workers: only what
// Kvasir itself reads, and the headers that it adds.

package proxy

import (
	"kvasir/apidoc"
	"kvasir/openai"
)

var (
	text    = apidoc.Schema{"type": "string"}
	anyText = apidoc.Schema{"type": []string{"string", "array"}}
)

// members are those of a body that Kvasir reads, by the route.
var members = map[string]struct {
	does     string
	required []string
	schema   apidoc.Schema
}{
	"/v1/chat/completions":      {"An answer to a conversation", []string{"model", "messages"}, apidoc.Schema{"messages": apidoc.List(apidoc.Schema{"type": "object"})}},
	"/v1/completions":           {"A text that goes on", []string{"model", "prompt"}, apidoc.Schema{"prompt": anyText}},
	"/v1/responses":             {"OpenAI's responses", []string{"model"}, apidoc.Schema{"input": anyText}},
	"/v1/messages":              {"Anthropic's messages", []string{"model", "messages"}, apidoc.Schema{"messages": apidoc.List(apidoc.Schema{"type": "object"})}},
	"/v1/messages/count_tokens": {"The tokens of Anthropic's messages", nil, apidoc.Schema{"messages": apidoc.List(apidoc.Schema{"type": "object"})}},
	"/v1/embeddings":            {"Vectors of texts", []string{"model"}, apidoc.Schema{"input": anyText}},
	"/v1/rerank":                {"Documents in the order of a query", []string{"model"}, nil},
	"/v1/score":                 {"How near texts are to each other", []string{"model"}, nil},
	"/tokenize":                 {"The tokens of a text; without a model: of the default one", nil, nil},
	"/detokenize":               {"The text of tokens; without a model: of the default one", nil, nil},
	"/v1/audio/transcriptions":  {"The words of a recording", nil, nil},
	"/v1/audio/translations":    {"The words of a recording, in English", nil, nil},
	"/v1/audio/speech":          {"A text, spoken", []string{"model"}, nil},
	"/v1/images/generations":    {"Images of a description", []string{"model"}, nil},
	"/v1/images/edits":          {"An image, changed", nil, nil},
	"/v1/images/variations":     {"Images like another one", nil, nil},
}

// groups are those of the routes.
var groups = map[string]string{
	"passed on to workers": "Answered by a worker of the model, unless the cache, a guard or a decision answers",
	"models":               "What may be asked for",
	"health":               "Whether this Kvasir lives, and is ready",
	"about":                "What this is",
}

// added are the headers of replies that Kvasir adds, where there is something to say.
var added = []string{
	"x-request-id", "x-kvasir-worker", "x-kvasir-overhead-us", "x-kvasir-cache", "x-kvasir-redacted", "x-kvasir-fallback", traceHeader,
	"x-vsr-response-path", "x-vsr-selected-category", "x-vsr-selected-decision", "x-vsr-selected-model", "x-vsr-selected-reasoning",
	"x-vsr-cache-hit", "x-vsr-pii-violation", "x-vsr-pii-types", "x-vsr-jailbreak-blocked",
}

// passedOn is the operation of a route that is passed on.
func passedOn(rt *openai.Route) apidoc.Operation {
	of := members[rt.Path]
	properties := apidoc.Schema{"model": apidoc.Text("a name of /v1/models; auto and MoM leave the choice to Kvasir")}
	for name, schema := range of.schema {
		properties[name] = schema
	}
	o := apidoc.Operation{
		Method: "POST", Path: rt.Path, Does: of.does, Group: "passed on to workers",
		Headers: []apidoc.Parameter{{Name: "x-request-id", Does: "up to 128 printable characters; the reply has it, too"}},
		Asks:    apidoc.Object(properties, of.required...), Answers: apidoc.Schema{"type": "object"}, Says: added, Theirs: true,
	}
	switch rt.Kind {
	case openai.KindChat, openai.KindText, openai.KindMessages, openai.KindResponses:
		properties["stream"] = apidoc.Schema{"type": []string{"boolean", "null"}}
		o.Streams = true
	case openai.KindForm:
		o.AsksType = "multipart/form-data"
	}
	if rt.Path == "/v1/audio/speech" {
		o.AnswersType, o.Answers = "*/*", apidoc.Schema{"type": "string"}
	}
	return o
}

var (
	modelObject = apidoc.Object(apidoc.Schema{
		"id": text, "object": text, "created": apidoc.Schema{"type": "integer"}, "owned_by": text, "max_model_len": apidoc.Schema{"type": "integer"},
	}, "id", "object", "created", "owned_by")
	modelList = apidoc.Object(apidoc.Schema{"object": text, "data": apidoc.List(modelObject)}, "object", "data")
)
