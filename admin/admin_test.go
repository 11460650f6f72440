// Tests of the routes, without a listener.

package admin

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"kvasir/cache"
	"kvasir/gpu"
	"kvasir/proxy/browser"
	"kvasir/proxy/health"
)

// options returns the options of a healthy Kvasir without a cache.
func options() *Options {
	return &Options{
		Log: zerolog.Nop(), Hosts: func() []string { return nil }, Metrics: prometheus.NewRegistry(),
		Readiness:  func() health.Readiness { return health.Readiness{Status: "ready", Code: 200} },
		Fleet:      func(time.Time) *gpu.Fleet { return &gpu.Fleet{State: gpu.Off, Why: "gpu.mode is off"} },
		Cache:      func() *cache.Cache { return nil },
		Classifier: func() Classifier { return Classifier{} },
		Explain:    func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("explained") },
	}
}

// ask sends one request, with the header that changes require.
func ask(o *Options, method, path, body string) (status int, reply string) {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.Set(browser.AdminHeader, "1")
	ctx.Request.SetBodyString(body)
	Handler(o)(&ctx)
	return ctx.Response.StatusCode(), string(ctx.Response.Body())
}

// checkErrorShape requires exactly OpenAI's four members.
func checkErrorShape(t *testing.T, body string) {
	t.Helper()
	var shape map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &shape); err != nil || len(shape) != 1 || len(shape["error"]) != 4 {
		t.Errorf("not OpenAI's error: %v %q", err, body)
	}
	for _, member := range []string{"message", "type", "param", "code"} {
		if shape["error"][member] == nil {
			t.Errorf("the error lacks %s: %s", member, body)
		}
	}
}

// Each route returns the result of its function.
func TestRoutes(t *testing.T) {
	o := options()
	broken := options()
	broken.Reload = func() error { return errors.New("workers: there is none") }
	well := options()
	well.Reload = func() error { return nil }
	for _, c := range []struct {
		o            *Options
		method, path string
		status       int
		says         string
	}{
		{o, "GET", "/health", 200, `{"status":"ok"}`},
		{o, "GET", "/readyz", 200, `{"status":"ready","reasons":[]}`},
		{o, "GET", "/debug/gpu", 200, `"why":"gpu.mode is off"`},
		{o, "GET", "/metrics", 200, ""},
		{o, "HEAD", "/metrics", 200, ""},
		{o, "GET", "/debug/pprof/cmdline", 200, ""},
		{o, "POST", "/explain", 200, "explained"},
		{o, "GET", "/cache", 404, "cache_off"},
		{o, "GET", "/nothing", 404, "unknown_url"},
		{o, "POST", "/v1/chat/completions", 404, "the OpenAI API is on the other listener"},
		{o, "GET", "/reload", 405, "method_not_allowed"},
		{o, "POST", "/reload", 501, "there is no configuration to reload"},
		{broken, "POST", "/reload", 422, "The new configuration was not taken, the old one stays: workers: there is none"},
		{well, "POST", "/reload", 200, `{"status":"reloaded"}`},
	} {
		status, body := ask(c.o, c.method, c.path, "")
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
		if status >= 400 {
			checkErrorShape(t, body)
		}
	}
}

// Routes that change something require a header that no web page can send without permission, and
// host names that a foreign page could use are refused.
func TestWebPagesAreRefused(t *testing.T) {
	o := options()
	o.Hosts = func() []string { return []string{"kvasir.monitoring.svc"} }
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"POST", "/reload", "127.0.0.1:9090", 403},
		{"DELETE", "/cache", "127.0.0.1:9090", 403},
		{"DELETE", "/cache/0000000000000001", "127.0.0.1:9090", 403},
		{"GET", "/readyz", "evil.example", 403},
		{"GET", "/livez", "evil.example", 200}, // it reveals nothing
		{"GET", "/readyz", "kvasir.monitoring.svc:9090", 200},
	} {
		var ctx fasthttp.RequestCtx
		ctx.Request.Header.SetMethod(c.method)
		ctx.Request.SetRequestURI(c.path)
		ctx.Request.Header.SetHost(c.host)
		Handler(o)(&ctx)
		if ctx.Response.StatusCode() != c.status {
			t.Errorf("%s %s as %s: %d %s", c.method, c.path, c.host, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
}
