// Which workers hand over to each other, and how what they say is found.

package upstream

import (
	"bytes"
	"testing"
)

func TestBetween(t *testing.T) {
	worker := func(engine, instance string) *Worker {
		w, err := NewWorker(Settings{Name: "w", URL: "http://127.0.0.1:1", Engine: engine, Instance: instance}, testTimeouts)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, tc := range []struct {
		from, to *Worker
		by       *Connector
	}{
		{worker("vllm", ""), worker("vllm", ""), &nixl},
		{worker("sglang", ""), worker("sglang", ""), &bootstrapRoom},
		{worker("trtllm", ""), worker("trtllm", ""), &contextFirst},
		{worker("dynamo", "7"), worker("dynamo", ""), &direct},
		{worker("dynamo", ""), worker("dynamo", "8"), nil}, // nobody could name the prefill worker
		{worker("vllm", ""), worker("sglang", ""), nil},
		{worker("openai", ""), worker("openai", ""), nil},
		{worker("", ""), worker("vllm", ""), nil},
		{worker("", ""), worker("", ""), nil},
	} {
		if by := Between(tc.from, tc.to); by != tc.by {
			t.Errorf("from %q to %q by %+v", tc.from.EngineName(), tc.to.EngineName(), by)
		}
	}
}

// Rows are found by their names and by the owners of models; what is not known is an
// OpenAI server.
func TestDialects(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range dialects {
		if seen[d.name] || dialectOf(d.name) != d {
			t.Errorf("%s is not the row of its name", d.name)
		}
		seen[d.name] = true
		for _, c := range d.connectors {
			if c.Name == "" || c.begin == nil || (c.tell != nil) != (c.Ask == Before) || (c.Good > 0) != (c.Ask == Before) {
				t.Errorf("%s: the connector %+v is not whole", d.name, c)
			}
		}
	}
	for owner, want := range map[string]string{"vllm": "vllm", "SGLang": "sglang", "tensorrt_llm": "trtllm", "llamacpp": "llamacpp", "library": "openai", "": "openai"} {
		if got := recognise(owner).name; got != want {
			t.Errorf("owner %q is taken for %s", owner, got)
		}
	}
	if d := dialectOf("other"); d.name != "other" || d.salts || d.connectors != nil {
		t.Errorf("an unknown engine is %+v", d)
	}
}

func TestMemberOf(t *testing.T) {
	member, value := memberOf([]byte(` { "a" : 1, "b":[{"c":"}\""}] ,"d":null } `), "b")
	if string(member) != `"b":[{"c":"}\""}]` || string(value) != `[{"c":"}\""}]` {
		t.Errorf("member %s, value %s", member, value)
	}
}

func FuzzMemberOf(f *testing.F) {
	for _, s := range []string{
		`{"id":"c","choices":[{"index":0}],"kv_transfer_params":{"remote_block_ids":[[1,2]],"remote_engine_id":"e","remote_request_id":"r",` +
			`"remote_host":"h","remote_port":5600,"big":18446744073709551615, "odd" : "\u00e9"}}`,
		`{"choices":[{"disaggregated_params":{"request_type":"context_only"},"finish_reason":"length"}],"usage":{"prompt_tokens":3}}`,
		`{"":{},"kv_transfer_params":null}`, `{"a":1`, "{\"kv_transfer_params\" :\t[ ] }",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"kv_transfer_params", "choices", ""} {
			member, value := memberOf(b, name)
			if member != nil && (!bytes.HasPrefix(member, []byte(`"`+name+`"`)) || !bytes.HasSuffix(member, value)) {
				t.Errorf("%q: %q has the value %q", name, member, value)
			}
			nixlBlocks(value)
		}
	})
}
