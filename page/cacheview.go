// The cache, as the requests that are kept met it.

package page

import (
	"math"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/openai"
	"kvasir/proxy/record"
	"kvasir/proxy/roster"
)

type cacheAnswer struct {
	Store    string     `json:"store"` // embedded, milvus, off
	Entries  int64      `json:"entries"`
	Bytes    int64      `json:"bytes"`
	Problem  string     `json:"problem,omitempty"`
	Hits     int        `json:"hits"` // of the requests that are kept, as the next two
	Misses   int        `json:"misses"`
	Bypassed int        `json:"bypassed"`
	Recent   []cacheHit `json:"recent"` // the newest first
}

type cacheHit struct {
	Entry      string      `json:"entry"`
	Similarity float64     `json:"similarity"`
	Age        float64     `json:"age_ms"`
	Model      string      `json:"model"`
	Time       roster.Time `json:"time"`
	Request    string      `json:"request_id"`
}

// fewHits are listed where the client does not say how many.
const fewHits = 100

// cache is GET /api/cache.
func (p *Page) cache(ctx *fasthttp.RequestCtx) (any, *openai.Error) {
	limit, refused := number(ctx.QueryArgs(), "limit", fewHits, mostKept)
	if refused != nil {
		return nil, refused
	}
	out := cacheAnswer{Store: "off", Recent: []cacheHit{}}
	if c := p.options.Cache(); c != nil {
		stats := c.Stats()
		out.Store, out.Entries, out.Bytes, out.Problem = p.options.CacheStore, stats.Entries, stats.Bytes, stats.Problem
	}
	p.kept.each(math.MaxInt64, func(_ uint64, r *record.Record) bool {
		switch r.Cache.Result {
		case "miss":
			out.Misses++
		case "bypass":
			out.Bypassed++
		case "hit":
			if out.Hits++; uint64(len(out.Recent)) < limit {
				out.Recent = append(out.Recent, cacheHit{
					r.Cache.Entry, rounded(r.Cache.Similarity), float64(r.Cache.Age / time.Millisecond), r.Model, roster.Time{Time: r.Began}, r.ID,
				})
			}
		}
		return true
	})
	return out, nil
}
