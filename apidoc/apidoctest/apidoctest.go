// Package apidoctest holds the OpenAPI document of a listener against the routes that it has.
package apidoctest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
)

// Whole fails where the document at /openapi.json has another route than r, or says nothing of one.
func Whole(t *testing.T, r *apidoc.Routes) {
	t.Helper()
	got, want := told(t, r), listed(r)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the document has\n%s\nthe routes are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// told are the routes of the document.
func told(t *testing.T, r *apidoc.Routes) (routes []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct{ Summary string }
	}
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/openapi.json")
	r.Handler(&ctx)
	if err := json.Unmarshal(ctx.Response.Body(), &document); err != nil || ctx.Response.StatusCode() != fasthttp.StatusOK {
		t.Fatalf("%d %v: %s", ctx.Response.StatusCode(), err, ctx.Response.Body())
	}
	for path, methods := range document.Paths {
		for method, o := range methods {
			routes = append(routes, strings.ToUpper(method)+" "+path)
			if o.Summary == "" {
				t.Errorf("nothing is said of %s %s", method, path)
			}
		}
	}
	return routes
}

// listed are the routes that the router has.
func listed(r *apidoc.Routes) (routes []string) {
	for method, paths := range r.List() {
		if method == "HEAD" { // of GET
			continue
		}
		if method == "*" {
			method = "GET" // the usual one
		}
		for _, path := range paths {
			routes = append(routes, method+" "+strings.ReplaceAll(path, ":*}", "}"))
		}
	}
	return routes
}
