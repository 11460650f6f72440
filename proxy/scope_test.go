// Scopes: what makes two requests different ones, whatever their questions say.

package proxy

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"kvasir/cache"
	"kvasir/classify"
	"kvasir/edge"
	"kvasir/openai"
)

// posed takes a request as far as the cache is asked: what may be done with it,
// and the query.
func posed(t testing.TB, p *Proxy, path, body string, headers ...string) (cacheRule, *cache.Query) {
	t.Helper()
	x := pose(t, p, path, body, headers...)
	if x.lookup == nil {
		return x.cacheRule, &cache.Query{}
	}
	return x.cacheRule, &x.lookup.query
}

func pose(t testing.TB, p *Proxy, path, body string, headers ...string) *exchange {
	t.Helper()
	ctx := &fasthttp.RequestCtx{}
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(post(path, body, headers...)))); err != nil {
		t.Fatal(err)
	}
	x := &exchange{}
	x.p, x.ctx, x.conn = p, ctx, &edge.Conn{}
	x.plan.state, x.plan.headers = p.state.Load(), ctx.Request.Header.RawHeaders()
	for i := range openai.Routes {
		if path, _, _ := strings.Cut(path, "?"); openai.Routes[i].Path == path {
			x.plan.route = &openai.Routes[i]
		}
	}
	var err *openai.Error
	if x.plan.key, err = identify(x.plan.state.keys, &ctx.Request.Header); err != nil {
		t.Fatalf("%s: %s", body, err.Message)
	}
	if err = x.read(); err != nil {
		t.Fatalf("%s: %s", body, err.Message)
	}
	x.plan.answerBy(modelFor(x.plan.asked, x.plan.state))
	if x.plan.isJudged() {
		x.plan.verdict = x.plan.state.classifier.Judge(x.plan.ask(p.tokenizers))
		x.plan.judgement.note(x.plan.verdict)
	}
	x.plan.answerBy(decidedModel(&x.plan))
	ruleOn(x)
	if x.cacheRule.asks.Given() {
		look(x)
	}
	return x
}

// ruleOn and look are what reuse does before it asks the cache.
func ruleOn(x *exchange) {
	x.cacheRule = cacheRuleFor(&x.plan.req, x.plan.route.Kind, decisionOf(x.plan.verdict), x.guardOutcome(), x.ctx.Request.Header.RawHeaders(), &x.plan.state.settings.CacheOptions)
}

func look(x *exchange) {
	in := x.scopeInput()
	x.lookup = x.lookup.of(&in, &x.cacheRule)
	x.lookup.embedder = embedder{x.plan.state.classifier, x.p.metrics.cache.embed}
}

// scoped is a proxy whose keys and models the tables below speak of.
func scoped(t testing.TB, change ...func(*Settings)) *Proxy {
	s := settingsFor(goodWorker(t).url)
	s.Models = append(s.Models, Model{Name: "q", Reasoning: "qwen3"})
	s.CacheOptions.MaxTemperature = 1
	for _, c := range change {
		c(s)
	}
	return startProxy(t, s).Proxy
}

const askedChat = `{"model":"m","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image_url","image_url":{"url":"https://a.example/1.png"}},{"type":"text","text":"How tall is the Eiffel Tower?"}]}],"temperature":0.5,"max_tokens":100,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"seed":1}`

// Every single change makes another scope, each another one.
func TestWhatChangesTheScope(t *testing.T) {
	p := scoped(t, func(s *Settings) { s.Guards.ClientTemplates = true })
	_, base := posed(t, p, "/v1/chat/completions", askedChat)
	if string(base.Text) != "How tall is the Eiffel Tower?" {
		t.Fatalf("it asks %q", base.Text)
	}
	seen := map[cache.Scope]string{base.Scope: "the request itself"}
	differs := func(name string, scope cache.Scope) {
		t.Helper()
		if other, twice := seen[scope]; twice {
			t.Errorf("%s has the scope of %s", name, other)
		}
		seen[scope] = name
	}
	replace := func(old, by string) {
		t.Helper()
		body := strings.Replace(askedChat, old, by, 1)
		if body == askedChat {
			t.Fatalf("%s is not there", old)
		}
		_, q := posed(t, p, "/v1/chat/completions", body)
		differs(old+" -> "+by, q.Scope)
	}
	for _, c := range [][2]string{
		{`"model":"m"`, `"model":"q"`},
		{"Be kind.", "Be terse."},
		{"Be kind.", "Be  kind."},
		{`"role":"system"`, `"role":"developer"`},
		{`{"role":"system","content":"Be kind."},`, ``},
		{`"content":"hi"`, `"content":"ho"`},
		{`"content":"hello"`, `"content":"hello "`},
		{`{"role":"assistant","content":"hello"},`, ``},
		{`{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}`, `{"role":"assistant","content":"hello"},{"role":"user","content":"hi"}`},
		{"Look:", "Look: "},
		{"Look:", ""},
		{`{"type":"text","text":"Look:"},`, ``},
		{`{"type":"text","text":"Look:"}`, `{"text":"Look:","type":"text"}`}, // nested members keep their order
		{`/1.png`, `/2.png`},
		{`{"type":"image_url","image_url":{"url":"https://a.example/1.png"}},`, ``},
		{`{"url":"https://a.example/1.png"}`, `{"url":"https://a.example/1.png","detail":"low"}`},
		{`"type":"text","text":"How`, `"type":"text","cache_control":{"type":"ephemeral"},"text":"How`},
		{`[{"type":"text","text":"Look:"}`, `[{"type":"text","text":"a"},{"type":"text","text":"Look:"}`},
		{`"role":"user","content":[`, `"role":"user","name":"ann","content":[`},
		{`}],"temperature"`, `},{"role":"assistant","content":"It is"}],"temperature"`},
		{`"temperature":0.5`, `"temperature":0.6`},
		{`"temperature":0.5,`, ``},
		{`"temperature":0.5`, `"temperature":null`},
		{`"max_tokens":100`, `"max_tokens":101`},
		{`"max_tokens":100`, `"max_completion_tokens":100`},
		{`"name":"f"`, `"name":"g"`},
		{`{"type":"object"}`, `{"type":"object","properties":{}}`},
		{`"tools":[`, `"tools":[{"type":"function","function":{"name":"h"}},`},
		{`"seed":1`, `"seed":2`},
		{`"seed":1`, `"seed":12`},
		{`"seed":1`, `"se\u0065d":1`},
	} {
		replace(c[0], c[1])
	}
	for _, member := range []string{
		`"top_p":0.9`, `"top_k":5`, `"min_p":0.1`, `"frequency_penalty":1`, `"presence_penalty":1`, `"repetition_penalty":1.1`, `"stop":["a"]`, `"stop":"a"`,
		`"logit_bias":{"1":2}`, `"response_format":{"type":"json_object"}`, `"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{}}}`,
		`"cache_salt":"a"`, `"cache_salt":"b"`, `"reasoning_effort":"low"`, `"chat_template_kwargs":{"enable_thinking":false}`, `"chat_template":"x"`,
		`"documents":[{"text":"a"}]`, `"tool_choice":"auto"`, `"tool_choice":"none"`, `"parallel_tool_calls":false`, `"guided_json":{}`, `"structured_outputs":{"choice":["a"]}`,
		`"ignore_eos":true`, `"min_tokens":5`, `"skip_special_tokens":false`, `"verbosity":"low"`, `"prediction":{"type":"content","content":"a"}`,
		`"safety_identifier":"a"`, `"never_heard_of":1`, `"never_heard_of":"1"`, `"never_heard_of":{"a":1}`, `"never_heard_of":{"a":[1,2]}`, `"never_heard_of":{"a":[12]}`,
		`"lora_request":"x"`, `"priority":1`, `"service_tier":"flex"`, `"input_ids":[1,2,3]`, `"kv_transfer_params":{}`,
	} {
		replace(`"seed":1`, `"seed":1,`+member)
	}
	for _, header := range []string{
		"Authorization: Bearer a", "Authorization: Bearer b", "X-Api-Key: a", "Cookie: a=b", "X-Tenant-Id: a", "X-Tenant-Id: b", "X-User: a", "OpenAI-Organization: o",
		"Anthropic-Beta: context-1m", "X-Session-Id: s",
	} {
		_, q := posed(t, p, "/v1/chat/completions", askedChat, header)
		differs(header, q.Scope)
	}
	_, q := posed(t, p, "/v1/chat/completions?beta=true", askedChat)
	differs("a query", q.Scope)
	_, q = posed(t, p, "/v1/messages", askedChat)
	differs("the route", q.Scope)
}

// What no answer depends on, and how the question is worded, leave the scope
// as it is.
func TestWhatTheScopeDoesNotSee(t *testing.T) {
	p := scoped(t)
	_, base := posed(t, p, "/v1/chat/completions", askedChat)
	for _, c := range [][2]string{
		{"How tall is the Eiffel Tower?", "What is the height of the Eiffel Tower?"},
		{"How tall is the Eiffel Tower?", `\"},{\"type\":\"text\",\"text\":\"x\"}`},
		{"How tall is the Eiffel Tower?", `\u0048i \ud83d\ude00`},
		{`"seed":1`, `"seed":1,"stream":true,"stream_options":{"include_usage":true}`},
		{`"seed":1`, `"seed":1,"user":"ann"`},
		{`"seed":1`, `"seed":1,"metadata":{"trace":"1"}`},
		{`"seed":1`, `"seed":1,"n":1`},
		{`"seed":1`, "\n\t\"seed\" :\r\n 1 "},
		{`{"type":"object"}`, "{ \"type\" : \"object\"\n}"},
		{`"temperature":0.5,"max_tokens":100,`, `"max_tokens":100,"temperature":0.5,`},
		{`{"model":"m",`, "\ufeff{\"model\":\"m\","},
		{`{"model":"m",`, `{"model":"MoM",`}, // m is what it stands for
	} {
		body := strings.Replace(askedChat, c[0], c[1], 1)
		if body == askedChat {
			t.Fatalf("%s is not there", c[0])
		}
		if _, q := posed(t, p, "/v1/chat/completions", body); q.Scope != base.Scope {
			t.Errorf("%s -> %s has another scope", c[0], c[1])
		}
	}
	for _, header := range []string{
		"User-Agent: curl", "Accept: */*", "X-Stainless-Lang: python", "traceparent: 00-1-2-00", "X-Forwarded-For: 1.2.3.4", "X-Request-Id: abc", "Cf-Ray: 1", "X-Amzn-Trace-Id: Root=1",
		"Cache-Control: max-age=60", "x-kvasir-anything: 1",
	} {
		if _, q := posed(t, p, "/v1/chat/completions", askedChat, header); q.Scope != base.Scope {
			t.Errorf("%s makes another scope", header)
		}
	}
}

// What a proxy in front says of who asks, or of what is asked, makes a scope.
func TestHeadersOfProxiesAreScopes(t *testing.T) {
	p := scoped(t)
	_, base := posed(t, p, "/v1/chat/completions", askedChat)
	for _, header := range []string{
		"X-Forwarded-User: ann", "X-Forwarded-Email: ann@a.example", "X-Forwarded-Groups: a", "X-Forwarded-Access-Token: a", "X-Forwarded-Client-Cert: Hash=a",
		"X-Amzn-Oidc-Identity: ann", "X-Amzn-Bedrock-GuardrailIdentifier: a", "Cf-Access-Authenticated-User-Email: ann@a.example", "Cf-Aig-Authorization: Bearer a",
	} {
		if _, q := posed(t, p, "/v1/chat/completions", askedChat, header); q.Scope == base.Scope {
			t.Errorf("%s makes no other scope", header)
		}
	}
}

// SDKs write their headers in different orders and cases; lines of one name are
// a list, whose order counts.
func TestOrderOfHeaders(t *testing.T) {
	p := scoped(t)
	scopeOf := func(headers ...string) cache.Scope {
		_, q := posed(t, p, "/v1/chat/completions", askedChat, headers...)
		return q.Scope
	}
	one := scopeOf("Authorization: Bearer a", "X-B: 1", "X-A: 2", "X-A: 3")
	if other := scopeOf("x-a: 2", "User-Agent: c", "X-A: 3", "AUTHORIZATION: Bearer a", "x-b: 1"); other != one {
		t.Error("another order is another scope")
	}
	if other := scopeOf("Authorization: Bearer a", "X-B: 1", "X-A: 3", "X-A: 2"); other == one {
		t.Error("two lines of one name are the same the other way round")
	}
	if other := scopeOf("Authorization: Bearer a", "X-B: 2", "X-A: 1", "X-A: 3"); other == one {
		t.Error("values have changed places")
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("X-%d: 1", i))
	}
	seen := map[cache.Scope]bool{scopeOf(many...): true}
	for i := range many {
		changed := slices.Clone(many)
		changed[i] += "0"
		if scope := scopeOf(changed...); seen[scope] {
			t.Errorf("line %d of many does not count", i)
		} else {
			seen[scope] = true
		}
	}
}

// Two keys share answers only as one tenant; then what they show is no part of it.
func TestTenantsAreScopes(t *testing.T) {
	var keys []Key
	for i, tenant := range []string{"", "", "acme", "acme", "globex", "k0"} { // the last one's is the first one's name
		keys = append(keys, Key{Name: fmt.Sprint("k", i), SHA256: sha256.Sum256(fmt.Append(nil, "secret", i)), Tenant: tenant})
	}
	p := scoped(t, func(s *Settings) { s.Keys = keys })
	var scopes []cache.Scope
	for i, want := range []string{"k0", "k1", "acme", "acme", "globex", "k0"} {
		_, q := posed(t, p, "/v1/chat/completions", plainChat, fmt.Sprintf("Authorization: Bearer secret%d", i))
		if q.Tenant != want {
			t.Errorf("key %d is of %q, want %q", i, q.Tenant, want)
		}
		scopes = append(scopes, q.Scope)
	}
	if scopes[2] != scopes[3] {
		t.Error("two keys of a tenant do not share")
	}
	slices.SortFunc(scopes, func(a, b cache.Scope) int { return strings.Compare(a.String(), b.String()) })
	if len(slices.Compact(scopes)) != 5 {
		t.Error("tenants share a scope")
	}
}

// Whatever a decision makes of the body is in the scope. A new field of a
// decision has to be named here: as one that changes it, or one that does not.
func TestDecisionsAreScopes(t *testing.T) {
	changes := map[string]any{
		"SystemPrompt": "Be terse.", "InsertPrompt": true, "Reasoning": "on", "MaxTokens": 5, "MaxTemperature": 0.5, "CapTemperature": true, "MaxChoices": 1,
	}
	neutral := []string{"Name", "Priority", "When", "Explicit", "Model", "AllowPII", "CacheThreshold", "CacheOff", "Refuse"}
	var s scoper
	scopeOf := func(d *classify.Decision, family string) cache.Scope {
		s.begin()
		s.decision(d, family)
		return s.end()
	}
	plain := scopeOf(&classify.Decision{}, "")
	if plain == scopeOf(nil, "") {
		t.Error("a decision is none")
	}
	seen := map[cache.Scope]string{plain: "nothing"}
	fields := reflect.TypeFor[classify.Decision]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if slices.Contains(neutral, name) {
			continue
		}
		var d classify.Decision
		change, known := changes[name]
		if !known {
			t.Errorf("does %s of a decision change an answer?", name)
			continue
		}
		reflect.ValueOf(&d).Elem().Field(i).Set(reflect.ValueOf(change))
		scope := scopeOf(&d, "")
		if other, twice := seen[scope]; twice {
			t.Errorf("%s has the scope of %s", name, other)
		}
		seen[scope] = name
	}
	if scopeOf(&classify.Decision{Reasoning: "on"}, "qwen3") == scopeOf(&classify.Decision{Reasoning: "on"}, "gpt") {
		t.Error("how reasoning is switched is in no scope")
	}
}

// A scope is the same in every process: entries outlive one.
func TestScopeIsStable(t *testing.T) {
	p := scoped(t)
	_, q := posed(t, p, "/v1/chat/completions", askedChat)
	const want = "5dea83c5da8a285932f81c0fe177704b"
	if got := q.Scope.String(); got != want {
		t.Errorf("the scope is %s, was %s: change scopeVersion if it has to", got, want)
	}
}

// Where the question of a request stands, and whether others like it may have
// its answer.
func TestQuestions(t *testing.T) {
	p := scoped(t)
	for _, c := range []struct {
		path, body, asks string
		exact            bool
	}{
		{"/v1/chat/completions", plainChat, "hi", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a\n\u00e9 \"b\""}]}`, "a\né \"b\"", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, "c", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, "a", true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"5"}]}`, "a", true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, "b", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, "", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":""}]}`, "", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"a"}]}`, "", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","cont\u0065nt":"a"}]}`, "", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"continue_final_message":true,"add_generation_prompt":false}`, "a", true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"add_generation_prompt":false}`, "a", true},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"continue_final_message":false,"add_generation_prompt":true}`, "a", false},
		{"/v1/completions", `{"model":"m","prompt":"once"}`, "once", true},
		{"/v1/completions", `{"model":"m","prompt":["once"]}`, "", false},
		{"/v1/completions", `{"model":"m","prompt":[1,2]}`, "", false},
		{"/v1/responses", `{"model":"m","input":"a"}`, "a", false},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"},{"type":"message","role":"user","content":[{"type":"input_text","text":"b"}]}]}`, "b", false},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"1","output":"b"}]}`, "a", true},
		{"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"},{"type":"text","text":"a"}]}]}`, "a", false},
		{"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}]}]}]}`, "", false},
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a", maxQuestion) + `"}]}`, "", false},
	} {
		rule, q := posed(t, p, c.path, c.body)
		if c.asks == "" {
			if rule.why != bypassQuestion || rule.stores {
				t.Errorf("%.200s: %+v", c.body, rule)
			}
			continue
		}
		if rule.why != "" || !rule.stores || string(q.Text) != c.asks || rule.exact != c.exact || (q.Embed == nil) != c.exact {
			t.Errorf("%s: %+v, it asks %q", c.body, rule, q.Text)
		}
	}
}

// The values of a question that look like the mark do not move its border.
func TestQuestionsDoNotForgeScopes(t *testing.T) {
	p := scoped(t)
	seen := map[cache.Scope]string{}
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"\u0001"},{"role":"user","content":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"\u0001"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"\u0001"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"\u0001"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"\u0001"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"\u0001"},{"type":"text","text":"a"}]}]}`,
	} {
		_, q := posed(t, p, "/v1/chat/completions", body)
		if other, twice := seen[q.Scope]; twice {
			t.Errorf("%s has the scope of %s", body, other)
		}
		seen[q.Scope] = body
	}
}

func TestScopeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := scoped(t)
	for _, body := range []string{askedChat, strings.Replace(askedChat, "Be kind.", strings.Repeat("Be kind. ", 10_000), 1)} {
		x := pose(t, p, "/v1/chat/completions", body, "User-Agent: curl")
		if allocs := testing.AllocsPerRun(100, func() { ruleOn(x); look(x) }); allocs > 0 {
			t.Errorf("%d bytes: %v allocations", len(body), allocs)
		}
	}
}

func BenchmarkScope(b *testing.B) {
	p := scoped(b)
	for _, n := range []int{0, 100 << 10} {
		body := strings.Replace(askedChat, "Be kind.", strings.Repeat("x", n), 1)
		x := pose(b, p, "/v1/chat/completions", body, "User-Agent: curl")
		b.Run(fmt.Sprint(len(body)), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				ruleOn(x)
				look(x)
			}
		})
	}
}

// cache.scope_headers: every line of such a header counts, and none is another
// thing than an empty one. The cache and requests that wait for each other go by it.
func TestScopeHeaders(t *testing.T) {
	p := scoped(t, func(s *Settings) { s.CacheOptions.ScopeHeaders = []string{"x-forwarded-host", "forwarded", "baggage"} })
	body := strings.Replace(askedChat, `"seed":1`, `"seed":2`, 1)
	seen := map[cache.Scope]int{}
	keys := map[coalesceKey]int{}
	for i, headers := range [][]string{
		{}, {"X-Forwarded-Host: red"}, {"X-Forwarded-Host: blue"}, {"X-Forwarded-Host:"}, {"X-Forwarded-Host: red", "X-Forwarded-Host: blue"},
		{"X-Forwarded-Host: blue", "X-Forwarded-Host: red"}, {"X-Forwarded-Host: red, blue"}, {"X-Forwarded-Host: red", "X-Forwarded-Host:"},
		{"Forwarded: host=red"}, {"baggage: host=red"}, {"baggage: host=red", "Forwarded: host=red"},
	} {
		_, q := posed(t, p, "/v1/chat/completions", body, headers...)
		if other, twice := seen[q.Scope]; twice {
			t.Errorf("%v: the scope of %d", headers, other)
		}
		seen[q.Scope] = i
		key := coalesceKeyOf(q)
		if other, twice := keys[key]; twice {
			t.Errorf("%v: waits for %d", headers, other)
		}
		keys[key] = i
	}
	_, upper := posed(t, p, "/v1/chat/completions", body, "X-FORWARDED-HOST:  red ")
	if seen[upper.Scope] != 1 {
		t.Error("the name's case and blanks around the value count")
	}
	_, neutral := posed(t, p, "/v1/chat/completions", body, "X-Forwarded-For: 1.2.3.4")
	if _, known := seen[neutral.Scope]; !known || seen[neutral.Scope] != 0 {
		t.Error("a header that is not named counts")
	}
}
