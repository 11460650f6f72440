// Keeping: what is taken down of an answer goes to who waits for it, and into the cache.
package proxy

import (
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"kvasir/openai"
	"kvasir/openai/answer"
)

// A sharer is a request whose answer may come from others, or be for others: those
// before it, by the cache, or equal ones at the same time, by a flight.
type sharer struct{ *exchange }

// reuse answers without a worker of this request's own: from the cache, or with
// what an equal request is getting now.
func (x sharer) reuse() (answered bool, err *openai.Error) {
	for {
		mark := x.p.flights.mark()
		if x.recall() {
			return true, nil
		}
		switch x.board(mark) {
		case beside:
			return x.follow()
		case stale:
			continue
		}
		return false, nil
	}
}

// recorded says that the answer has come to its right end, as its framing
// tells. Who follows it need not wait for this request's own client.
func (x sharer) recorded() {
	r := x.recorder
	if r == nil {
		return
	}
	r.Seal()
	switch {
	case !x.leading:
	case r.Faithful():
		x.flight.land(r.Answer(), landed)
	case r.Flaw() == "" && r.Answer().Finish != "":
		x.flight.land(r.Answer(), spent)
	case r.Flaw() != answer.FlawError:
		x.p.flights.scatter(x.flight)
	}
}

// recording begins to take an answer down, if there is anybody for it.
func (r *relay) recording() *answer.Recorder {
	r.recorder = nil
	if (r.rule.stores || r.leading) && r.call.head.status == 200 && r.route.Recorded() && !(sharer{r.exchange}).strayed() {
		r.recorder = answer.NewRecorder(r.route.Kind, r.state.settings.CacheOptions.ToolCalls)
	}
	return r.recorder
}

// strayed says that the answer is not to the question that was asked, or not
// of the model that was chosen for it: nobody else may have it.
func (x sharer) strayed() bool {
	return x.model != x.facts.chosen || x.facts.judgement.redacted > 0
}

// passOn hands on what has come of the answer, before this request's own client
// is sent it: a slow one need not hold the others up.
func (x sharer) passOn() {
	switch {
	case !x.leading:
	case x.recorder == nil || x.recorder.Flaw() != "" && x.recorder.Flaw() != answer.FlawError:
		x.p.flights.scatter(x.flight)
	default:
		x.flight.tell(x.recorder.Answer())
	}
}

// land ends the flight that this request leads, or lets go of the one that it
// follows.
func (x sharer) land() {
	f, all, r := x.flight, &x.p.flights, x.recorder
	switch {
	case f == nil:
		return
	case !x.leading: // a bug ended it on the way
		if x.conn.unbind() {
			all.leave(f)
		}
		x.flight = nil
		return
	}
	if f.isDeaf() && x.facts.why == "" {
		x.lostClient()
	}
	if r != nil && r.Faithful() {
		f.land(r.Answer(), landed)
		return // it is retired when the answer is stored
	}
	if x.mayBeBetter() {
		all.fail(f)
	} else {
		all.scatter(f)
	}
	x.flight, x.leading = nil, false
}

// mayBeBetter says whether the next request may get an answer though this one
// got none: not where a worker said that the request is wrong, nor after a bug,
// nor where there was an answer that is for nobody else.
func (x sharer) mayBeBetter() bool {
	switch why, status := x.facts.why, x.facts.status; {
	case why == whyGone, why == whyInterrupted, why == "shutdown":
		return true
	case why == "panic" || x.strayed():
		return false
	case x.recorder != nil && x.recorder.Flaw() == answer.FlawError:
		return true
	default:
		return status == 408 || status == 429 || status >= 500 && status != 501
	}
}

// keep stores the answer for later, after the last byte of the reply, and lets
// the flight go. Whatever is wrong with the cache, the request is over.
func (x sharer) keep() {
	if x.flight == nil && x.recorder == nil {
		return
	}
	stored := false
	defer func() {
		if fault := recover(); fault != nil {
			x.p.noteBug(fault, "storing an answer")
		}
		if x.leading {
			x.p.flights.retire(x.flight, stored)
		}
	}()
	r := x.recorder
	c := x.state.settings.Cache
	if r == nil || !x.rule.stores || c == nil || x.strayed() {
		return
	}
	if !r.Storable() {
		x.p.metrics.unkept.WithLabelValues(r.Unkept()).Inc()
		return
	}
	_, err := c.Put(&x.asking.query, r.Answer().AppendTo(make([]byte, 0, r.Answer().Size())))
	if stored = err == nil; stored {
		x.p.metrics.stored.Inc()
	}
}

// bind names what is closed when nobody waits for the answer any more.
func (x *exchange) bind(c io.Closer) bool {
	if !x.leading {
		return x.conn.bind(c)
	}
	x.flight.hold(c)
	return x.conn.bind(&x.pilot) || x.flight.lose(false)
}

// unbind takes it back.
func (x *exchange) unbind() bool {
	held := x.conn.unbind()
	if x.leading {
		return x.flight.release()
	}
	return held
}

// A pilot is the leader's place on a flight: what is closed when its client is
// lost, or everything ends.
type pilot struct {
	p *Proxy
	f *flight
}

// Close stops the worker, unless others wait for the answer.
func (p *pilot) Close() error {
	p.f.lose(p.p.stopping.Load())
	return nil
}

// lost says whether the client is gone and nobody else waits for the answer.
func (x *exchange) lost() bool {
	return x.conn.gone.Load() && !(x.leading && x.flight.carries())
}

// flightMetrics are what is counted of flights, and of answers taken down.
type flightMetrics struct {
	followers prometheus.Gauge
	followed  *prometheus.CounterVec
	stored    prometheus.Counter
	unkept    *prometheus.CounterVec
}
