// Decoded: token ids of a client as the text that they stand for, where that is sure.
package proxy

import (
	"bytes"

	"kvasir/classify"
	"kvasir/kvroute/prompt"
	"kvasir/openai"
)

// decoded appends to the question the texts of the request's token ids, which are
// then no longer unread. They are read by the tokenizer of the one model that can
// come to answer; where another one might, or it is not sure to be the worker's,
// they stay unread. So they do where personal data are replaced: there is no place
// in a body of numbers for [TYPE].
func (x *exchange) decoded(q *classify.Request) {
	if len(x.req.Content.TokenIDs) == 0 || x.p == nil || !x.modelIsFixed() || x.state.settings.Classify.PII.Action == classify.Redact {
		return
	}
	source := x.p.tokens.Of(x.model)
	if !source.ReadsTokens() {
		return
	}
	for _, at := range x.req.Content.TokenIDs {
		start := len(x.plain)
		text, good := appendDecoded(x.plain, at.Of(x.body), source.Model)
		if !good {
			continue
		}
		x.plain = text
		q.Texts = append(q.Texts, classify.Text{Bytes: bytes.ToValidUTF8(text[start:len(text):len(text)], []byte("\ufffd")), Role: classify.User, Message: -1})
		q.Unread--
	}
}

// modelIsFixed says whether only the model that was chosen can answer: neither a
// decision nor a fallback puts another one in its place.
func (x *exchange) modelIsFixed() bool {
	if x.auto() || len(x.state.models[x.model].Fallback) > 0 {
		return false
	}
	for i := range x.state.settings.Classify.Decisions {
		if d := &x.state.settings.Classify.Decisions[i]; d.Explicit && d.Model != "" && d.Model != x.model {
			return false
		}
	}
	return true
}

// maxDecoded bounds the text that is made of token ids.
const maxDecoded = 8 << 20

// appendDecoded appends the text of the token ids in a JSON value, a line for each
// array. It is not good where anything but ids of the model stands in it; strings
// are texts of their own.
func appendDecoded(dst, value []byte, m *prompt.Model) (text []byte, good bool) {
	text = dst
	for i := 0; i < len(value); {
		switch c := value[i]; {
		case c == '"':
			w := openai.Walk(value)
			w.I = i
			if w.Skip(); w.Bad {
				return dst, false
			}
			i = w.I
		case c == ']':
			text = append(text, '\n')
			i++
		case c == '[' || c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			i++
		case c >= '0' && c <= '9':
			id := uint32(0)
			for ; i < len(value) && value[i] >= '0' && value[i] <= '9'; i++ {
				if id = id*10 + uint32(value[i]-'0'); id > maxTokenID {
					return dst, false
				}
			}
			if i < len(value) && (value[i] == '.' || value[i]|0x20 == 'e') {
				return dst, false
			}
			if text, good = m.AppendToken(text, id); !good || len(text)-len(dst) > maxDecoded {
				return dst, false
			}
		default:
			return dst, false
		}
	}
	return text, true
}

// maxTokenID is more than any vocabulary has.
const maxTokenID = 1 << 24
