// Lookup: what the cache is asked about a request.

package proxy

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/openai"
)

// A lookup is what the cache is asked about one request, first for an answer and
// later to keep one. Its memory serves the next request's. It outlives the body:
// its text is a copy.
type lookup struct {
	query    cache.Query
	text     []byte   // of query
	embedder embedder // set before query is used, if it may need an embedding

	embed func(*[cache.Dim]float32) bool // embedText, made once: each method value is an allocation
}

// An embedder makes embeddings and takes the time.
type embedder struct {
	classifier *classify.Classifier
	took       prometheus.Observer // seconds
}

// scopers are lent for one scope each, so that no stream has to hold one.
var scopers = sync.Pool{New: func() any { return new(scoper) }}

// of makes the lookup of a request under a rule, in the memory of l, which may be nil.
func (l *lookup) of(in *scopeInput, rule *cacheRule) *lookup {
	if l == nil {
		l = new(lookup)
		l.embed = l.embedText
	}
	s := scopers.Get().(*scoper)
	defer scopers.Put(s)
	body := in.request.Body
	question := openai.Text{At: rule.asks, Escaped: openai.HasEscape(rule.asks.Of(body))}
	l.text = question.AppendTo(l.text[:0], body)
	l.query = cache.Query{
		Scope: s.scope(in, rule.asks), Tenant: in.client.name, Model: in.model, Text: l.text, MaxAge: rule.maxAge,
	}
	if in.decision != nil {
		l.query.Threshold = in.decision.CacheThreshold
	}
	if !rule.exact {
		l.query.Embed = l.embed
	}
	return l
}

// embedText makes the embedding of the question. The classifier has it already
// where it was asked to judge the same text.
func (l *lookup) embedText(dst *[cache.Dim]float32) bool {
	start := time.Now()
	ok := l.embedder.classifier.Embed(dst, cache.Unshouted(l.text))
	l.embedder.took.Observe(time.Since(start).Seconds())
	return ok
}

// forget lets go of the question, and of more memory than questions use.
func (l *lookup) forget() {
	if l == nil {
		return
	}
	if cap(l.text) > 64<<10 {
		l.text = nil
	}
	l.text, l.query.Text, l.embedder = l.text[:0], nil, embedder{}
}
