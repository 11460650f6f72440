// Explaining: where a request would be placed now and at what price, on the admin listener.

package proxy

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/edge"
	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/proxy/respond"
)

// A PlacementExplained is what POST /explain answers: what placement would do with
// the body of a request of a client without a key.
type PlacementExplained struct {
	Model   string `json:"model"`
	Policy  string `json:"policy"`
	Why     string `json:"why"`             // of the choice: the policy, pinned, busy, last_resort; "": there is none
	Problem string `json:"error,omitempty"` // why there is none

	Tokens      int    `json:"prompt_tokens"` // estimated unless Exact
	Exact       bool   `json:"exact"`         // tokens are counted as the engine counts them
	Source      string `json:"source,omitempty"`
	Approximate string `json:"no_tokens,omitempty"` // why Exact is false; see kvasir_placement_approximate_total

	Candidates []CandidateExplained `json:"candidates"`
}

// A CandidateExplained is one worker, or one data-parallel rank of it, as it was priced.
type CandidateExplained struct {
	Worker  string             `json:"worker"`
	Rank    *int               `json:"rank,omitempty"`
	Leg     string             `json:"leg"` // whole, prefill, decode
	Chosen  bool               `json:"chosen"`
	Overlap OverlapExplained   `json:"overlap"`
	Load    LoadExplained      `json:"load"`
	Cost    float64            `json:"cost"` // milliseconds (predict) or blocks (kv)
	Parts   map[string]float64 `json:"cost_parts,omitempty"`
	TTFT    float64            `json:"predicted_first_byte_ms,omitempty"`

	// By telemetry of its GPUs; absent where there is nothing to say.
	Slow     float64 `json:"slow,omitempty"`     // its passes take so many times longer at present
	Aside    bool    `json:"aside,omitempty"`    // others are preferred
	Hardware string  `json:"hardware,omitempty"` // why
}

// An OverlapExplained counts leading blocks of the prompt.
type OverlapExplained struct {
	Device      int `json:"device"`
	Host        int `json:"host"`
	Disk        int `json:"disk"`
	Predicted   int `json:"predicted"`
	Of          int `json:"of"`
	BlockTokens int `json:"block_tokens"`
}

// A LoadExplained is what was under way at the candidate.
type LoadExplained struct {
	Requests int `json:"requests"`
	Decoding int `json:"decoding"`
	Backlog  int `json:"backlog_tokens"`
	Context  int `json:"context_tokens"`
}

// Explain is POST /explain. The query's route says what the body is for.
func (p *Proxy) Explain(ctx *fasthttp.RequestCtx) {
	path := string(ctx.QueryArgs().Peek("route"))
	if path == "" {
		path = "/v1/chat/completions"
	}
	out, refused := p.explainPlacement(ctx, path)
	respond.JSON(ctx, out, refused, "")
}

// explainPlacement makes the plan of a request and asks what it would be placed at.
// Nothing is sent, taken or counted.
func (p *Proxy) explainPlacement(ctx *fasthttp.RequestCtx, path string) (*PlacementExplained, *openai.Error) {
	e, err := p.explainPlan(ctx, path)
	if err != nil {
		return nil, err
	}
	defer e.forget()
	out := &PlacementExplained{Model: e.plan.model, Policy: e.plan.state.settings.Routing.Policy.String(), Candidates: []CandidateExplained{}}
	if out.Problem = e.problem; e.stops() {
		return out, nil
	}
	out.Why, out.Tokens, out.Exact, out.Approximate = e.why, e.tokens, e.exact, e.said.approximate
	if out.Exact {
		out.Source = p.tokenizers.Of(e.plan.model).Model.Source()
	}
	for i := range e.priced {
		out.Candidates = append(out.Candidates, explained(&e.priced[i]))
	}
	return out, nil
}

// An explanation is the plan of a request that is not carried out, and what placement would do.
type explanation struct {
	plan    plan
	ruling  ruling
	said    placed
	priced  []kvroute.Candidate
	why     string // of the choice
	problem string // why there is none
	tokens  int
	exact   bool // tokens are counted as the engine counts them
}

// stops says whether a guard or a decision answers, so that no worker is asked.
func (e *explanation) stops() bool {
	return e.ruling.err != nil || e.ruling.refusal != nil || e.ruling.gone
}

// forget gives back what the plan has lent.
func (e *explanation) forget() {
	e.plan.placing.giveBack()
	if e.plan.verdict != nil {
		e.plan.verdict.Release()
	}
}

// explainPlan makes the plan of a request and asks what it would be placed at. Nothing is sent,
// taken or counted. The caller forgets it.
func (p *Proxy) explainPlan(ctx *fasthttp.RequestCtx, path string) (e *explanation, err *openai.Error) {
	e = &explanation{plan: plan{state: p.state.Load(), headers: ctx.Request.Header.RawHeaders()}}
	defer func() {
		if err != nil {
			e.forget()
		}
	}()
	pl := &e.plan
	for i := range openai.Routes {
		if openai.Routes[i].Path == path && openai.Routes[i].Generates() {
			pl.route = &openai.Routes[i]
		}
	}
	if pl.route == nil {
		return e, openai.Invalid("route", "There is no route %s whose answers are generated", path)
	}
	body, err := edge.Unpack(ctx, &p.bodies, pl.state.settings.MaxBody)
	if err != nil {
		return e, err
	}
	if err := pl.parse(body, ctx.Request.Header.ContentType()); err != nil {
		return e, err
	}
	pl.answerBy(modelFor(pl.asked, pl.state))
	if pl.isJudged() {
		pl.verdict = pl.state.classifier.Judge(pl.ask(p.tokenizers))
	}
	pl.answerBy(decidedModel(pl))
	if e.ruling = rulingOn(pl.verdict, &pl.state.settings.Guards, pl.model); e.stops() {
		e.problem = "no worker is asked: a guard or a decision answers"
		return e, nil
	}
	if pl.placing.steering, err = steer(pl); err != nil {
		return e, err
	}
	pl.placing.salt = saltOf(&pl.req, pl.route, pl.key, pl.state.keys)
	pl.splice(nil)
	locate(pl, p.tokenizers, &e.said)
	q := pl.query(time.Now(), !pl.handsOver(), pl.fallback(0) != "")
	var fault error
	e.priced, e.why, fault = pl.state.pool.Explain(q)
	e.tokens, e.exact = q.Tokens, q.Prompt != nil && q.Prompt.Exact()
	var pin *kvroute.PinError
	switch {
	case errors.As(fault, &pin):
		return e, wrongPin(pin)
	case fault != nil:
		e.problem = fault.Error()
	}
	return e, nil
}

func explained(c *kvroute.Candidate) CandidateExplained {
	e := CandidateExplained{
		Worker: c.Worker.Name(), Leg: c.Leg.String(), Chosen: c.Chosen,
		Overlap: OverlapExplained{c.Overlap.Device, c.Overlap.Host, c.Overlap.Disk, c.Overlap.Predicted, c.Overlap.Of, c.Overlap.BlockSize},
		Load:    LoadExplained(c.Load),
		Cost:    thousandths(c.Cost), TTFT: milliseconds(c.TTFT),
	}
	if c.Rank >= 0 {
		e.Rank = &c.Rank
	}
	if c.Slow > 1 || c.Aside {
		e.Aside, e.Hardware = c.Aside, c.Worker.Hardware().Why
	}
	if c.Slow > 1 {
		e.Slow = thousandths(c.Slow)
	}
	for _, part := range c.Parts {
		if part.Name != "" {
			if e.Parts == nil {
				e.Parts = map[string]float64{}
			}
			e.Parts[part.Name] = thousandths(part.Value)
		}
	}
	return e
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
