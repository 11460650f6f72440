// Guards: what the classifier's guards, and decisions that refuse, do to a request.
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

// A gate lets a request through, or answers in the place of a model.
type gate struct{ *exchange }

// guard ends the request where a guard or the decision says no. Whatever could
// not be judged passes only where the configuration says so.
func (x gate) guard() (answered bool, err *openai.Error) {
	v := x.verdict
	if v == nil {
		return false, nil
	}
	if errors.Is(v.Jailbreak.Err, classify.ErrGone) || errors.Is(v.PII.Err, classify.ErrGone) {
		if x.conn.gone.Load() {
			return false, clientGone
		}
		return false, shuttingDown()
	}
	g := &x.state.settings.Guards
	switch v.Blocked() {
	case classify.ByJailbreak:
		x.blocked("jailbreak", v.Jailbreak.Type)
		return x.deny(g.JailbreakStatus, answer.Refusal{
			ID: "jailbreak-blocked", Model: "security-filter",
			Text: "I cannot process this request as it appears to contain a potential jailbreak attempt (type: " + v.Jailbreak.Type +
				", confidence: " + decimal3(v.Jailbreak.Score) +
				"). Please rephrase your request in a way that complies with our usage policies.",
		})
	case classify.ByPII:
		x.blocked("pii", v.PII.Denied...)
		return x.deny(g.PIIStatus, answer.Refusal{
			ID: "pii-violation", Model: x.model,
			Text: "I cannot process this request as it contains personally identifiable information ([" + strings.Join(v.PII.Denied, " ") +
				"]) that is not allowed for the '" + x.model + "' model according to the configured privacy policy. " +
				"Please remove any sensitive information and try again.",
		})
	case classify.ByFailedJailbreak:
		return false, x.unjudged("jailbreak", v.Jailbreak.Err)
	case classify.ByFailedPII:
		return false, x.unjudged("pii", v.PII.Err)
	}
	x.passedUnjudged()
	x.passedFlagged()
	if d := v.Decision; d != nil && d.Refuse != "" {
		x.facts.judgement.path = pathRefused
		x.p.metrics.blocked.WithLabelValues("decision", d.Name).Inc()
		x.facts.judgement.guard = "decision"
		return x.deny(fasthttp.StatusOK, answer.Refusal{ID: "fast", Model: x.model, Text: d.Refuse})
	}
	return false, nil
}

// blocked notes that a guard refuses the request, and for which types.
func (x gate) blocked(guard string, types ...string) {
	j := &x.facts.judgement
	j.guard, j.path = guard, pathBlocked
	for _, t := range types {
		x.p.metrics.blocked.WithLabelValues(guard, t).Inc()
	}
}

// unjudged refuses what a mandatory guard could not judge.
func (x gate) unjudged(guard string, err error) *openai.Error {
	j := &x.facts.judgement
	if j.path = pathError; errors.Is(err, classify.ErrBusy) {
		return tooManyToJudge()
	}
	j.guard = guard
	x.p.metrics.unjudged.WithLabelValues(guard, "refused").Inc()
	if errors.Is(err, classify.ErrUnread) {
		return &openai.Error{
			Status: 400, Type: "invalid_request_error", Code: "unjudged_content",
			Message: "The " + guard + " guard cannot read a part of this request: " + err.Error() +
				". Send it as text, or set classify." + guard + ".on_error: allow",
		}
	}
	why := "a bug, which is in the log" // its text may be anything
	if errors.Is(err, classify.ErrTimeout) {
		why = err.Error()
	}
	return &openai.Error{
		Status: 503, Type: "server_error", Code: "guard_failed",
		Message: "The " + guard + " guard could not judge this request: " + why + ". Ask again; nothing was sent to a model",
	}
}

// tooManyToJudge is no failure of a guard.
func tooManyToJudge() *openai.Error {
	return unavailable("Too many requests wait to be judged by the guards. Ask again; nothing was sent to a model", time.Second)
}

// passedUnjudged counts what passes though a guard could not judge it.
func (x gate) passedUnjudged() {
	v := x.verdict
	if v.Jailbreak.Err != nil {
		x.facts.judgement.unjudged = "jailbreak"
		x.p.metrics.unjudged.WithLabelValues("jailbreak", "allowed").Inc()
	}
	if v.PII.Err != nil {
		x.facts.judgement.unjudged = "pii"
		x.p.metrics.unjudged.WithLabelValues("pii", "allowed").Inc()
	}
}

// passedFlagged counts what passes although a guard found something: one that
// only annotates, or that redacts it.
func (x gate) passedFlagged() {
	v, annotated := x.verdict, x.p.metrics.annotated
	if v.Jailbreak.Flagged {
		annotated.WithLabelValues("jailbreak", v.Jailbreak.Type).Inc()
	}
	for _, t := range v.PII.Denied {
		annotated.WithLabelValues("pii", t).Inc()
	}
}

// deny answers with a refusal: as an answer of the route where the status is
// 200, else as an error.
func (x gate) deny(status int, r answer.Refusal) (bool, *openai.Error) {
	x.facts.why = "blocked"
	if !x.route.Generates() && status == fasthttp.StatusOK {
		status = fasthttp.StatusBadRequest // there is no answer to say it in
	}
	if status != fasthttp.StatusOK {
		return false, &openai.Error{Status: status, Type: "invalid_request_error", Code: "content_filter", Message: r.Text}
	}
	say := r.Replay(x.route.Kind, x.arrived().Unix(), x.req.Usage.Include)
	x.tell(&say)
	return true, nil
}

func decimal3(p float64) string { return strconv.FormatFloat(p, 'f', 3, 64) }
