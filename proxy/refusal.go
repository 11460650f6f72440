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
)

// errorLimit is how much of a worker's error reply is read.
const errorLimit = 1 << 20

// upstream is a failure of the workers: nothing the client did.
func upstream(status int, format string, args ...any) *apiError {
	return &apiError{status: status, kind: "server_error", code: "upstream_error", message: fmt.Sprintf(format, args...)}
}

// unavailable is a 503 that tells the client when to come back.
func unavailable(message string, after time.Duration) *apiError {
	return &apiError{status: 503, kind: "server_error", code: "overloaded", message: message, retryAfter: after}
}

func shuttingDown() *apiError {
	return unavailable("the gateway is shutting down; ask again, another instance may answer", time.Second)
}

func unknownModel(name string) *apiError {
	return &apiError{
		status: 404, kind: "invalid_request_error", code: "model_not_found", param: "model",
		message: "The model " + strconv.Quote(name) + " does not exist or is not served here; GET /v1/models lists those that are",
	}
}

// clientGone is nginx's 499: it is logged, nobody reads it.
var clientGone = &apiError{status: 499, kind: "invalid_request_error", message: "the client closed the connection before the answer"}

// refuse answers with an error of our own.
func (x *exchange) refuse(err *apiError) {
	x.facts.status = err.status
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

func reasonOf(err *apiError) string {
	if err.code != "" {
		return err.code
	}
	return err.kind
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
		f.err = &apiError{status: status}
		f.body = bytes.Clone(c.payload())
	} else {
		f.conceal(c.b.Name(), c.payload())
		f.header = appendHeader(nil, "Content-Type", "application/json")
		f.body = f.err.appendJSON(nil)
		if c.head.retryAfter != nil {
			f.header = appendHeader(f.header, "Retry-After", string(c.head.retryAfter))
		}
	}
	f.err.retryAfter = parseRetryAfter(c.head.retryAfter)
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
	if f.err.message == internalError {
		f.err.message = "internal error of worker " + strconv.Quote(worker) + "; Kvasir's log has the beginning of what it said"
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
	f.busy = f.err.status == 429 || f.err.status == 503
	f.body = f.err.appendJSON(nil)
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
func eventError(event []byte) *apiError {
	_, data := eventFields(event)
	if end := indexEOL(data); end >= 0 {
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

// passedError keeps the fields of an error that has OpenAI's shape.
func passedError(status int, data []byte) *apiError {
	var shaped struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &shaped) // what is there is taken; a code may be a number
	e := &apiError{status: status, kind: shaped.Error.Type, param: shaped.Error.Param, message: shaped.Error.Message}
	if e.kind == "" {
		e.kind = errorType(status)
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
