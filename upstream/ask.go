// Questions of our own to a worker, by the same means as requests go.

package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"kvasir/kvroute/prompt"
)

const (
	questionTimeout = 5 * time.Second // of a GET: SGLang's /health takes a second each time
	questionReply   = 4 << 20         // bytes of the reply to a GET

	tokensTimeout = time.Second      // for asking a worker for tokens
	tokensRest    = 30 * time.Second // of a worker that did not answer in that time
	tokensReply   = 8 << 20          // bytes of its answer
)

// A question is a GET of our own, or a POST where it has a body. It is asked for as
// long as its context lives.
type question struct {
	w      *Worker
	ctx    context.Context
	path   string        // below the worker's base path
	body   []byte        // JSON; nil: GET
	within time.Duration // until the first byte of the reply's body, and between two reads after it
	limit  int           // bytes that are read of the reply
	stop   func() bool   // of the context's hold on the connection
}

// get asks the worker for a path below its base path.
func (w *Worker) get(ctx context.Context, path string) (status int, body []byte, err error) {
	q := question{w: w, ctx: ctx, path: path, within: questionTimeout, limit: questionReply}
	return q.ask()
}

// ask sends the question and reads the whole reply, or limit bytes of it and a bit.
// It goes the way of requests: over the same connections, as strict in what is read.
func (q *question) ask() (status int, body []byte, err error) {
	var c Call
	defer func() { c.Finish(q) }()
	err = c.Open(q, q.w.Conns, Timeouts{FirstByte: q.within, Idle: q.within})
	if err == nil {
		// Only here is EOF a right end: from Open it is a worker that hung up.
		if err = c.Hold(q.limit); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	switch {
	case errors.Is(err, ErrFirstByte) || errors.Is(err, ErrIdle):
		return 0, nil, fmt.Errorf("%s is not answered within %v", q.path, q.within)
	case err != nil:
		return 0, nil, fmt.Errorf("cannot ask %s: %w", q.path, err)
	}
	return c.Head.Status, bytes.Clone(c.Payload()), nil
}

// Request is Asker's.
func (q *question) Request() net.Buffers {
	method := http.MethodGet
	if q.body != nil {
		method = http.MethodPost
	}
	head := append(q.w.AppendTarget(nil, method, q.path, nil), "User-Agent: kvasir\r\n"...)
	head = append(head, q.w.fixed...)
	if q.body == nil {
		return net.Buffers{append(head, "\r\n"...)}
	}
	head = append(head, "Content-Type: application/json\r\nContent-Length: "...)
	return net.Buffers{append(strconv.AppendInt(head, int64(len(q.body)), 10), "\r\n\r\n"...), q.body}
}

// Bind is Holder's.
func (q *question) Bind(c io.Closer) bool {
	q.stop = context.AfterFunc(q.ctx, func() { _ = c.Close() })
	return q.ctx.Err() == nil
}

// Unbind is Holder's.
func (q *question) Unbind() bool { return q.stop == nil || q.stop() }

// keptBack says whether a route is not there, or not for us: that is no trouble.
func keptBack(status int) bool {
	return status == http.StatusNotFound || status == http.StatusForbidden || status == http.StatusUnauthorized || status == http.StatusMethodNotAllowed
}

// AskTokens is prompt.Asker for this worker. It has a second for the whole answer:
// the clock of a connection begins anew with each byte. A worker that has not
// answered by then is Muted for a while.
func (w *Worker) AskTokens(ctx context.Context, path string, body []byte) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, tokensTimeout)
	defer cancel()
	q := question{w: w, ctx: within, path: path, body: body, within: tokensTimeout, limit: tokensReply}
	status, reply, err := q.ask()
	if within.Err() != nil && ctx.Err() == nil {
		w.mute.Store(time.Now().Add(tokensRest).UnixNano())
		return nil, fmt.Errorf("%s at worker %q is not answered within %v", path, w.Name(), tokensTimeout)
	}
	switch {
	case err == nil && keptBack(status):
		err = fmt.Errorf("%s at worker %q answers %d: %w", path, w.Name(), status, prompt.ErrNoRoute)
	case err == nil && status != http.StatusOK:
		err = fmt.Errorf("%s at worker %q answers %d", path, w.Name(), status)
	}
	return reply, err
}

// Muted says that the worker did not answer a question for tokens in time, a short
// while ago: each request that asked again would wait as long.
func (w *Worker) Muted(now time.Time) bool { return w.mute.Load() > now.UnixNano() }
