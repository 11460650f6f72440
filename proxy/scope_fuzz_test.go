// Scopes beside a slow twin: whatever byte of a body is changed.

package proxy

import (
	"bytes"
	"encoding/json"
	"testing"

	"kvasir/openai"
)

// scopeTwin is the scope as one would write it without a thought for speed:
// the body decoded, without what is neutral and without the question, written
// out again. false: there is no question.
func scopeTwin(body []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte(openai.ByteOrderMark))))
	d.UseNumber()
	var all map[string]any
	if d.Decode(&all) != nil {
		return "", false
	}
	for _, key := range []string{"model", "stream", "stream_options", "user", "metadata", "n"} {
		delete(all, key)
	}
	messages, _ := all["messages"].([]any)
	asked := false
	for i := len(messages) - 1; i >= 0; i-- {
		m, _ := messages[i].(map[string]any) // what is none is refused before
		if m["role"] != "user" {
			continue
		}
		if _, asked = m["content"].(string); asked {
			m["content"] = map[string]any{"question": true}
			break
		}
		parts, _ := m["content"].([]any)
		for k := len(parts) - 1; k >= 0 && !asked; k-- {
			part, _ := parts[k].(map[string]any)
			if _, asked = part["text"].(string); asked && (part["type"] == "text" || part["type"] == "input_text") {
				part["text"] = map[string]any{"question": true}
			} else {
				asked = false
			}
		}
		break
	}
	out, err := json.Marshal(all)
	return string(out), asked && err == nil
}

// Two bodies that differ in a byte have one scope only if the twin finds no
// difference either. A body without a question has none.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{
		askedChat, plainChat, towerAsked,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:,"}}]}],"n":1,"x":[1, 2.0,true,null,"\u0061"]}`,
		`{"stream":true,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"user":"u","model":"m","a":{"b":{"c":1}}}`,
	} {
		f.Add([]byte(seed), uint16(len(seed)/2), byte('1'))
	}
	rt := openai.Routes[0]
	f.Fuzz(func(t *testing.T, body []byte, at uint16, by byte) {
		if len(body) == 0 {
			return
		}
		changed := bytes.Clone(body)
		changed[int(at)%len(body)] = by
		scopeOf := func(body []byte) (string, bool) {
			var r openai.Request
			if r.Parse(rt, body, nil) != nil || r.Crowded {
				return "", false
			}
			asks, _ := r.Question()
			if !asks.Given() {
				return "", false
			}
			var h scoper
			h.begin()
			h.body(&r, asks)
			return h.end().String(), true
		}
		one, asked := scopeOf(body)
		twin, twinAsked := scopeTwin(body)
		if asked && !twinAsked {
			t.Errorf("%q is taken for a question", body)
		}
		if other, ok := scopeOf(changed); ok && asked && one == other {
			if otherTwin, _ := scopeTwin(changed); otherTwin != twin {
				t.Errorf("%q and %q have one scope", body, changed)
			}
		}
	})
}
