// Recordings of responses: what is taken down, and what cannot be.

package answer

import (
	"strings"
	"testing"

	"kvasir/openai"
)

const (
	responseSaid  = `{"id":"r","object":"response","created_at":5,"status":"completed","error":null,"incomplete_details":null,"model":"m","temperature":0.5,"tools":[],"output":[REASON{"id":"i","type":"message","role":"assistant","status":"completed","content":[{"annotations":[],"text":"a\nb","type":"output_text","logprobs":null}]}],"usage":{"input_tokens":1,"output_tokens":2}}`
	responseThink = `{"id":"i","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},`
)

func TestRecordedResponses(t *testing.T) {
	for _, thought := range []string{"", responseThink} {
		body := strings.Replace(responseSaid, "REASON", thought, 1)
		r := NewRecorder(openai.KindResponses, false)
		r.Body([]byte(body))
		r.Seal()
		streamed := NewRecorder(openai.KindResponses, false)
		var events []string
		for _, e := range [][2]string{
			{"response.created", `"response":{"object":"response","output":[],"status":"in_progress"}`},
			{"response.reasoning_text.delta", `"delta":"hm","output_index":0`},
			{"response.output_item.added", `"item":{}`},
			{"response.output_text.delta", `"delta":"a\n","logprobs":[],"output_index":1`},
			{"response.output_text.delta", `"delta":"b","logprobs":[],"output_index":1`},
			{"response.completed", `"response":` + body},
		} {
			if thought != "" || e[0] != "response.reasoning_text.delta" {
				events = append(events, "event: "+e[0]+"\ndata: {\"type\":\""+e[0]+"\","+e[1]+"}\n\n")
			}
		}
		recordEvents(streamed, events...)
		for form, r := range map[string]*Recorder{"body": r, "stream": streamed} {
			if !r.Storable() || string(r.Answer().Text) != "a\nb" || (string(r.Answer().Reasoning) == "hm") != (thought != "") || r.Answer().Model != "m" || r.Answer().Created != 5 || string(r.Answer().RawUsage) != `{"input_tokens":1,"output_tokens":2}` {
				t.Errorf("%s: flaw %q, %+v", form, r.Flaw(), r.Answer())
			}
			if _, err := Parse(r.Answer().AppendTo(nil)); err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
		if len(streamed.Answer().Pieces) != 2 || r.Answer().Pieces != nil {
			t.Errorf("pieces are %v and %v", streamed.Answer().Pieces, r.Answer().Pieces)
		}
	}
}

func TestResponsesThatAreNotStored(t *testing.T) {
	plain := strings.Replace(responseSaid, "REASON", "", 1)
	for _, c := range []struct{ old, by, flaw string }{
		{`"error":null`, `"error":{"message":"x"}`, "error"},
		{`"status":"completed","error"`, `"status":"failed","error"`, "error"},
		{`"status":"completed","error":null,"incomplete_details":null`, `"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}`, ""},
		{`"status":"completed","error":null,"incomplete_details":null`, `"status":"incomplete","error":null,"incomplete_details":{"reason":"content_filter"}`, ""},
		{`"object":"response"`, `"object":"response","store":true`, "state"},
		{`"type":"output_text"`, `"type":"refusal"`, "refusal"},
		{`"annotations":[]`, `"annotations":[{"type":"url_citation"}]`, "annotations"},
		{`"logprobs":null`, `"logprobs":[{"token":"a"}]`, "logprobs"},
		{`"output":[`, `"output":[{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},`, "tool_calls"},
		{`"output":[`, `"output":[{"type":"message","content":[{"type":"output_text","text":"c"}]},`, "content"},
		{`"output":[`, `"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"c"}]},`, ""},
		{`"text":"a\nb"`, `"text":" "`, ""},
		{`"usage"`, `"usage`, "data"},
	} {
		body := strings.Replace(plain, c.old, c.by, 1)
		if body == plain {
			t.Fatalf("%s is not there", c.old)
		}
		r := NewRecorder(openai.KindResponses, false)
		r.Body([]byte(body))
		r.Seal()
		if r.Storable() || c.flaw != "" && r.Flaw() != c.flaw {
			t.Errorf("%s -> %s: storable %v, flaw %q, want %q", c.old, c.by, r.Storable(), r.Flaw(), c.flaw)
		}
	}
	completed := "event: response.completed\ndata: {\"response\":" + plain + "}\n\n"
	for name, events := range map[string][]string{
		"other words than its end": {"event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n", completed},
		"a call":                   {"event: response.function_call_arguments.delta\ndata: {\"delta\":\"x\"}\n\n", completed},
		"a failure":                {"event: response.failed\ndata: {\"response\":{}}\n\n"},
		"no end":                   {"event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n"},
		"more behind its end":      {completed, "event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\n"},
		"no names":                 {"data: {\"type\":\"response.completed\",\"response\":" + plain + "}\n\n"},
	} {
		if r := recordEvents(NewRecorder(openai.KindResponses, false), events...); r.Storable() {
			t.Errorf("%s: stored as %+v", name, r.Answer())
		}
	}
}
