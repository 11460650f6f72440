// Coalescing: equal requests at once are one call to a worker, which one of them makes.

package proxy

import (
	"crypto/sha256"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/cache"
	"kvasir/coalesce"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/tracing/traceparent"
)

// A coalesceKey names what is asked. Requests with the same key may have the
// same answer.
type coalesceKey struct {
	scope    cache.Scope // who asks is part of it
	question [16]byte    // of a SHA-256
}

// A made is what comes of a coalesced call: an answer, as far as the leader's recorder has it, and
// the trace of the request that makes it.
type made struct {
	answer.Answer
	by traceparent.Link
}

// The coalesced calls of a proxy.
type (
	coalesceGroup    = coalesce.Group[coalesceKey, made]
	coalesceLeader   = coalesce.Leader[coalesceKey, made]
	coalesceFollower = coalesce.Follower[coalesceKey, made]
	coalesceSnapshot = coalesce.Snapshot[made]
)

// made is what the recorder r has by now.
func (x *exchange) made(r *answer.Recorder) made { return made{*r.Answer(), x.trace.Link()} }

// coalesceKeyOf gives two requests the same key where the cache would take their
// texts for equal. White space that counts there counts here.
func coalesceKeyOf(q *cache.Query) (k coalesceKey) {
	k.scope = q.Scope
	sum := sha256.Sum256(q.Normal())
	copy(k.question[:], sum[:])
	return k
}

// mayCoalesce says whether equal requests may have one answer while it comes.
// Where tools are on offer the answer may be a call of one, which is for nobody
// else unless such calls are kept: a follower that was sent the text before the
// call would have half an answer.
func mayCoalesce(rule *cacheRule, r *openai.Request, o *CacheOptions) bool {
	return rule.why == "" && rule.stores && (r.Content.Tools == 0 || o.ToolCalls)
}

// share hands what has come of the answer to the followers, before the leader's
// own client is sent it: a slow client need not hold the others up.
func (x *exchange) share() {
	l, r := x.recipients.leader, x.recorder // nil: it leads no call, nothing is recorded
	switch {
	case l == nil:
	case r == nil || r.Flaw() != "" && r.Flaw() != answer.FlawError:
		l.Abandon()
	default:
		l.Update(x.made(r))
	}
}

// shareWhole ends the recording, and the call if there is one: the answer has
// come to its right end, as its framing tells. Followers need not wait until the
// leader's own client has been sent all of it.
func (x *exchange) shareWhole(r *answer.Recorder) {
	if r == nil {
		return
	}
	r.Seal()
	switch l := x.recipients.leader; {
	case l == nil:
	case r.Faithful():
		l.Complete(x.made(r))
	case r.Flaw() == "" && r.Answer().Finish != "":
		l.CompleteForStarted(x.made(r))
	case r.Flaw() != answer.FlawError:
		l.Abandon()
	}
}

// isAsChosen says whether the answer is to the question that was asked, and of
// the model that was chosen for it. Any other answer is for nobody else.
func isAsChosen(pl *plan) bool { return pl.model == pl.chosen && pl.judgement.redacted == 0 }

// mayNextSucceed says whether the next of equal requests may get an answer
// though this one got none: not where a worker said that the request is wrong,
// nor after a bug, nor where there was an answer that is for nobody else.
func mayNextSucceed(f *facts, pl *plan, r *answer.Recorder) bool {
	switch {
	case f.why == whyGone, f.why == whyInterrupted, f.why == "shutdown":
		return true
	case f.why == "panic" || !isAsChosen(pl):
		return false
	case r != nil && r.Flaw() == answer.FlawError:
		return true
	default:
		return f.status == 408 || f.status == 429 || f.status >= 500 && f.status != 501
	}
}

// endCall ends the call that the request leads, if it leads one. A whole answer
// is still found by who comes now, until keep has stored it.
func (x *exchange) endCall() {
	l, r := x.recipients.leader, x.recorder
	if l == nil {
		return
	}
	if x.facts.why == "" && l.ClientLost() {
		x.lostClient()
	}
	switch {
	case r != nil && r.Faithful():
		l.Complete(x.made(r))
		return
	case mayNextSucceed(&x.facts, &x.plan, r):
		l.Fail()
	default:
		l.Abandon()
	}
	x.recipients.leader = nil
}

// coalesceMetrics are what is counted of requests that follow.
type coalesceMetrics struct {
	followers prometheus.Gauge
	followed  *prometheus.CounterVec
}

func newCoalesceMetrics(f making, g *coalesceGroup) coalesceMetrics {
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "kvasir_coalesced_calls", Help: "Requests to workers whose answer equal requests would get."},
		func() float64 { return float64(g.Stats().Calls) })
	return coalesceMetrics{
		followers: f.gauge("kvasir_coalesced_followers", "Requests that wait for the answer to an equal one."),
		followed:  f.counters("kvasir_coalesced_requests_total", "Requests that waited for the answer to an equal one, by how that ended.", "end"),
	}
}
