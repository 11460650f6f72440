// Recall: the step of the pipeline that answers from the cache.
package proxy

import (
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
	"kvasir/openai"
	"kvasir/openai/answer"
)

// What became of a request at the cache: the values of x-kvasir-cache, and of
// `cache` in the log.
const (
	cacheHit    = "hit"
	cacheMiss   = "miss"
	cacheBypass = "bypass" // it was not looked up
	cacheWait   = "wait"   // it got the answer of an equal request that was under way
)

// An asking is what the cache is asked, with memory for the next request's. It
// outlives the body: its text is a copy.
type asking struct {
	query cache.Query
	text  []byte                         // of query
	embed func(*[cache.Dim]float32) bool // of the exchange it belongs to
}

// scopers are lent for one scope each: no stream has to hold one.
var scopers = sync.Pool{New: func() any { return new(scoper) }}

// An inquiry is a request that the cache is asked about.
type inquiry struct{ *exchange }

// recalled is what the headers, the log and the metrics say of the cache. None
// of it is text of anybody's.
type recalled struct {
	result     string // "": there is no cache for this
	why        string // it is no hit
	entry      cache.ID
	similarity float64
	age        time.Duration
}

// recall answers from the cache if it can. Whatever is wrong with the cache,
// the request goes on without it. After a miss x.rule says whether the answer
// may be kept, and x.asking.query under what.
//
// A hit is a request like others to a key's limit, and takes no tokens from it:
// no worker made any. It asks no worker and takes nothing from the retry budget.
func (x *exchange) recall() (answered bool) {
	c := x.state.settings.Cache
	if c == nil || !x.route.Recorded() {
		return false
	}
	q := inquiry{x}
	x.rule = q.cacheRule()
	if x.rule.why == "" || x.rule.stores {
		q.pose()
	}
	m, f := x.p.metrics, &x.facts.cache
	if f.why = x.rule.why; f.why != "" {
		f.result = cacheBypass
		m.cacheBypassed.WithLabelValues(f.why).Inc()
		return false
	}
	f.result = cacheMiss
	if (sharer{x}).flies() { // who leads has looked
		return false
	}
	start := time.Now()
	r, bug := q.lookUp(c)
	m.cacheLookup.Observe(time.Since(start).Seconds())
	var a answer.Answer
	if r.Hit {
		var err error
		switch a, err = answer.Parse(r.Entry.Answer); {
		case err != nil || !a.Fits(x.route.Kind):
			r.Hit, r.Err, r.Why = false, err, "unreadable"
		case a.Calls != nil && !x.state.settings.CacheOptions.ToolCalls: // kept under another configuration
			r.Hit, r.Why = false, bypassTools
		}
	}
	switch {
	case bug:
		f.why = "bug"
		m.cacheLookups.WithLabelValues("error").Inc()
	case r.Hit:
		m.cacheLookups.WithLabelValues(resultOf(r.Exact)).Inc()
		*f = recalled{result: cacheHit, entry: r.Entry.ID, similarity: r.Similarity, age: r.Age}
		x.facts.judgement.path = pathCache
		x.facts.streamed = x.req.Stream
		say := answer.NewReplay(&a, x.route.Kind, answer.NewID(), x.arrived().Unix(), x.req.Usage.Include)
		x.tell(&say)
		return true
	case r.Err != nil:
		f.why = r.Why
		m.cacheLookups.WithLabelValues("error").Inc()
	default:
		f.why, f.similarity = r.Why, r.Similarity
		m.cacheLookups.WithLabelValues(cacheMiss).Inc()
		if r.Entry != nil {
			m.cacheRefused.WithLabelValues(r.Why).Inc()
		}
	}
	return false
}

func resultOf(exact bool) string {
	if exact {
		return "exact"
	}
	return "semantic"
}

// lookUp asks the cache. A bug in there costs the hit, not the request.
func (x inquiry) lookUp(c *cache.Cache) (r cache.Result, bug bool) {
	defer func() {
		if fault := recover(); fault != nil {
			x.p.noteBug(fault, "a look into the cache")
			r, bug = cache.Result{}, true
		}
	}()
	return c.Lookup(&x.asking.query), false
}

// pose makes the query of what the request asks.
func (x inquiry) pose() {
	q := x.asking
	if q == nil {
		q = &asking{embed: x.embed}
		x.asking = q
	}
	s := scopers.Get().(*scoper)
	defer scopers.Put(s)
	question := openai.Text{At: x.rule.asks, Escaped: openai.HasEscape(x.rule.asks.Of(x.body))}
	q.text = question.AppendTo(q.text[:0], x.body)
	q.query = cache.Query{
		Scope: x.scope(s, x.rule.asks), Tenant: x.tenant(), Model: x.model, Text: q.text, MaxAge: x.rule.maxAge,
	}
	if d := x.decision(); d != nil {
		q.query.Threshold = d.CacheThreshold
	}
	if !x.rule.exact {
		q.query.Embed = q.embed
	}
}

// embed makes the embedding of the question, which judging may have made already.
func (x inquiry) embed(dst *[cache.Dim]float32) bool {
	start := time.Now()
	ok := x.state.classifier.Embed(dst, cache.Unshouted(x.asking.text))
	x.p.metrics.cacheEmbed.Observe(time.Since(start).Seconds())
	return ok
}

// forget lets go of the question, and of more memory than questions use.
func (q *asking) forget() {
	if q == nil {
		return
	}
	if cap(q.text) > 64<<10 {
		q.text = nil
	}
	q.text, q.query.Text = q.text[:0], nil
}

// log adds what became of it to the request's line.
func (r *recalled) log(e *zerolog.Event) {
	if r.result == "" {
		return
	}
	e.Str("cache", r.result)
	if r.why != "" {
		e.Str("cache_why", r.why)
	}
	if r.similarity > 0 {
		e.Float64("cache_similarity", thousandths(r.similarity))
	}
	if r.result == cacheHit {
		e.Str("cache_entry", r.entry.String()).Int64("cache_age_s", int64(r.age.Seconds()))
	}
}

// appendHeaders appends what the client is told of it in our own family.
func (r *recalled) appendHeaders(dst []byte) []byte {
	if r.result == "" {
		return dst
	}
	dst = appendHeader(dst, "x-kvasir-cache", r.result)
	if r.why != "" && r.why != "empty" {
		dst = appendFact(dst, "x-kvasir-cache-why", r.why)
	}
	if r.result == cacheHit {
		dst = appendHeader(dst, "x-kvasir-cache-entry", r.entry.String())
		dst = append(dst, "x-kvasir-cache-age: "...)
		dst = append(strconv.AppendInt(dst, int64(r.age.Seconds()), 10), "\r\n"...)
	}
	return dst
}
