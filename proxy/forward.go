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

// forward sends the request to one worker after another until one answers or
// the rule says stop: only while nothing was sent to the client, at most
// retry.attempts times, within the budget, each time to another worker.
func (x *exchange) forward() *apiError {
	x.state.budget.Deposit(x.ctx.Time())
	var tried []*kvroute.Worker
	var last *failure
	for {
		place, err := x.place(tried)
		if err != nil {
			if x.fallBack(err, last) {
				tried, last = nil, nil
				continue
			}
			return x.giveUp(last, err)
		}
		if last != nil && !x.retry(last) {
			place.Release()
			return x.giveUp(last, nil)
		}
		last = x.attempt(place)
		if last == nil {
			return nil
		}
		if last.short && x.fallBack(nil, last) {
			tried, last = nil, nil
			continue
		}
		tried = append(tried, place.Worker)
		if !x.mayRetry(last) {
			return x.giveUp(last, nil)
		}
	}
}

// mayRetry is the one retry rule, but for the budget.
func (x *exchange) mayRetry(last *failure) bool {
	return last.retry && !x.reply.began && !x.conn.gone.Load() && !x.p.stopping.Load() &&
		x.facts.retries < x.state.settings.Retry.Attempts
}

// retry takes one retry from the budget. It is asked when another worker was
// found: without one nothing is sent again, and nothing is to be counted.
func (x *exchange) retry(last *failure) bool {
	if !x.state.budget.Withdraw(time.Now()) {
		x.p.metrics.retriesDenied.Inc()
		return false
	}
	x.facts.retries++
	x.p.metrics.retries.WithLabelValues(last.reason).Inc()
	return true
}

// place finds a worker, waiting for one if all are full and the queue is on.
func (x *exchange) place(tried []*kvroute.Worker) (kvroute.Placement, error) {
	q := kvroute.Query{Now: x.ctx.Time(), Model: x.model, Tried: tried, Strict: x.hasFallback()}
	if len(tried) > 0 {
		q.Now = time.Now()
	}
	place, err := x.state.pool.Place(q)
	if !errors.Is(err, kvroute.ErrFull) || !x.state.settings.Routing.Queue || len(tried) > 0 {
		return place, err
	}
	begin := time.Now()
	x.p.metrics.queued.Inc()
	place, err = x.state.pool.Wait(q, x.conn.whenGone(), x.state.settings.Routing.QueueTimeout)
	x.p.metrics.queued.Dec()
	waited := time.Since(begin)
	x.facts.waited += waited
	x.p.metrics.queueWait.Observe(waited.Seconds())
	return place, err
}

// fallBack turns to the next model when this one has no worker that is up, or
// only workers that are too short for the prompt. A model that only the
// configuration names has none that is up: its workers have not answered yet, or
// there are none.
func (x *exchange) fallBack(err error, last *failure) bool {
	down := errors.Is(err, kvroute.ErrNoWorker) || errors.Is(err, kvroute.ErrUnknownModel) || errors.Is(err, kvroute.ErrModelUnsure)
	down = down && (last == nil || !last.busy) // load is no reason
	if x.reply.began || !down && (last == nil || !last.short) {
		return false
	}
	next := x.nextFallback()
	if next == "" {
		return false
	}
	x.model = next
	x.splice()
	return true
}

// attempt sends the request to one worker and passes its answer on. It returns
// nil when the client was answered, rightly or not.
func (x *exchange) attempt(place kvroute.Placement) *failure {
	defer place.Release()
	defer x.callEnded()
	b := place.Worker.Peer.(*backend) // after a reload perhaps one of the next generation
	x.backend, x.facts.worker = b, b.Name()
	err := x.call.open(x, b, x.state.settings.Timeouts)
	var f *failure
	if err == nil {
		f, err = x.relay()
	}
	if err != nil {
		f = x.blame(err)
	}
	x.judge(b, f)
	return f
}

// callEnded lets go of the worker, whatever happened.
func (x *exchange) callEnded() {
	x.facts.waited += x.call.waited
	x.call.waited = 0
	x.call.finish(x.conn)
}

// blame says what a broken try means: to the client, and to the next worker.
func (x *exchange) blame(err error) *failure {
	name := x.facts.worker
	var head *badHead
	switch {
	case x.conn.gone.Load():
		x.facts.why = "client_gone"
		return &failure{err: clientGone, reason: "client_gone"}
	case x.p.stopping.Load():
		return &failure{err: shuttingDown(), reason: "shutdown"}
	case errors.As(err, &head):
		return broken(502, "bad_reply", "worker %q sent no valid HTTP reply; look at its log", name)
	case errors.Is(err, errFirstByte):
		return broken(504, "first_byte_timeout", "worker %q sent nothing within timeouts.first_byte; it may be overloaded, or the prompt needs longer", name)
	case errors.Is(err, errIdle):
		return broken(504, "idle_timeout", "worker %q fell silent before it answered", name)
	case x.call.conn == nil:
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
func (x *exchange) judge(b *backend, f *failure) {
	now := x.call.now
	switch {
	case f == nil && x.facts.why == "":
		b.Succeeded(now)
	case f == nil:
		if x.facts.why == whyInterrupted {
			x.p.workerFailed(b, now, "interrupted")
		}
	case f.reason == "shutdown" || f.reason == "client_gone": // says nothing of the worker
	case f.busy:
		b.Busy(now, f.err.retryAfter)
	case f.err.status >= 500:
		x.p.workerFailed(b, now, f.reason)
	default:
		b.Succeeded(now)
	}
}

// giveUp is what the client is told: the last worker's own words if there are any.
func (x *exchange) giveUp(last *failure, err error) *apiError {
	switch {
	case last != nil && last.body != nil:
		x.facts.why = "worker_error"
		if err := x.reply.begin(last.err.status, last.header, int64(len(last.body)), last.body); err != nil {
			x.lostClient()
		}
		x.answered()
		return nil
	case last != nil:
		return last.err
	default:
		return x.noPlace(err)
	}
}

// noPlace says why no worker took the request.
func (x *exchange) noPlace(err error) *apiError {
	var unsure *kvroute.UnsureError
	switch {
	case errors.Is(err, kvroute.ErrUnknownModel) && x.facts.fallbacks == 0:
		return unknownModel(x.model)
	case errors.As(err, &unsure):
		return unavailable("no worker that answers serves the model "+strconv.Quote(x.model)+", and some have not answered yet; try again", time.Second)
	case errors.Is(err, kvroute.ErrGone) && x.p.stopping.Load() && !x.conn.gone.Load():
		return shuttingDown()
	case errors.Is(err, kvroute.ErrGone):
		x.facts.why = "client_gone"
		return clientGone
	case errors.Is(err, kvroute.ErrFull), errors.Is(err, kvroute.ErrQueueFull), errors.Is(err, kvroute.ErrQueueTimeout):
		return unavailable("all workers of the model "+strconv.Quote(x.model)+" are busy; try again later", 2*time.Second)
	default:
		return unavailable("no worker of the model "+strconv.Quote(x.model)+" can be reached; try again later", 2*time.Second)
	}
}
