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

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

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

// Routes adds the page and its routes to those of the admin listener. changing wraps a route that
// changes something.
func (p *Page) Routes(r *router.Router, changing func(fasthttp.RequestHandler) fasthttp.RequestHandler) {
	all := files()
	for path, serve := range map[string]fasthttp.RequestHandler{"/": index(all), "/page/{file:*}": asset(all)} {
		r.GET(path, serve)
		r.HEAD(path, serve)
	}
	for path, of := range map[string]func(*fasthttp.RequestCtx) (any, *openai.Error){
		"/api/overview": p.overview, "/api/workers": p.workers, "/api/requests": p.requests, "/api/requests/{id}": p.request,
		"/api/decisions": p.decisions, "/api/cache": p.cache, "/api/config": p.configuration,
	} {
		r.GET(path, p.answer(of))
	}
	r.GET("/api/live", p.serveLive)
	r.POST("/api/explain", p.answer(p.explain))
	r.POST("/api/try/{path:*}", changing(p.try))
	r.POST("/workers/{name}/drain", changing(p.drain(true)))
	r.POST("/workers/{name}/undrain", changing(p.drain(false)))
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
