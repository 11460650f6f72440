// The page: what is kept for it, and its routes.

// Package page is what operators see of a running Kvasir in a browser, and the JSON routes behind
// it, which can be asked by scripts as well. It counts the requests that have ended over the last
// 15 minutes, keeps the last 1,000 of them without any of their text, and tells open pages of all
// that changes, once a second. It knows nothing of the proxy: what it shows comes from functions.
//
//	p := page.New(&page.Options{...})
//	proxy.Observe(p.Observe)         // each request that has ended
//	p.Routes(router, changing)       // of the admin listener
//	p.Close()                        // ends the streams
package page

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/apidoc"
	"kvasir/cache"
	"kvasir/openai"
	"kvasir/proxy/health"
	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

// Options are where a Page takes from what it shows. All are required, and called for each
// request, so that they fit the configuration in force.
type Options struct {
	Version string

	Readiness func() health.Readiness
	Busy      func() (inFlight, queued int)

	Connections func() int // that the listener takes at once
	Workers     func(now time.Time) []roster.Worker
	Thresholds  func() Thresholds
	Cache       func() *cache.Cache // nil: cache.store is off
	CacheStore  string              // its kind

	// Drain takes a worker out of placement, or puts it back, and gives the number of requests
	// under way there. An error says that there is none of that name.
	Drain func(name string, drains bool) (requests int, err error)

	// Explain says of the body of a request what would become of it, as a record of one that has
	// ended. Nothing is sent.
	Explain func(ctx *fasthttp.RequestCtx, path string) (*record.Record, *openai.Error)

	// Configuration is the value that GET /api/config answers.
	Configuration func() any

	// Ask sends a request to the API of this Kvasir. The caller closes the body of the response.
	Ask func(ctx context.Context, path string, header http.Header, body []byte) (*http.Response, error)
}

// Thresholds are those that scores are compared with.
type Thresholds struct {
	Category, Attack, PII   float64
	AttackAction, PIIAction string // block, redact, annotate, off
}

// A Page keeps what is shown.
type Page struct {
	options *Options
	started time.Time
	series  series
	kept    ring
	live    hub

	stop    chan struct{}
	running sync.WaitGroup
}

// New returns a Page that has seen nothing yet, and runs until Close.
func New(o *Options) *Page {
	p := &Page{options: o, started: time.Now(), stop: make(chan struct{})}
	p.series.start(p.started)
	p.kept.init()
	p.live = hub{page: p}
	p.running.Add(1)
	go p.sample()
	return p
}

// Routes adds the page and its routes to those of the admin listener, in its groups watch and change.
// changing wraps a route that changes something, changes are the headers that it asks for.
func (p *Page) Routes(r *apidoc.Routes, changing func(fasthttp.RequestHandler) fasthttp.RequestHandler, changes []apidoc.Parameter) {
	all := files()
	r.AddGet(apidoc.Operation{Path: "/", Does: "The page, in a browser", Group: "watch", AnswersType: "text/html", Answers: apidoc.Schema{"type": "string"}}, index(all))
	r.AddGet(apidoc.Operation{Path: "/page/{file:*}", Does: "A file of the page", Group: "watch", AnswersType: "*/*", Answers: apidoc.Schema{"type": "string"}}, asset(all))
	for _, get := range []struct {
		path, does string
		answers    apidoc.Schema
		of         func(*fasthttp.RequestCtx) (any, *openai.Error)
	}{
		{"/api/overview", "How it is, and the last 15 minutes", apidoc.Of[Overview](), p.overview},
		{"/api/workers", "The workers as of now", apidoc.Of[workersAnswer](), p.workers},
		{"/api/requests", "The last requests that have ended", apidoc.Of[requestsAnswer](), p.requests},
		{"/api/requests/{id}", "One of them, with its way", apidoc.Of[Full](), p.request},
		{"/api/decisions", "What was decided of them", apidoc.Of[decisionsAnswer](), p.decisions},
		{"/api/cache", "The cache, as they met it", apidoc.Of[cacheAnswer](), p.cache},
		{"/api/config", "The configuration in force, secrets hidden", apidoc.Schema{"type": "object"}, p.configuration},
	} {
		r.Add(apidoc.Operation{Method: "GET", Path: get.path, Does: get.does, Group: "watch", Answers: get.answers}, p.answer(get.of))
	}
	object := apidoc.Schema{"type": "object"}
	r.Add(apidoc.Operation{Method: "GET", Path: "/api/live", Does: "What changes, as events", Group: "watch", AnswersType: "text/event-stream", Answers: apidoc.Schema{"type": "string"}}, p.serveLive)
	r.Add(apidoc.Operation{Method: "POST", Path: "/api/explain", Does: "What would become of a request", Group: "watch", Asks: object, Answers: apidoc.Of[Explanation]()}, p.answer(p.explain))
	r.Add(apidoc.Operation{Method: "POST", Path: "/api/try/{path:*}", Does: "Send a request to the API of this Kvasir", Group: "change", Headers: changes, Asks: object, Answers: object}, changing(p.try))
	r.Add(apidoc.Operation{Method: "POST", Path: "/workers/{name}/drain", Does: "Take a worker out", Group: "change", Headers: changes, Answers: apidoc.Of[drainAnswer]()}, changing(p.drain(true)))
	r.Add(apidoc.Operation{Method: "POST", Path: "/workers/{name}/undrain", Does: "Put a worker back", Group: "change", Headers: changes, Answers: apidoc.Of[drainAnswer]()}, changing(p.drain(false)))
}

func (p *Page) configuration(*fasthttp.RequestCtx) (any, *openai.Error) {
	return p.options.Configuration(), nil
}

// Observe takes in a request that has ended. It waits for nobody, and keeps nothing of r.
func (p *Page) Observe(r *record.Record) {
	p.series.note(r)
	p.kept.add(r)
}

// sample extends the series until Close. It is all that a page costs which nobody looks at.
func (p *Page) sample() {
	defer p.running.Done()
	every := time.NewTicker(step)
	defer every.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-every.C:
			inFlight, queued := p.options.Busy()
			p.series.extend(now, inFlight, queued)
		}
	}
}

// Close ends the streams that are open and waits for all that runs. It is called once.
func (p *Page) Close() {
	close(p.stop)
	p.live.close()
	p.running.Wait()
}
