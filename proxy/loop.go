// Loops: a worker that is this gateway, by a mistake in the configuration or in what a source finds.

package proxy

import (
	"bytes"
	"crypto/rand"
	"strings"

	"kvasir/openai"
)

// via is the header in which each gateway on a request's way to a worker leaves its mark. Without it
// a gateway that is its own worker asks itself until its connections are used up, or waits for
// itself where the request is coalesced.
const via = "X-Kvasir-Via"

// maxVia bounds what of it is taken, in bytes: some ten gateways.
const maxVia = 160

// newMark is the mark of one process.
func newMark() string { return strings.ToLower(rand.Text()[:12]) }

// looped refuses a request that has been here already.
func (p *Proxy) looped(marks []byte) *openai.Error {
	if len(marks) == 0 || len(marks) <= maxVia && !bytes.Contains(marks, []byte(p.mark)) {
		return nil
	}
	return &openai.Error{
		Status: 508, Type: "server_error", Code: "loop_detected",
		Message: "This request has come back to the gateway that sent it: one of its workers is the gateway itself, or another gateway in front of it. Look at workers and discovery",
	}
}

// appendVia appends the marks of the gateways before this one, and its own.
func (p *Proxy) appendVia(dst, marks []byte) []byte {
	dst = append(append(dst, via...), ": "...)
	if len(marks) > 0 {
		dst = append(append(dst, marks...), ", "...)
	}
	return append(append(dst, p.mark...), "\r\n"...)
}
