// Liveness and readiness, as both listeners tell them.

// Package health is what Kvasir says of its own condition at /health, /livez and
// /readyz, and the list of reasons why it is less than it should be.
//
//	var standing health.Reasons
//	standing.Set("reload", "the last reload was not taken")
//	standing.Set("reload", "") // it is well again
//	health.Routes(routes, func(ctx *fasthttp.RequestCtx) { readiness.Answer(ctx, true) })
package health

import (
	"fmt"
	"slices"
	"sync"

	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/openai"
)

// Routes adds GET and HEAD of /health and /livez, which only say that the process
// lives, and of /readyz, which ready answers with the shape of the listener.
func Routes(r *apidoc.Routes, shape apidoc.Schema, ready fasthttp.RequestHandler) {
	status := apidoc.Object(apidoc.Schema{"status": apidoc.Text("ok")}, "status")
	r.AddGet(apidoc.Operation{Path: "/health", Does: "Whether the process lives", Group: "health", Answers: status}, alive)
	r.AddGet(apidoc.Operation{Path: "/livez", Does: "Whether the process lives", Group: "health", Answers: status}, alive)
	r.AddGet(apidoc.Operation{
		Path: "/readyz", Does: "Whether requests should be sent here", Group: "health", Answers: shape, AlsoStatus: map[int]apidoc.Schema{503: shape},
	}, ready)
}

// WithReasons and WithCounts are the shapes of what Answer writes.
var (
	WithReasons = apidoc.Object(apidoc.Schema{
		"status": apidoc.Text("ready, degraded, or why no request should come"), "reasons": apidoc.List(apidoc.Text("a sentence for people")),
		"models": apidoc.List(apidoc.Text("that judge in place of the embedded weights")),
	}, "status", "reasons")
	WithCounts = apidoc.Object(apidoc.Schema{
		"status":   apidoc.Text("ready, degraded, or why no request should come"),
		"workers":  apidoc.Object(apidoc.Schema{"up": apidoc.Schema{"type": "integer"}, "all": apidoc.Schema{"type": "integer"}}, "up", "all"),
		"problems": apidoc.Schema{"type": "integer"},
	}, "status", "workers", "problems")
)

func alive(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`{"status":"ok"}`)
}

// A Readiness is what /readyz says: whether requests should be sent here, and what is
// not as it should be. Degraded is not down.
type Readiness struct {
	Status  string   // ready, degraded, or why no request should come
	Code    int      // the HTTP status: 200 or 503
	Up, All int      // workers: those that are up, and all
	Reasons []string // each a sentence for people
	Models  []string // that judge in place of the embedded weights
}

// Answer writes it, with the reasons, or with their number alone: the reasons name
// workers, their addresses and parts of the configuration.
func (r *Readiness) Answer(ctx *fasthttp.RequestCtx, withReasons bool) {
	body := append([]byte(nil), `{"status":`...)
	body = openai.AppendString(body, r.Status)
	if withReasons {
		body = appendList(append(body, `,"reasons":`...), r.Reasons)
		if len(r.Models) > 0 {
			body = appendList(append(body, `,"models":`...), r.Models)
		}
	} else {
		body = fmt.Appendf(body, `,"workers":{"up":%d,"all":%d},"problems":%d`, r.Up, r.All, len(r.Reasons))
	}
	ctx.SetStatusCode(r.Code)
	ctx.SetContentType("application/json")
	ctx.Response.SetBodyRaw(append(body, '}'))
}

func appendList(body []byte, all []string) []byte {
	body = append(body, '[')
	for i, s := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = openai.AppendString(body, s)
	}
	return append(body, ']')
}

// Reasons are the standing reasons of /readyz: each stays from when it is set until it
// is taken back. The zero value has none. Safe for concurrent use.
type Reasons struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]string
}

// Set makes text the reason under key, in place of the one before; "" takes it back.
func (r *Reasons) Set(key, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if text == "" {
		delete(r.byKey, key)
		return
	}
	if r.byKey == nil {
		r.byKey = make(map[string]string)
	}
	r.byKey[key] = text
}

// List gives the reasons, sorted.
func (r *Reasons) List() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]string, 0, len(r.byKey))
	for _, text := range r.byKey {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
