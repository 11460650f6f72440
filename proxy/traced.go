// Content: what a traced request asks and is answered, kept for its span where the configuration
// says so.

package proxy

import (
	"slices"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/openai/answer"
	"kvasir/proxy/record"
	"kvasir/tracing/content"
)

// keepPrompt begins to keep what the request asks and is answered, if its trace is to have that. The
// request was judged: what the guard against personal data keeps from workers, or blocks, gives way
// to placeholders here, too, and where it could not judge nothing is kept.
func (x *exchange) keepPrompt() {
	pl := &x.plan
	if !x.trace.Sampled || !pl.state.settings.TraceContent || !pl.route.Generates() || !x.trail.On() {
		return
	}
	x.talk = content.New(pl.route.Kind, &x.p.talks, x.p.bugs.note)
	defer func() {
		if fault := recover(); fault != nil { // costs the content, not the request
			x.p.bugs.note(fault, "keeping the prompt for a trace")
			x.talk.LeaveOut(content.Bug)
		}
	}()
	action := pl.state.settings.Classify.PII.Action
	v := pl.verdict
	hides := action == classify.Redact || action == classify.Block
	if hides && (v == nil || v.PII.Err != nil || !v.PII.Judged) {
		x.talk.LeaveOut(content.Unjudged)
		return
	}
	var hidden openai.Splices
	if hides {
		found := denied(v, pl.state.settings.Classify.PII.Allow)
		redact(&hidden, &pl.req, &pl.reading, &found, new(answer.Veil), pl.state.settings.Guards.Restore, nil)
	}
	x.talk.Asked(&pl.req, &hidden)
}

// denied is what was found of personal data, with the types that may not pass. Where the other guard
// has ended the judging before a decision was made, which could have allowed some, that is all that
// the configuration does not allow.
func denied(v *classify.Verdict, allow []string) classify.PII {
	found := v.PII
	if g := v.Blocked(); g != classify.ByJailbreak && g != classify.ByFailedJailbreak {
		return found
	}
	found.Denied = nil
	for i := range found.Spans {
		if name := found.Spans[i].Type.String(); !slices.Contains(allow, name) && !slices.Contains(found.Denied, name) {
			found.Denied = append(found.Denied, name)
		}
	}
	return found
}

// content is what was asked and answered; nil: nobody wants it. An error is no answer.
func (x *exchange) content() *record.Content {
	t := x.talk
	if t == nil {
		return nil
	}
	c := &record.Content{System: t.System, Input: t.Input, LeftOut: t.LeftOut}
	if x.facts.status < 400 && t.LeftOut != content.Unread {
		c.Output = t.Output(x.facts.why)
	}
	return c
}
