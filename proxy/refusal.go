// Refusals: the errors that the proxy itself answers with, and workers' errors passed on.
package proxy

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

// errorLimit is how much of a worker's error reply is read.
const errorLimit = 1 << 20

// upstream is a failure of the workers: nothing the client did.
func upstream(status int, format string, args ...any) *openai.Error {
	return &openai.Error{Status: status, Type: "server_error", Code: "upstream_error", Message: fmt.Sprintf(format, args...)}
}

// unavailable is a 503 that tells the client when to come back.
func unavailable(message string, after time.Duration) *openai.Error {
	return &openai.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: message, RetryAfter: after}
}

func shuttingDown() *openai.Error {
	return unavailable("the gateway is shutting down; ask again, another instance may answer", time.Second)
}

func unknownModel(name string) *openai.Error {
	return &openai.Error{
		Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: "model",
		Message: "The model " + strconv.Quote(name) + " does not exist or is not served here; GET /v1/models lists those that are",
	}
}

// clientGone is nginx's 499: it is logged, nobody reads it.
var clientGone = &openai.Error{Status: 499, Type: "invalid_request_error", Message: "the client closed the connection before the answer"}

// refuse answers with an error of our own.
func (x *exchange) refuse(err *openai.Error) {
	x.facts.status = err.Status
	if x.facts.why == "" {
		x.facts.why = reasonOf(err)
	}
	if err == clientGone {
		x.lostClient()
		return
	}
	x.giveBack() // the head says what is left
	x.facts.overhead = x.overhead(time.Now())
	if x.p.draining.Load() {
		x.ctx.SetConnectionClose()
	}
	x.setOwnHeaders()
	writeError(x.ctx, err)
}

func reasonOf(err *openai.Error) string {
	if err.Code != "" {
		return err.Code
	}
	return err.Type
}

// refusal reads a worker's error reply and decides what it means. The client is
// sent nothing yet: another worker may do better.
func (c *call) refusal() (*failure, error) {
	status := c.head.status
	if err := c.hold(errorLimit); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	f := &failure{reason: strconv.Itoa(status), header: c.head.appendHeaders(nil)}
	if f.err = workerError(status, c.payload()); f.err == nil {
		f.err = &openai.Error{Status: status}
		f.body = bytes.Clone(c.payload())
	} else {
		f.conceal(c.b.Name(), c.payload())
		f.header = appendHeader(nil, "Content-Type", "application/json")
		f.body = f.err.AppendJSON(nil)
		if c.head.retryAfter != nil {
			f.header = appendHeader(f.header, "Retry-After", string(c.head.retryAfter))
		}
	}
	f.err.RetryAfter = parseRetryAfter(c.head.retryAfter)
	switch status {
	case 429, 503:
		f.retry, f.busy = true, true
	case 502, 504:
		f.retry = true
	case 400:
		f.short = isTooLong(c.payload())
	}
	return f, nil
}

// conceal names the worker in an error of no known shape, and keeps the beginning
// of what it said for the log.
func (f *failure) conceal(worker string, said []byte) {
	if f.err.Message == internalError {
		f.err.Message = "internal error of worker " + strconv.Quote(worker) + "; Kvasir's log has the beginning of what it said"
		f.said = bytes.Clone(said[:min(len(said), maxErrorText)])
	}
}

// failedFirst turns an error event that came before any content into the error
// reply that it stands for: its status is known in time after all.
func (r *relay) failedFirst(event []byte) (*failure, error) {
	r.call.ended = false // what follows the event is not worth reading
	f := &failure{
		err: eventError(event), reason: "error_event", retry: true,
		header: appendHeader(nil, "Content-Type", "application/json"),
	}
	f.conceal(r.call.b.Name(), event)
	f.busy = f.err.Status == 429 || f.err.Status == 503
	f.body = f.err.AppendJSON(nil)
	return f, nil
}

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
	if e := workerError(status, data); e != nil {
		return e
	}
	return passedError(status, data)
}

// isUnknown says that an error event is in no known shape, so that it may hold
// anything of the worker's host.
func isUnknown(event []byte) bool { return eventError(event).Message == internalError }

// passedError keeps the fields of an error that has OpenAI's shape.
func passedError(status int, data []byte) *openai.Error {
	var shaped struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &shaped) // what is there is taken; a code may be a number
	e := &openai.Error{Status: status, Type: shaped.Error.Type, Param: shaped.Error.Param, Message: shaped.Error.Message}
	if e.Type == "" {
		e.Type = errorType(status)
	}
	return e
}

// parseRetryAfter reads whole seconds, the form that engines send; 0: none.
func parseRetryAfter(value []byte) time.Duration {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}
