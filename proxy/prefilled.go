// Prefilled: an answer that a prefill worker gave whole, and what is counted of hand-overs.

package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvasir/openai/answer"
	"kvasir/upstream"
)

// passOwn passes the prefill worker's reply on as the answer. Its body goes as
// it is; a client that reads a stream is told the same in events.
func (h *handover) passOwn() *upstream.Failure {
	x := h.x
	x.call, h.call = h.call, upstream.Call{}
	x.backend = h.from
	x.facts.worker, x.facts.prefill = h.from.Name(), ""
	r := relay{x: x, hand: h}
	f, result := (*upstream.Failure)(nil), "prefill_answered"
	defer r.letGo(&h.decode) // it has no connection any more
	if x.plan.req.Stream {
		f = r.retell()
	} else if err := r.body(); err != nil {
		f = blame(x, &x.call, h.from.Name(), err)
	}
	if f != nil {
		f.Part, result = upstream.PartPrefill, "prefill_failed"
	}
	x.p.noteAttempt(h.from, f, x.facts.why, x.call.Now)
	x.p.metrics.handovers.ended.WithLabelValues(result).Inc()
	return f
}

// retell tells a body that has come whole as the events of a stream.
func (r *relay) retell() *upstream.Failure {
	if err := r.hand.commit(); err != nil {
		return blame(r.x, &r.x.call, r.x.facts.worker, err)
	}
	body := r.x.call.Payload()
	shown := body
	if r.x.plan.unveil != nil {
		shown = r.x.plan.unveil.Body(body)
	}
	said := answer.NewRecorder(r.x.plan.route.Kind, true)
	said.Body(shown)
	if said.Seal(); !said.Faithful() {
		return upstream.Broken(502, "untold", "worker %q gave an answer that cannot be told as a stream", r.x.facts.worker)
	}
	if record := r.recording(); record != nil {
		record.Body(body)
		r.x.shareWhole(record)
	}
	r.x.talk.Begin()
	r.x.talk.Body(body) // not what is shown: hidden values are back in it
	r.x.facts.usage = answer.UsageOf(r.x.plan.route.Kind, body)
	r.x.spend(r.x.facts.usage.Total())
	r.x.facts.streamed = true
	say := answer.NewReplay(said.Answer(), r.x.plan.route.Kind, r.x.facts.id, r.x.arrived().Unix(), r.x.plan.req.Usage.Include)
	r.x.tell(&say)
	return nil
}

// handoverMetrics are what is counted of requests that two workers share.
type handoverMetrics struct {
	ended      *prometheus.CounterVec
	aggregated *prometheus.CounterVec
	prefill    prometheus.Histogram
}

func newHandoverMetrics(f making) handoverMetrics {
	return handoverMetrics{
		ended:      f.counters("kvasir_handovers_total", "Requests sent through a prefill and a decode worker, by what came of it.", "result"),
		aggregated: f.counters("kvasir_handover_fallbacks_total", "Prompts that the decode worker computed after all, by what the prefill worker did.", "reason"),
		prefill:    f.histogram("kvasir_prefill_seconds", "Time that a prefill worker took, where the decode worker is asked after it.", firstBuckets),
	}
}
