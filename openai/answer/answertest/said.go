// What a client makes of a reply: the slow twin of a Recorder.

package answertest

import (
	"encoding/json"
	"strings"
	"testing"
)

// A Said is what a client makes of a reply, on any route. Two replies that say
// the same are equal.
type Said struct {
	Text, Reasoning, Finish, Model string

	Choices int // 0: of a route that has none
	Calls   bool
}

// SaidBy reads a body of JSON.
func SaidBy(tb testing.TB, body string) (s Said) {
	tb.Helper()
	s.object(tb, body)
	return s
}

// SaidIn reads a stream of events, each with its data on one line.
func SaidIn(tb testing.TB, stream string) (s Said) {
	tb.Helper()
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" {
			s.object(tb, data)
		}
	}
	return s
}

// object adds what one object says: a body, or the data of an event.
func (s *Said) object(tb testing.TB, data string) {
	tb.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(data), &o); err != nil {
		tb.Fatalf("%q: %v", data, err)
	}
	if m, ok := o["response"].(map[string]any); ok {
		o = m
	}
	if m, ok := o["model"].(string); ok {
		s.Model = m
	}
	if o["object"] == "response" {
		if text, ok := At(o, "output 0 content 0 text").(string); ok {
			s.Text = text
			s.Finish = map[any]string{"completed": "stop", "incomplete": "length"}[o["status"]]
		}
		return
	}
	choices, _ := o["choices"].([]any)
	for _, c := range choices {
		s.choice(c.(map[string]any))
	}
	if m, ok := o["message"].(map[string]any); ok {
		s.Model = m["model"].(string)
	}
	content, _ := o["content"].([]any)
	for _, block := range append(content, o["delta"]) {
		if b, ok := block.(map[string]any); ok {
			text, _ := b["text"].(string)
			s.Text += text
			if _, ok := b["stop_reason"]; ok {
				o = b
			}
		}
	}
	if why, ok := o["stop_reason"].(string); ok {
		s.Finish = map[string]string{"end_turn": "stop", "max_tokens": "length"}[why]
	}
}

func (s *Said) choice(c map[string]any) {
	for _, key := range []string{"delta", "message"} {
		if m, ok := c[key].(map[string]any); ok {
			text, _ := m["content"].(string)
			s.Text += text
			for _, key := range []string{"reasoning", "reasoning_content"} {
				text, _ := m[key].(string)
				s.Reasoning += text
			}
			calls, _ := m["tool_calls"].([]any)
			s.Calls = s.Calls || len(calls) > 0
		}
	}
	text, _ := c["text"].(string)
	s.Text += text
	if f, ok := c["finish_reason"].(string); ok {
		s.Finish = f
	}
	if n, _ := c["index"].(float64); int(n) >= s.Choices {
		s.Choices = int(n) + 1
	}
}

// TextAt puts together the strings that the events of a stream have at path,
// which At reads.
func TextAt(tb testing.TB, stream, path string) string {
	tb.Helper()
	var all strings.Builder
	for event := range strings.SplitSeq(strings.TrimSpace(stream), "\n\n") {
		_, data, _ := strings.Cut(event, "data: ")
		if data == "[DONE]" {
			continue
		}
		var e any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			tb.Fatalf("%v in %q", err, data)
		}
		if s, ok := At(e, path).(string); ok {
			all.WriteString(s)
		}
	}
	return all.String()
}

// At walks into decoded JSON by the keys in path, "0" for the first element of
// an array; nil where there is nothing.
func At(v any, path string) any {
	for key := range strings.FieldsSeq(path) {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			if key != "0" || len(in) == 0 {
				return nil
			}
			v = in[0]
		default:
			return nil
		}
	}
	return v
}
