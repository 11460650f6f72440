// Models: what GET /v1/models says.

package proxy

import (
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// listModels answers GET /v1/models: the models of all workers, and the two names
// that leave the choice to Kvasir.
func (p *Proxy) listModels(ctx *fasthttp.RequestCtx) {
	s := p.state.Load()
	key, ok := mayList(ctx, s, p.metrics.refusedKeys)
	if !ok {
		return
	}
	body := append([]byte(nil), `{"object":"list","data":[`...)
	for i, m := range s.listed(key) {
		if i > 0 {
			body = append(body, ',')
		}
		body = m.append(body, p.started)
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, "]}"...))
}

// showModel answers GET /v1/models/{id}.
func (p *Proxy) showModel(ctx *fasthttp.RequestCtx) {
	s := p.state.Load()
	key, ok := mayList(ctx, s, p.metrics.refusedKeys)
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
			ctx.Response.SetBodyRaw(m.append(nil, p.started))
			return
		}
	}
	respond.Error(ctx, unknownModel(id))
}

// mayList answers who shows no key where keys are configured; ok: the request goes on.
func mayList(ctx *fasthttp.RequestCtx, s *state, refused prometheus.Counter) (key *keyState, ok bool) {
	ctx.Response.Header.Set("X-Request-Id", respond.RequestID(ctx))
	if !s.keys.required() {
		return nil, true
	}
	key = s.keys.find(shownKey(&ctx.Request.Header))
	if key == nil {
		refused.Inc()
		respond.Error(ctx, invalidKey())
	}
	return key, key != nil
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
func (m *listing) append(dst []byte, created time.Time) []byte {
	dst = append(dst, `{"id":`...)
	dst = openai.AppendString(dst, m.id)
	dst = append(dst, `,"object":"model","created":`...)
	dst = strconv.AppendInt(dst, created.Unix(), 10)
	dst = append(dst, `,"owned_by":`...)
	dst = openai.AppendString(dst, m.owner)
	if m.length > 0 {
		dst = append(dst, `,"max_model_len":`...)
		dst = strconv.AppendInt(dst, int64(m.length), 10)
	}
	return append(dst, '}')
}
