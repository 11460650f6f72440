// Explaining: where a request would be placed now and at what price, on the admin listener.
package proxy

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/classify"
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

// explainPlacement takes the way of a request up to its placement. Nothing is sent,
// taken or counted.
func (p *Proxy) explainPlacement(ctx *fasthttp.RequestCtx, path string) (*PlacementExplained, *openai.Error) {
	x := &exchange{turn: turn{p: p, ctx: ctx, state: p.state.Load()}}
	for i := range openai.Routes {
		if openai.Routes[i].Path == path && openai.Routes[i].Generates() {
			x.route = &openai.Routes[i]
		}
	}
	if x.route == nil {
		return nil, openai.Invalid("route", "There is no route %s whose answers are generated", path)
	}
	if err := x.read(); err != nil {
		return nil, err
	}
	x.choose()
	if c := x.state.classifier; !c.Idle(x.auto()) {
		x.verdict = c.Judge(x.question())
		defer x.verdict.Release()
	}
	if err := x.decide(); err != nil {
		return nil, err
	}
	out := &PlacementExplained{Model: x.model, Policy: x.state.settings.Routing.Policy, Candidates: []CandidateExplained{}}
	if v := x.verdict; v != nil && (v.Blocked() != classify.Passed || v.Decision != nil && v.Decision.Refuse != "") {
		out.Problem = "no worker is asked: a guard or a decision answers"
		return out, nil
	}
	if err := (placer{x}).steer(); err != nil {
		return nil, err
	}
	x.splice()
	placer{x}.locate()
	defer x.placing.giveBack()
	q := (&journey{placer: placer{x}, aggregate: x.aggregates()}).query()
	q.Now = time.Now()
	priced, why, err := x.state.pool.Explain(q)
	out.Why = why
	out.Tokens, out.Exact, out.Approximate = q.Tokens, q.Prompt != nil && q.Prompt.Exact(), x.facts.placed.approximate
	if out.Exact {
		out.Source = p.tokens.Of(x.model).Model.Source()
	}
	var pin *kvroute.PinError
	switch {
	case errors.As(err, &pin):
		return nil, wrongPin(pin)
	case err != nil:
		out.Problem = err.Error()
	}
	for i := range priced {
		out.Candidates = append(out.Candidates, explained(&priced[i]))
	}
	return out, nil
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
