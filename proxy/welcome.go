// What people meet who ask for a path that the API listener does not have: where it is instead.

package proxy

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// welcome answers GET / for whoever opens the address in a browser.
func welcome(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString(`This is Kvasir, a gateway to LLM workers that speaks the OpenAI API.

base_url    this address, followed by /v1
models      GET /v1/models
routes      GET /openapi.json
health      GET /livez, GET /readyz
the page    what it does, in a browser, and metrics: on the listener for operators, server.admin in the
            configuration (by default http://127.0.0.1:9090)
`)
}

// notHere answers for a path that is no route, with the one that was probably meant.
func notHere(ctx *fasthttp.RequestCtx) {
	respond.NotFound(ctx, meant(string(ctx.Path())))
}

// adminPaths are paths of the admin listener that people ask the API's for.
var adminPaths = []string{"/metrics", "/reload", "/explain", "/debug/pprof", "/debug/pprof/", "/api/overview", "/api/workers", "/api/requests", "/api/config", "/api/live", "/page"}

// meant says what to do instead of asking for a path; "": nobody knows.
func meant(path string) string {
	path = strings.TrimRight(path, "/")
	if isRoute("/v1" + path) {
		return "; the routes begin with /v1, which belongs to the client's base_url: did you mean /v1" + path + "?"
	}
	if rest, twice := strings.CutPrefix(path, "/v1/v1/"); twice && isRoute("/v1/"+rest) {
		return "; /v1 is there twice, leave it out of the path or of the client's base_url"
	}
	if slices.Contains(adminPaths, path) {
		return "; it is on the listener for operators, server.admin in the configuration"
	}
	if isRoute(path) { // with a slash at its end
		return "; did you mean " + path + "?"
	}
	return ""
}

func isRoute(path string) bool {
	return path == "/v1/models" || slices.ContainsFunc(openai.Routes[:], func(r openai.Route) bool { return r.Path == path })
}
