// Decoded: token ids of a client as the text that they stand for, where that is sure.

package proxy

import (
	"bytes"

	"kvasir/classify"
	"kvasir/kvroute/prompt"
	"kvasir/openai"
	"kvasir/proxy/tokens"
)

// appendTokenTexts appends to the question the texts of a body's token ids, which
// are then no longer unread, and to plain their bytes. Where the source is not sure to
// read them as the worker does, they stay unread.
func appendTokenTexts(q *classify.Request, plain, body []byte, ids []openai.Span, source *tokens.Source) []byte {
	if !source.ReadsTokens() {
		return plain
	}
	for _, at := range ids {
		start := len(plain)
		text, good := appendDecoded(plain, at.Of(body), source.Model)
		if !good {
			continue
		}
		plain = text
		q.Texts = append(q.Texts, classify.Text{Bytes: bytes.ToValidUTF8(text[start:len(text):len(text)], []byte("\ufffd")), Role: classify.User, Message: -1})
		q.Unread--
	}
	return plain
}

// modelIsFixed says whether only the model that was chosen can answer: neither a
// decision nor a fallback puts another one in its place.
func modelIsFixed(asked, model string, s *state) bool {
	if isLeftToUs(asked) || len(s.models[model].Fallback) > 0 {
		return false
	}
	for i := range s.settings.Classify.Decisions {
		if d := &s.settings.Classify.Decisions[i]; d.Explicit && d.Model != "" && d.Model != model {
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
