// An exchange: one request and its answer while they are under way.
package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// An exchange is what the steps of the pipeline hand on. It belongs to one
// goroutine and is reused for another request after release.
type exchange struct {
	p     *Proxy
	state *state // the configuration under which the request began
	ctx   *fasthttp.RequestCtx
	conn  *clientConn
	route *route
	key   *keyState // nil: no keys are configured

	head   []byte      // of the request to the worker
	pieces net.Buffers // head and body of it

	body  []byte // as it was parsed: decompressed
	req   request
	edit  splices
	model string // the model that answers

	hidesUsage bool     // the usage event is for us alone
	backend    *backend // the worker that was last tried
	call       call
	events     eventFlow
	reply      reply

	facts   facts
	answers answers // the books of the route
}

// facts are what the log, the metrics and the reply headers say of a request.
type facts struct {
	id        string
	asked     string // the model of the request
	chosen    string // the model that should answer
	worker    string
	fallbacks int // models asked after the chosen one
	status    int
	retries   int
	streamed  bool
	why       string // why it ended; "" while it goes well

	firstByte time.Duration // from the request to the reply's first byte
	total     time.Duration
	waited    time.Duration // of it, waiting for workers or for a place
	overhead  time.Duration // of firstByte, what was no waiting
	usage     tokenCounts
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// begin takes an exchange for a request.
func (p *Proxy) begin(ctx *fasthttp.RequestCtx, rt *route, books answers) *exchange {
	x := exchanges.Get().(*exchange)
	x.p, x.ctx, x.route, x.answers = p, ctx, rt, books
	x.state = p.state.Load()
	x.conn = ctx.Conn().(*clientConn)
	x.conn.sent = 0
	x.reply.x = x
	x.facts.id = requestID(ctx)
	x.facts.usage = noCounts
	p.metrics.inFlight.Inc()
	return x
}

// release gives the exchange back. Nothing of it may be used after.
func (p *Proxy) release(x *exchange) {
	p.metrics.inFlight.Dec()
	x.edit.reset()
	clear(x.pieces)
	// Of req, edit, head and pieces the memory is kept; parse empties req. The
	// rest is emptied field by field: a new exchange would be a copy of 2 KiB.
	x.p, x.state, x.ctx, x.conn, x.route, x.answers, x.key, x.backend = nil, nil, nil, nil, nil, nil, nil, nil
	x.head, x.pieces, x.body, x.model, x.hidesUsage = x.head[:0], x.pieces[:0], nil, "", false
	x.call, x.events, x.reply, x.facts = call{}, eventFlow{}, reply{}, facts{}
	exchanges.Put(x)
}

// bind and unbind are the client's connection's.
func (x *exchange) bind(c io.Closer) bool { return x.conn.bind(c) }
func (x *exchange) unbind() bool          { return x.conn.unbind() }

// overhead is what we added until now: everything that was no waiting.
func (x *exchange) overhead(now time.Time) time.Duration {
	return max(now.Sub(x.ctx.Time())-x.facts.waited-x.call.waited, 0)
}
