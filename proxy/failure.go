// Failures: what an attempt that gave the client nothing means, for the client, the workers and the next attempt.

package proxy

import (
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"kvasir/kvroute"
	"kvasir/openai"
	"kvasir/upstream"
)

// isNobodys says that the client left, that we end, or that we have no descriptors:
// that tells nothing of a worker.
func isNobodys(f *upstream.Failure) bool {
	return f.Reason == whyGone || f.Reason == "shutdown" || f.Reason == whyDescriptors
}

// whyDescriptors is the reason of a failure for want of descriptors.
const whyDescriptors = "descriptors"

func noDescriptors() *upstream.Failure {
	return &upstream.Failure{
		Err:    unavailable("the gateway has no file descriptor left for a connection to a worker; try again later, and raise its limit of open files", time.Second),
		Reason: whyDescriptors,
	}
}

// blame says what a broken call of the worker means: to the client, and to the next
// worker.
func blame(x *exchange, c *upstream.Call, name string, err error) *upstream.Failure {
	var head *upstream.HeadError
	switch {
	case x.recipients.lost():
		return &upstream.Failure{Err: clientGone, Reason: whyGone}
	case x.p.stopping.Load():
		return &upstream.Failure{Err: shuttingDown(), Reason: "shutdown"}
	case errors.As(err, &head):
		return upstream.Broken(502, "bad_reply", "worker %q sent no valid HTTP reply; look at its log", name)
	case errors.Is(err, upstream.ErrFirstByte):
		return upstream.Broken(504, "first_byte_timeout", "worker %q sent nothing within timeouts.first_byte; it may be overloaded, or the prompt needs longer", name)
	case errors.Is(err, upstream.ErrIdle):
		return upstream.Broken(504, "idle_timeout", "worker %q fell silent before it answered", name)
	case !c.Connected() && upstream.IsShort(err):
		x.p.descriptors.NoteUndialled()
		return noDescriptors()
	case !c.Connected():
		return upstream.Broken(502, "connect", "worker %q cannot be reached", name)
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
		return upstream.Broken(502, "no_reply", "worker %q closed the connection before it answered", name)
	default:
		return upstream.Broken(502, "no_reply", "the connection to worker %q broke before it answered", name)
	}
}

// logUnknown has the log say what clients are not told of an error of no known shape.
func (p *Proxy) logUnknown(b *backend, f *upstream.Failure) {
	if f != nil && f.Said != nil {
		b.Quiet.Tell(p.log.Warn().Str("worker", b.Name()).Int("status", f.Err.Status).Bytes("said", f.Said), "a worker's error has no known shape")
	}
}

// noteAttempt tells a worker's health how an attempt went; f nil: well, as far as why tells.
func (p *Proxy) noteAttempt(b *backend, f *upstream.Failure, why string, now time.Time) {
	p.logUnknown(b, f)
	switch {
	case f == nil && why == "":
		b.Succeeded(now)
	case f == nil:
		if why == whyInterrupted {
			p.workerFailed(b, now, "interrupted")
		}
	case isNobodys(f):
	case f.Busy:
		b.Busy(now, f.Err.RetryAfter)
	case f.Err.Status >= 500 && f.Err.Status != 501: // 501: it does not have the route
		p.workerFailed(b, now, f.Reason)
	default:
		b.Succeeded(now)
	}
}

// workerFailed tells the worker's health of a failed attempt.
func (p *Proxy) workerFailed(b *backend, now time.Time, reason string) {
	if p.state.Load().has(b.Name()) { // else a reload has dropped it, with its series
		p.metrics.workerErrors.WithLabelValues(b.Name(), reason).Inc()
	}
	b.tally.failures.Add(1)
	if b.Failed(now, reason) {
		b.tally.ejections.Add(1)
		st := b.Status(now)
		p.log.Warn().Str("worker", b.Name()).Str("problem", reason).Time("until", st.Until).Msg("worker is ejected after failures in a row")
	}
}

// giveUp is what the client is told: the last worker's own words if there are any.
func (a *attempts) giveUp(err error) *openai.Error {
	switch last := a.last; {
	case last != nil && last.Body != nil:
		a.x.facts.why = "worker_error"
		body := last.Body
		if last.Read {
			body = last.Err.AppendFor(a.x.plan.route.Path, nil)
		}
		if err := a.x.reply.begin(last.Err.Status, last.Header, int64(len(body)), body); err != nil {
			a.x.lostClient()
		}
		a.x.answered()
		return nil
	case last != nil:
		return last.Err
	default:
		return a.noPlace(err)
	}
}

// noPlace says why no worker took the request.
func (a *attempts) noPlace(err error) *openai.Error {
	var unsure *kvroute.UnsureError
	var pin *kvroute.PinError
	switch {
	case errors.As(err, &pin):
		return wrongPin(pin)
	case errors.Is(err, kvroute.ErrUnknownModel) && a.x.facts.fallbacks == 0:
		return a.x.plan.state.unserved(a.x.plan.asked, a.x.plan.model)
	case errors.As(err, &unsure):
		return unavailable("no worker that answers serves the model "+strconv.Quote(a.x.plan.model)+", and some have not answered yet; try again", time.Second)
	case errors.Is(err, kvroute.ErrGone) && a.x.p.stopping.Load() && !a.x.conn.Gone():
		return shuttingDown()
	case errors.Is(err, kvroute.ErrGone):
		a.x.facts.why = whyGone
		return clientGone
	case errors.Is(err, kvroute.ErrFull), errors.Is(err, kvroute.ErrQueueFull), errors.Is(err, kvroute.ErrQueueTimeout):
		return unavailable("all workers of the model "+strconv.Quote(a.x.plan.model)+" are busy; try again later", 2*time.Second)
	case errors.Is(err, kvroute.ErrNoPrefill) && !a.x.plan.req.HandsOver():
		return notHandedOver("The workers of the model " + strconv.Quote(a.x.plan.model) + " take only")
	case errors.Is(err, kvroute.ErrNoPrefill):
		return unavailable("no prefill worker of the model "+strconv.Quote(a.x.plan.model)+" can be reached, and no worker of it computes prompts without one; try again later", 2*time.Second)
	default:
		return unavailable("no worker of the model "+strconv.Quote(a.x.plan.model)+" can be reached; try again later", 2*time.Second)
	}
}

// notHandedOver says what a prefill worker can compute the prompt of.
func notHandedOver(who string) *openai.Error {
	return &openai.Error{Status: 400, Type: "invalid_request_error", Code: "not_handed_over", Message: who +
		" chats and completions of one prompt and one answer, without n, best_of, echo, prompt_logprobs or beam search"}
}
