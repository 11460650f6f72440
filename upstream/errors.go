// The error bodies of engines, brought into OpenAI's shape for the client.

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"kvasir/openai"
)

const (
	maxErrorMessage = 2000     // bytes of a message that a client gets
	maxErrorText    = 500      // of one made from text or HTML
	maxErrorInput   = 16 << 10 // of a message before it is cleaned
)

// readError says what a client gets for a worker's reply of status 400 or
// over. nil: the body has OpenAI's shape, an object with an `error` object that
// has a message, and passes byte for byte. Else the error carries the status,
// the type that belongs to it, and what the body says, without the server's
// file paths. Known bodies:
//
//   - {"object":"error","message","type","param","code"}: SGLang, TensorRT-LLM
//   - {"message","type","code"}: Dynamo
//   - {"detail": "..." or [{"loc","msg","type"}]}: FastAPI
//   - {"error":"..."}: vLLM's 401, Ollama's own routes
//
// All else, and whatever has a traceback in it, is an internalError.
//
// The Retry-After is the caller's to add.
func readError(status int, body []byte) *openai.Error {
	e := &openai.Error{Status: status, Type: errorType(status)}
	trimmed := bytes.TrimSpace(body)
	var fields map[string]json.RawMessage
	switch {
	case len(trimmed) == 0:
	case bytes.Contains(body, []byte("Traceback (most recent call last)")): // in any shape: its last line may hold a secret
		e.Message = internalError
	case trimmed[0] == '{' && json.Unmarshal(trimmed, &fields) == nil:
		var inner map[string]json.RawMessage
		if json.Unmarshal(fields["error"], &inner) == nil && inner != nil {
			if jsonText(inner["message"]) != "" && utf8.Valid(body) {
				return nil
			}
			fields = inner
		}
		readFields(e, fields)
	default:
		e.Message = internalError // text, HTML: of nobody knows what
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("the worker answered with status %d and no message", status)
	}
	if e.Code == "" && status >= 502 {
		e.Code = "upstream_error"
	}
	return e
}

// lacksRoute says whether an error reply is a server's bare 404: of a path that it does not have,
// not of a model. That is FastAPI's `{"detail":"Not Found"}` (vLLM, SGLang, TensorRT-LLM),
// llama.cpp's "File Not Found", a text or a page (Ollama, nginx), or nothing at all (TGI, Dynamo). A
// model that is not there is told in words of its own.
func lacksRoute(status int, body []byte) bool {
	if status != 404 || bytes.Contains(body, []byte("Traceback (most recent call last)")) {
		return false
	}
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return true
	}
	var said struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(trimmed, &said) != nil {
		return false
	}
	var inner struct {
		Message json.RawMessage `json:"message"`
	}
	_ = json.Unmarshal(said.Error, &inner) // else there is none
	for _, raw := range []json.RawMessage{said.Detail, said.Error, inner.Message} {
		switch jsonText(raw) {
		case "Not Found", "File Not Found":
			return true
		}
	}
	return false
}

// noRoute is what a client is told of a worker that does not have the path.
func noRoute(worker, path string) *openai.Error {
	return &openai.Error{Status: 404, Type: errorType(404), Code: "route_not_served",
		Message: fmt.Sprintf("worker %q has no route %s: it answered 404 Not Found", worker, path)}
}

// errorType is OpenAI's error type for a status.
func errorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 429:
		return "rate_limit_error"
	case status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}

// readFields takes the message from where an engine puts it. A code is kept if
// it is a word; the number that engines send is only the status again.
func readFields(e *openai.Error, fields map[string]json.RawMessage) {
	if code := jsonText(fields["code"]); codeWord.MatchString(code) {
		e.Code = code
	}
	if param := jsonText(fields["param"]); len(param) <= 200 {
		e.Param = cleanMessage(param, 200)
	}
	for _, name := range []string{"message", "error", "detail", "msg", "error_message"} {
		if m := jsonText(fields[name]); m != "" {
			e.Message = cleanMessage(m, maxErrorMessage)
			return
		}
	}
	if readDetail(e, fields["detail"]) || len(fields) == 0 {
		return
	}
	e.Message = internalError
}

// readDetail reads FastAPI's validation errors: a list of what is wrong, each
// with its place in the request. What the request held there is not repeated.
func readDetail(e *openai.Error, detail json.RawMessage) bool {
	var faults []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(detail, &faults) != nil || len(faults) == 0 {
		var inner map[string]json.RawMessage
		if json.Unmarshal(detail, &inner) != nil || jsonText(inner["message"]) == "" {
			return false
		}
		e.Message = cleanMessage(jsonText(inner["message"]), maxErrorMessage)
		return true
	}
	var message strings.Builder
	for i, fault := range faults {
		if message.Len() > maxErrorInput {
			break
		}
		place := faultPlace(fault.Loc)
		if i == 0 {
			e.Param = cleanMessage(place, 200)
		} else {
			message.WriteString("; ")
		}
		if place != "" {
			message.WriteString(place + ": ")
		}
		message.WriteString(fault.Msg)
	}
	e.Message = cleanMessage(message.String(), maxErrorMessage)
	return true
}

// faultPlace makes "messages.0.role" of ["body","messages",0,"role"].
func faultPlace(loc []any) string {
	var parts []string
	for i, part := range loc {
		if i > 0 || part != "body" {
			parts = append(parts, fmt.Sprint(part))
		}
	}
	return strings.Join(parts, ".")
}

// internalError is the message that stands for what a worker says in no known shape:
// that may hold anything of its host. The log has the beginning of it.
const internalError = "internal error of the worker; Kvasir's log has the beginning of what it said"

// jsonText is a JSON string's value, "" for any other value.
func jsonText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

var (
	codeWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

	// A path from the root, two names or more, with what points into the file
	// behind it. Not part of a URL or of a word: "and/or", "https://a/b/c".
	// The routes of the API are told apart by apiRoute.
	rootPath = regexp.MustCompile(`(^|[\s"'(<\[{=,:;` + "`" + `])((?:file://)?(?:~|\.{1,2})?/[\w.@+~<>-]+(?:/[\w.@+~<>-]+)+/?)` + pathTail)
	// A drive letter's path, or a share's.
	windowsPath = regexp.MustCompile(`(^|[^\w])(?:[A-Za-z]:\\+|\\\\+` + windowsName + `\\+)(?:` + windowsName + `(?: ` + windowsName + `)*\\+)*` + windowsName + pathTail)
	// A relative path, or a bare name with a line number, of a source file.
	sourcePath = regexp.MustCompile(`(^|[^\w./])((?:[\w.@+~<>-]+/)+[\w.@+-]+\.` + sourceEnd + `)\b` + pathTail)
	sourceLine = regexp.MustCompile(`(^|[^\w./])([\w.@+-]+\.` + sourceEnd + `)(?::\d+(?::\d+)?|["']?, line \d+(?:, in [\w.<>]+)?)`)
	apiRoute   = regexp.MustCompile(`^/(v\d+\w*|api|inference|health|openapi)/`)

	fileLine = regexp.MustCompile(`^\s*(File "|Traceback \(most recent call last\))`)
)

const (
	pathTail    = `(?:["']?, line \d+(?:, in [\w.<>]+)?|:\d+(?::\d+)?)?`
	windowsName = `[^\s"'<>|*?\\:]+`
	sourceEnd   = `(?:py|pyc|pyx|so|cc|cpp|cu|cuh|c|h|hpp|rs|go|js|ts)`
)

// cleanMessage makes a worker's message fit for a client: no paths of the
// server, no lines of a traceback, no control characters but LF, valid UTF-8,
// at most limit bytes.
func cleanMessage(s string, limit int) string {
	s = cutTraceback(s[:min(len(s), maxErrorInput)])
	s = rootPath.ReplaceAllStringFunc(s, func(hit string) string {
		m := rootPath.FindStringSubmatch(hit)
		if apiRoute.MatchString(m[2]) {
			return hit
		}
		return m[1] + "[path]"
	})
	for _, path := range []*regexp.Regexp{windowsPath, sourcePath, sourceLine} {
		s = path.ReplaceAllString(s, "${1}[path]")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return ' '
		}
		return r // what is no UTF-8 comes as U+FFFD
	}, s)
	return cutText(strings.TrimSpace(s), limit)
}

// cutTraceback drops `File "...", line N` lines, as Python and FastAPI write
// them, and the more deeply indented lines under each.
func cutTraceback(s string) string {
	if !strings.Contains(s, `File "`) && !strings.Contains(s, "Traceback (") {
		return s
	}
	var kept []string
	cut := -1 // the indent of the File line whose lines are being dropped
	for line := range strings.Lines(s) {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case fileLine.MatchString(line):
			cut = indent
		case cut >= 0 && indent > cut:
		default:
			cut = -1
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// cutText shortens s to limit bytes, at the end of a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "..."
	n := limit - len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}
