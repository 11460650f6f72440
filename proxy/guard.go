// Guards: what the classifier's guards, and decisions that refuse, make of a verdict.

package proxy

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/openai/answer"
)

// How an answer came about: the values of x-vsr-response-path.
const (
	pathUpstream = "upstream"
	pathCache    = "cache"
	pathBlocked  = "blocked"
	pathRefused  = "fast_response"
	pathError    = "error"
)

// A ruling says whether a request may pass, and what it is answered where it may
// not. The zero value lets it pass.
type ruling struct {
	gone    bool            // nobody waits for the verdict: the client has gone, or everything ends
	err     *openai.Error   // a guard that must judge could not
	refusal *answer.Refusal // a guard blocks, or the decision refuses
	status  int             // of the refusal: 200 tells it as an answer of the route

	path   string   // of the answer; "": a model gives it
	guard  string   // that blocks, or could not judge, or decision
	types  []string // of what is blocked; of a decision its name
	passed string   // the guard that could not judge, and lets pass
}

// guard answers a request that may not pass, as the ruling says. The ruling lives in
// this frame and not in answer's: streams keep that one, and the stack that it needs.
// The tokens that were set aside for a request that is refused are given back when it
// is answered.
func (x *exchange) guard() (answered bool, err *openai.Error) {
	r := rulingOn(x.plan.verdict, &x.plan.state.settings.Guards, x.plan.model)
	x.p.metrics.signals.countRuling(x.plan.verdict, &r)
	j := &x.plan.judgement
	j.path, j.guard, j.unjudged = r.path, r.guard, r.passed
	switch {
	case r.gone && x.conn.Gone():
		return false, clientGone
	case r.gone:
		return false, shuttingDown()
	case r.err != nil:
		return false, r.err
	case r.refusal == nil:
		return false, nil
	}
	x.facts.why = "blocked"
	status := statusFor(r.status, &x.plan)
	if status != fasthttp.StatusOK {
		return false, &openai.Error{Status: status, Type: "invalid_request_error", Code: "content_filter", Message: r.refusal.Text}
	}
	say := r.refusal.Replay(x.plan.route.Kind, x.arrived().Unix(), x.plan.req.Usage.Include)
	x.talk.Told(say.Answer())
	x.tell(&say)
	return true, nil
}

// statusFor is the status of a refusal. One that has no answer to say it in is an error, and so is one
// of a program that wants tools called or a form kept, unless the configuration says otherwise: it
// takes an answer of neither for a failure of the model, and asks again.
func statusFor(status int, pl *plan) int {
	switch {
	case !pl.route.Generates() && status <= fasthttp.StatusOK:
		return fasthttp.StatusBadRequest
	case status == 0 && pl.req.WantsForm():
		return fasthttp.StatusBadRequest
	case status == 0:
		return fasthttp.StatusOK
	}
	return status
}

// rulingOn says what follows from a verdict, which may be nil, for a request that the
// model would answer. What could not be judged passes only where the configuration
// says so.
func rulingOn(v *classify.Verdict, g *Guards, model string) ruling {
	if v == nil {
		return ruling{}
	}
	if errors.Is(v.Jailbreak.Err, classify.ErrGone) || errors.Is(v.PII.Err, classify.ErrGone) {
		return ruling{gone: true}
	}
	switch v.Blocked() {
	case classify.ByJailbreak:
		return ruling{
			path: pathBlocked, guard: "jailbreak", types: []string{v.Jailbreak.Type}, status: g.JailbreakStatus,
			refusal: &answer.Refusal{
				ID: "jailbreak-blocked", Model: "security-filter",
				Text: "I cannot process this request as it appears to contain a potential jailbreak attempt (type: " + v.Jailbreak.Type +
					", confidence: " + decimal3(v.Jailbreak.Score) +
					"). Please rephrase your request in a way that complies with our usage policies.",
			},
		}
	case classify.ByPII:
		return ruling{
			path: pathBlocked, guard: "pii", types: v.PII.Denied, status: g.PIIStatus,
			refusal: &answer.Refusal{
				ID: "pii-violation", Model: model,
				Text: "I cannot process this request as it contains personally identifiable information ([" + strings.Join(v.PII.Denied, " ") +
					"]) that is not allowed for the '" + model + "' model according to the configured privacy policy. " +
					"Please remove any sensitive information and try again.",
			},
		}
	case classify.ByFailedJailbreak:
		return unjudged("jailbreak", v.Jailbreak.Err)
	case classify.ByFailedPII:
		return unjudged("pii", v.PII.Err)
	}
	r := ruling{}
	switch {
	case v.PII.Err != nil:
		r.passed = "pii"
	case v.Jailbreak.Err != nil:
		r.passed = "jailbreak"
	}
	if d := v.Decision; d != nil && d.Refuse != "" {
		r.path, r.guard, r.types, r.status = pathRefused, "decision", []string{d.Name}, fasthttp.StatusOK
		r.refusal = &answer.Refusal{ID: "fast", Model: model, Text: d.Refuse}
	}
	return r
}

// unjudged refuses what a guard that must judge could not. Too many who wait are no
// failure of the guard.
func unjudged(guard string, err error) ruling {
	if errors.Is(err, classify.ErrBusy) {
		return ruling{path: pathError, err: tooManyToJudge()}
	}
	r := ruling{path: pathError, guard: guard}
	if errors.Is(err, classify.ErrUnread) {
		r.err = &openai.Error{
			Status: 400, Type: "invalid_request_error", Code: "unjudged_content",
			Message: "The " + guard + " guard cannot read a part of this request: " + err.Error() +
				". Send it as text, or set classify." + guard + ".on_error: allow",
		}
		return r
	}
	why := "a bug, which is in the log" // its text may be anything
	if errors.Is(err, classify.ErrTimeout) {
		why = err.Error()
	}
	r.err = &openai.Error{
		Status: 503, Type: "server_error", Code: "guard_failed",
		Message: "The " + guard + " guard could not judge this request: " + why + ". Ask again; nothing was sent to a model",
	}
	return r
}

func tooManyToJudge() *openai.Error {
	return unavailable("Too many requests wait to be judged by the guards. Ask again; nothing was sent to a model", time.Second)
}

// countRuling counts what a ruling stops, and what it lets pass although a guard
// found something or could not judge.
func (m *signalMetrics) countRuling(v *classify.Verdict, r *ruling) {
	switch {
	case v == nil || r.gone:
		return
	case r.err != nil:
		if r.guard != "" {
			m.unjudged.WithLabelValues(r.guard, "refused").Inc()
		}
		return
	case r.path == pathBlocked:
		for _, t := range r.types {
			m.blocked.WithLabelValues(r.guard, t).Inc()
		}
		return
	}
	if v.Jailbreak.Err != nil {
		m.unjudged.WithLabelValues("jailbreak", "allowed").Inc()
	}
	if v.PII.Err != nil {
		m.unjudged.WithLabelValues("pii", "allowed").Inc()
	}
	if v.Jailbreak.Flagged { // it only annotates
		m.annotated.WithLabelValues("jailbreak", v.Jailbreak.Type).Inc()
	}
	for _, t := range v.PII.Denied { // it annotates, or redacts
		m.annotated.WithLabelValues("pii", t).Inc()
	}
	if r.path == pathRefused {
		m.blocked.WithLabelValues("decision", r.types[0]).Inc()
	}
}

func decimal3(p float64) string { return strconv.FormatFloat(p, 'f', 3, 64) }
