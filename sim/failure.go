// Error replies in vLLM's forms: its own error body, pydantic's validation errors inside it, and
// FastAPI's detail.

package sim

import (
	"net/http"
	"strconv"
	"strings"
)

// failure is a refused or failed request. vLLM has two bodies: {"error":{...}}, and
// {"detail":...} from the framework below it. Other engines send {"object":"error",...} instead
// of the first.
type failure struct {
	status  int
	kind    string // the error's type; "" for the detail form
	message string
	param   string // "" for null
}

// refuse returns vLLM's own error for a valid request that cannot be served.
func refuse(message, param string) *failure {
	return &failure{http.StatusBadRequest, "BadRequestError", message, param}
}

// refuseValue returns the error for a refused parameter; the message ends with the value, as
// vLLM's does.
func refuseValue(message, param, value string) *failure {
	return refuse(message+" (parameter="+param+", value="+value+")", param)
}

// detail returns the framework's own error.
func detail(status int, message string) *failure {
	return &failure{status: status, message: message}
}

// invalid returns the error for a body that does not fit the request's schema. kind, loc, msg and
// input are pydantic's; context is the reason of a JSON error, or "".
func invalid(kind, loc, msg, input, context string) *failure {
	b := strings.Builder{}
	b.WriteString("1 validation error:\n  {'type': " + pythonQuote(kind) + ", 'loc': " + pythonQuote(loc) +
		", 'msg': " + pythonQuote(msg) + ", 'input': " + pythonQuote(input))
	if context != "" {
		b.WriteString(", 'ctx': {'error': " + pythonQuote(context) + "}")
	}
	b.WriteString("}")
	return &failure{http.StatusBadRequest, "Bad Request", b.String(), loc}
}

// pythonQuote writes s as Python's repr does, as far as the messages here need it.
func pythonQuote(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, quote, `\`+quote).Replace(s)
	return quote + s + quote
}

// pythonFloat writes v as Python's repr does for the usual sizes: 1.0, -0.5.
func pythonFloat(v float64) string {
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if strings.ContainsAny(s, ".en") {
		return s
	}
	return s + ".0"
}

func (f *failure) Error() string { return f.message }

// flat returns the error body of SGLang and TensorRT-LLM.
func (f *failure) flat() []byte {
	if f.kind == "" {
		return f.body()
	}
	b := appendString([]byte(`{"object":"error","message":`), f.message)
	b = appendString(append(b, `,"type":`...), f.kind)
	return append(strconv.AppendInt(append(b, `,"param":null,"code":`...), int64(f.status), 10), '}')
}

// flatEvent returns the failure as an event in a stream of SGLang or TensorRT-LLM.
func (f *failure) flatEvent() []byte {
	return append(append([]byte(`data: {"error":`), f.flat()...), "}\n\n"...)
}

// body returns the failure as vLLM's JSON.
func (f *failure) body() []byte {
	if f.kind == "" {
		return append(appendString([]byte(`{"detail":`), f.message), '}')
	}
	b := appendString([]byte(`{"error":{"message":`), f.message)
	b = appendString(append(b, `,"type":`...), f.kind)
	b = append(b, `,"param":`...)
	if f.param == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, f.param)
	}
	b = strconv.AppendInt(append(b, `,"code":`...), int64(f.status), 10)
	return append(b, "}}"...)
}

// event returns the failure as an event in a stream, with the spaces of Python's JSON encoder.
func (f *failure) event() []byte {
	b := appendString([]byte(`data: {"error": {"message": `), f.message)
	b = appendString(append(b, `, "type": `...), f.kind)
	b = strconv.AppendInt(append(b, `, "param": null, "code": `...), int64(f.status), 10)
	return append(b, "}}\n\n"...)
}

// kindOf returns vLLM's error type for a status.
func kindOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusForbidden:
		return "PermissionDeniedError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusInternalServerError:
		return "InternalServerError"
	}
	return http.StatusText(status) // for example of 503: "Service Unavailable"
}
