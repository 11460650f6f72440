// Refusals in every shape.

package answer

import (
	"encoding/json"
	"strings"
	"testing"

	"kvasir/openai"
	"kvasir/openai/answer/answertest"
)

// A refusal is what the route's clients can read, streamed or not.
func TestRefusals(t *testing.T) {
	r := Refusal{ID: "pii-violation", Model: `a "b"`, Text: "No.\nNot [EMAIL_ADDRESS]"}
	appendTo := func(k openai.Kind, stream bool) []byte {
		say := r.Replay(k, 1700000000, true)
		return say.AppendTo(nil, stream)
	}
	for _, c := range []struct {
		kind   openai.Kind
		path   string // to the text
		reason string
	}{
		{openai.KindChat, "choices 0 message content", "choices 0 finish_reason"},
		{openai.KindText, "choices 0 text", "choices 0 finish_reason"},
		{openai.KindResponses, "output 0 content 0 text", "incomplete_details reason"},
		{openai.KindMessages, "content 0 text", "stop_reason"},
	} {
		var body any
		if err := json.Unmarshal(appendTo(c.kind, false), &body); err != nil {
			t.Fatalf("kind %d: %v", c.kind, err)
		}
		if got := answertest.At(body, c.path); got != r.Text {
			t.Errorf("kind %d says %q", c.kind, got)
		}
		want := "content_filter"
		if c.kind == openai.KindMessages {
			want = "refusal"
		}
		if got := answertest.At(body, c.reason); got != want {
			t.Errorf("kind %d ends with %q, want %q", c.kind, got, want)
		}
		events := appendTo(c.kind, true)
		flow := NewFlow(c.kind, false, nil)
		if pass, skip := flow.Scan(events); pass != len(events) || skip != 0 || !flow.Finished() || !flow.Done {
			t.Errorf("kind %d: the stream is not taken for a finished one: %d of %d bytes\n%s", c.kind, pass, len(events), events)
		}
		var text strings.Builder
		for event := range strings.SplitSeq(strings.TrimSpace(string(events)), "\n\n") {
			_, data, _ := strings.Cut(event, "data: ")
			if data == "[DONE]" {
				continue
			}
			var e any
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatalf("kind %d: %v in %s", c.kind, err, data)
			}
			for _, path := range []string{"choices 0 delta content", "choices 0 text", "delta", "delta text"} {
				if s, ok := answertest.At(e, path).(string); ok {
					text.WriteString(s)
				}
			}
		}
		if text.String() != r.Text {
			t.Errorf("kind %d streams %q", c.kind, text.String())
		}
	}
}
