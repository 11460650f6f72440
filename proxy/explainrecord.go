// Explaining as a record: what would become of a request, as the page shows those that have ended.

package proxy

import (
	"github.com/valyala/fasthttp"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
	"kvasir/openai"
	"kvasir/proxy/record"
)

// ExplainRecord is what would become of a request, as the record of one that has ended: what it was
// judged to be, and where it would be placed. End says why no worker would be asked.
func (p *Proxy) ExplainRecord(ctx *fasthttp.RequestCtx, path string) (*record.Record, *openai.Error) {
	e, err := p.explainPlan(ctx, path)
	if err != nil {
		return nil, err
	}
	defer e.forget()
	pl := &e.plan
	r := &record.Record{Route: path, Asked: pl.asked, Model: pl.model, End: e.problem, Prompt: -1, Completion: -1, CachedTokens: -1}
	if pl.verdict != nil {
		j := &pl.judgement
		j.note(pl.verdict)
		if e.stops() {
			j.guard = e.ruling.guard
		}
		r.Judgement = j.record(nil, true)
	}
	if e.stops() {
		return r, nil
	}
	e.said.candidates = len(e.priced)
	at := kvroute.Placement{Why: e.why, Candidates: e.priced}
	for i := range e.priced {
		c := &e.priced[i]
		switch {
		case !c.Chosen:
		case c.Leg == cost.PrefillLeg:
			at.Prefill, at.PrefillOverlap = c.Worker, c.Overlap
		default:
			at.Worker, at.Overlap = c.Worker, c.Overlap
		}
	}
	e.said.note(&at, e.tokens)
	r.Placement = e.said.record(appendPriced(nil, e.priced))
	r.Placement.Policy, r.Placement.Tokens = pl.state.settings.Routing.Policy.String(), e.tokens
	return r, nil
}
