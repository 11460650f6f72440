// A configuration of another gateway is imported, and serves.

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// simulated is a worker that serves a model, and waits until it does.
func simulated(t *testing.T, model string) string {
	t.Helper()
	address := freeAddress(t)
	spawn(t, nil, binary(t), "simulate", "--listen", address, "--model", model)
	eventually(t, patience, model+" is served", func() bool { return answers("http://" + address + "/v1/models") })
	return address
}

// imported is Kvasir's configuration of another program's.
func imported(t *testing.T, from, config string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "theirs.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "import", "--from", from, file)
	var notes bytes.Buffer
	cmd.Stderr = &notes
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("kvasir import: %v\n%s", err, notes.String())
	}
	return string(text)
}

func TestImportSemanticRouter(t *testing.T) {
	t.Parallel()
	general, reckoner := simulated(t, "general-7b"), simulated(t, "reckoner")
	config := imported(t, "vllm-sr", `
version: v0.1
providers:
  default_model: general
  reasoning_families: {q: {type: chat_template_kwargs, parameter: enable_thinking}}
  models:
    - {name: general, provider_model_id: general-7b, endpoints: [{name: one, endpoint: "`+general+`", protocol: http}]}
    - {name: reckoner, reasoning_family: q, endpoints: [{name: two, endpoint: "`+reckoner+`", protocol: http}]}
signals:
  domains: [{name: sums, mmlu_categories: [math]}]
decisions:
  - name: sums
    priority: 100
    rules: {operator: AND, conditions: [{type: domain, name: sums}]}
    modelRefs: [{model: reckoner, use_reasoning: true}]
    plugins:
      - {type: system_prompt, configuration: {system_prompt: Reckon in steps and say so.}}
      - {type: pii, configuration: {enabled: true, pii_types_allowed: [EMAIL_ADDRESS, PERSON, GPE, DATE_TIME]}}
      - {type: semantic-cache, configuration: {enabled: true, similarity_threshold: 0.93}}
semantic_cache: {enabled: true, similarity_threshold: 0.8}
`)
	k := serve(t, config, "general-7b", "reckoner")
	for _, c := range []struct {
		model, question, worker, path string
		headers                       map[string]string
	}{
		{"auto", mathsQuestion, "two", "upstream", map[string]string{"x-vsr-selected-decision": "sums", "x-vsr-selected-model": "reckoner",
			"x-vsr-injected-system-prompt": "true", "x-vsr-selected-reasoning": "on"}},
		{"auto", mathsQuestion, "", "cache", nil},
		{"auto", innocent, "one", "upstream", map[string]string{"x-vsr-selected-decision": "otherwise"}},
		{"general", "Name three rivers of France.", "one", "upstream", map[string]string{"x-vsr-selected-model": "general-7b"}}, // by its other name
		{"auto", mathsQuestion + " Mail it to maria@example.org.", "two", "upstream", map[string]string{"x-vsr-selected-decision": "sums"}},
		{"reckoner", cardNumber, "", "blocked", map[string]string{"x-vsr-pii-types": "CREDIT_CARD"}}, // named: what no policy allows is denied
		{"auto", mathsQuestion + " Charge it to my card 4111 1111 1111 1111.", "", "blocked", map[string]string{"x-vsr-pii-types": "CREDIT_CARD"}},
	} {
		body := `{"model":"` + c.model + `","messages":[{"role":"user","content":"` + c.question + `"}]}`
		r := post(t, k.url+"/v1/chat/completions", body)
		for range 100 { // an answer is stored after its last byte; who asks again before that shares it, which is no hit yet
			if r.header.Get("x-kvasir-cache") != "wait" {
				break
			}
			r = post(t, k.url+"/v1/chat/completions", body)
		}
		if r.status != 200 || r.header.Get("x-kvasir-worker") != c.worker || r.header.Get("x-vsr-response-path") != c.path {
			t.Errorf("%s: %q: %d, headers %v, body %s", c.model, c.question, r.status, r.header, tail(string(r.body), 600))
		}
		for name, want := range c.headers {
			if got := r.header.Get(name); got != want {
				t.Errorf("%s: %q: %s is %q, want %q", c.model, c.question, name, got, want)
			}
		}
	}
	explain := exec.Command(binary(t), "explain", "--config", k.file)
	explain.Env = []string{"PATH=/usr/bin:/bin"}
	explain.Stdin = strings.NewReader(`{"model":"auto","messages":[{"role":"user","content":"` + mathsQuestion + `"}]}`)
	told, err := explain.CombinedOutput()
	if err != nil || !bytes.Contains(told, []byte("Reckon in steps and say so.")) || !bytes.Contains(told, []byte("one that scores 0.93")) {
		t.Errorf("kvasir explain: %v\n%s", err, told)
	}
}

func TestImportLiteLLM(t *testing.T) {
	t.Parallel()
	a, b := simulated(t, "engine-a"), simulated(t, "engine-b")
	config := imported(t, "litellm", `
model_list:
  - {model_name: chat, litellm_params: {model: hosted_vllm/engine-a, api_base: "http://`+a+`/v1", api_key: none}}
  - {model_name: spare, litellm_params: {model: hosted_vllm/engine-b, api_base: "http://`+b+`/v1", api_key: none}}
router_settings: {fallbacks: [{chat: [spare]}], model_group_alias: {gpt-4: spare}}
general_settings: {master_key: sk-open-sesame-1234}
`)
	k := serve(t, config)
	for model, worker := range map[string]string{"chat": "chat", "spare": "spare", "gpt-4": "spare", "engine-a": "chat"} {
		r := post(t, k.url+"/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"Hello"}],"max_tokens":4}`, "Authorization: Bearer sk-open-sesame-1234")
		if r.status != 200 || r.header.Get("x-kvasir-worker") != worker {
			t.Errorf("%s: %d by worker %q: %s", model, r.status, r.header.Get("x-kvasir-worker"), r.body)
		}
	}
	if r := post(t, k.url+"/v1/chat/completions", `{"model":"chat","messages":[]}`); r.status != 401 {
		t.Errorf("without the key: %d %s", r.status, r.body)
	}
}
