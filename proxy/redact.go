// Redaction: personal data give way to placeholders in the forwarded body.
package proxy

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"kvasir/classify"
	"kvasir/openai"
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
	x.veil.reset()
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
		with := x.veil.placeholder(own, name, value)
		if t.Bare && x.req.Whole.Given() { // a number: the whole of it, once
			if at.Start >= numbers {
				x.edit.Replace(t.At, append(append([]byte{'"'}, with...), '"'))
			}
			numbers = t.At.End
			continue
		}
		x.edit.Replace(at, with)
	}
	x.facts.judgement.redacted = x.veil.count
	if x.unveil = nil; x.state.settings.Guards.Restore {
		x.unveil = newUnveiler(&x.veil, x.route.Kind)
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

// A veil is what was hidden in one request, and under what names.
type veil struct {
	hidden []hidden
	taken  []taken
	count  int // pieces, equal ones counted again
}

// A taken kind has placeholders up to a number that the client wrote itself.
type taken struct {
	kind   string
	number int // 0: none, 1: [PERSON], 2: [PERSON_2]
}

type hidden struct {
	kind        string
	value       string // as it is meant, no escapes
	placeholder string // with its brackets
}

func (v *veil) reset() { v.hidden, v.taken, v.count = v.hidden[:0], v.taken[:0], 0 }

// placeholder returns the one for the value, which is none that the body has
// itself: the answer's may be either then. A request with very many different
// values has them all, but finds equal ones only among the first.
func (v *veil) placeholder(body []byte, kind string, value []byte) []byte {
	v.count++
	same := v.numbersOf(body, kind)
	for i := range v.hidden {
		h := &v.hidden[i]
		if h.kind != kind {
			continue
		}
		if h.value == string(value) {
			return []byte(h.placeholder)
		}
		same++
	}
	name := "[" + kind + "]"
	if same > 0 {
		name = "[" + kind + "_" + strconv.Itoa(same+1) + "]"
	}
	if len(v.hidden) < maxHidden {
		v.hidden = append(v.hidden, hidden{kind, string(value), name})
	}
	return []byte(name)
}

// numbersOf is the highest number of a placeholder of the kind in the body.
func (v *veil) numbersOf(body []byte, kind string) int {
	for _, t := range v.taken {
		if t.kind == kind {
			return t.number
		}
	}
	highest := 0
	for name := []byte("[" + kind); ; {
		at := bytes.Index(body, name)
		if at < 0 {
			break
		}
		body = body[at+len(name):]
		digits := bytes.TrimPrefix(body, []byte("_"))
		number := 1
		if len(digits) < len(body) {
			if number = 0; len(digits) > maxNumber {
				digits = digits[:maxNumber]
			}
			for _, c := range digits {
				if c < '0' || c > '9' {
					break
				}
				number = number*10 + int(c-'0')
			}
		}
		highest = max(highest, number)
	}
	v.taken = append(v.taken, taken{kind, highest})
	return highest
}

// maxNumber is how many digits of a placeholder's number are read.
const maxNumber = 6

// maxHidden is how many different values of a request are told apart: each is
// compared with those before it.
const maxHidden = 256
