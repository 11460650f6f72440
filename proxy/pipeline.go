// The pipeline: the way of one request, step after step.

package proxy

import (
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/record"
)

// serve takes one request of a route that is passed on to workers from its
// first step to its last. Whatever happens, the client gets one answer, the
// worker is let go, and one line says how it went. byStatus are the route's metrics.
func (p *Proxy) serve(ctx *fasthttp.RequestCtx, rt *openai.Route, byStatus statusMetrics) {
	x := p.begin(ctx, rt, byStatus)
	defer x.end()
	if err := x.answer(); err != nil {
		x.refuse(err)
	}
}

// answer is the way of the request. A step that ends it has answered it, or returns the
// error that it is answered with; forward always does one of the two.
//
// Their order matters in four places. The decision comes before the guard: a refusal
// names the model that would have answered, and a decision may allow types of personal
// data. The guard comes before the cache, so that a cached answer skips none. The cache
// comes before placement: a hit needs no worker, so a request that names one that is not
// there is answered on a hit and refused on a miss. And the changes of the body come before
// its tokens are counted, since a worker counts those of the body that it gets.
func (x *exchange) answer() (err *openai.Error) {
	p, plan := x.p, &x.plan
	s := plan.state
	if p.refusing.Load() {
		return shuttingDown()
	}
	if err = p.looped(x.ctx.Request.Header.Peek(via)); err != nil {
		return err
	}
	trail := &x.trail
	trail.NextAt(record.Identify, x.arrived())
	if plan.key, err = identify(s.keys, &x.ctx.Request.Header); err != nil { // whose key is it
		p.metrics.refusedKeys.Inc()
		return err
	}
	trail.Next(record.Read)
	if err = x.read(); err != nil { // the body, parsed once: plan.body, size, req and asked
		return err
	}
	trail.Next(record.Admit)
	plan.answerBy(modelFor(plan.asked, s))
	if err = admit(plan, x.arrived()); err != nil { // the key may have it, and one of its requests is taken
		return err
	}
	if err = x.reserve(plan.model); err != nil { // so are its tokens, into x.account
		return err
	}
	trail.Next(record.Judge)
	if plan.isJudged() { // what it is about; plan.judgement is what is said of that
		plan.verdict = x.judge()
	}
	if model := decidedModel(plan); model != plan.model { // what follows from that
		plan.answerBy(model)
		if err = x.reserve(model); err != nil { // in the place of the first model's tokens
			return err
		}
	}
	trail.Next(record.Guard)
	x.keepPrompt()
	if answered, err := x.guard(); answered || err != nil { // may it pass; the ruling is in plan.judgement
		return err
	}
	trail.Next(record.Reuse)
	// What was answered before, or is now; else x.cacheRule and x.lookup, by which the answer is
	// kept, and x.recipients.leader, if equal requests wait for it.
	if answered, err := x.reuse(); answered || err != nil {
		return err
	}
	trail.Next(record.Edit)
	if plan.placing.steering, err = steer(plan); err != nil { // which workers it asks for, by which weights
		return err
	}
	plan.placing.salt = saltOf(&plan.req, plan.route, plan.key, s.keys) // whose blocks it may meet

	// What changes in the body, the salt too (plan.edit, veil, unveil, hidesUsage); then the tokens
	// of the body as it will be sent, by which placement knows its blocks (plan.placing.prompt). A
	// fallback settles both anew, a worker without salts the first.
	plan.splice(p.metrics.signals.countRedacted)
	trail.Next(record.Locate)
	locate(plan, p.tokenizers, &x.facts.placed)
	return x.forward() // to workers, until one answers
}

// end settles what a request has used, and has it logged: also one whose way
// panicked.
func (x *exchange) end() {
	if fault := recover(); fault != nil {
		x.panicked(fault)
	}
	x.settle() // before anything that could fail: what is set aside of a key's tokens must not stay so
	now := time.Now()
	x.facts.total = now.Sub(x.arrived())
	x.trail.DoneAt(now)
	x.endCall()        // followers hear how it ended before anything slow
	x.p.access.note(x) // a request that is stored is logged all the same if storing fails
	x.observe()
	x.keep() // last: the client has its answer, nobody here waits for the store
	x.release()
}
