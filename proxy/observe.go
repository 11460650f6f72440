// Observing: those who look at requests are told of each that has ended.

package proxy

import (
	"slices"
	"sync"
	"time"

	"kvasir/kvroute"
	"kvasir/openai/answer"
	"kvasir/proxy/record"
	"kvasir/tracing/traceparent"
	"kvasir/upstream"
)

// Observe has look called once for each request on a route that is passed on to workers, when it
// has ended: in the goroutine that served it, with the client answered. look must not wait, and
// keeps nothing of the record's slices. It is called for requests that begin from now on; without
// an observer no step is timed.
func (p *Proxy) Observe(look func(*record.Record)) {
	for {
		old := p.observers.Load()
		var all []func(*record.Record)
		if old != nil {
			all = slices.Clone(*old)
		}
		all = append(all, look)
		if p.observers.CompareAndSwap(old, &all) {
			return
		}
	}
}

// observe tells the observers of the request.
func (x *exchange) observe() {
	all := x.p.observers.Load()
	if all == nil || !x.trail.On() {
		return
	}
	r := records.Get().(*record.Record)
	x.fill(r)
	for _, look := range *all {
		look(r)
	}
	clear(r.Judgement.Matched)
	*r = record.Record{Judgement: record.Judgement{Matched: r.Judgement.Matched[:0]}}
	records.Put(r)
}

// records lends the memory of records.
var records = sync.Pool{New: func() any { return new(record.Record) }}

// leg begins the step in which a worker is asked, and returns the span under which it is.
func (x *exchange) leg(n record.Name, b *backend, rank int) traceparent.SpanID {
	span := x.newSpan()
	if x.trail.On() {
		x.trail.Next(n)
		x.trail.SetLeg(x.legOf(b, rank, span))
	}
	return span
}

// newSpan makes the id of a leg's span; zero: the request is not traced.
func (x *exchange) newSpan() (id traceparent.SpanID) {
	if x.trace.On() {
		id = traceparent.NewSpan()
	}
	return id
}

// legOf is what is told of a worker that is asked.
func (x *exchange) legOf(b *backend, rank int, span traceparent.SpanID) record.Leg {
	return record.Leg{Worker: b.Name(), Engine: b.EngineName(), Address: b.Address(), Model: x.plan.model, Rank: rank, Span: span}
}

// streams notes that the client is sent the first of a worker's answer.
func (x *exchange) streams(now time.Time) {
	n, l := x.trail.Leg()
	if l == nil || n != record.Decode {
		return
	}
	l.Status = x.call.Head.Status
	worker, rank := l.Worker, l.Rank
	x.trail.NextAt(record.Stream, now)
	x.trail.SetLeg(record.Leg{Worker: worker, Rank: rank})
}

// endLeg ends the step in which a worker was asked: with its failure, if there was one, and the
// status of its reply.
func (x *exchange) endLeg(f *upstream.Failure, status int) {
	_, l := x.trail.Leg()
	if l == nil {
		return
	}
	l.Status = status
	switch {
	case f != nil:
		l.Failure = f.Reason
	case x.reply.began:
		l.Failure = x.facts.why
	}
	x.trail.Done()
}

// besideLeg notes a prefill leg that ran beside the decode leg. One that was stopped because the
// answer was already there, and its client gone, has not failed.
func (h *handover) besideLeg(f *upstream.Failure) {
	l := h.x.legOf(h.from, h.x.at.PrefillRank, h.besideSpan)
	l.Status = h.call.Head.Status
	if f != nil && !(h.committed && isNobodys(f)) {
		l.Failure = f.Reason
	}
	ended := h.besideEnded
	if ended.IsZero() { // it met a bug
		ended = time.Now()
	}
	h.x.trail.Beside(record.Prefill, l, h.besideBegan, ended)
}

// fill says in r how the request went.
func (x *exchange) fill(r *record.Record) {
	f, pl := &x.facts, &x.plan
	*r = record.Record{
		ID: f.id, WorkerID: f.sentID[:], Route: pl.route.Path, Asked: pl.asked, Model: pl.model,
		Worker: f.worker, Prefill: f.prefill, Trace: x.trace,
		Began: x.arrived(), FirstByte: f.firstByte, Total: f.total, Overhead: f.overhead, Waited: f.waited,
		Status: f.status, Streamed: f.streamed, End: f.why, Path: pl.path(f.status), Retries: f.retries, Fallbacks: f.fallbacks, Bytes: x.conn.Sent(),
		Prompt: -1, Completion: -1, CachedTokens: -1,
		Judgement: pl.judgement.record(r.Judgement.Matched[:0], f.judged),
		Cache:     f.cache.record(),
		Link:      x.link,
		Content:   x.content(),
		Placement: f.placed.record(x.priced),
	}
	if pl.key != nil {
		r.Key, r.Tenant = pl.key.Name, pl.key.Tenant
	}
	if f.usage != answer.NoUsage && x.backend != nil {
		r.Prompt, r.Completion, r.CachedTokens = f.usage.Prompt, f.usage.Completion, f.usage.Cached
	}
	if f.placed.why != "" {
		r.Placement.Policy, r.Placement.Tokens = pl.state.settings.Routing.Policy.String(), pl.placing.tokens
	}
	r.Steps, r.StepsLeft = x.trail.Steps()
}

// path says who answered, as x-vsr-response-path does.
func (pl *plan) path(status int) string {
	switch {
	case pl.judgement.path != "":
		return pl.judgement.path
	case status >= 400:
		return pathError
	}
	return pathUpstream
}

// record says what a record has of the judgement. matched is memory for its list.
func (j *judgement) record(matched []record.Match, judged bool) record.Judgement {
	for _, m := range j.matched {
		matched = append(matched, record.Match{Kind: string(m.Kind), Name: m.Name, Score: m.Score})
	}
	return record.Judgement{
		Judged: judged, Category: j.category, Confidence: j.confidence,
		Decision: j.decision, Reasoning: j.reasoning, Injected: j.injected,
		GuardJudged: j.judged, Attack: j.attack, Score: j.score,
		Types: j.types, Denied: j.denied, Redacted: j.redacted, Guard: j.guard, Unjudged: j.unjudged,
		Language: j.language, Complexity: j.complexity, Hidden: j.hidden, Matched: matched,
	}
}

func (r *recalled) record() record.Cache {
	c := record.Cache{Result: r.result, Why: r.why, Similarity: r.similarity, Age: r.age}
	if r.result == cacheHit {
		c.Entry = r.entry.String()
	}
	return c
}

func (f *placed) record(candidates []record.Candidate) record.Placement {
	return record.Placement{
		Why: f.why, Approximate: f.approximate, Priced: f.priced,
		Overlap: f.overlap, Blocks: f.of, BlockTokens: f.blockSize, Cost: f.cost, TTFT: f.ttft,
		Candidates: candidates, LeftOut: f.candidates - len(candidates),
	}
}

// appendPriced appends what is kept of the candidates of a placement: the chosen ones, then the
// cheapest, at most record.MaxCandidates.
func appendPriced(dst []record.Candidate, all []kvroute.Candidate) []record.Candidate {
	for i := range all {
		c := candidateRecord(&all[i])
		if len(dst) < record.MaxCandidates {
			dst = append(dst, c)
			continue
		}
		if worst := dearest(dst); compareCandidates(&c, &dst[worst]) < 0 {
			dst[worst] = c
		}
	}
	slices.SortStableFunc(dst, func(a, b record.Candidate) int { return compareCandidates(&a, &b) })
	return dst
}

// dearest is where the candidate is that is the first to be left out.
func dearest(list []record.Candidate) (at int) {
	for i := range list {
		if compareCandidates(&list[i], &list[at]) > 0 {
			at = i
		}
	}
	return at
}

func compareCandidates(a, b *record.Candidate) int {
	switch {
	case a.Chosen != b.Chosen && a.Chosen, a.Chosen == b.Chosen && a.Cost < b.Cost:
		return -1
	case a.Chosen != b.Chosen, a.Cost > b.Cost:
		return 1
	}
	return 0
}

func candidateRecord(c *kvroute.Candidate) record.Candidate {
	r := record.Candidate{
		Worker: c.Worker.Name(), Rank: c.Rank, Leg: c.Leg.String(), Chosen: c.Chosen, Cost: c.Cost,
		Overlap: c.Overlap.Blocks(), Of: c.Overlap.Of,
		Requests: c.Load.Requests, Decoding: c.Load.Decoding, Backlog: c.Load.Backlog, Context: c.Load.Context,
		TTFT: c.TTFT, Aside: c.Aside,
	}
	if c.Slow > 1 {
		r.Slow = c.Slow
	}
	for i, part := range c.Parts {
		r.Parts[i] = record.Part(part)
	}
	return r
}
