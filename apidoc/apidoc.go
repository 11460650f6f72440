// The routes of a listener, and the OpenAPI document that says what they are.

// Package apidoc keeps what is said of each route beside it, and makes the OpenAPI 3.1 document of a
// listener of that, so that what is served and what is described cannot part:
//
//	r := apidoc.New()
//	r.Add(apidoc.Operation{Method: "GET", Path: "/plan", Does: "How many workers are wanted", Answers: apidoc.Of[Report]()}, plan)
//	r.Publish(apidoc.Info{Title: "Kvasir, for operators"}) // GET /openapi.json
package apidoc

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// Routes are the routes of one listener. Those that are added by Add are in its document.
type Routes struct {
	*router.Router
	operations []Operation
}

// New has no routes.
func New() *Routes { return &Routes{Router: router.New()} }

// A Schema is a JSON schema.
type Schema map[string]any

// An Operation is one method of one path, and what is said of it.
type Operation struct {
	Method string
	Path   string // as the router has it: /cache/{id}, /debug/pprof/{name:*}
	Does   string // in a few words
	More   string // in sentences
	Group  string // of operations that belong together

	Query   []Parameter
	Headers []Parameter // of the request

	Asks     Schema // the body of a request; nil: there is none
	AsksType string // its media type; "": application/json

	Answers     Schema // the body of an answer
	AnswersType string // its media type; "": application/json
	Streams     bool   // it may be an event stream instead
	Says        []string
	AlsoStatus  map[int]Schema // answers with other statuses that are no errors
	Theirs      bool           // errors may be a worker's, in whatever form
}

// A Parameter is one of a query, or a header. Both are texts.
type Parameter struct {
	Name, Does string
	Needed     bool
}

// Add routes requests of one method, and has them in the document.
func (r *Routes) Add(o Operation, h fasthttp.RequestHandler) {
	r.operations = append(r.operations, o)
	r.Handle(o.Method, o.Path, h)
}

// AddGet is Add of GET and of HEAD, which the document leaves out, as usual.
func (r *Routes) AddGet(o Operation, h fasthttp.RequestHandler) {
	o.Method = fasthttp.MethodGet
	r.Add(o, h)
	r.HEAD(o.Path, h)
}

// Info is what is said of a listener.
type Info struct {
	Title, Description string
	Keys               bool              // clients may have to show an API key
	Groups             map[string]string // what the operations of each group have in common
}

// Publish serves the document of all routes that were added, itself among them, at /openapi.json.
func (r *Routes) Publish(info Info) {
	var document []byte
	r.AddGet(Operation{Path: "/openapi.json", Does: "This document", Group: "about", Answers: Schema{"type": "object"}},
		func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.SetBody(document)
		})
	document = r.document(info)
}

func (r *Routes) document(info Info) []byte {
	paths := map[string]map[string]any{}
	groups := []any{}
	seen := map[string]bool{}
	for i := range r.operations {
		o := &r.operations[i]
		path, parameters := template(o.Path)
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][o.verb()] = o.object(path, parameters)
		if !seen[o.Group] {
			groups = append(groups, map[string]any{"name": o.Group, "description": info.Groups[o.Group]})
			seen[o.Group] = true
		}
	}
	components := map[string]any{"schemas": map[string]any{"Error": errorSchema}}
	security := []any{}
	if info.Keys {
		components["securitySchemes"] = map[string]any{
			"key":     map[string]any{"type": "http", "scheme": "bearer"},
			"headKey": map[string]any{"type": "apiKey", "in": "header", "name": "x-api-key"}, // Anthropic's clients
		}
		security = []any{map[string]any{}, map[string]any{"key": []any{}}, map[string]any{"headKey": []any{}}}
	}
	document, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": info.Title, "description": info.Description, "version": "1",
			"license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{map[string]any{"url": "/"}}, "security": security, "tags": groups,
		"paths": paths, "components": components,
	}, "", " ")
	if err != nil {
		panic("BUG: the document of the routes is no JSON: " + err.Error())
	}
	return document
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)(?::[^}]*)?\}`)

// template is a path of the router as OpenAPI writes it, and its parameters.
func template(path string) (string, []any) {
	parameters := []any{}
	for _, m := range placeholder.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": Schema{"type": "string"}})
	}
	return placeholder.ReplaceAllString(path, "{$1}"), parameters
}

// verb is the method as OpenAPI writes it; of a route that takes any, the usual one.
func (o *Operation) verb() string {
	if o.Method == router.MethodWild {
		return "get"
	}
	return strings.ToLower(o.Method)
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// object is the operation as OpenAPI has it.
func (o *Operation) object(path string, parameters []any) map[string]any {
	for _, p := range []struct {
		in   string
		list []Parameter
	}{{"query", o.Query}, {"header", o.Headers}} {
		for _, q := range p.list {
			parameters = append(parameters, map[string]any{"name": q.Name, "in": p.in, "description": q.Does, "required": q.Needed, "schema": Schema{"type": "string"}})
		}
	}
	out := map[string]any{
		"operationId": o.verb() + strings.TrimRight(notWord.ReplaceAllString(path, "_"), "_"),
		"summary":     o.Does, "tags": []any{o.Group}, "parameters": parameters, "responses": o.responses(),
	}
	if o.More != "" {
		out["description"] = o.More
	}
	if o.Asks != nil {
		out["requestBody"] = map[string]any{"required": true, "content": content(o.AsksType, o.Asks)}
	}
	return out
}

func content(kind string, schema Schema) map[string]any {
	if kind == "" {
		kind = "application/json"
	}
	return map[string]any{kind: map[string]any{"schema": schema}}
}

// responses are the answer, others that are none of errors, and errors.
func (o *Operation) responses() map[string]any {
	good := map[string]any{"description": o.Does, "content": content(o.AnswersType, o.Answers)}
	if o.Streams {
		good["content"].(map[string]any)["text/event-stream"] = map[string]any{"schema": Schema{"type": "string"}}
	}
	if len(o.Says) > 0 {
		headers := map[string]any{}
		for _, name := range o.Says {
			headers[name] = map[string]any{"schema": Schema{"type": "string"}}
		}
		good["headers"] = headers
	}
	failed := map[string]any{"description": "An error", "content": content("", Schema{"$ref": "#/components/schemas/Error"})}
	if o.Theirs {
		failed = map[string]any{"description": "An error of Kvasir, in OpenAI's shape or, for /v1/messages, in Anthropic's; or one of the worker, as it came",
			"content": content("", Schema{"type": "object", "properties": Schema{"error": Schema{}}})}
	}
	out := map[string]any{"200": good, "4XX": failed, "5XX": failed}
	for status, schema := range o.AlsoStatus {
		out[statusText(status)] = map[string]any{"description": o.Does, "content": content(o.AnswersType, schema)}
	}
	return out
}

func statusText(status int) string {
	return string(rune('0'+status/100)) + string(rune('0'+status/10%10)) + string(rune('0'+status%10))
}

// errorSchema is the shape of every error of our own.
var errorSchema = Object(Schema{
	"error": Object(Schema{
		"message": Text("what happened, and what to do"), "type": Text("OpenAI's type"),
		"param": Schema{"type": []string{"string", "null"}}, "code": Schema{"type": []string{"string", "null"}},
	}, "message", "type", "param", "code"),
}, "error")
