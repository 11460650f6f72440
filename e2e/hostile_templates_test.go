// Chat templates of clients: programs that put together what their source does not show.

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// joined is a template whose pieces make a card number, in several ways.
var joined = []string{
	`{{ '4111' ~ ' 1111' ~ ' 11' ~ '11 1111' }}`,
	`{{ ['4111','1111','1111','1111']|join(' ') }}`,
	`{{ '1111 1111 1111 1114'[::-1] }}`,
	`{{ messages[0].content|replace('Q','') }}`,
	`plain text`,
}

func TestHostileTemplatesOfClients(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "")
	before := len(w.understood(t))
	const messages = `"messages":[{"role":"user","content":"hello"}]`
	for _, template := range joined {
		quoted, err := json.Marshal(template)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ path, body string }{
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chat_template":TEMPLATE}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chat_templat\u0065":TEMPLATE}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chat_template":[TEMPLATE]}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chat_template_kwargs":{"a":1,"chat_template":TEMPLATE}}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chat_template_kwargs":{"a":{"chat_template":TEMPLATE}}}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"extra_body":{"chat_template_kwargs":{"chat_template":TEMPLATE}}}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"mm_processor_kwargs":{"chat_template":TEMPLATE}}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"vllm_xargs":{"chat_template":TEMPLATE}}`},
			{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello","chat_template":TEMPLATE}]}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"Chat_Template":TEMPLATE}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"chatTemplate":TEMPLATE}`},
			{"/v1/chat/completions", `{"model":"m",` + messages + `,"extra":[{"Chat-Template":TEMPLATE}]}`},
			{"/tokenize", `{"model":"m",` + messages + `,"chat_template":TEMPLATE}`},
			{"/tokenize", `{"model":"m",` + messages + `,"chat_template_kwargs":{"chat_template":TEMPLATE}}`},
			{"/v1/embeddings", `{"model":"m",` + messages + `,"chat_template":TEMPLATE}`},
			{"/v1/responses", `{"model":"m","input":"hello","chat_template":TEMPLATE}`},
			{"/v1/score", `{"model":"m","text_1":"a","text_2":"b","chat_template":TEMPLATE}`},
			{"/v1/rerank", `{"model":"m","query":"a","documents":["b"],"chat_template_kwargs":{"chat_template":TEMPLATE}}`},
			{"/v1/completions", `{"model":"m","prompt":"hello","chat_template":TEMPLATE}`},
		} {
			body := strings.ReplaceAll(c.body, "TEMPLATE", string(quoted))
			status, said := speak(t, k, c.path, "Content-Type: application/json\r\n", body)
			if status != 400 || !strings.Contains(strings.ToLower(said), "chat_template") || len(w.understood(t)) != before {
				t.Errorf("%s %s: %d %s", c.path, body, status, said)
				before = len(w.understood(t))
			}
		}
	}
	for _, body := range []string{
		`{"model":"m",` + messages + `,"chat_template":null,"chat_template_kwargs":{"enable_thinking":false,"chat_template":null}}`,
		`{"model":"m",` + messages + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"chat_template":{"type":"string"}}}}}]}`,
		`{"model":"m",` + messages + `,"metadata":{"chat_template":"x"}}`,
	} {
		if status, said := speak(t, k, "/v1/chat/completions", "Content-Type: application/json\r\n", body); status != 200 {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
}

// Whoever allows templates has their source judged, as far as that goes.
func TestHostileTemplatesWhereTheyAreAllowed(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "guards: {client_templates: allow}\n")
	for template, want := range map[string]string{"{{ messages[0].content }}": "ok", "My card is 4111 1111 1111 1111": "CREDIT_CARD"} {
		body := `{"model":"m","messages":[{"role":"user","content":"hello"}],"chat_template":"` + template + `"}`
		if status, said := speak(t, k, "/v1/chat/completions", "Content-Type: application/json\r\n", body); status != 200 || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", template, status, said)
		}
	}
}
