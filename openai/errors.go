// Errors: the shape of everything that the gateway itself refuses or fails with. Package
// proxy (refusal.go, failure.go, keys.go ...), edge and upstream make them.

package openai

import (
	"fmt"
	"strings"
	"time"
)

// An Error is a refusal or a failure as the client sees it:
// {"error":{"message","type","param","code"}} with an HTTP status.
type Error struct {
	Status     int
	Type       string // OpenAI's `type`
	Code       string // "": null
	Param      string // "": null
	Message    string // what happened and what to do
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// Invalid is a 400: the client has to change the request.
func Invalid(param, format string, args ...any) *Error {
	return &Error{Status: 400, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

// AppendJSON appends the error as OpenAI's JSON object to dst.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = AppendString(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = AppendString(dst, e.Type)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	return append(dst, `}}`...)
}

// AppendFor appends the error as clients of the path read it.
func (e *Error) AppendFor(path string, dst []byte) []byte {
	if IsMessages(path) {
		return e.AppendMessages(dst)
	}
	return e.AppendJSON(dst)
}

// IsMessages says whether clients of Anthropic's API ask at the path, served or not.
func IsMessages(path string) bool {
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}

// AppendMessages appends the error as clients of /v1/messages read it, in Anthropic's shape:
// {"type":"error","error":{"type","message"}}, with param and code beside the message.
func (e *Error) AppendMessages(dst []byte) []byte {
	named := *e
	named.Type = messagesType(e.Status)
	dst = append(dst, `{"type":"error",`...)
	return append(dst, named.AppendJSON(nil)[1:]...)
}

// messagesType is Anthropic's error type for a status.
func messagesType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 404:
		return "not_found_error"
	case status == 413:
		return "request_too_large"
	case status == 429:
		return "rate_limit_error"
	case status == 503, status == 529:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, s)
}
