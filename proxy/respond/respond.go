// Answers that Kvasir itself writes.

// Package respond writes the answers that Kvasir gives by itself, on either
// listener: errors in OpenAI's shape, values as JSON, and what the routers say of
// unknown routes.
//
//	r.MethodNotAllowed = respond.MethodNotAllowed
//	respond.NotFound(ctx, "")
//	respond.Error(ctx, openai.Invalid("text", "it is empty"))
//	respond.JSON(ctx, value, nil, "")
package respond

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
)

// Error answers with an error in OpenAI's shape, or Anthropic's where clients of the path read that.
func Error(ctx *fasthttp.RequestCtx, err *openai.Error) {
	allow := string(ctx.Response.Header.Peek("Allow"))
	ctx.Response.SetStatusCode(err.Status)
	ctx.Response.Header.SetContentType("application/json")
	if allow != "" {
		ctx.Response.Header.Set("Allow", allow)
	}
	if err.Status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	}
	if err.RetryAfter > 0 {
		seconds := int(math.Ceil(err.RetryAfter.Seconds()))
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(seconds))
	}
	ctx.Response.SetBodyRaw(err.AppendFor(string(ctx.Path()), nil))
}

// JSON answers with a value as JSON, followed by end, or with why there is none.
func JSON(ctx *fasthttp.RequestCtx, value any, refused *openai.Error, end string) {
	if refused != nil {
		Error(ctx, refused)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		Error(ctx, &openai.Error{Status: 500, Type: "server_error", Message: err.Error()})
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, end...))
}

// NotFound answers for a path that is no route. hint says what to do instead, behind a semicolon;
// "": that is not known.
func NotFound(ctx *fasthttp.RequestCtx, hint string) {
	if hint == "" {
		hint = "; GET /openapi.json lists the routes"
	}
	ctx.Response.Header.Set("X-Request-Id", RequestID(ctx))
	Error(ctx, &openai.Error{
		Status: 404, Type: "invalid_request_error", Code: "unknown_url",
		Message: "Unknown request URL: " + openai.Quoted(string(ctx.Method())+" "+string(ctx.Path())) + hint,
	})
}

// MethodNotAllowed answers for a method that a route does not have.
func MethodNotAllowed(ctx *fasthttp.RequestCtx) {
	// The router names OPTIONS too, which only CORS answers.
	allow := slices.DeleteFunc(strings.Split(string(ctx.Response.Header.Peek("Allow")), ", "), func(m string) bool { return m == "OPTIONS" })
	ctx.Response.Header.Set("Allow", strings.Join(allow, ", "))
	ctx.Response.Header.Set("X-Request-Id", RequestID(ctx))
	Error(ctx, &openai.Error{
		Status: 405, Type: "invalid_request_error", Code: "method_not_allowed",
		Message: "Not allowed to " + openai.Quoted(string(ctx.Method())) + " on " + openai.Quoted(string(ctx.Path())) + "; allowed: " + strings.Join(allow, ", "),
	})
}
