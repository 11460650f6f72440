// Errors: everything the proxy refuses or fails with, in OpenAI's shape.

package openai

import (
	"fmt"
	"strconv"
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

// AppendString appends s as a JSON string; bytes that are no UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029:
			dst = append(dst, `\u`...)
			hex := strconv.FormatUint(uint64(r), 16)
			dst = append(dst, "0000"[len(hex):]...)
			dst = append(dst, hex...)
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}
