// The pipeline: the way of one request, step after step.

package proxy

import (
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
)

// serve takes one request of a route that is passed on to workers from its
// first step to its last. Whatever happens, the client gets one answer, the
// worker is let go, and one line says how it went.
func (p *Proxy) serve(ctx *fasthttp.RequestCtx, rt *openai.Route, a statusMetrics) {
	x := p.begin(ctx, rt, a)
	defer x.end()
	if err := x.answer(); err != nil {
		x.refuse(err)
	}
}

// answer is the way of the request. Each step may end it.
func (x *exchange) answer() (err *openai.Error) {
	p, plan, m := x.p, &x.plan, x.p.metrics
	s := plan.state
	if p.refusing.Load() {
		return shuttingDown()
	}
	if plan.key, err = identify(s.keys, &x.ctx.Request.Header); err != nil { // whose key is it
		m.refusedKeys.Inc()
		return err
	}
	if err = x.read(); err != nil { // the body, parsed once
		return err
	}
	plan.choose()                                   // the model that shall answer
	if err = admit(plan, x.arrived()); err != nil { // may this key have it, now
		return err
	}
	if err = x.reserve(plan.model); err != nil { // and as many tokens
		return err
	}
	if plan.isJudged() { // what it is about
		q := plan.ask(p.tokens)
		q.Client, q.For = clientNumber(plan.key, x.ctx.RemoteIP()), x
		plan.verdict, x.facts.judged = s.classifier.Judge(q), true
		plan.judgement.note(plan.verdict)
		p.countVerdict(plan.verdict)
	}
	if plan.decide() { // what follows: another model, perhaps
		if err = x.reserve(plan.model); err != nil {
			return err
		}
	}
	if answered, err := x.guard(); answered || err != nil { // may it pass
		return err
	}
	if answered, err := x.reuse(); answered || err != nil { // what was answered before, or is now
		return err
	}
	if err = plan.settlePlace(); err != nil { // where it asks to be placed, and under which salt
		return err
	}
	plan.splice(func(kind string) { m.signals.redacted.WithLabelValues(kind).Inc() }) // what changes in the body on its way
	x.locate()                                                                        // which blocks of KV cache it would meet
	return x.forward()
}

// locate finds the blocks that the prompt would meet, for the model that answers.
func (x *exchange) locate() {
	if x.facts.fallbacks > 0 {
		x.plan.placing.pin = noPin // what was asked for is no worker of this model
	}
	x.facts.placed = locate(&x.plan, x.p.tokens)
}

// guard answers a request that may not pass, as the ruling says. The ruling lives in
// this frame and not in answer's: streams keep that one, and the stack that it needs.
func (x *exchange) guard() (answered bool, err *openai.Error) {
	r := rule(x.plan.verdict, &x.plan.state.settings.Guards, x.plan.model)
	x.p.countRuling(x.plan.verdict, &r)
	j := &x.plan.judgement
	j.path, j.guard, j.unjudged = r.path, r.guard, r.passed
	switch {
	case r.gone && x.conn.Gone():
		return false, clientGone
	case r.gone:
		return false, shuttingDown()
	case r.err != nil:
		return false, r.err
	case r.refusal == nil:
		return false, nil
	}
	x.facts.why = "blocked"
	status := r.status
	if !x.plan.route.Generates() && status == fasthttp.StatusOK {
		status = fasthttp.StatusBadRequest // there is no answer to say it in
	}
	if status != fasthttp.StatusOK {
		return false, &openai.Error{Status: status, Type: "invalid_request_error", Code: "content_filter", Message: r.refusal.Text}
	}
	say := r.refusal.Replay(x.plan.route.Kind, x.arrived().Unix(), x.plan.req.Usage.Include)
	x.tell(&say)
	return true, nil
}

// end settles what a request has used, and has it logged: also one whose way
// panicked.
func (x *exchange) end() {
	if fault := recover(); fault != nil {
		x.panicked(fault)
	}
	x.settle() // before anything that could fail: what is set aside of a key's tokens must not stay so
	x.facts.total = time.Since(x.arrived())
	x.endCall()
	x.p.record(x)
	x.keep()
	x.release()
}
