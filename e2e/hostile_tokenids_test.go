// Prompts in a form that no guard reads: token ids, embeddings, and numbers by names yet to be invented.

package e2e

import (
	"strings"
	"testing"
)

const nineIDs = `[101,102,103,104,105,106,107,108,109]`

// unreadable are bodies with a prompt that a guard cannot read.
var unreadable = map[string]struct{ path, body string }{
	"TensorRT-LLM in a chat":    {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"prompt_token_ids":[1,2]}`},
	"SGLang in a chat":          {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"input_ids":[1]}`},
	"SGLang, nested":            {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"input_ids":[[1]]}`},
	"embeddings of SGLang":      {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"input_embeds":[[0.5,0.5]]}`},
	"embeddings of vLLM":        {"/v1/completions", `{"model":"m","prompt":"hello","prompt_embeds":"AAAA"}`},
	"a prompt in a chat":        {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"prompt":[1,2]}`},
	"an input in a chat":        {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"input":{"a":[1,2]}}`},
	"a prompt":                  {"/v1/completions", `{"model":"m","prompt":[1]}`},
	"prompts":                   {"/v1/completions", `{"model":"m","prompt":["a",[1,2]]}`},
	"ids beside a prompt":       {"/v1/completions", `{"model":"m","prompt":"hello","prompt_token_ids":[1,2]}`},
	"input ids beside a prompt": {"/v1/completions", `{"model":"m","prompt":"hello","input_ids":[1]}`},
	"a suffix":                  {"/v1/completions", `{"model":"m","prompt":"hello","suffix":[1,2]}`},
	"an unknown member":         {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"turbo_tokens":` + nineIDs + `}`},
	"deeper in one":             {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"turbo":{"a":{"b":[` + nineIDs + `]}}}`},
	"in pieces":                 {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"turbo":[[1],[2],[3],[4],[5],[6],[7],[8],[9]]}`},
	"few ones, deeper":          {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"more_options":{"input_ids":[1]}}`},
	"few ones in a message":     {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello","prompt_token_ids":[1]}]}`},
	"in an extension":           {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"vllm_xargs":{"ids":` + nineIDs + `}}`},
	"in a template's arguments": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}],"chat_template_kwargs":{"ids":` + nineIDs + `}}`},
	"in a message":              {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello","token_ids":` + nineIDs + `}]}`},
	"in a part":                 {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello","ids":` + nineIDs + `}]}]}`},
	"in responses":              {"/v1/responses", `{"model":"m","input":"hello","input_ids":[1]}`},
	"in an item":                {"/v1/responses", `{"model":"m","input":[{"role":"user","content":"hello","ids":` + nineIDs + `}]}`},
	"earlier messages":          {"/v1/responses", `{"model":"m","input":"hello","previous_input_messages":[1,2,3]}`},
	"in messages":               {"/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hello"}],"prompt_token_ids":[1]}`},
	"to embed":                  {"/v1/embeddings", `{"model":"m","input":[1,2]}`},
	"what to rank":              {"/v1/rerank", `{"model":"m","query":"a","documents":[[1,2]]}`},
	"to be spoken":              {"/v1/audio/speech", `{"model":"m","voice":"a","input":"hello","prompt_token_ids":[1]}`},
}

func TestHostileTokenIDsPastTheGuards(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "")
	before := len(w.understood(t))
	for name, c := range unreadable {
		status, said := speak(t, k, c.path, "Content-Type: application/json\r\n", c.body)
		if status != 400 || !strings.Contains(said, "unjudged_content") || len(w.understood(t)) != before {
			t.Errorf("%s: %d %s", name, status, said)
			before = len(w.understood(t))
		}
	}
	for name, body := range map[string]string{
		"ids that stop or bound an answer": `{"model":"m","messages":[{"role":"user","content":"hello"}],"stop_token_ids":` + nineIDs + `,"allowed_token_ids":` + nineIDs + `,"logit_bias":{"1":1}}`,
		"numbers of a schema":              `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"enum":` + nineIDs + `}}}]}`,
		"usage of an answer":               `{"model":"m","messages":[{"role":"assistant","content":"a","usage":{"prompt_tokens":3,"completion_tokens":1}},{"role":"user","content":"go"}]}`,
		"a vector":                         `{"model":"m","messages":[{"role":"user","content":"hello","embedding":[0.1,-0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.1]}]}`,
		"logprobs":                         `{"model":"m","messages":[{"role":"assistant","content":"a","logprobs":{"content":[{"token":"a","bytes":` + nineIDs + `}]}},{"role":"user","content":"go"}]}`,
		"few numbers":                      `{"model":"m","messages":[{"role":"user","content":"hello"}],"box":[1,2,3,4]}`,
		"none":                             `{"model":"m","messages":[{"role":"user","content":"hello"}],"prompt_token_ids":null,"input_ids":null}`,
	} {
		if status, said := speak(t, k, "/v1/chat/completions", "Content-Type: application/json\r\n", body); status != 200 {
			t.Errorf("%s: %d %s", name, status, said)
		}
	}
}
