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
func (p *Proxy) serve(ctx *fasthttp.RequestCtx, rt *openai.Route, a answers) {
	x := p.begin(ctx, rt, a)
	defer x.end()
	if err := x.answer(); err != nil {
		x.refuse(err)
	}
}

// answer is the way of the request. Each step may end it.
func (x *exchange) answer() *openai.Error {
	if x.p.refusing.Load() {
		return shuttingDown()
	}
	if err := x.identify(); err != nil { // whose key is it
		return err
	}
	if err := x.read(); err != nil { // the body, parsed once
		return err
	}
	x.choose()                        // the model that shall answer
	if err := x.admit(); err != nil { // may this key have it, now
		return err
	}
	x.judge()                          // what it is about, and whether it may pass
	if err := x.decide(); err != nil { // what follows
		return err
	}
	if answered, err := (gate{x}).guard(); answered || err != nil {
		return err
	}
	if answered, err := x.reuse(); answered || err != nil { // what was answered before, or is now
		return err
	}
	place := placer{x}
	if err := place.steer(); err != nil { // where it asks to be placed
		return err
	}
	x.splice()     // what changes in the body on its way
	place.locate() // which blocks of KV cache it would meet
	return x.forward()
}

// choose settles which model answers: MoM and auto leave it to us.
func (x *exchange) choose() {
	x.model = x.facts.asked
	if x.model == "" || isAutoModel(x.model) {
		x.model = x.state.defaultModel()
	}
	x.facts.chosen = x.model
}

// splice notes every change of the body. All other bytes reach the worker as
// they came.
func (x *exchange) splice() {
	x.edit.Reset()
	if x.model != x.facts.asked {
		openai.SetModel(&x.edit, &x.req, x.model)
	}
	openai.StripHandover(&x.edit, &x.req)
	openai.RewriteHeads(&x.edit, &x.req)
	x.effects()
	x.redact()
	placer{x}.spliceSalt()
	if x.hidesUsage = x.req.Stream && x.route.CountsUsage() && !x.req.Usage.Include && !x.req.Usage.Continuous; x.hidesUsage {
		openai.AskUsage(&x.edit, &x.req)
	}
}

// end closes the books on a request: also on one whose way panicked.
func (x *exchange) end() {
	if fault := recover(); fault != nil {
		x.panicked(fault)
	}
	x.settle() // before anything that could fail: what is set aside of a key's tokens must not stay so
	x.facts.total = time.Since(x.arrived())
	x.endCall()
	books{x.p}.enter(x)
	x.keep()
	x.release()
}
