// Forwarding: which worker, and what happens when it fails.

package proxy

import (
	"errors"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/proxy/record"
	"kvasir/upstream"
)

// Attempts are the workers that a request was sent to, one after another, and what
// the last of them means for the next.
type attempts struct {
	x            *exchange
	tried        []*kvroute.Worker // of the model that is asked now
	triedPrefill []*kvroute.Worker // to compute its prompt
	aggregate    bool              // the worker that answers computes the prompt itself
	last         *upstream.Failure // of the last one tried
}

// forward sends the request to one worker after another until one answers or
// the rule says stop: only while nothing was sent to the client, at most
// retry.attempts times, within the budget, each time to another worker.
func (x *exchange) forward() *openai.Error {
	x.plan.state.budget.Deposit(x.arrived())
	x.p.planning.came(x)
	a := attempts{x: x, aggregate: !x.plan.handsOver()}
	for {
		place, err := a.place()
		if err != nil {
			if a.fallBack(err) {
				continue
			}
			return a.giveUp(err)
		}
		if a.keepsApart(&place) {
			place.Release()
			a.aggregate = true
			continue
		}
		if a.last != nil && !a.retry(&place) {
			place.Release()
			if a.last.Part == upstream.PartPrefill && a.mayAggregate() {
				a.aggregate = true
				continue
			}
			return a.giveUp(nil)
		}
		a.last = a.attempt(place)
		if a.last == nil {
			return nil
		}
		if a.last.Short && (a.last.Part == upstream.PartAnswer || !a.mayAggregate()) && a.fallBack(nil) {
			continue
		}
		if !a.goesOn(&place) {
			return a.giveUp(nil)
		}
	}
}

// mayRetry is the retry rule for a worker that was to answer, but for the budget; goesOn
// has that for prefill workers.
func (a *attempts) mayRetry() bool { return a.last.Retry && a.isWaiting() && a.hasRetries() }

// isWaiting says that there is somebody to be answered, and nothing was yet.
func (a *attempts) isWaiting() bool {
	return !a.x.reply.began && !a.x.recipients.lost() && !a.x.p.stopping.Load()
}

func (a *attempts) hasRetries() bool {
	return a.x.facts.retries < a.x.plan.state.settings.Retry.Attempts
}

// mayAggregate says whether a decode worker may compute the prompt where no
// prefill worker did, and does not anyway: that one at least which was placed last.
func (a *attempts) mayAggregate() bool {
	return !a.aggregate && a.x.plan.state.settings.Routing.Disaggregate != kvroute.Always && !a.x.at.Worker.NeedsPrefill()
}

// goesOn takes from the last failure where the next attempt must not go, and says
// whether there may be one.
//
// After a prefill worker failed another one is tried, as a retry like any other.
// When that fails too, or there is no retry left for it, the decode worker
// computes the prompt itself, unless routing.disaggregate is always: it was not
// asked yet, so this is no retry. A refusal goes there at once: if the client is
// at fault, it hears so from the worker that would have answered.
func (a *attempts) goesOn(place *kvroute.Placement) bool {
	f := a.last
	switch f.Part {
	case upstream.PartAnswer:
		a.tried = append(a.tried, place.Worker)
		return a.mayRetry()
	case upstream.PartTime:
		return a.mayRetry()
	}
	a.triedPrefill = append(a.triedPrefill, place.Prefill)
	if !a.mayAggregate() {
		return a.mayRetry()
	}
	a.aggregate = len(a.triedPrefill) > 1 || !a.hasRetries() || f.Part == upstream.PartPrefill && !f.Retry
	return a.isWaiting() && (f.Part == upstream.PartPrefill || a.hasRetries())
}

// retry takes one retry from the budget. It is asked when another worker was
// found: without one nothing is sent again, and nothing is to be counted.
func (a *attempts) retry(place *kvroute.Placement) bool {
	if a.last.Part == upstream.PartPrefill && place.Prefill == nil {
		a.x.p.metrics.handovers.aggregated.WithLabelValues(a.last.Reason).Inc()
		return true
	}
	if !a.hasRetries() {
		return false
	}
	if !a.x.plan.state.budget.Withdraw(time.Now()) {
		a.x.p.metrics.retriesDenied.Inc()
		return false
	}
	a.x.facts.retries++
	a.x.p.metrics.retries.WithLabelValues(a.last.Reason).Inc()
	return true
}

// query is the question to placement for the next attempt.
func (a *attempts) query() kvroute.Query {
	now := a.x.arrived()
	if a.last != nil {
		now = time.Now()
	}
	q := a.x.plan.query(now, a.aggregate, a.hasFallback())
	q.Tried, q.TriedPrefill = a.tried, a.triedPrefill
	return q
}

// place finds a worker, waiting for one if all are full and the queue is on.
func (a *attempts) place() (kvroute.Placement, error) {
	q := a.query()
	a.x.trail.Next(record.Place)
	place, err := a.placeNow(q)
	waits := a.last == nil || a.last.Part == upstream.PartPrefill // it had no worker to answer it yet
	if !errors.Is(err, kvroute.ErrFull) || !a.x.plan.state.settings.Routing.Queue || !waits {
		return place, err
	}
	begin := time.Now()
	a.x.trail.NextAt(record.Queue, begin)
	a.x.p.metrics.queued.Inc()
	a.x.p.busy.queued.Add(1)
	place, err = a.x.plan.state.pool.Wait(q, a.x.conn.WhenGone(), a.x.plan.state.settings.Routing.QueueTimeout)
	a.x.p.metrics.queued.Dec()
	a.x.p.busy.queued.Add(-1)
	waited := time.Since(begin)
	a.x.facts.waited += waited
	a.x.p.metrics.queueWait.Observe(waited.Seconds())
	return place, err
}

// fallBack turns to the next model when this one has no worker that is up, or
// only workers that are too short for the prompt. A model that only the
// configuration names has none that is up: its workers have not answered yet, or
// there are none.
func (a *attempts) fallBack(err error) bool {
	down := errors.Is(err, kvroute.ErrNoWorker) || errors.Is(err, kvroute.ErrUnknownModel) || errors.Is(err, kvroute.ErrModelUnsure)
	down = down && (a.last == nil || !a.last.Busy) // load is no reason
	if a.x.reply.began || !down && (a.last == nil || !a.last.Short) {
		return false
	}
	next := a.nextFallback()
	if next == "" {
		return false
	}
	a.x.plan.model = next
	a.x.recipients.dropFollowers() // the answer will be another model's
	a.x.trail.Next(record.Edit)
	a.x.plan.splice(nil)
	a.x.plan.placing.pin = noPin // what was asked for is no worker of this model
	a.x.trail.Next(record.Locate)
	locate(&a.x.plan, a.x.p.tokenizers, &a.x.facts.placed)
	*a = attempts{x: a.x, aggregate: !a.x.plan.handsOver()}
	return true
}

// hasFallback says whether another model may be asked after this one.
func (a *attempts) hasFallback() bool { return a.x.plan.fallback(a.x.facts.fallbacks) != "" }

// nextFallback is the model to ask next, "" at the end of the list: that of the
// model first chosen, so that none is asked twice. A key gets none that it may
// not have, or has no tokens left of.
func (a *attempts) nextFallback() string {
	for {
		next := a.x.plan.fallback(a.x.facts.fallbacks)
		if next == "" {
			return ""
		}
		a.x.facts.fallbacks++
		if mayHave(&a.x.plan, next) && a.x.reserve(next) == nil {
			return next
		}
	}
}

// keepsApart says that the workers of a placement do not hand over to each
// other: their engines are not known yet, or they have no connector in common.
func (a *attempts) keepsApart(place *kvroute.Placement) bool {
	if place.Prefill == nil {
		return false
	}
	from, to := place.Prefill.Peer.(*backend), place.Worker.Peer.(*backend)
	if upstream.Between(from.Worker, to.Worker) != nil {
		return false
	}
	a.x.p.metrics.handovers.aggregated.WithLabelValues("no_protocol").Inc()
	if from.EngineName() != "" && to.EngineName() != "" && !from.apart.Swap(true) {
		a.x.p.log.Warn().Str("prefill_worker", from.Name()).Str("engine", from.EngineName()).Str("worker", to.Name()).Str("worker_engine", to.EngineName()).
			Msg("these workers cannot hand a request over to each other: the second one computes its prompts itself. Set their engine, and instance behind a Dynamo frontend")
	}
	return true
}

// attempt sends the request to one worker, or to two that hand it over, and
// passes the answer on. It returns nil when the client was answered, rightly or
// not.
func (a *attempts) attempt(place kvroute.Placement) *upstream.Failure {
	x := a.x
	x.at = place
	defer x.endPlacement()
	b := x.at.Worker.Peer.(*backend) // after a reload perhaps one of the next generation
	x.backend = b
	x.facts.worker, x.facts.prefill = b.Name(), ""
	x.notePlacement()
	x.plan.fitSalt(b.TakesSalt())
	x.recipients.heartbeat()
	if x.at.Prefill != nil {
		return handOver(x)
	}
	x.span = x.leg(record.Decode, b, x.at.Rank)
	r := relay{x: x}
	f := r.from(x, b)
	x.endLeg(f, x.call.Head.Status)
	x.p.noteAttempt(b, f, x.facts.why, x.call.Now)
	return f
}
