// Reading: request bodies as the pipeline reads them, for those who only ask what is in them.

package proxy

import (
	"bytes"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/openai"
)

// A Reading reads one request body after another, as the pipeline does before
// it judges. It is for one goroutine.
type Reading struct {
	ClientTemplates bool // as Guards has it
	plan            plan
	lookup          *lookup
}

// Chat reads a body of /v1/chat/completions, which may leave the model out:
// then it is ours to choose. What comes back is valid until the next call, and
// as long as body is not changed. The error is the one that a client would get.
func (r *Reading) Chat(body []byte) (*classify.Request, error) {
	q, err := r.Read("/tokenize", body)
	if err == nil && !r.plan.req.MessagesAt.Given() {
		return nil, openai.Invalid("messages", "you must provide a messages parameter")
	}
	return q, err
}

// Read is Chat for the route with this path; its model may be left out only
// where the route's may.
func (r *Reading) Read(path string, body []byte) (*classify.Request, error) {
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		if rt.Path != path || rt.Kind == openai.KindForm {
			continue
		}
		r.plan.route, r.plan.state = rt, &state{settings: &Settings{Guards: Guards{ClientTemplates: r.ClientTemplates}}}
		if err := r.plan.parse(body, nil); err != nil {
			return nil, err
		}
		return r.plan.ask(nil), nil
	}
	return nil, openai.Invalid("", "There is no route %s with a JSON body", path)
}

// A CacheAsk is what the cache would be asked about a request.
type CacheAsk struct {
	Why      string // it is not looked up: see kvasir_cache_bypassed_total; "": it is
	Kept     bool   // its answer may be kept
	Exact    bool   // only the very same text answers it
	Literal  string // why only its bytes do, white space and all; "": they need not
	Question []byte
	Scope    cache.Scope // without a key, and without headers that count
}

// Cache says what the cache would be asked about the body that was read last,
// of which the verdict is, if it were answered by this model. The body must be
// as it was.
func (r *Reading) Cache(s *Settings, v *classify.Verdict, model string) CacheAsk {
	pl := &r.plan
	if !pl.route.Recorded() {
		return CacheAsk{Why: "route"}
	}
	in := scopeInput{request: &pl.req, path: pl.route.Path, model: model, keyless: true, named: s.CacheOptions.ScopeHeaders}
	if v != nil {
		in.decision = v.Decision
	}
	for _, m := range s.Models {
		if m.Name == model {
			in.family = m.Reasoning
		}
	}
	rule := cacheRuleFor(&pl.req, pl.route.Kind, in.decision, guardOutcome{redacts: redacts(v, &s.Classify)}, nil, &s.CacheOptions)
	ask := CacheAsk{Why: rule.why, Kept: rule.stores, Exact: rule.exact}
	if rule.asks.Given() {
		r.lookup = r.lookup.of(&in, &rule)
		ask.Question, ask.Scope = bytes.Clone(r.lookup.text), r.lookup.query.Scope
		ask.Literal = r.lookup.query.Literal()
	}
	return ask
}
