// The overview, and the workers.

package page

import (
	"net/url"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/respond"
	"kvasir/proxy/roster"
)

// A Condition is what /readyz says.
type Condition struct {
	Status  string   `json:"status"`
	Ready   bool     `json:"ready"` // requests should be sent here
	Reasons []string `json:"reasons"`
	Up      int      `json:"workers_up"`
	All     int      `json:"workers_all"`
}

// A Standing is how Kvasir is at the moment.
type Standing struct {
	Condition
	InFlight int `json:"in_flight"` // requests under way
	Queued   int `json:"queued"`    // of them, those that wait for a worker
}

// standing is how Kvasir is now, with these workers.
func (p *Page) standing(workers []roster.Worker) Standing {
	r := p.options.Readiness()
	s := Standing{Condition: Condition{Status: r.Status, Ready: r.Code == fasthttp.StatusOK, Reasons: r.Reasons, All: len(workers)}}
	for i := range workers {
		if workers[i].TakesRequests {
			s.Up++
		}
	}
	if s.Reasons == nil {
		s.Reasons = []string{}
	}
	s.InFlight, s.Queued = p.options.Busy()
	return s
}

// An Overview is what GET /api/overview answers.
type Overview struct {
	Version string      `json:"version"`
	Started roster.Time `json:"started"`
	Now     roster.Time `json:"now"`
	Standing
	Last   Sample `json:"last"` // of the last minute
	Series Series `json:"series"`
}

// Series are samples, the oldest first.
type Series struct {
	Step    int         `json:"step_s"`
	Until   roster.Time `json:"until"`
	Samples []Sample    `json:"samples"`
}

func (p *Page) overview(*fasthttp.RequestCtx) (any, *openai.Error) {
	now := time.Now()
	o := &Overview{
		Version: p.options.Version, Started: roster.Time{Time: p.started}, Now: roster.Time{Time: now}, Standing: p.standing(p.options.Workers(now)),
		Last: p.series.minute(now), Series: Series{Step: int(step.Seconds()), Until: roster.Time{Time: p.started}, Samples: p.series.all()},
	}
	o.Last.InFlight, o.Last.Queue = o.InFlight, o.Queued
	if n := len(o.Series.Samples); n > 0 {
		o.Series.Until = roster.Time{Time: time.Unix(o.Series.Samples[n-1].Time, 0)}
	}
	return o, nil
}

type workersAnswer struct {
	Workers []roster.Worker `json:"workers"`
}

func (p *Page) workers(*fasthttp.RequestCtx) (any, *openai.Error) {
	return workersAnswer{p.options.Workers(time.Now())}, nil
}

type drainAnswer struct {
	Worker   string `json:"worker"`
	Draining bool   `json:"draining"`
	Requests int    `json:"requests"` // under way there
	Until    string `json:"until,omitempty"`
}

// drainedUntil is how long a drained worker stays so.
const drainedUntil = "it is undrained, or this Kvasir is started anew"

// drain makes the route that takes a worker out, or puts it back.
func (p *Page) drain(drains bool) fasthttp.RequestHandler {
	return p.answer(func(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
		name := plain(ctx, "name")
		requests, err := p.options.Drain(name, drains)
		if err != nil {
			return nil, &openai.Error{Status: 404, Type: "invalid_request_error", Code: "worker_not_found", Param: "name", Message: err.Error()}
		}
		answer := drainAnswer{Worker: name, Draining: drains, Requests: requests}
		if drains {
			answer.Until = drainedUntil
		}
		return answer, nil
	})
}

// plain is the part of the path that a route calls by a name. The router leaves it as it was sent,
// and browsers escape the colon and the slash of host:port and of team/worker.
func plain(ctx *fasthttp.RequestCtx, part string) string {
	sent, _ := ctx.UserValue(part).(string)
	if text, err := url.PathUnescape(sent); err == nil {
		return text
	}
	return sent
}

// answer makes a route of what it answers.
func (p *Page) answer(of func(*fasthttp.RequestCtx) (any, *openai.Error)) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		out, refused := of(ctx)
		respond.JSON(ctx, out, refused, "\n")
		ctx.Response.Header.Set("Cache-Control", "no-store")
		ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
		ctx.Response.Header.Set("Content-Security-Policy", dataPolicy)
	}
}
