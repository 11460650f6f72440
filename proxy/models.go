// Models: what GET /v1/models says.
package proxy

import (
	"net/url"
	"strconv"

	"github.com/valyala/fasthttp"
)

// listModels is the union of the workers' models and the two names that choose.
func (p *Proxy) listModels(ctx *fasthttp.RequestCtx) {
	s, key, ok := p.mayList(ctx)
	if !ok {
		return
	}
	body := append([]byte(nil), `{"object":"list","data":[`...)
	for i, m := range s.listed(key) {
		if i > 0 {
			body = append(body, ',')
		}
		body = p.appendModel(body, m)
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, "]}"...))
}

// showModel is one of them.
func (p *Proxy) showModel(ctx *fasthttp.RequestCtx) {
	s, key, ok := p.mayList(ctx)
	if !ok {
		return
	}
	id, _ := ctx.UserValue("id").(string)
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain // OpenAI's SDKs escape the slash of org/model
	}
	for _, m := range s.listed(key) {
		if m.id == id {
			ctx.SetContentType("application/json")
			ctx.Response.SetBodyRaw(p.appendModel(nil, m))
			return
		}
	}
	writeError(ctx, unknownModel(id))
}

// mayList asks for a key where keys are asked for.
func (p *Proxy) mayList(ctx *fasthttp.RequestCtx) (*state, *keyState, bool) {
	s := p.state.Load()
	ctx.Response.Header.Set("X-Request-Id", requestID(ctx))
	if !s.keys.required() {
		return s, nil, true
	}
	key := s.keys.find(shownKey(&ctx.Request.Header))
	if key == nil {
		p.metrics.refusedKeys.Inc()
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
		writeError(ctx, invalidKey())
	}
	return s, key, key != nil
}

// A listing is one line of the list of models.
type listing struct {
	id, owner string
	length    int // longest prompt and answer, in tokens; 0: unknown
}

// listed are the models that a key may see: MoM and auto, and those that workers
// serve.
func (s *state) listed(key *keyState) []listing {
	list := []listing{{id: "MoM", owner: "kvasir"}, {id: "auto", owner: "kvasir"}}
	for _, m := range s.pool.Models() {
		if key.allowed(m.Name) {
			list = append(list, listing{m.Name, "worker", m.MaxModelLen})
		}
	}
	return list
}

// appendModel appends OpenAI's model object, with vLLM's max_model_len.
func (p *Proxy) appendModel(dst []byte, m listing) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendJSONString(dst, m.id)
	dst = append(dst, `,"object":"model","created":`...)
	dst = strconv.AppendInt(dst, p.started.Unix(), 10)
	dst = append(dst, `,"owned_by":`...)
	dst = appendJSONString(dst, m.owner)
	if m.length > 0 {
		dst = append(dst, `,"max_model_len":`...)
		dst = strconv.AppendInt(dst, int64(m.length), 10)
	}
	return append(dst, '}')
}
