// The document of the admin listener against its routes.

package admin

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// TestDocument: each route that is registered is in the document, by its methods, and nothing else is.
func TestDocument(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct{ Summary string }
	}
	r := routes(options())
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/openapi.json")
	r.Handler(&ctx)
	if err := json.Unmarshal(ctx.Response.Body(), &document); err != nil || ctx.Response.StatusCode() != 200 {
		t.Fatalf("%d %v: %s", ctx.Response.StatusCode(), err, ctx.Response.Body())
	}
	var got, want []string
	for path, methods := range document.Paths {
		for method, o := range methods {
			got = append(got, strings.ToUpper(method)+" "+path)
			if o.Summary == "" {
				t.Errorf("nothing is said of %s %s", method, path)
			}
		}
	}
	for method, paths := range r.List() {
		for _, path := range paths {
			if method == "*" {
				method = "GET" // the usual one
			}
			if method != "HEAD" { // of GET
				want = append(want, method+" "+strings.ReplaceAll(path, ":*}", "}"))
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the document has\n%s\nthe routes are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
