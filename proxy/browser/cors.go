// CORS: which web pages may ask, by server.cors.

package browser

import (
	"slices"

	"github.com/valyala/fasthttp"
)

const (
	corsMethods = "GET, POST, OPTIONS"
	corsHeaders = "authorization, content-type, openai-organization, openai-project, openai-beta, x-api-key, x-request-id, idempotency-key, " +
		"x-stainless-arch, x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-retry-count, x-stainless-runtime, " +
		"x-stainless-runtime-version, x-stainless-timeout, x-stainless-read-timeout, x-stainless-helper-method"
	corsExposed = "x-request-id, retry-after, retry-after-ms, x-ratelimit-limit-requests, x-ratelimit-limit-tokens, " +
		"x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, x-ratelimit-reset-requests, x-ratelimit-reset-tokens, " +
		"x-kvasir-worker, x-kvasir-overhead-us, x-kvasir-redacted, x-kvasir-trace-id, x-vsr-response-path, x-vsr-selected-category, x-vsr-selected-decision, " +
		"x-vsr-selected-model, x-vsr-selected-reasoning, x-vsr-pii-violation, x-vsr-pii-types, x-vsr-jailbreak-blocked"
)

// CORS adds the headers of CORS to the reply of a request whose origin is among
// allowed, which are origins, or "*" for any. It answers preflights, and says whether
// it has done so.
func CORS(ctx *fasthttp.RequestCtx, allowed []string) (answered bool) {
	if len(allowed) == 0 {
		return false
	}
	origin := ctx.Request.Header.Peek("Origin")
	if len(origin) == 0 || !allowsOrigin(allowed, string(origin)) {
		return false
	}
	h := &ctx.Response.Header
	h.SetBytesV("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", corsExposed)
	h.Add("Vary", "Origin")
	if !ctx.IsOptions() || len(ctx.Request.Header.Peek("Access-Control-Request-Method")) == 0 {
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", "600")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return true
}

func allowsOrigin(allowed []string, origin string) bool {
	return slices.Contains(allowed, "*") || slices.Contains(allowed, origin)
}
