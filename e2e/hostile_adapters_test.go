// Adapters: another model behind the name of one that a key may have.

package e2e

import (
	"strings"
	"testing"
)

func TestHostileAdaptersPastAKeysModels(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "")
	const messages = `"messages":[{"role":"user","content":"hello"}]`
	bodies := map[string]string{}
	for _, member := range []string{
		`"lora_path":"sql"`, `"lora_path":["sql"]`, `"lora_path":["m","sql"]`, `"lora_path":{"m":"sql"}`, `"lora_request":{"lora_name":"m","lora_int_id":1,"lora_path":"/sql"}`,
		`"lora_name":"sql"`, `"lora_id":1`, `"lora_int_id":1`, `"lora":[{"id":0,"scale":1}]`, `"loras":["sql"]`, `"adapter":"sql"`, `"adapter_id":"sql"`, `"adapters":["sql"]`,
		`"adapter_source":"hub"`, `"Lora_Path":"sql"`, `"LORA-PATH":"sql"`, `"l\u006fra_path":"sql"`, `"lora_path":""`, `"extra_body":{"lora_path":"sql"}`,
		`"vllm_xargs":{"lora_path":"sql"}`, `"chat_template_kwargs":{"adapter_name":"sql"}`, `"peft_adapter_name":"sql"`,
		`"loraPath":"sql"`, `"adapterId":"sql"`, `"lora0":"sql"`, `"qlora_path":"sql"`, `"peft_model_id":"sql"`,
	} {
		bodies[`{"model":"m",`+messages+`,`+member+`}`] = "/v1/chat/completions"
	}
	bodies[`{"model":"m","prompt":"hello","lora_path":"sql"}`] = "/v1/completions"
	bodies[`{"model":"m","input":"hello","lora_path":"sql"}`] = "/v1/embeddings"
	bodies[`{"model":"m","prompt":"a cat","lora":{"name":"sql","path":"/sql"}}`] = "/v1/images/generations"
	before := len(w.understood(t))
	for body, path := range bodies {
		status, said := speak(t, k, path, "Content-Type: application/json\r\n", body)
		if status != 404 || !strings.Contains(said, "model_not_found") || len(w.understood(t)) != before {
			t.Errorf("%s: %d %s", body, status, said)
		}
		if reply := post(t, k.url+path, body, "Authorization: Bearer root-key"); reply.status != 200 {
			t.Errorf("%s: a key for all models: %d %s", body, reply.status, reply.body)
		}
		before = len(w.understood(t))
	}
	form := formPart("A", `name="model"`, "m") + formPart("A", `name="prompt"`, "a cat") + formPart("A", `name="lora_path"`, "sql") + "--A--\r\n"
	if status, said := speak(t, k, "/v1/images/edits", formType+"A\r\n", form); status != 404 {
		t.Errorf("a form: %d %s", status, said)
	}
	for _, member := range []string{
		`"lora_path":"m"`, `"lora_path":["m",null]`, `"lora_path":null`, `"lora_request":null`, `"exploration":"sql"`, `"metadata":{"adapter":"sql"}`,
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"adapter":{"enum":["sql"]}}}}}]`,
	} {
		body := `{"model":"m",` + messages + `,` + member + `}`
		if status, said := speak(t, k, "/v1/chat/completions", "Content-Type: application/json\r\n", body); status != 200 {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
}
