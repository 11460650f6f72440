// Refusals: the errors that the proxy itself answers with.

package proxy

import (
	"strconv"
	"time"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

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
	x.account.giveBack() // the head says what is left
	x.facts.overhead = x.overhead(time.Now())
	if x.p.draining.Load() {
		x.ctx.SetConnectionClose()
	}
	x.setOwnHeaders()
	respond.Error(x.ctx, err)
}

func reasonOf(err *openai.Error) string {
	if err.Code != "" {
		return err.Code
	}
	return err.Type
}
