// Trying: a request from the page to the API of this Kvasir, and what it would become.

package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
)

// keyHeader is the API key that a tried request has.
const keyHeader = "X-Kvasir-Key"

// try is POST /api/try/{path:*}: it passes the body on to the API, as one of its clients, and the
// answer back as it comes. A browser that leaves takes the request with it.
func (p *Page) try(ctx *fasthttp.RequestCtx) {
	path, _ := ctx.UserValue("path").(string)
	path = "/" + path
	if !isRoute(path) {
		respond.Error(ctx, openai.Invalid("path", "%s is no route of the API that takes requests", openai.Quoted(path)))
		return
	}
	s, refused := openStream(ctx)
	if refused != nil {
		respond.Error(ctx, refused)
		return
	}
	asking, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { cancelWhen(cancel, asking.Done(), s.conn.WhenGone(), p.stop) })
	defer watching.Wait()
	defer cancel()
	reply, err := p.options.Ask(asking, path, triedHeader(ctx), bytes.Clone(ctx.Request.Body())) // the client may read it for longer than it is ours
	if errors.As(err, &refused) {
		respond.Error(ctx, refused)
		return
	}
	if err != nil {
		respond.Error(ctx, &openai.Error{Status: 502, Type: "server_error", Code: "not_reached", Message: "The API of this Kvasir cannot be asked: " + err.Error()})
		return
	}
	defer reply.Body.Close()
	pass(ctx, s, reply)
}

// isRoute says whether requests of the API may be posted to the path.
func isRoute(path string) bool {
	return slices.ContainsFunc(openai.Routes, func(r openai.Route) bool { return r.Path == path })
}

// cancelWhen cancels when the first of some things happens.
func cancelWhen(cancel func(), done, gone, stop <-chan struct{}) {
	select {
	case <-done:
	case <-gone:
	case <-stop:
	}
	cancel()
}

// triedHeader is what the API is sent beside the body.
func triedHeader(ctx *fasthttp.RequestCtx) http.Header {
	header := http.Header{}
	if kind := ctx.Request.Header.ContentType(); len(kind) > 0 {
		header.Set("Content-Type", string(kind))
	}
	if key := ctx.Request.Header.Peek(keyHeader); len(key) > 0 {
		header.Set("Authorization", "Bearer "+string(key))
	}
	return header
}

// passedOn says whether the browser is given a header of the reply.
func passedOn(name string) bool {
	return name == "Content-Type" || name == "Retry-After" || strings.HasPrefix(name, "X-")
}

// pass passes a reply of the API on as it comes.
func pass(ctx *fasthttp.RequestCtx, s stream, reply *http.Response) {
	var lines []byte
	for name, values := range reply.Header {
		for _, value := range values {
			if passedOn(name) && name != "X-Content-Type-Options" {
				lines = append(append(append(append(lines, name...), ": "...), value...), "\r\n"...)
			}
		}
	}
	if s.head(ctx, reply.StatusCode, lines) != nil {
		return
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := reply.Body.Read(buf)
		if s.chunk(buf[:n]) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			s.end()
		}
		if err != nil {
			return
		}
	}
}

// An Explanation is what would become of a request.
type Explanation struct {
	Model     string     `json:"model"`
	Signals   Signals    `json:"signals"`
	Decision  *Decision  `json:"decision"`
	Placement *Placement `json:"placement"`
	Blocked   string     `json:"blocked,omitempty"` // by which guard, or by a decision
	Problem   string     `json:"error,omitempty"`   // why no worker would be asked
}

// explain is POST /api/explain.
func (p *Page) explain(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
	path := string(ctx.QueryArgs().Peek("route"))
	if path == "" {
		path = "/v1/chat/completions"
	}
	r, refused := p.options.Explain(ctx, path)
	if refused != nil {
		return nil, refused
	}
	thresholds := p.options.Thresholds()
	return &Explanation{
		Model: r.Model, Signals: signalsOf(&r.Judgement, &thresholds), Decision: decisionOf(&r.Judgement), Placement: placementOf(&r.Placement),
		Blocked: r.Judgement.Guard, Problem: r.End,
	}, nil
}
