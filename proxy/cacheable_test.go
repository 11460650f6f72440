// What is never looked up or kept.

package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kvasir/classify"
)

func TestBypasses(t *testing.T) {
	p := scoped(t)
	const (
		chat      = "/v1/chat/completions"
		text      = "/v1/completions"
		responses = "/v1/responses"
		messages  = "/v1/messages"
	)
	bodies := map[string]string{
		chat:      `{"model":"m","messages":[{"role":"user","content":"hi"}],%s}`,
		text:      `{"model":"m","prompt":"hi",%s}`,
		responses: `{"model":"m","input":"hi",%s}`,
		messages:  `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}],%s}`,
	}
	for _, c := range []struct{ path, member, why string }{
		{chat, `"n":1`, ""},
		{chat, `"n":null`, ""},
		{chat, `"n":2`, bypassChoices},
		{chat, `"n":1.0`, bypassChoices},
		{text, `"best_of":2`, bypassChoices},
		{text, `"best_of":1`, ""},
		{chat, `"temperature":1`, ""},
		{chat, `"temperature":null`, ""},
		{chat, `"temperature":0`, ""},
		{chat, `"temperature":1.01`, bypassTemperature},
		{chat, `"temperature":1e1`, bypassTemperature},
		{chat, `"temperature":1e999`, bypassTemperature},
		{chat, `"logprobs":true`, bypassLogprobs},
		{chat, `"logprobs":false`, ""},
		{chat, `"logprobs":null`, ""},
		{text, `"logprobs":0`, bypassLogprobs},
		{chat, `"top_logprobs":0`, ""},
		{chat, `"top_logprobs":2`, bypassLogprobs},
		{chat, `"prompt_logprobs":0`, bypassLogprobs},
		{text, `"echo":true`, bypassForm},
		{text, `"echo":false`, ""},
		{chat, `"audio":{"voice":"a","format":"wav"}`, bypassForm},
		{chat, `"modalities":["text"]`, ""},
		{chat, `"modalities":null`, ""},
		{chat, `"modalities":["text","audio"]`, bypassForm},
		{chat, `"modalities":["t\u0065xt"]`, bypassForm},
		{chat, `"return_token_ids":true`, bypassForm},
		{chat, `"return_token_ids":false`, ""},
		{chat, `"return_hidden_states":1`, bypassForm},
		{chat, `"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`, bypassForm},
		{responses, `"include":["message.output_text.logprobs"]`, bypassForm},
		{responses, `"include":[]`, ""},
		{chat, `"tool_choice":"auto"`, ""},
		{chat, `"tool_choice":"none"`, ""},
		{chat, `"tool_choice":null`, ""},
		{chat, `"tool_choice":"required"`, bypassTools},
		{chat, `"tool_choice":{"type":"function","function":{"name":"f"}}`, bypassTools},
		{chat, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto"}}`, bypassTools},
		{messages, `"tool_choice":{"type":"auto"}`, ""},
		{messages, `"tool_choice":{"type":"any"}`, bypassTools},
		{chat, `"function_call":{"name":"f"}`, bypassTools},
		{chat, `"tools":[{"type":"function","function":{"name":"f"}}]`, ""},
		{messages, `"tools":[{"name":"f","input_schema":{}}]`, ""},
		{messages, `"tools":[{"name":"f","input_schema":{}},{"type":"web_search_20250305","name":"web_search"}]`, bypassTools},
		{responses, `"tools":[{"type":"web_search"}]`, bypassTools},
		{responses, `"tools":[{"type":"mcp","server_label":"a"}]`, bypassTools},
		{responses, `"tools":[{"t\u0079pe":"mcp"}]`, bypassTools},
		{chat, `"web_search_options":{}`, bypassTools},
		{messages, `"mcp_servers":[{"type":"url"}]`, bypassTools},
		{messages, `"mcp_servers":[]`, ""},
		{responses, `"previous_response_id":"resp_1"`, bypassState},
		{responses, `"previous_response_id":null`, ""},
		{responses, `"conversation":"c"`, bypassState},
		{responses, `"background":true`, bypassState},
		{responses, `"background":false`, ""},
		{responses, `"store":true`, bypassState},
		{responses, `"store":false`, ""},
		{responses, `"prompt":{"id":"p"}`, bypassState},
		{chat, `"session_params":{"id":"s"}`, bypassState},
		{chat, `"\u006e":2`, bypassUnclear},
		{chat, `"logpro\u0062s":true`, bypassUnclear},
		{chat, manyMembers(100), ""},
		{chat, manyMembers(200), bypassUnclear},
	} {
		rule, _ := posed(t, p, c.path, fmt.Sprintf(bodies[c.path], c.member))
		if rule.why != c.why || rule.stores != (c.why == "") {
			t.Errorf("%s with %.100s: %+v, want %q", c.path, c.member, rule, c.why)
		}
	}
	for _, kind := range []string{`"type":"item_reference"`, `"type":"item\u005freference"`, `"typ\u0065":"item_reference"`} {
		rule, _ := posed(t, p, responses, `{"model":"m","input":[{"role":"user","content":"a"},{`+kind+`,"id":"msg_1"},{"role":"user","content":"b"}]}`)
		if rule.why != bypassState {
			t.Errorf("a reference with %s: %+v", kind, rule)
		}
	}
}

func manyMembers(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"p%d":1`, i))
	}
	return strings.Join(members, ",")
}

func TestClientsSayWhatIsCached(t *testing.T) {
	p := scoped(t)
	for _, c := range []struct {
		header string
		why    string
		stores bool
		maxAge time.Duration
	}{
		{"", "", true, -1},
		{"Cache-Control: no-store", bypassNoStore, false, -1},
		{"Cache-Control: max-age=5, No-Store", bypassNoStore, false, 5 * time.Second},
		{"Cache-Control: no-cache", bypassNoCache, true, -1},
		{"cache-control: NO-CACHE", bypassNoCache, true, -1},
		{"Cache-Control: max-age=60", "", true, time.Minute},
		{"Cache-Control: private, max-age=60", "", true, time.Minute},
		{"Cache-Control: max-age=5, max-age=60", "", true, 5 * time.Second},
		{"Cache-Control: max-age=60, max-age=5", "", true, 5 * time.Second},
		{"Cache-Control: max-age=0", bypassNoCache, true, 0},
		{"Cache-Control: max-age=soon", bypassNoCache, true, 0},
		{"Cache-Control: max-age=-1", bypassNoCache, true, 0},
		{"Cache-Control: private", "", true, -1},
		{"x-kvasir-cache: bypass", bypassClient, false, -1},
		{"X-Kvasir-Cache: Bypass", bypassClient, false, -1},
		{"x-kvasir-cache: on", "", true, -1},
	} {
		var headers []string
		if c.header != "" {
			headers = append(headers, c.header)
		}
		rule, _ := posed(t, p, "/v1/chat/completions", plainChat, headers...)
		if rule.why != c.why || rule.stores != c.stores || rule.maxAge != c.maxAge {
			t.Errorf("%s: %+v", c.header, rule)
		}
	}
}

// Two lines of a header mean both.
func TestEveryCacheControlLineCounts(t *testing.T) {
	p := scoped(t)
	rule, _ := posed(t, p, "/v1/chat/completions", plainChat, "Cache-Control: max-age=60", "Cache-Control: no-store")
	if rule.why != bypassNoStore {
		t.Errorf("%+v", rule)
	}
}

func TestCallsAreWantedOnlyWhenKept(t *testing.T) {
	p := scoped(t, func(s *Settings) { s.CacheOptions.ToolCalls = true })
	rule, _ := posed(t, p, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],"tool_choice":"required"}`)
	if rule.why != "" {
		t.Errorf("%+v", rule)
	}
}

// Decisions switch the cache off, set its threshold, and cap the temperature
// before it is judged.
func TestDecisionsSayWhatIsCached(t *testing.T) {
	decision := classify.Decision{Name: "d", Explicit: true, When: classify.Condition{Is: []classify.Is{{Kind: classify.KindKeyword, Values: []string{"k"}}}}}
	with := func(change func(*classify.Decision)) *Proxy {
		return scoped(t, func(s *Settings) {
			d := decision
			change(&d)
			s.Classify.Signals = []classify.SignalOptions{{Name: "k", Kind: classify.KindKeyword, Keywords: []string{"hi"}}}
			s.Classify.Decisions = []classify.Decision{d}
		})
	}
	rule, _ := posed(t, with(func(d *classify.Decision) { d.CacheOff = true }), "/v1/chat/completions", plainChat)
	if rule.why != bypassDecision || rule.stores {
		t.Errorf("off: %+v", rule)
	}
	rule, q := posed(t, with(func(d *classify.Decision) { d.CacheThreshold = 0.97 }), "/v1/chat/completions", plainChat)
	if rule.why != "" || q.Threshold != 0.97 {
		t.Errorf("threshold: %+v, %v", rule, q.Threshold)
	}
	const hot = `{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":2}`
	rule, _ = posed(t, with(func(d *classify.Decision) { d.CapTemperature, d.MaxTemperature = true, 0.5 }), "/v1/chat/completions", hot)
	if rule.why != "" {
		t.Errorf("capped: %+v", rule)
	}
}

// What is redacted on its way, or was not judged, is nobody else's to see.
func TestRedactedRequestsAreNotCached(t *testing.T) {
	p := startProxy(t, guarded(classify.Redact, goodWorker(t).url)).Proxy
	for body, why := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":"charge 4111 1111 1111 1111"}]}`: bypassRedacted,
		`{"model":"m","messages":[{"role":"user","content":"charge my card"}]}`:             "",
	} {
		if rule, _ := posed(t, p, "/v1/chat/completions", body); rule.why != why || rule.stores != (why == "") {
			t.Errorf("%s: %+v", body, rule)
		}
	}
}

// What `kvasir explain` is told is what a request comes to.
func TestReadingSaysWhatIsAsked(t *testing.T) {
	p := scoped(t)
	s := p.state.Load().settings
	var r Reading
	for _, body := range []string{askedChat, plainChat, `{"model":"m","n":2,"messages":[{"role":"user","content":"hi"}]}`} {
		if _, err := r.Read("/v1/chat/completions", []byte(body)); err != nil {
			t.Fatal(err)
		}
		got := r.Cache(s, nil, "m")
		rule, q := posed(t, p, "/v1/chat/completions", body)
		if got.Why != rule.why || got.Kept != rule.stores || got.Exact != rule.exact || got.Scope != q.Scope || string(got.Question) != string(q.Text) {
			t.Errorf("%s: %+v, it is %+v", body, got, rule)
		}
	}
	if _, err := r.Read("/v1/embeddings", []byte(`{"model":"m","input":"hi"}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.Cache(s, nil, "m"); got.Why != "route" || got.Kept {
		t.Errorf("an embedding: %+v", got)
	}
}
