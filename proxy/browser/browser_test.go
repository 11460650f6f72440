// Tests of which hosts, origins and content types pass.

package browser

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// request is a POST to a route of the API under this host; headers are names and values.
func request(host string, headers ...string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/v1/chat/completions")
	ctx.Request.Header.SetHost(host)
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	return ctx
}

func TestCheckAPI(t *testing.T) {
	const name, kind, json, text = "Origin", "Content-Type", "application/json", "text/plain"
	for _, c := range []struct {
		ctx  *fasthttp.RequestCtx
		code string // of the refusal; "": it passes
	}{
		{request("127.0.0.1:8080", kind, json), ""},
		{request("[::1]:8080", kind, json), ""},
		{request("localhost.", kind, json), ""},
		{request("a.localhost:8080", kind, "application/json; charset=utf-8"), ""},
		{request("nas.local", kind, json), ""},
		{request("Kvasir.Example:8080", kind, json), ""},
		{request("evil.example", kind, json), "host_not_allowed"},
		{request("127.0.0.1.nip.io", kind, json), "host_not_allowed"},
		{request("localhost.evil.example", kind, json), "host_not_allowed"},
		{request("127.0.0.1:8080", kind, text), "content_type_not_allowed"},
		{request("127.0.0.1:8080", kind, text, name, "https://evil.example"), "origin_not_allowed"},
		{request("127.0.0.1:8080", kind, text, name, "null"), "origin_not_allowed"},
		{request("127.0.0.1:8080", kind, text, name, "http://127.0.0.1:8080"), ""},
		{request("127.0.0.1:8080", kind, text, name, "http://localhost:3000"), ""},
		{request("127.0.0.1:8080", kind, text, name, "https://app.example"), ""},
		{request("127.0.0.1:8080", kind, "multipart/form-data; boundary=x"), ""}, // a browser would have sent Origin
	} {
		got := ""
		if err := CheckAPI(c.ctx, []string{"kvasir.example"}, []string{"https://app.example"}); err != nil {
			got = err.Code
		}
		if got != c.code {
			t.Errorf("%s: %q, want %q", c.ctx.Request.Header.Header(), got, c.code)
		}
	}
}

func TestCheckAPIAllocatesNothing(t *testing.T) {
	ctx := request("kvasir.internal:8080", "Content-Type", "application/json")
	if n := testing.AllocsPerRun(100, func() { CheckAPI(ctx, nil, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLinks: a link of another site's page may lead to the admin listener, but not to its profiles.
func TestLinks(t *testing.T) {
	for path, status := range map[string]int{"/": 0, "/api/overview": 0, "/debug/pprof/profile?seconds=600": 403, "/debug//pprof/profile": 403, "/debug/gpu": 403} {
		ctx := request("127.0.0.1:9090", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.SetRequestURI(path)
		got := 0
		if err := CheckAdmin(ctx, nil); err != nil {
			got = err.Status
		}
		if got != status {
			t.Errorf("%s: %d", path, got)
		}
	}
}
