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
// [PERSON_2]. The values are kept in veil. restore says that they are put back into
// the answer; otherwise the client's own placeholders are ours of an earlier turn.
// hid is told of the type of each piece; nil: nobody is.
func redact(edit *openai.Splices, r *openai.Request, q *classify.Request, found *classify.PII, veil *answer.Veil, restore bool, hid func(kind string)) {
	veil.Reset()
	others := edit.Len() // edits that were there before ours
	seek := offsets{text: -1}
	numbers := int32(0) // the end of the last one that is replaced
	var own []byte
	if restore {
		own = r.Body
	}
	for i := range found.Spans {
		e := &found.Spans[i]
		if !found.Denies(e.Type) {
			continue
		}
		t := r.Content.Texts[e.Text]
		if e.Text != seek.text {
			seek = offsets{text: e.Text, raw: int(t.Inside().Start)}
		}
		value := q.Texts[e.Text].Bytes[e.Start:e.End]
		at := openai.Span{Start: seek.to(r.Body, int(e.Start), t.Escaped)}
		at.End = seek.to(r.Body, int(e.End), t.Escaped)
		if edit.Covers(others, at) {
			continue
		}
		name := e.Type.String()
		if hid != nil {
			hid(name)
		}
		with := veil.Placeholder(own, name, value)
		if t.Bare && r.Whole.Given() { // a number: the whole of it, once
			if at.Start >= numbers {
				edit.Replace(t.At, append(append([]byte{'"'}, with...), '"'))
			}
			numbers = t.At.End
			continue
		}
		edit.Replace(at, with)
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
