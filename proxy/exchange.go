// An exchange: one request and its answer while they are under way.
package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/respond"
	"kvasir/upstream"
)

// An exchange is what the steps of the pipeline hand on. It belongs to one
// goroutine and is reused for another request after release.
type exchange struct {
	turn // of this request alone

	// Kept with what they have allocated, for the next request.
	req     openai.Request
	edit    openai.Splices
	asked   classify.Request // of the classifier
	plain   []byte           // texts with their escapes resolved
	veil    answer.Veil
	lookup  *lookup // in the cache; nil until the first
	placing placing
	head    []byte      // of the request to the worker
	pieces  net.Buffers // head and body of it
}

// A turn is what an exchange knows of one request.
type turn struct {
	p     *Proxy
	state *state // the configuration under which the request began
	ctx   *fasthttp.RequestCtx
	conn  *clientConn
	route *openai.Route
	key   *keyState // nil: no keys are configured
	spent bool      // its tokens are counted
	held  reservation

	body   []byte // as it was parsed: decompressed
	prompt int    // its bytes
	model  string // the model that answers

	verdict    *classify.Verdict // until the body goes; nil: nothing is judged
	verdictWas bool              // there was one
	rule       cacheRule         // of the cache for this request
	unveil     *answer.Unveiler  // puts hidden values back into the answer; nil: there is nothing to

	hidesUsage bool     // the usage event is for us alone
	backend    *backend // the worker that was last tried
	call       upstream.Call
	events     answer.Flow
	reply      reply

	recorder   *answer.Recorder // takes the answer down; nil: it is for nobody else
	recipients recipients       // whom the answer is for

	facts   facts
	answers answers // the books of the route
}

// facts are what the log, the metrics and the reply headers say of a request.
type facts struct {
	id        string
	sentID    respond.ID // what workers are sent for it: ours, never the client's
	asked     string     // the model of the request
	chosen    string     // the model that should answer
	worker    string
	prefill   string // the worker that computes the prompt for it; "": itself
	fallbacks int    // models asked after the chosen one
	status    int
	retries   int
	streamed  bool
	why       string // why it ended; "" while it goes well

	firstByte time.Duration // from the request to the reply's first byte
	total     time.Duration
	waited    time.Duration // of it, waiting for workers or for a place
	overhead  time.Duration // of firstByte, what was no waiting
	usage     answer.Usage

	judgement judgement
	cache     recalled
	placed    placed
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// begin takes an exchange for a request.
func (p *Proxy) begin(ctx *fasthttp.RequestCtx, rt *openai.Route, a answers) *exchange {
	x := exchanges.Get().(*exchange)
	x.p, x.ctx, x.route, x.answers = p, ctx, rt, a
	x.state = p.state.Load()
	x.conn = ctx.Conn().(*clientConn)
	x.conn.sent = 0
	x.recipients = recipients{client: x.conn, stopping: &p.stopping}
	x.reply.x = x
	x.facts.id = respond.RequestID(ctx)
	x.facts.sentID = respond.NewID()
	x.facts.usage, x.events.Usage = answer.NoUsage, answer.NoUsage
	p.metrics.inFlight.Inc()
	return x
}

// release gives the exchange back. Nothing of it may be used after.
func (x *exchange) release() {
	x.p.metrics.inFlight.Dec()
	x.forgetText()
	x.lookup.forget()
	x.placing.forget()
	x.turn = turn{}
	x.head = x.head[:0] // req is emptied by its next parse
	exchanges.Put(x)
}

// arrived is when the request had come whole.
func (x *exchange) arrived() time.Time {
	if x.conn == nil { // it is only explained
		return x.ctx.Time()
	}
	return x.conn.arrived
}

// overhead is what we added until now: everything that was no waiting.
func (x *exchange) overhead(now time.Time) time.Duration {
	return max(now.Sub(x.arrived())-x.facts.waited-x.call.Waited, 0)
}

// lostClient notes that the client did not stay to the end.
func (x *exchange) lostClient() {
	x.facts.why = whyGone
	if x.facts.usage == answer.NoUsage && x.reply.began {
		x.facts.usage = x.events.Usage // one that hangs up behind the last event has had them all
	}
	x.ctx.SetConnectionClose()
	x.answered()
}

// Bind is upstream.Holder's: it names what stops the call to a worker.
func (x *exchange) Bind(c io.Closer) bool { return x.recipients.bind(c) }

// Unbind is upstream.Holder's.
func (x *exchange) Unbind() (held bool) { return x.recipients.unbind() }

// answered keeps fasthttp's own reply back.
func (x *exchange) answered() { x.conn.answered = true }

// forgetText gives the verdict back and empties what came of the body's text,
// keeping no more memory than plain requests use.
func (x *exchange) forgetText() {
	if x.verdict != nil {
		x.verdict.Release()
		x.verdict = nil
	}
	x.asked.Texts = emptied(x.asked.Texts, 4096)
	x.pieces = emptied(x.pieces, 4096)
	x.edit.Reset()
	if cap(x.plain) > 64<<10 {
		x.plain = nil
	}
	x.plain = x.plain[:0]
	x.veil = answer.Veil{} // its values are the client's
}

// emptied is list with nothing in it, and without its memory if that is more
// than for most elements.
func emptied[S ~[]E, E any](list S, most int) S {
	if cap(list) > most {
		return nil
	}
	clear(list)
	return list[:0]
}

// forgetBody frees the prompt while the answer streams: nothing is sent again.
// An answer that is whole already does without.
func (x *exchange) forgetBody() {
	x.forgetText()
	x.placing.giveBack()
	x.req.Reset() // its fields are sub-slices of the body
	x.body = nil
	forgetBody(x.ctx)
}
