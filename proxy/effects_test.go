// Refusals as clients read them, and redaction.
package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"kvasir/openai"
)

func routeOf(t *testing.T, path string) openai.Route {
	t.Helper()
	for _, rt := range openai.Routes {
		if rt.Path == path {
			return rt
		}
	}
	t.Fatalf("no route %q", path)
	return openai.Route{}
}

// A refusal is what the route's clients can read, streamed or not.
func TestRefusals(t *testing.T) {
	r := refusal{id: "pii-violation", model: `a "b"`, text: "No.\nNot [EMAIL_ADDRESS]"}
	appendTo := func(k openai.Kind, stream bool) []byte {
		say := r.replay(k, 1700000000, true)
		return say.appendTo(nil, stream)
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
		if got := at(body, c.path); got != r.text {
			t.Errorf("kind %d says %q", c.kind, got)
		}
		want := "content_filter"
		if c.kind == openai.KindMessages {
			want = "refusal"
		}
		if got := at(body, c.reason); got != want {
			t.Errorf("kind %d ends with %q, want %q", c.kind, got, want)
		}
		events := appendTo(c.kind, true)
		var flow eventFlow
		flow.begin(c.kind, false)
		if pass, skip := flow.scan(events); pass != len(events) || skip != 0 || !flow.finished() || !flow.done {
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
				if s, ok := at(e, path).(string); ok {
					text.WriteString(s)
				}
			}
		}
		if text.String() != r.text {
			t.Errorf("kind %d streams %q", c.kind, text.String())
		}
	}
}

// at walks into decoded JSON; nil where there is nothing.
func at(v any, path string) any {
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

// Offsets go from the text as it is meant to its bytes in the body.
func TestOffsetsOfEscapedText(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"a\n\"\u00e9\ud83d\ude00 x@y.zz é\/ end"}]}`)
	var r openai.Request
	if err := r.Parse(openai.Route{Path: "/v1/chat/completions", Kind: openai.KindChat}, body, nil); err != nil {
		t.Fatal(err.Message)
	}
	text := r.Content.Texts[0]
	plain := text.AppendTo(nil, body)
	for _, part := range []string{"a", "\n", `"`, "é", "😀", "x@y.zz", "é/", "end"} {
		start := bytes.Index(plain, []byte(part))
		o := offsets{raw: int(text.Inside().Start)}
		from := o.to(body, start, true)
		to := o.to(body, start+len(part), true)
		if got := openai.AppendUnescaped(nil, body[from:to]); string(got) != part {
			t.Errorf("%q is found at %q", part, body[from:to])
		}
	}
}

func TestPlaceholdersTellValuesApart(t *testing.T) {
	var v veil
	var got []string
	for _, value := range []string{"PERSON Ann", "PERSON Bob", "PERSON Ann", "GPE Oslo", "PERSON Cem"} {
		kind, value, _ := strings.Cut(value, " ")
		got = append(got, string(v.placeholder(nil, kind, []byte(value))))
	}
	if want := "[PERSON] [PERSON_2] [PERSON] [GPE] [PERSON_3]"; strings.Join(got, " ") != want {
		t.Errorf("placeholders are %s, want %s", strings.Join(got, " "), want)
	}
}
