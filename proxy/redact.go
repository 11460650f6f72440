// Redaction: personal data give way to placeholders in the forwarded body.

package proxy

import (
	"unicode/utf8"

	"kvasir/classify"
	"kvasir/openai"
	"kvasir/openai/answer"
)

// redact splices a placeholder in the place of each piece of personal data
// that may not pass. Equal values get equal placeholders; different ones of a
// type are numbered, so that a model can tell two people apart: [PERSON],
// [PERSON_2].
func (x *exchange) redact() {
	v := x.verdict
	if v == nil || x.state.settings.Classify.PII.Action != classify.Redact {
		return
	}
	count := x.facts.judgement.redacted == 0 && x.conn != nil // once, and not of what is only explained
	x.veil.Reset()
	others := x.edit.Len() // edits that were there before ours
	seek := offsets{text: -1}
	numbers := int32(0) // the end of the last one that is replaced
	var own []byte      // where nothing is put back, the client's placeholders are ours of an earlier turn
	if x.state.settings.Guards.Restore {
		own = x.body
	}
	for i := range v.PII.Spans {
		e := &v.PII.Spans[i]
		if !v.PII.Denies(e.Type) {
			continue
		}
		t := x.req.Content.Texts[e.Text]
		if e.Text != seek.text {
			seek = offsets{text: e.Text, raw: int(t.Inside().Start)}
		}
		value := x.asked.Texts[e.Text].Bytes[e.Start:e.End]
		at := openai.Span{Start: seek.to(x.body, int(e.Start), t.Escaped)}
		at.End = seek.to(x.body, int(e.End), t.Escaped)
		if x.edit.Covers(others, at) {
			continue
		}
		name := e.Type.String()
		if count {
			x.p.metrics.redacted.WithLabelValues(name).Inc()
		}
		with := x.veil.Placeholder(own, name, value)
		if t.Bare && x.req.Whole.Given() { // a number: the whole of it, once
			if at.Start >= numbers {
				x.edit.Replace(t.At, append(append([]byte{'"'}, with...), '"'))
			}
			numbers = t.At.End
			continue
		}
		x.edit.Replace(at, with)
	}
	x.facts.judgement.redacted = x.veil.Count
	if x.unveil = nil; x.state.settings.Guards.Restore {
		x.unveil = answer.NewUnveiler(&x.veil, x.route.Kind)
	}
}

// offsets finds where in a body the bytes of a text stand, going forward only.
type offsets struct {
	text  int
	raw   int // in the body
	plain int // the same place in the text with its escapes resolved
}

// to goes on to plain offset at, a border between characters, and returns
// where that is in the body.
func (o *offsets) to(body []byte, at int, escaped bool) int32 {
	if !escaped {
		o.raw, o.plain = o.raw+at-o.plain, at
	}
	for o.plain < at {
		c := body[o.raw]
		switch {
		case c != '\\':
			o.raw++
			o.plain++
		case body[o.raw+1] != 'u':
			o.raw += 2
			o.plain++
		default:
			r := openai.HexUnit(body[o.raw+2:])
			o.raw += 6
			if r>>10 == 0xD800>>10 {
				r = 0x10000
				o.raw += 6
			}
			o.plain += utf8.RuneLen(r)
		}
	}
	return int32(o.raw)
}
