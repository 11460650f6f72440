// Errors: the shape of everything that the gateway itself refuses or fails with. Package
// proxy (refusal.go, failure.go, keys.go ...), edge and upstream make them.

package openai

import (
	"fmt"
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

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, s)
}
