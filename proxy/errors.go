// Errors: everything the proxy refuses or fails with, in OpenAI's shape.
package proxy

import (
	"fmt"
	"strconv"
	"time"
)

// An apiError is a refusal or a failure as the client sees it:
// {"error":{"message","type","param","code"}} with an HTTP status.
type apiError struct {
	status     int
	kind       string // OpenAI's `type`
	code       string // "": null
	param      string // "": null
	message    string // what happened and what to do
	retryAfter time.Duration
}

func (e *apiError) Error() string { return e.message }

// invalid is a 400: the client has to change the request.
func invalid(param, format string, args ...any) *apiError {
	return &apiError{status: 400, kind: "invalid_request_error", param: param, message: fmt.Sprintf(format, args...)}
}

// appendJSON appends the error as OpenAI's JSON object to dst.
func (e *apiError) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = appendJSONString(dst, e.message)
	dst = append(dst, `,"type":`...)
	dst = appendJSONString(dst, e.kind)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.code)
	return append(dst, `}}`...)
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendJSONString(dst, s)
}

// appendJSONString appends s as a JSON string; bytes that are no UTF-8 become U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
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
