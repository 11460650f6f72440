// Requests of /v1/messages and /v1/responses beside the chat requests that vLLM makes of them.

package prompt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// What vLLM 0.32 makes of them: AnthropicServingMessages.to_chat_completion_request, construct_input_messages.
var converted = []struct{ route, body, chat string }{
	{"messages", `{"model":"m","max_tokens":4,"system":"be","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"yes"}]},` +
		`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":""},{"type":"text","text":"b"}]}]}`,
		`[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`},
	{"messages", `{"system":[{"type":"text","text":"x-anthropic-billing-header: 1"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"messages":[{"role":"user","content":""}]}`,
		`[{"role":"system","content":"ab"},{"role":"user","content":""}]`},
	{"messages", `{"system":"","messages":[{"role":"user","content":"q"}],"thinking":null}`, `[{"role":"user","content":"q"}]`},
	{"responses", `{"model":"m","input":"hi"}`, `[{"role":"user","content":"hi"}]`},
	{"responses", `{"input":"hi","instructions":"be","stream":true,"store":false}`, `[{"role":"system","content":"be"},{"role":"user","content":"hi"}]`},
	{"responses", `{"instructions":"be","input":[{"role":"user","content":"q"},{"type":"message","role":"assistant","content":"a"},{"role":"developer","content":"d"},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_text","text":"y"}]}]}`,
		`[{"role":"system","content":"be"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"developer","content":"d"},` +
			`{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]`},
	{"responses", `{"input":[{"role":"user","content":"q"},{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]},{"role":"user","content":"q"}]}`,
		`[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"q"}]`},

	{"messages", `{"messages":[{"role":"user","content":"q"}],"tools":[{"name":"f","input_schema":{}}]}`, ""},
	{"messages", `{"messages":[{"role":"user","content":"q"}],"thinking":{"type":"enabled"}}`, ""},
	{"messages", `{"messages":[{"role":"user","content":"q"}],"output_config":{"effort":"low"}}`, ""},
	{"messages", `{"messages":[{"role":"system","content":"q"}]}`, ""},
	{"messages", `{"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`, ""},
	{"messages", `{"messages":[{"role":"user","content":[]}]}`, ""},
	{"messages", `{"messages":[{"role":"user"}]}`, ""},
	{"messages", `{"messages":[7]}`, ""},
	{"messages", `{"messages":[{"role":"user","content":"q"}],"system":[{"type":"image"}]}`, ""},
	{"responses", `{"input":"q","previous_response_id":"resp_1"}`, ""},
	{"responses", `{"input":"q","tools":[{"type":"function","name":"f"}]}`, ""},
	{"responses", `{"input":"q","reasoning":{"effort":"low"}}`, ""},
	{"responses", `{"input":"q","truncation":"auto"}`, ""},
	{"responses", `{"input":[{"role":"user","content":"q"},{"role":"assistant","content":"a","status":"incomplete"}]}`, ""},
	{"responses", `{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, ""},
	{"responses", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, ""},
	{"responses", `{"input":"q","instructions":["x"]}`, ""},
}

func TestOtherRoutes(t *testing.T) {
	l := NewLibrary(Options{HubCache: t.TempDir()})
	dir := aModel(t, t.TempDir(), chatML)
	m := model(t, l, dir, Hints{})
	for _, c := range converted {
		of := m.Messages
		if c.route == "responses" {
			of = m.Responses
		}
		got, err := of(context.Background(), []uint32{7}, []byte(c.body))
		if c.chat == "" {
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", c.body, err)
			}
			continue
		}
		want, failed := m.Chat(context.Background(), []uint32{7}, []byte(`{"messages":`+c.chat+`}`))
		if err != nil || failed != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q %v, want %q %v", c.body, spell(m.files.tokenizer, got), err, spell(m.files.tokenizer, want), failed)
		}
	}
	other, err := l.Model("other", dir, Hints{Engine: "sglang"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Responses(context.Background(), nil, []byte(`{"input":"q"}`)); !errors.Is(err, ErrUnsupported) {
		t.Error("what another engine makes of the route is not known:", err)
	}
}

// FuzzOtherRoutes: no request is too strange.
func FuzzOtherRoutes(f *testing.F) {
	m := model(f, NewLibrary(Options{HubCache: f.TempDir()}), aModel(f, f.TempDir(), chatML), Hints{})
	for _, c := range converted {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, of := range []func(context.Context, []uint32, []byte) ([]uint32, error){m.Messages, m.Responses} {
			if _, err := of(context.Background(), nil, body); err != nil && strings.Contains(err.Error(), "BUG") {
				t.Fatal(err)
			}
		}
	})
}
