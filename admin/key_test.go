// Tests of the admin listener's key.

package admin

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"kvasir/proxy/browser"
	"kvasir/proxy/health"
)

// TestKey: with a key every route asks for it but those that tell nothing; /readyz keeps its reasons
// back. A foreign Host is refused before anybody looks at a key.
func TestKey(t *testing.T) {
	sum := sha256.Sum256([]byte("sk-admin"))
	o := options()
	o.Key = func() *KeySum { return &sum }
	o.Readiness = func() health.Readiness {
		return health.Readiness{Status: "degraded", Code: 200, Reasons: []string{"worker \"a\" is down"}}
	}
	handler := Handler(o)
	askAs := func(method, path, host, auth string) (int, string) {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod(method)
		ctx.Request.SetRequestURI(path)
		ctx.Request.Header.SetHost(host)
		ctx.Request.Header.Set(browser.AdminHeader, "1")
		if auth != "" {
			ctx.Request.Header.Set("Authorization", auth)
		}
		handler(&ctx)
		return ctx.Response.StatusCode(), string(ctx.Response.Body())
	}
	const here = "127.0.0.1:9090"
	for _, c := range []struct {
		method, path, host, auth string
		status                   int
		says                     string
	}{
		{"GET", "/metrics", here, "", 401, "server.admin_key_file"},
		{"GET", "/metrics", here, "Bearer sk-admin", 200, ""},
		{"GET", "/metrics", here, "bearer  sk-admin", 200, ""},
		{"GET", "/metrics", here, "Bearer sk-admin2", 401, "invalid_admin_key"},
		{"GET", "/metrics", here, "Bearer ", 401, "invalid_admin_key"},
		{"GET", "/metrics", here, "Basic sk-admin", 401, "invalid_admin_key"},
		{"GET", "/metrics", here, "sk-admin", 401, "invalid_admin_key"},
		{"GET", "/debug/pprof/cmdline", here, "", 401, "invalid_admin_key"},
		{"POST", "/explain", here, "", 401, "invalid_admin_key"},
		{"POST", "/reload", here, "", 401, "invalid_admin_key"},
		{"GET", "/api/overview", here, "", 401, "invalid_admin_key"},
		{"GET", "/nothing", here, "", 401, "invalid_admin_key"}, // whether a route is there is not told, either
		{"GET", "/livez", here, "", 200, `{"status":"ok"}`},
		{"GET", "/health", here, "", 200, `{"status":"ok"}`},
		{"GET", "/readyz", here, "", 200, `{"status":"degraded","workers":{"up":0,"all":0},"problems":1}`},
		{"GET", "/readyz", here, "Bearer sk-admin", 200, `"reasons":["worker \"a\" is down"]`},
		{"GET", "/metrics", "evil.example", "Bearer sk-admin", 403, "host_not_allowed"},
		{"GET", "/page/../metrics", here, "", 401, "invalid_admin_key"},
		{"GET", "/page/%2e%2e/metrics", here, "", 401, "invalid_admin_key"},
		{"GET", "/cache/..%2f..%2fpage%2fx", here, "", 401, "invalid_admin_key"}, // the router goes by what was sent
		{"GET", "/cache/..%2f..%2flivez", here, "", 401, "invalid_admin_key"},
		{"GET", "/debug/pprof/../../livez", here, "", 401, "invalid_admin_key"},
		{"GET", "/cache/..%2f..%2flivez", "evil.example", "Bearer sk-admin", 403, "host_not_allowed"},
	} {
		status, body := askAs(c.method, c.path, c.host, c.auth)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s as %q with %q: %d %s", c.method, c.path, c.host, c.auth, status, body)
		}
	}
	o.Key = func() *KeySum { return nil }
	if status, body := askAs("GET", "/readyz", here, ""); status != 200 || !strings.Contains(body, "reasons") {
		t.Errorf("without a key: %d %s", status, body)
	}
}
