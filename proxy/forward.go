// Forwarding: which worker, and what happens when it fails.
package proxy

import (
	"errors"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/upstream"
)

// A journey is a request on its way from worker to worker.
type journey struct {
	placer
	tried        []*kvroute.Worker // of the model that is asked now
	triedPrefill []*kvroute.Worker // to compute its prompt
	aggregate    bool              // the worker that answers computes the prompt itself
	last         *upstream.Failure // of the last one tried
}

// forward sends the request to one worker after another until one answers or
// the rule says stop: only while nothing was sent to the client, at most
// retry.attempts times, within the budget, each time to another worker.
func (x *exchange) forward() *openai.Error {
	x.state.budget.Deposit(x.arrived())
	j := journey{placer: placer{x}, aggregate: x.aggregates()}
	for {
		place, err := j.place()
		if err != nil {
			if j.fallBack(err) {
				continue
			}
			return j.giveUp(err)
		}
		if j.keepsApart(&place) {
			place.Release()
			j.aggregate = true
			continue
		}
		if j.last != nil && !j.retry(&place) {
			place.Release()
			if j.last.Part == upstream.PartPrefill && j.mayAggregate() {
				j.aggregate = true
				continue
			}
			return j.giveUp(nil)
		}
		j.last = j.attempt(place)
		if j.last == nil {
			return nil
		}
		if j.last.Short && (j.last.Part == upstream.PartAnswer || !j.mayAggregate()) && j.fallBack(nil) {
			continue
		}
		if !j.goesOn(&place) {
			return j.giveUp(nil)
		}
	}
}

// aggregates says that the request is not for two workers: there is no prefill
// worker, or it cannot be handed over.
func (x *exchange) aggregates() bool { return !x.state.handsOver || !x.req.HandsOver() }

// mayRetry is the one retry rule, but for the budget.
func (j *journey) mayRetry() bool { return j.last.Retry && j.isWaiting() && j.hasRetries() }

// isWaiting says that there is somebody to be answered, and nothing was yet.
func (j *journey) isWaiting() bool {
	return !j.reply.began && !j.recipients.lost() && !j.p.stopping.Load()
}

func (j *journey) hasRetries() bool { return j.facts.retries < j.state.settings.Retry.Attempts }

// mayAggregate says whether a decode worker may compute the prompt where no
// prefill worker did, and does not anyway: that one at least which was placed last.
func (j *journey) mayAggregate() bool {
	return !j.aggregate && j.state.settings.Routing.Disaggregate != kvroute.Always.String() && !j.placing.at.Worker.Helped()
}

// goesOn takes from the last failure where the next try must not go, and says
// whether there may be one.
//
// After a prefill worker failed another one is tried, as a retry like any other.
// When that fails too, or there is no retry left for it, the decode worker
// computes the prompt itself, unless routing.disaggregate is always: it was not
// asked yet, so this is no retry. A refusal goes there at once: if the client is
// at fault, it hears so from the worker that would have answered.
func (j *journey) goesOn(place *kvroute.Placement) bool {
	f := j.last
	switch f.Part {
	case upstream.PartAnswer:
		j.tried = append(j.tried, place.Worker)
		return j.mayRetry()
	case upstream.PartTime:
		return j.mayRetry()
	}
	j.triedPrefill = append(j.triedPrefill, place.Prefill)
	if !j.mayAggregate() {
		return j.mayRetry()
	}
	j.aggregate = len(j.triedPrefill) > 1 || !j.hasRetries() || f.Part == upstream.PartPrefill && !f.Retry
	return j.isWaiting() && (f.Part == upstream.PartPrefill || j.hasRetries())
}

// retry takes one retry from the budget. It is asked when another worker was
// found: without one nothing is sent again, and nothing is to be counted.
func (j *journey) retry(place *kvroute.Placement) bool {
	if j.last.Part == upstream.PartPrefill && place.Prefill == nil {
		j.p.metrics.aggregated.WithLabelValues(j.last.Reason).Inc()
		return true
	}
	if !j.hasRetries() {
		return false
	}
	if !j.state.budget.Withdraw(time.Now()) {
		j.p.metrics.retriesDenied.Inc()
		return false
	}
	j.facts.retries++
	j.p.metrics.retries.WithLabelValues(j.last.Reason).Inc()
	return true
}

// place finds a worker, waiting for one if all are full and the queue is on.
func (j *journey) place() (kvroute.Placement, error) {
	q := j.query()
	place, err := j.choose(q)
	waits := j.last == nil || j.last.Part == upstream.PartPrefill // it had no worker to answer it yet
	if !errors.Is(err, kvroute.ErrFull) || !j.state.settings.Routing.Queue || !waits {
		return place, err
	}
	begin := time.Now()
	j.p.metrics.queued.Inc()
	place, err = j.state.pool.Wait(q, j.conn.whenGone(), j.state.settings.Routing.QueueTimeout)
	j.p.metrics.queued.Dec()
	waited := time.Since(begin)
	j.facts.waited += waited
	j.p.metrics.queueWait.Observe(waited.Seconds())
	return place, err
}

// fallBack turns to the next model when this one has no worker that is up, or
// only workers that are too short for the prompt. A model that only the
// configuration names has none that is up: its workers have not answered yet, or
// there are none.
func (j *journey) fallBack(err error) bool {
	down := errors.Is(err, kvroute.ErrNoWorker) || errors.Is(err, kvroute.ErrUnknownModel) || errors.Is(err, kvroute.ErrModelUnsure)
	down = down && (j.last == nil || !j.last.Busy) // load is no reason
	if j.reply.began || !down && (j.last == nil || !j.last.Short) {
		return false
	}
	next := j.nextFallback()
	if next == "" {
		return false
	}
	j.model = next
	j.recipients.dropFollowers() // the answer will be another model's
	j.splice()
	j.locate()
	*j = journey{placer: j.placer, aggregate: j.aggregates()}
	return true
}

// hasFallback says whether another model may be asked after this one.
func (j *journey) hasFallback() bool {
	return j.facts.fallbacks < len(j.state.models[j.facts.chosen].Fallback)
}

// nextFallback is the model to ask next, "" at the end of the list: that of the
// model first chosen, so that none is asked twice. A key gets none that it may
// not have, or has no tokens left of.
func (j *journey) nextFallback() string {
	list := j.state.models[j.facts.chosen].Fallback
	for j.facts.fallbacks < len(list) {
		j.facts.fallbacks++
		if next := list[j.facts.fallbacks-1]; j.permitted(next) && j.reserve(next) == nil {
			return next
		}
	}
	return ""
}

// keepsApart says that the workers of a placement do not hand over to each
// other: their engines are not known yet, or they have no connector in common.
func (j *journey) keepsApart(place *kvroute.Placement) bool {
	if place.Prefill == nil {
		return false
	}
	from, to := place.Prefill.Peer.(*backend), place.Worker.Peer.(*backend)
	if upstream.Between(from.Worker, to.Worker) != nil {
		return false
	}
	j.p.metrics.aggregated.WithLabelValues("no_protocol").Inc()
	if from.EngineName() != "" && to.EngineName() != "" && !from.apart.Swap(true) {
		j.p.log.Warn().Str("prefill_worker", from.Name()).Str("engine", from.EngineName()).Str("worker", to.Name()).Str("worker_engine", to.EngineName()).
			Msg("these workers cannot hand a request over to each other: the second one computes its prompts itself. Set their engine, and instance behind a Dynamo frontend")
	}
	return true
}

// attempt sends the request to one worker, or to two that hand it over, and
// passes the answer on. It returns nil when the client was answered, rightly or
// not.
func (j *journey) attempt(place kvroute.Placement) *upstream.Failure {
	at := &j.placing.at
	*at = place
	defer j.endPlacement(at)
	b := at.Worker.Peer.(*backend) // after a reload perhaps one of the next generation
	j.backend = b
	j.facts.worker, j.facts.prefill = b.Name(), ""
	j.placed(at, b)
	j.recipients.heartbeat()
	if at.Prefill != nil {
		return handOver(j.exchange)
	}
	r := relay{exchange: j.exchange}
	f := r.from(j.exchange, b)
	j.p.noteTry(b, f, j.facts.why, j.call.Now)
	return f
}
