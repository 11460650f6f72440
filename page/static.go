// The page's files.

package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"

	"github.com/valyala/fasthttp"

	"kvasir/proxy/respond"
)

//go:embed static
var static embed.FS

// contentPolicy lets the page load and ask nothing but this listener, and run nothing that stands in
// the HTML: a name that somebody made up cannot become a script.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// contentTypes are by the end of a file's name.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".json": "application/json", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// A file is one of the page's.
type file struct {
	kind, tag string
	data      []byte
}

// files are the page's, by their path below static.
func files() map[string]file {
	all := map[string]file{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		kind := contentTypes[path.Ext(name)]
		if kind == "" {
			kind = "application/octet-stream"
		}
		all[strings.TrimPrefix(name, "static/")] = file{kind, `"` + hex.EncodeToString(sum[:8]) + `"`, data}
		return nil
	})
	if err != nil {
		panic("BUG: cannot read the page that is built in: " + err.Error())
	}
	return all
}

// whatIsHere is GET / for who is no browser.
const whatIsHere = `This is the admin listener of Kvasir, an LLM gateway. Here are

  /              the page, in a browser
  /api/overview  what it shows, as JSON; also /api/workers, /api/requests,
                 /api/decisions, /api/cache, /api/config, and /api/live as events
  /metrics       for Prometheus
  /readyz        whether requests should be sent here, and what is not as it should be

docs/page.md has the routes. The OpenAI API is on the other listener, server.listen.
`

// index is GET /.
func index(all map[string]file) fasthttp.RequestHandler {
	html := serveFile(all["index.html"])
	return func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Vary", "Accept")
		if strings.Contains(string(ctx.Request.Header.Peek("Accept")), "text/html") {
			html(ctx)
			return
		}
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(whatIsHere)
	}
}

// asset is GET /page/{file:*}.
func asset(all map[string]file) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		name, _ := ctx.UserValue("file").(string)
		f, ok := all[name]
		if !ok {
			respond.NotFound(ctx, "")
			return
		}
		serveFile(f)(ctx)
	}
}

func serveFile(f file) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		h := &ctx.Response.Header
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // ask whether it is still the same
		h.Set("ETag", f.tag)
		ctx.SetContentType(f.kind)
		if string(ctx.Request.Header.Peek("If-None-Match")) == f.tag {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
		ctx.Response.SetBodyRaw(f.data)
	}
}
