// An exchange: one request and its answer while they are under way.

package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/edge"
	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/record"
	"kvasir/proxy/respond"
	"kvasir/tracing/content"
	"kvasir/tracing/traceparent"
	"kvasir/upstream"
)

// An exchange is what crosses the steps of the pipeline: the plan of the request,
// whom its answer is for, the call to a worker, the reply, and what is said of it
// all in the end. It belongs to one goroutine and is reused for another request
// after release.
type exchange struct {
	p        *Proxy
	ctx      *fasthttp.RequestCtx
	conn     *edge.Conn
	byStatus statusMetrics // the metrics of the route

	plan    plan
	account tokenAccount // what it has of its key's tokens

	cacheRule  cacheRule        // what the cache may do for this request
	lookup     *lookup          // in the cache, with memory for the next request's; nil until the first
	recipients recipients       // whom the answer is for
	recorder   *answer.Recorder // takes the answer down; nil: it is for nobody else

	at      kvroute.Placement // of the attempt under way
	backend *backend          // the worker that was last tried
	call    upstream.Call
	events  answer.Flow
	reply   reply

	facts  facts
	trace  traceparent.Context // zero: the request is not traced
	span   traceparent.SpanID  // of the leg that the exchange itself asks for
	link   traceparent.Link    // the request whose answer it was given
	talk   *content.Talk       // what is asked and answered, for the trace; nil: nobody wants it
	trail  record.Trail
	priced []record.Candidate // of the last placement, while the trail is on; memory
	head   []byte             // of the request to the worker; memory
	pieces net.Buffers        // head and body of it; memory
}

// facts are what the access log, the metrics and the reply headers say of a
// request, beside its plan.
type facts struct {
	id        string
	sentID    respond.ID // what workers are sent for it: ours, never the client's
	judged    bool       // there was a verdict
	worker    string
	prefill   string // the worker that computes the prompt for it; "": itself
	fallbacks int    // models asked after the chosen one
	status    int
	retries   int
	streamed  bool
	why       string // why it ended; "" while it goes well

	firstByte time.Duration // from the request to the reply's first byte
	total     time.Duration
	waited    time.Duration // of total: waiting for workers, for a place, or as a follower
	overhead  time.Duration // of firstByte, what was no waiting
	usage     answer.Usage
	saved     answer.Usage // of a hit: what the worker counted that made its answer
	recorded  uint64       // by which the planner's recorder knows it; 0: it does not

	priced    bool        // the configuration says what its tokens cost
	cost      float64     // in units of metrics.currency
	meter     *modelMeter // of the gaps between events; nil: none has come, or nobody counts them
	lastChunk time.Time   // when the last event with content came, while meter is set

	cache  recalled
	placed placed
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// begin takes an exchange for a request.
func (p *Proxy) begin(ctx *fasthttp.RequestCtx, rt *openai.Route, byStatus statusMetrics) *exchange {
	x := exchanges.Get().(*exchange)
	x.p, x.ctx, x.byStatus = p, ctx, byStatus
	x.plan.state, x.plan.route, x.plan.headers = p.state.Load(), rt, ctx.Request.Header.RawHeaders()
	x.conn = ctx.Conn().(*edge.Conn)
	x.recipients = recipients{client: x.conn, stopping: &p.stopping}
	x.reply.x = x
	x.facts.id = respond.RequestID(ctx)
	x.facts.sentID = respond.NewID()
	x.facts.usage, x.events.Usage = answer.NoUsage, answer.NoUsage
	p.metrics.inFlight.Inc()
	p.busy.inFlight.Add(1)
	if s := x.plan.state.settings.Tracing; s != nil {
		x.trace = s.Begin(x.plan.headers)
	}
	if p.observers.Load() != nil {
		x.trail.Start(x.arrived())
	}
	return x
}

// release gives the exchange back. Nothing of it may be used after.
func (x *exchange) release() {
	x.p.metrics.inFlight.Dec()
	x.p.busy.inFlight.Add(-1)
	x.plan.forget()
	x.lookup.forget()
	x.pieces = emptied(x.pieces, 4096)
	x.p, x.ctx, x.conn, x.byStatus = nil, nil, nil, nil
	x.account, x.cacheRule, x.recipients, x.recorder = tokenAccount{}, cacheRule{}, recipients{}, nil
	x.at, x.backend, x.call, x.events, x.reply = kvroute.Placement{}, nil, upstream.Call{}, answer.Flow{}, reply{}
	x.facts, x.head = facts{}, x.head[:0]
	x.trace, x.span, x.link = traceparent.Context{}, traceparent.SpanID{}, traceparent.Link{}
	x.talk.Release()
	x.talk = nil
	x.trail.Forget()
	x.priced = emptied(x.priced, record.MaxCandidates)
	exchanges.Put(x)
}

// read unpacks the body within the budget of all bodies and parses it, once, into
// plan.body, plan.req and plan.asked. A chat template of the client's is refused with
// what else is not valid, where the configuration says so.
func (x *exchange) read() *openai.Error {
	body, err := edge.Unpack(x.ctx, &x.p.bodies, x.plan.state.settings.MaxBody)
	if err != nil {
		return err
	}
	if err := x.plan.parse(body, x.ctx.Request.Header.ContentType()); err != nil {
		return err
	}
	if n := len(x.plan.req.Content.Texts); n > fewTexts && !x.conn.Charge(&x.p.bodies, int64(n)*textCost) {
		return edge.NoRoom()
	}
	x.facts.streamed = x.plan.req.Stream
	return nil
}

// Each text of a request takes textCost bytes besides its own, in the parser and in the
// classifier. A few packed kilobytes can hold so many texts that they take ten
// megabytes. Above fewTexts these bytes are counted as the body is.
const (
	fewTexts = 1024
	textCost = 96
)

// arrived is when the request had come whole.
func (x *exchange) arrived() time.Time { return x.conn.Arrived() }

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
func (x *exchange) answered() { x.conn.Answered() }

// Gone is asked by the classifier: nobody waits for the verdict, because the client
// has gone or the proxy ends what is under way.
func (x *exchange) Gone() bool { return x.conn.Gone() || x.p.stopping.Load() }

// forgetBody frees the prompt while the answer streams. An answer that is whole
// already does without.
func (x *exchange) forgetBody() {
	x.plan.forgetBody()
	x.pieces = emptied(x.pieces, 4096)
	edge.Forget(x.ctx)
}
