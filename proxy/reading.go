// Reading: request bodies as the pipeline reads them, for those who only ask what is in them.
package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/openai"
)

// A Reading reads one request body after another, as the pipeline does before
// it judges. It is for one goroutine.
type Reading struct {
	ClientTemplates bool // as Guards has it
	x               exchange
}

// Chat reads a body of /v1/chat/completions, which may leave the model out:
// then it is ours to choose. What comes back is valid until the next call, and
// as long as body is not changed. The error is the one that a client would get.
func (r *Reading) Chat(body []byte) (*classify.Request, error) {
	q, err := r.Read("/tokenize", body)
	if err == nil && !r.x.req.MessagesAt.Given() {
		return nil, openai.Invalid("messages", "you must provide a messages parameter")
	}
	return q, err
}

// Read is Chat for the route with this path; its model may be left out only
// where the route's may.
func (r *Reading) Read(path string, body []byte) (*classify.Request, error) {
	x := &r.x
	for i := range openai.Routes {
		rt := &openai.Routes[i]
		if rt.Path != path || rt.Kind == openai.KindForm {
			continue
		}
		if err := x.req.Parse(*rt, body, nil); err != nil {
			return nil, err
		}
		if err := x.req.RefuseTemplate(r.ClientTemplates); err != nil {
			return nil, err
		}
		x.body, x.route = body, rt
		x.facts.asked = string(x.req.Model)
		return x.question(), nil
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
	x := &r.x
	x.state = &state{settings: s, keys: newKeyring(nil, nil), models: make(map[string]Model, len(s.Models))}
	for _, m := range s.Models {
		x.state.models[m.Name] = m
	}
	x.ctx, x.model, x.verdict = &fasthttp.RequestCtx{}, model, v
	defer func() { x.ctx, x.state, x.verdict = nil, nil, nil }()
	if !x.route.Recorded() {
		return CacheAsk{Why: "route"}
	}
	x.rule = inquiry{x}.cacheRule()
	ask := CacheAsk{Why: x.rule.why, Kept: x.rule.stores, Exact: x.rule.exact}
	if x.rule.asks.Given() {
		inquiry{x}.pose()
		ask.Question, ask.Scope = bytes.Clone(x.asking.text), x.asking.query.Scope
		ask.Literal = x.asking.query.Literal()
	}
	return ask
}
