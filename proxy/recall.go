// Recall: the step of the pipeline that answers from the cache.

package proxy

import (
	"errors"
	"strconv"
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

// recalled is what the headers, the log and the metrics say of the cache. No
// text of any client is in it.
type recalled struct {
	result     string // "": there is no cache for this
	why        string // it is no hit
	entry      cache.ID
	similarity float64
	age        time.Duration
}

// reuse answers from the cache, or with the answer that an equal request is getting
// now. Whatever is wrong with the cache, the request goes on without it. Where reuse
// does not answer, the request goes to a worker, and three things are settled: x.cacheRule,
// whether its answer may be kept; x.lookup, under what; x.recipients.leader, whether
// equal requests wait for it.
//
// A hit counts as a request against a key's limit and takes none of its tokens:
// no worker made any. It asks no worker and takes nothing from the retry budget.
func (x *exchange) reuse() (answered bool, err *openai.Error) {
	c, o := x.plan.state.settings.Cache, &x.plan.state.settings.CacheOptions
	if c == nil || !x.plan.route.Recorded() {
		return false, nil
	}
	x.cacheRule = cacheRuleFor(&x.plan.req, x.plan.route.Kind, decisionOf(x.plan.verdict), x.guardOutcome(), x.ctx.Request.Header.RawHeaders(), o)
	if x.cacheRule.why == "" || x.cacheRule.stores {
		in := x.scopeInput()
		x.lookup = x.lookup.of(&in, &x.cacheRule)
		x.lookup.embedder = embedder{x.plan.state.classifier, x.p.metrics.cache.embed}
	}
	if x.cacheRule.why != "" {
		x.facts.cache = recalled{result: cacheBypass, why: x.cacheRule.why}
		x.p.metrics.cache.bypassed.WithLabelValues(x.cacheRule.why).Inc()
		return false, nil
	}
	query, calls := &x.lookup.query, &x.p.coalesced
	if !mayCoalesce(&x.cacheRule, &x.plan.req, o) {
		return x.answerFromCache(c, query), nil
	}
	for key := coalesceKeyOf(query); ; {
		mark := calls.Mark()
		x.facts.cache = recalled{result: cacheMiss}
		if !calls.Joinable(key) && x.answerFromCache(c, query) { // the leader of a call that can be joined has looked
			return true, nil
		}
		switch leader, follower := calls.Join(key, mark); {
		case leader != nil:
			x.recipients.leader = leader
			return x.lead(c, query, &key)
		case follower != nil:
			if answered, err = x.follow(follower); x.recipients.leader != nil { // the leader has failed, and it goes on
				return x.lead(c, query, &key)
			}
			return answered, err
		}
	}
}

// lead goes on as the leader of a call: with the answer that another Kvasir makes, where one does and it comes, else to
// a worker, and other Kvasirs are told. Nothing of it is for a cache that is this Kvasir's alone. Who takes over from a
// leader that others were told of goes to a worker: they wait for it already, and two that both wait would wait for
// each other.
func (x *exchange) lead(c *cache.Cache, q *cache.Query, key *coalesceKey) (answered bool, err *openai.Error) {
	if x.recipients.leader.HasOnEnd() {
		return false, nil
	}
	k, shared := x.peerKey(key)
	if !shared {
		return false, nil
	}
	if answered, err = x.awaitElsewhere(c, q, k); !answered {
		x.makeForAll(k)
	}
	return answered, err
}

// guardOutcome is what the guards did with the request.
func (x *exchange) guardOutcome() guardOutcome {
	return guardOutcome{unjudged: x.plan.judgement.unjudged != "", redacts: redacts(x.plan.verdict, &x.plan.state.settings.Classify)}
}

// scopeInput is what the answer depends on.
func (x *exchange) scopeInput() scopeInput {
	return scopeInput{
		request: &x.plan.req, path: x.plan.route.Path, model: x.plan.model, decision: decisionOf(x.plan.verdict), family: x.plan.state.models[x.plan.model].Reasoning,
		client: tenantOf(x.plan.key), query: x.ctx.URI().QueryString(), headers: x.ctx.Request.Header.RawHeaders(),
		keyless: !x.plan.state.keys.required(), named: x.plan.state.settings.CacheOptions.ScopeHeaders,
	}
}

// answerFromCache answers from the cache if it can.
func (x *exchange) answerFromCache(c *cache.Cache, q *cache.Query) (answered bool) {
	start := time.Now()
	r := lookUp(c, q, &x.p.bugs)
	x.p.metrics.cache.lookup.Observe(time.Since(start).Seconds())
	a := x.recall(&r)
	if a != nil {
		x.tellCached(a)
	}
	return a != nil
}

// tellCached answers with an answer of the cache.
func (x *exchange) tellCached(a *answer.Answer) {
	x.plan.judgement.path, x.facts.saved = pathCache, a.Usage()
	x.facts.streamed = x.plan.req.Stream
	say := answer.NewReplay(a, x.plan.route.Kind, answer.NewID(), x.arrived().Unix(), x.plan.req.Usage.Include)
	x.talk.Told(a)
	x.tell(&say)
}

// recall counts what a look into the cache has found, and notes it in x.facts. Of a hit it returns the answer; nil: a miss.
func (x *exchange) recall(r *cache.Result) (a *answer.Answer) {
	a, x.facts.cache = recall(r, x.plan.route.Kind, x.plan.state.settings.CacheOptions.ToolCalls, &x.p.metrics.cache)
	return a
}

// recall counts what was found, and says what that was. Of a hit it returns the
// answer. It is a miss where the answer cannot be told on a route of the kind, or
// where it calls a tool and such answers are not kept: this one was, under another
// configuration.
func recall(r *cache.Result, k openai.Kind, toolCalls bool, m *cacheMetrics) (*answer.Answer, recalled) {
	if r.Hit {
		switch a, err := answer.Parse(r.Entry.Answer); {
		case err != nil || !a.Fits(k):
			r.Err, r.Why = err, "unreadable"
		case a.Calls != nil && !toolCalls:
			r.Why = bypassTools
		default:
			m.lookups.WithLabelValues(resultOf(r.Exact)).Inc()
			return &a, recalled{result: cacheHit, entry: r.Entry.ID, similarity: r.Similarity, age: r.Age}
		}
	}
	if r.Err != nil {
		m.lookups.WithLabelValues("error").Inc()
		return nil, recalled{result: cacheMiss, why: r.Why}
	}
	m.lookups.WithLabelValues(cacheMiss).Inc()
	if r.Entry != nil {
		m.refused.WithLabelValues(r.Why).Inc()
	}
	return nil, recalled{result: cacheMiss, why: r.Why, similarity: r.Similarity}
}

func resultOf(exact bool) string {
	if exact {
		return "exact"
	}
	return "semantic"
}

var errLookup = errors.New("a bug was met in the cache")

// lookUp asks the cache. A bug in there costs the hit, not the request.
func lookUp(c *cache.Cache, q *cache.Query, b *bugs) (r cache.Result) {
	defer func() {
		if fault := recover(); fault != nil {
			b.note(fault, "a look into the cache")
			r = cache.Result{Err: errLookup, Why: "bug"}
		}
	}()
	return c.Lookup(q)
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
