// Failures: an attempt that gave the client nothing, and what it means for the next one.

package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"kvasir/openai"
)

// errorLimit is how much of a worker's error reply is read, in bytes.
const errorLimit = 1 << 20

// A Failure is an attempt that gave the client nothing.
type Failure struct {
	Err    *openai.Error // what the client is told if there is no other attempt; of a worker's own error reply, its status at least
	Header []byte        // of a worker's own error reply: the header lines to pass on
	Body   []byte        // of a worker's own error reply: the body to pass on; nil: there is none
	Read   bool          // Body is Err in OpenAI's shape, made of what the worker said in another one
	Said   []byte        // the beginning of what the worker said in no known shape: for the log alone
	Retry  bool          // another worker may do better
	Busy   bool          // the worker is loaded, not broken
	Short  bool          // the prompt is too long for this worker's model
	Reason string        // label of the metric
	Part   Part          // which step of the way through two workers failed
}

// A Part is which of a request's steps through two workers failed.
type Part uint8

// The parts.
const (
	PartAnswer   Part = iota // the worker that answers, or the only one
	PartPrefill              // the prefill worker
	PartTransfer             // the way of the blocks from one to the other
	PartTime                 // nobody: what the prefill worker had said was no longer good
)

// Broken is a failure that another worker may make good. format has one verb, for the
// worker's name.
func Broken(status int, reason, format, worker string) *Failure {
	return &Failure{Err: Fault(status, format, worker), Retry: true, Reason: reason}
}

// Fault is an error of the workers' side: nothing that the client did.
func Fault(status int, format string, args ...any) *openai.Error {
	return &openai.Error{Status: status, Type: "server_error", Code: "upstream_error", Message: fmt.Sprintf(format, args...)}
}

// Refusal reads the worker's error reply, of status 400 or over, to a request of path, and
// says what it means. The client is sent nothing yet: another worker may do better. An error
// says that the reply could not be read.
func (c *Call) Refusal(worker, path string) (*Failure, error) {
	status := c.Head.Status
	if err := c.Hold(errorLimit); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	f := &Failure{Reason: strconv.Itoa(status), Header: c.Head.AppendHeaders(nil)}
	if f.Err = readError(status, c.Payload()); f.Err == nil && openai.IsMessages(path) && !isMessagesError(c.Payload()) {
		f.Err = passedError(status, c.Payload())
	}
	absent := lacksRoute(status, c.Payload())
	if f.Err == nil && !absent {
		f.Err = &openai.Error{Status: status}
		f.Body = bytes.Clone(c.Payload())
	} else {
		if absent {
			f.Err = noRoute(worker, path)
		}
		f.conceal(worker, c.Payload())
		f.Header = []byte(jsonLine)
		f.Body, f.Read = f.Err.AppendJSON(nil), true
		if c.Head.RetryAfter != nil {
			f.Header = append(append(append(f.Header, "Retry-After: "...), c.Head.RetryAfter...), "\r\n"...)
		}
	}
	f.Err.RetryAfter = parseRetryAfter(c.Head.RetryAfter)
	switch status {
	case 429, 503:
		f.Retry, f.Busy = true, true
	case 502, 504:
		f.Retry = true
	case 400:
		f.Short = isTooLong(c.Payload())
	}
	return f, nil
}

const jsonLine = "Content-Type: application/json\r\n"

// EventFailure is what an error event means that came before any content: the error
// reply that it stands for, whose status is known in time after all.
func EventFailure(worker string, event []byte) *Failure {
	f := ConcealedEvent(worker, event)
	f.Reason, f.Retry = "error_event", true
	f.Busy = f.Err.Status == 429 || f.Err.Status == 503
	f.Header = []byte(jsonLine)
	f.Body, f.Read = f.Err.AppendJSON(nil), true
	return f
}

// ConcealedEvent is the error of an event, as a client may read it.
func ConcealedEvent(worker string, event []byte) *Failure {
	f := &Failure{Err: eventError(event)}
	f.conceal(worker, event)
	return f
}

// conceal names the worker in an error of no known shape, and keeps the beginning of
// what it said for the log.
func (f *Failure) conceal(worker string, said []byte) {
	if f.Err.Message == internalError {
		f.Err.Message = "internal error of worker " + strconv.Quote(worker) + "; Kvasir's log has the beginning of what it said"
		f.Said = bytes.Clone(said[:min(len(said), maxErrorText)])
	}
}

// IsUnknown says that an error event is in no known shape, so that it may hold
// anything of the worker's host.
func IsUnknown(event []byte) bool { return eventError(event).Message == internalError }

// isTooLong recognises a refusal because the prompt exceeds the model's context:
// vLLM and SGLang say so in words only.
func isTooLong(body []byte) bool {
	return bytes.Contains(body, []byte("maximum context length")) ||
		bytes.Contains(body, []byte("context_length_exceeded")) ||
		bytes.Contains(body, []byte("longer than the model's context length"))
}

// eventError reads the error that an event carries. Its status is the code that
// engines put there; 502 without one.
func eventError(event []byte) *openai.Error {
	_, data := openai.EventFields(event)
	if end := openai.IndexEOL(data); end >= 0 {
		data = data[:end]
	}
	var coded struct {
		Code  json.RawMessage `json:"code"`
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
	}
	status := 502
	if json.Unmarshal(data, &coded) == nil {
		for _, raw := range [...]json.RawMessage{coded.Error.Code, coded.Code} {
			if n, err := strconv.Atoi(string(raw)); err == nil && n >= 400 && n <= 599 {
				status = n
				break
			}
		}
	}
	if e := readError(status, data); e != nil {
		return e
	}
	return passedError(status, data)
}

// passedError keeps the fields of an error that has OpenAI's shape.
func passedError(status int, data []byte) *openai.Error {
	var shaped struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Param   string `json:"param"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &shaped) // what is there is taken; a code may be a number
	e := &openai.Error{Status: status, Type: shaped.Error.Type, Param: shaped.Error.Param, Message: shaped.Error.Message}
	e.Code, _ = shaped.Error.Code.(string)
	if e.Type == "" {
		e.Type = errorType(status)
	}
	return e
}

// isMessagesError says whether an error has Anthropic's shape, which is OpenAI's with a type around it.
func isMessagesError(data []byte) bool {
	var shaped struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(data, &shaped) == nil && shaped.Type == "error"
}

// parseRetryAfter reads whole seconds, the form that engines send; 0: none.
func parseRetryAfter(value []byte) time.Duration {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}
