// Forwarding: which worker, and what happens when it fails.
package proxy

import (
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"kvasir/kvroute"
)

// A failure is a try that gave the client nothing.
type failure struct {
	err    *apiError
	header []byte // of a worker's own error reply, to be passed on as it came
	body   []byte
	retry  bool   // another worker may do better
	busy   bool   // the worker is loaded, not broken
	short  bool   // the prompt is too long for this worker's model
	reason string // label of the metric
}

// A journey is a request on its way from worker to worker.
type journey struct {
	*exchange
	tried []*kvroute.Worker // of the model that is asked now
	last  *failure          // of the last one tried
}

// forward sends the request to one worker after another until one answers or
// the rule says stop: only while nothing was sent to the client, at most
// retry.attempts times, within the budget, each time to another worker.
func (x *exchange) forward() *apiError {
	x.state.budget.Deposit(x.ctx.Time())
	j := journey{exchange: x}
	for {
		place, err := j.place()
		if err != nil {
			if j.fallBack(err) {
				continue
			}
			return j.giveUp(err)
		}
		if j.last != nil && !j.retry() {
			place.Release()
			return j.giveUp(nil)
		}
		j.last = j.attempt(place)
		if j.last == nil {
			return nil
		}
		if j.last.short && j.fallBack(nil) {
			continue
		}
		j.tried = append(j.tried, place.Worker)
		if !j.mayRetry() {
			return j.giveUp(nil)
		}
	}
}

// mayRetry is the one retry rule, but for the budget.
func (j *journey) mayRetry() bool {
	return j.last.retry && !j.reply.began && !j.lost() && !j.p.stopping.Load() &&
		j.facts.retries < j.state.settings.Retry.Attempts
}

// retry takes one retry from the budget. It is asked when another worker was
// found: without one nothing is sent again, and nothing is to be counted.
func (j *journey) retry() bool {
	if !j.state.budget.Withdraw(time.Now()) {
		j.p.metrics.retriesDenied.Inc()
		return false
	}
	j.facts.retries++
	j.p.metrics.retries.WithLabelValues(j.last.reason).Inc()
	return true
}

// place finds a worker, waiting for one if all are full and the queue is on.
func (j *journey) place() (kvroute.Placement, error) {
	q := kvroute.Query{Now: j.ctx.Time(), Model: j.model, Tried: j.tried, Strict: j.hasFallback()}
	if len(j.tried) > 0 {
		q.Now = time.Now()
	}
	place, err := j.state.pool.Place(q)
	if !errors.Is(err, kvroute.ErrFull) || !j.state.settings.Routing.Queue || len(j.tried) > 0 {
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
	down = down && (j.last == nil || !j.last.busy) // load is no reason
	if j.reply.began || !down && (j.last == nil || !j.last.short) {
		return false
	}
	next := j.nextFallback()
	if next == "" {
		return false
	}
	if j.model = next; j.leading {
		j.p.flights.scatter(j.flight) // the answer will be another model's
	}
	j.splice()
	j.tried, j.last = nil, nil
	return true
}

// hasFallback says whether another model may be asked after this one.
func (j *journey) hasFallback() bool {
	return j.facts.fallbacks < len(j.state.models[j.facts.chosen].Fallback)
}

// nextFallback is the model to ask next, "" at the end of the list: that of the
// model first chosen, so that none is asked twice. A key gets none that it may
// not have.
func (j *journey) nextFallback() string {
	list := j.state.models[j.facts.chosen].Fallback
	for j.facts.fallbacks < len(list) {
		j.facts.fallbacks++
		if next := list[j.facts.fallbacks-1]; j.permitted(next) {
			return next
		}
	}
	return ""
}

// attempt sends the request to one worker and passes its answer on. It returns
// nil when the client was answered, rightly or not.
func (j *journey) attempt(place kvroute.Placement) *failure {
	defer place.Release()
	defer j.callEnded()
	b := place.Worker.Peer.(*backend) // after a reload perhaps one of the next generation
	j.backend, j.facts.worker = b, b.Name()
	if j.leading {
		j.flight.sign()
	}
	err := j.call.open(j.exchange, b, j.state.settings.Timeouts)
	var f *failure
	if err == nil {
		r := relay{j.exchange}
		f, err = r.pass()
	}
	if err != nil {
		f = j.blame(err)
	}
	j.judge(f)
	return f
}

// callEnded lets go of the worker, whatever happened.
func (j *journey) callEnded() {
	j.facts.waited += j.call.waited
	j.call.waited = 0
	j.call.finish(j.exchange)
}

// blame says what a broken try means: to the client, and to the next worker.
func (j *journey) blame(err error) *failure {
	name := j.facts.worker
	var head *badHead
	switch {
	case j.lost():
		j.facts.why = whyGone
		return &failure{err: clientGone, reason: whyGone}
	case j.p.stopping.Load():
		return &failure{err: shuttingDown(), reason: "shutdown"}
	case errors.As(err, &head):
		return broken(502, "bad_reply", "worker %q sent no valid HTTP reply; look at its log", name)
	case errors.Is(err, errFirstByte):
		return broken(504, "first_byte_timeout", "worker %q sent nothing within timeouts.first_byte; it may be overloaded, or the prompt needs longer", name)
	case errors.Is(err, errIdle):
		return broken(504, "idle_timeout", "worker %q fell silent before it answered", name)
	case j.call.conn == nil:
		return broken(502, "connect", "worker %q cannot be reached", name)
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return broken(502, "no_reply", "worker %q closed the connection before it answered", name)
	default:
		return broken(502, "no_reply", "the connection to worker %q broke before it answered", name)
	}
}

// broken is a failure that another worker may make good.
func broken(status int, reason, format, worker string) *failure {
	return &failure{err: upstream(status, format, worker), retry: true, reason: reason}
}

// judge tells the worker's health how the try went.
func (j *journey) judge(f *failure) {
	b, now := j.backend, j.call.now
	switch {
	case f == nil && j.facts.why == "":
		b.Succeeded(now)
	case f == nil:
		if j.facts.why == whyInterrupted {
			j.workerFailed(b, now, "interrupted")
		}
	case f.reason == "shutdown" || f.reason == whyGone: // says nothing of the worker
	case f.busy:
		b.Busy(now, f.err.retryAfter)
	case f.err.status >= 500 && f.err.status != 501: // 501: it does not have the route
		j.workerFailed(b, now, f.reason)
	default:
		b.Succeeded(now)
	}
}

// giveUp is what the client is told: the last worker's own words if there are any.
func (j *journey) giveUp(err error) *apiError {
	switch last := j.last; {
	case last != nil && last.body != nil:
		j.facts.why = "worker_error"
		if err := j.reply.begin(last.err.status, last.header, int64(len(last.body)), last.body); err != nil {
			j.lostClient()
		}
		j.answered()
		return nil
	case last != nil:
		return last.err
	default:
		return j.noPlace(err)
	}
}

// noPlace says why no worker took the request.
func (j *journey) noPlace(err error) *apiError {
	var unsure *kvroute.UnsureError
	switch {
	case errors.Is(err, kvroute.ErrUnknownModel) && j.facts.fallbacks == 0:
		return unknownModel(j.model)
	case errors.As(err, &unsure):
		return unavailable("no worker that answers serves the model "+strconv.Quote(j.model)+", and some have not answered yet; try again", time.Second)
	case errors.Is(err, kvroute.ErrGone) && j.p.stopping.Load() && !j.conn.gone.Load():
		return shuttingDown()
	case errors.Is(err, kvroute.ErrGone):
		j.facts.why = whyGone
		return clientGone
	case errors.Is(err, kvroute.ErrFull), errors.Is(err, kvroute.ErrQueueFull), errors.Is(err, kvroute.ErrQueueTimeout):
		return unavailable("all workers of the model "+strconv.Quote(j.model)+" are busy; try again later", 2*time.Second)
	default:
		return unavailable("no worker of the model "+strconv.Quote(j.model)+" can be reached; try again later", 2*time.Second)
	}
}

// workerFailed tells the worker's health of a failed try.
func (j *journey) workerFailed(b *backend, now time.Time, reason string) {
	j.p.metrics.workerErrors.WithLabelValues(b.Name(), reason).Inc()
	if b.Failed(now, reason) {
		st := b.Status(now)
		j.p.log.Warn().Str("worker", b.Name()).Str("problem", reason).Time("until", st.Until).Msg("worker is set aside after failures in a row")
	}
}
