// Keeping: a whole answer is stored for later.

package proxy

import (
	"kvasir/cache"
	"kvasir/openai/answer"
)

// recording begins to take an answer down, if there is anybody for it. It
// returns nil where there is nobody.
func (r *relay) recording() *answer.Recorder {
	r.x.recorder = nil
	if (r.x.cacheRule.stores || r.x.recipients.leader != nil) && r.x.call.Head.Status == 200 && r.x.plan.route.Recorded() && isAsChosen(&r.x.plan) {
		r.x.recorder = answer.NewRecorder(r.x.plan.route.Kind, r.x.plan.state.settings.CacheOptions.ToolCalls)
	}
	return r.x.recorder
}

// keep stores the answer for later, after the last byte of the reply, and lets
// go of the call that the request has led. Whatever is wrong with the cache, the
// request is over.
func (x *exchange) keep() {
	l, r := x.recipients.leader, x.recorder
	if l == nil && r == nil {
		return
	}
	stored := false
	defer func() {
		if fault := recover(); fault != nil {
			x.p.bugs.note(fault, "storing an answer")
		}
		if l != nil {
			l.Retire(stored)
		}
	}()
	if c := x.plan.state.settings.Cache; c != nil && r != nil && x.cacheRule.stores && isAsChosen(&x.plan) {
		stored = store(c, &x.lookup.query, r, &x.p.metrics.cache)
	}
}

// store puts an answer into the cache if it may be given at any later time.
func store(c *cache.Cache, q *cache.Query, r *answer.Recorder, m *cacheMetrics) (stored bool) {
	if !r.Storable() {
		m.unkept.WithLabelValues(r.Unkept()).Inc()
		return false
	}
	_, err := c.Put(q, r.Answer().AppendTo(make([]byte, 0, r.Answer().Size())))
	if stored = err == nil; stored {
		m.stored.Inc()
	}
	return stored
}
