// Models: what GET /v1/models says.

package proxy

import (
	"net/url"
	"strconv"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// A modelList answers GET /v1/models.
type modelList struct{ *Proxy }

// all is the union of the workers' models and the two names that choose.
func (l modelList) all(ctx *fasthttp.RequestCtx) {
	s, key, ok := l.mayAsk(ctx)
	if !ok {
		return
	}
	body := append([]byte(nil), `{"object":"list","data":[`...)
	for i, m := range s.listed(key) {
		if i > 0 {
			body = append(body, ',')
		}
		body = l.append(body, m)
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, "]}"...))
}

// one is one of them.
func (l modelList) one(ctx *fasthttp.RequestCtx) {
	s, key, ok := l.mayAsk(ctx)
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
			ctx.Response.SetBodyRaw(l.append(nil, m))
			return
		}
	}
	respond.Error(ctx, unknownModel(id))
}

// mayAsk asks for a key where keys are asked for.
func (l modelList) mayAsk(ctx *fasthttp.RequestCtx) (*state, *keyState, bool) {
	s := l.state.Load()
	ctx.Response.Header.Set("X-Request-Id", respond.RequestID(ctx))
	if !s.keys.required() {
		return s, nil, true
	}
	key := s.keys.find(shownKey(&ctx.Request.Header))
	if key == nil {
		l.metrics.refusedKeys.Inc()
		respond.Error(ctx, invalidKey())
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

// append appends OpenAI's model object, with vLLM's max_model_len.
func (l modelList) append(dst []byte, m listing) []byte {
	dst = append(dst, `{"id":`...)
	dst = openai.AppendString(dst, m.id)
	dst = append(dst, `,"object":"model","created":`...)
	dst = strconv.AppendInt(dst, l.started.Unix(), 10)
	dst = append(dst, `,"owned_by":`...)
	dst = openai.AppendString(dst, m.owner)
	if m.length > 0 {
		dst = append(dst, `,"max_model_len":`...)
		dst = strconv.AppendInt(dst, int64(m.length), 10)
	}
	return append(dst, '}')
}
