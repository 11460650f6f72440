// Members of JSON whose names differ only by case: one request here, another for a worker that knows no case.

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// Go's encoding/json, and so Ollama, takes a name in any case, and of two members the last.
func TestHostileMembersInAnotherCase(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "")
	const messages = `"messages":[{"role":"user","content":"hello"}]`
	chat := func(members string) string { return `{"model":"m",` + messages + `,` + members + `}` }
	message := func(members string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hello",` + members + `}]}`
	}
	cases := map[string]struct {
		path, body string
		another    bool // a reader in Go shows how: it reads more there than exact names say
	}{
		"another model":             {"/v1/chat/completions", chat(`"Model":"m2"`), true},
		"another model, escaped":    {"/v1/chat/completions", chat(`"\u004dodel":"m2"`), true},
		"another model, first":      {"/v1/chat/completions", `{"MODEL":"m2","model":"m",` + messages + `}`, false},
		"another model, without":    {"/v1/chat/completions", `{"MODEL":"m2",` + messages + `}`, true},
		"another model of many":     {"/v1/chat/completions", chat(manyMembers(70) + `,"mOdel":"m2"`), true},
		"other messages":            {"/v1/chat/completions", chat(`"Messages":[{"role":"user","content":"` + cardText + `"}]`), true},
		"other messages, long s":    {"/v1/chat/completions", chat(`"meſſages":[{"role":"user","content":"` + cardText + `"}]`), true},
		"a room by the Kelvin sign": {"/v1/chat/completions", chat(`"` + "K" + `v_transfer_params":{"a":1}`), true},
		"other content":             {"/v1/chat/completions", message(`"Content":"ho"`), true},
		"another role":              {"/v1/chat/completions", message(`"ROLE":"system"`), true},
		"other calls":               {"/v1/chat/completions", message(`"Tool_Calls":[]`), false},
		"content of a part":         {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","Text":"ho"}]}]}`, false},
		"a tool's description":      {"/v1/chat/completions", chat(`"tools":[{"type":"function","function":{"name":"f","deſcription":"ho"}}]`), true},
		"a call's function":         {"/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","content":"a","tool_calls":[{"type":"function","function":{"name":"f"},"Function":{"name":"g"}}]}]}`, true},
		"usage of a stream":         {"/v1/chat/completions", chat(`"stream":true,"Stream_Options":{"include_usage":false}`), true},
		"usage in there":            {"/v1/chat/completions", chat(`"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}`), true},
		"a stream":                  {"/v1/chat/completions", chat(`"ſtream":true`), true},
		"a room":                    {"/v1/chat/completions", chat(`"Bootstrap_Room":1`), true},
		"transfer parameters":       {"/v1/chat/completions", chat(`"KV_TRANSFER_PARAMS":{"remote_host":"evil"}`), true},
		"extra arguments":           {"/v1/chat/completions", chat(`"vllm_xargs":{"Kv_transfer_params":{}}`), false},
		"a template's arguments":    {"/v1/chat/completions", chat(`"chat_template_kwargs":{"Chat_template":"x"}`), false},
		"a choice of worker":        {"/v1/chat/completions", chat(`"nvext":{"Backend_Instance_Id":"x"}`), false},
		"a prompt":                  {"/v1/completions", `{"model":"m","prompt":"hello","Prompt":"` + cardText + `"}`, true},
		"an input":                  {"/v1/embeddings", `{"model":"m","input":"hello","INPUT":"` + cardText + `"}`, true},
		"an input by a dotless i":   {"/v1/embeddings", `{"model":"m","input":"hello","ınput":"` + cardText + `"}`, false},
		"an item's output":          {"/v1/responses", `{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"a","Output":"b"}]}`, false},
		"instructions":              {"/v1/responses", `{"model":"m","input":"hello","Instructions":"ho"}`, false},
		"a system prompt":           {"/v1/messages", `{"model":"m","max_tokens":1,` + messages + `,"System":"ho"}`, true},
		"a document's source":       {"/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","data":"a","Data":"b"}}]}]}`, false},
		"token ids":                 {"/v1/chat/completions", chat(`"Input_Ids":[1]`), false},
		"what to rank":              {"/v1/rerank", `{"model":"m","query":"a","documents":["b"],"Documents":["c"]}`, false},
		"what to cut into tokens":   {"/tokenize", `{"model":"m","prompt":"a","pRompt":"b"}`, false},
	}
	before := len(w.understood(t))
	for name, c := range cases {
		if c.another && !differsInGo(t, c.body) {
			t.Errorf("%s: to a reader in Go it is the same request: it proves nothing", name)
		}
		status, said := speak(t, k, c.path, "Content-Type: application/json\r\n", c.body)
		if status != 400 || !strings.Contains(said, "only by case") {
			t.Errorf("%s: %d %s", name, status, said)
		}
		if all := w.understood(t); len(all) != before {
			t.Errorf("%s: the worker understood %s", name, all[before:])
			before = len(all)
		}
	}
}

// What clients name themselves has any case.
func TestHostileMembersSpareTheInnocent(t *testing.T) {
	t.Parallel()
	w := goWorker(t)
	k := beforeWitness(t, w, "")
	const messages = `"messages":[{"role":"user","content":"hello"}]`
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m",` + messages + `,"metadata":{"Model":"a","User":"b"},"chat_template_kwargs":{"Content":"c"},` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"Name":{"type":"string"},"name":{"type":"string"},"ID":{}},"required":["Name"]}}}],` +
			`"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"properties":{"Title":{},"Content":{}}}}},"vllm_xargs":{"Beam":1},"someVendorsOwn":1}`,
		"/v1/messages": `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"Content":"x","content":"y"}}]},{"role":"user","content":"hello"}]}`,
		"/v1/rerank":   `{"model":"m","query":"a","documents":[{"Text":"b","text":"c"}]}`,
	} {
		if status, said := speak(t, k, path, "Content-Type: application/json\r\n", body); status != 200 {
			t.Errorf("%s: %d %s", path, status, said)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"k` + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + `":1`)
	}
	return b.String()
}

// differsInGo says whether encoding/json reads more from the body than from its members of exact names.
func differsInGo(t *testing.T, body string) bool {
	t.Helper()
	read := func(b []byte) string {
		var chat ollamaChat
		if err := json.Unmarshal(b, &chat); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		out, err := json.Marshal(chat)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	var all any
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	exact, err := json.Marshal(withoutCase(all))
	if err != nil {
		t.Fatal(err)
	}
	return read([]byte(body)) != read(exact)
}

// withoutCase drops the members whose names are not in lower-case ASCII.
func withoutCase(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, value := range v {
			if strings.ContainsFunc(name, func(c rune) bool { return c >= 'A' && c <= 'Z' || c > 127 }) {
				continue
			}
			kept[name] = withoutCase(value)
		}
		return kept
	case []any:
		for i := range v {
			v[i] = withoutCase(v[i])
		}
	}
	return v
}
