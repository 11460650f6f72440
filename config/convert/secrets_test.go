// Tests that no secret is copied, wherever it stands.

package convert

import (
	"fmt"
	"strings"
	"testing"
)

func TestSecretsAreNotCopied(t *testing.T) {
	t.Parallel()
	lite := func(params string) string {
		return "model_list: [{model_name: m, litellm_params: {model: openai/m, " + params + "}}]\n"
	}
	backend := func(b string) string {
		return "version: v0.3\nproviders: {models: [{name: m, backend_refs: [{" + b + "}]}]}\n"
	}
	for _, tt := range []struct{ from, file string }{
		{"litellm", lite("api_base: 'http://user:hush@a:1'")},
		{"litellm", lite("api_base: 'http://a:1?key=hush'")},
		{"litellm", lite("api_base: 'http://a:1', api_key: hush")},
		{"litellm", lite("api_base: 'http://a:1', api_key: [hush]")},
		{"litellm", lite("api_base: 'http://a:1', extra_headers: {X-Scope: 'Bearer hush'}")},
		{"litellm", lite("api_base: 'http://a:1', extra_headers: {X-App: sk-hush}")},
		{"litellm", lite("api_base: 'http://a:1', extra_headers: {X-App: 0123456789abcdefhush}")},
		{"litellm", "model_list: []\nlitellm_settings: {num_retries: hush, request_timeout: hush, cache: hush}\ngeneral_settings: {master_key: hush}\n"},
		{"vllm-sr", "vllm_endpoints: [{name: e, address: 'user:hush@h', port: 1}, {name: f, address: 'https://u:hush@h/'}]\n"},
		{"vllm-sr", backend("base_url: 'http://u:hush@h:1/v1'")},
		{"vllm-sr", backend("endpoint: 'h:1', api_key: k, auth_header: X-Key, auth_prefix: 'Token hush'")},
		{"vllm-sr", "semantic_cache: {enabled: true, backend_type: milvus, milvus: {connection: {host: 'u:hush@h', port: 1, auth: {enabled: true, username: a, password: hush}}}}\n"},
	} {
		r, err := Convert(tt.from, "x.yaml", []byte(tt.file))
		if err != nil {
			t.Errorf("%q: %v", tt.file, err)
			continue
		}
		if all := fmt.Sprintf("%v\n%s\n%v", r.Notes, r.Text, r.Problem); strings.Contains(all, "hush") {
			t.Errorf("%q: a secret was copied:\n%s", tt.file, all)
		}
	}
}

// What carries no secret stays where people read it.
func TestPlainHeadersStay(t *testing.T) {
	t.Parallel()
	r, err := Convert("litellm", "x.yaml", []byte("model_list: [{model_name: m, litellm_params: {model: openai/m, api_base: 'http://a:1', extra_headers: {X-Team: blue, Accept: 'text/event-stream, application/json'}}}]\n"))
	if err != nil || r.Problem != nil || !strings.Contains(string(r.Text), "X-Team: blue") || len(r.Variables) > 0 {
		t.Error(err, r)
	}
}
