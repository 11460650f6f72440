// Placement in the running proxy: simulated workers over HTTP and ZeroMQ.

package proxy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kvasir/kvroute"
	"kvasir/proxy/tokens"
	"kvasir/sim"
	"kvasir/sim/simtest"
)

// placingSettings are settingsFor with the default policy.
func placingSettings(urls ...string) *Settings {
	s := settingsFor(urls...)
	s.Routing.Policy, s.Routing.Disaggregate, s.Routing.Overrides = kvroute.Predict, kvroute.Auto, true
	for i := range s.Workers {
		s.Workers[i].Engine = "vllm"
	}
	return s
}

// startPlacing starts a proxy before simulated workers w0, w1 ... that publish their
// events, and waits until it hears them and knows the model's tokens.
func startPlacing(t testing.TB, n int, change func(*Settings)) (*testProxy, []*simtest.Engine) {
	t.Helper()
	var engines []*simtest.Engine
	var urls []string
	for i := range n {
		e := simtest.Start(t, sim.Options{Name: fmt.Sprintf("w%d", i), Events: true}, nil)
		engines, urls = append(engines, e), append(urls, "http://"+e.Web)
	}
	s := placingSettings(urls...)
	if change != nil {
		change(s)
	}
	p := startProxy(t, s)
	waitUntil(t, "the events are heard", func() bool {
		heard := 0
		for i := range n {
			for _, f := range p.backendOf(t, fmt.Sprintf("w%d", i)).Events() {
				if f.Connected {
					heard++
				}
			}
		}
		return heard == n
	})
	p.waitForTokens(t)
	return p, engines
}

func (p *testProxy) waitForTokens(t testing.TB) {
	t.Helper()
	waitUntil(t, "the tokens of m are known", func() bool { return p.tokenizers.Of("m").Err == nil })
}

// wordy is a chat of about n tokens of a simulated engine, streamed or not; more are members of it.
func wordy(name string, n int, more string) string {
	var b strings.Builder
	for i := range n / 2 {
		fmt.Fprintf(&b, "%s%d ", name, i%10)
	}
	return `{"model":"m","max_tokens":4,"temperature":1.5,` + more + `"messages":[{"role":"user","content":"` + b.String() + `"}]}`
}

type answeredBy struct {
	worker         string
	overlap, of    int
	approximate    bool
	prompt, cached int
}

// placed asks and says where the request went.
func (p *testProxy) placed(t testing.TB, body string, headers ...string) answeredBy {
	t.Helper()
	r := p.ask(t, "/v1/chat/completions", body, headers...)
	if r.StatusCode != 200 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	var reply struct {
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	if err := json.Unmarshal([]byte(r.body), &reply); err != nil {
		t.Fatal(err)
	}
	number := func(name string) int {
		n, err := strconv.Atoi(r.Header.Get(name))
		if err != nil {
			n = -1
		}
		return n
	}
	return answeredBy{
		worker: r.Header.Get("x-kvasir-worker"), overlap: number("x-kvasir-overlap-blocks"), of: number("x-kvasir-prompt-blocks"),
		approximate: r.Header.Get("x-kvasir-placement") == "approximate",
		prompt:      reply.Usage.Prompt, cached: reply.Usage.Details.Cached,
	}
}

// held waits until a worker is known to hold n blocks by its events.
func (p *testProxy) held(t testing.TB, worker string, n int) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%s is known to hold %d blocks", worker, n), func() bool {
		c := p.backendOf(t, worker).Cache(0)
		return c != nil && c.Held() >= n
	})
}

// A repeated prompt goes to the worker that holds it, and the headers say as many blocks as the engine counts.
func TestRepeatedPromptGoesToItsHolder(t *testing.T) {
	p, _ := startPlacing(t, 3, nil)
	prompts := []string{wordy("apple", 4000, ""), wordy("berry", 4000, ""), wordy("cedar", 4000, "")}
	holder := map[string]string{}
	for _, body := range prompts {
		a := p.placed(t, body)
		if a.overlap > 3 || a.approximate || a.of != a.prompt/16 {
			t.Errorf("a first prompt is %+v", a)
		}
		holder[body] = a.worker
		p.held(t, a.worker, a.of)
	}
	for range 3 {
		for _, body := range prompts {
			a := p.placed(t, body)
			if a.worker != holder[body] || a.overlap*16 != a.cached || a.cached < a.prompt-16 {
				t.Errorf("a repeated prompt of %s is %+v", holder[body], a)
			}
		}
	}
	longer := strings.Replace(prompts[1], `"}]}`, `"},{"role":"assistant","content":"Indeed."},{"role":"user","content":"And then?"}]}`, 1)
	if a := p.placed(t, longer); a.worker != holder[prompts[1]] || a.overlap*16 != a.cached || a.overlap < 240 {
		t.Errorf("the next turn is %+v, want it at %s", a, holder[prompts[1]])
	}
}

// What an engine holds by others' requests is known by its events alone.
func TestPromptFollowsEvents(t *testing.T) {
	p, engines := startPlacing(t, 3, nil)
	body := wordy("apple", 3000, "")
	direct := post("/v1/chat/completions", body)
	for i, e := range engines {
		if i != 1 {
			continue
		}
		c, err := net.Dial("tcp", e.Web)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(direct)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 4096)); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		_ = c.Close()
	}
	p.held(t, "w1", 180)
	if a := p.placed(t, body); a.worker != "w1" || a.overlap*16 != a.cached || a.overlap < 180 {
		t.Errorf("the prompt is %+v", a)
	}
}

// The system prompt and what else is spliced in count among the tokens: they are cut as they are sent.
func TestTokensAreThoseSent(t *testing.T) {
	p, _ := startPlacing(t, 2, nil)
	body := wordy("apple", 1000, `"stream_options":null,`)
	first := p.placed(t, body)
	p.held(t, first.worker, first.of)
	for _, b := range []string{body, strings.Replace(body, `"model":"m"`, `"model":"auto"`, 1), strings.Replace(body, `"model":"m",`, `"model":"MoM","nvext":{"a":1},`, 1)} {
		if a := p.placed(t, b); a.worker != first.worker || a.overlap*16 != a.cached || a.overlap < first.of-1 {
			t.Errorf("%.60s: %+v after %+v", b, a, first)
		}
	}
}

// An isolated tenant shares no block with another, and all keys of one tenant do.
func TestTenantsAreIsolated(t *testing.T) {
	p, _ := startPlacing(t, 1, func(s *Settings) {
		s.Keys = []Key{
			{Name: "a1", SHA256: sumOf("a1"), Tenant: "a", Isolate: true}, {Name: "a2", SHA256: sumOf("a2"), Tenant: "a", Isolate: true},
			{Name: "b", SHA256: sumOf("b"), Isolate: true}, {Name: "open", SHA256: sumOf("open")},
		}
	})
	as := func(key string) string { return "Authorization: Bearer " + key }
	body := wordy("apple", 1000, "")
	held := 0
	for _, tt := range []struct {
		key, more string
		hits      bool
	}{
		{"open", "", false}, {"open", "", true},
		{"a1", "", false}, {"a1", "", true}, {"a2", "", true},
		{"b", "", false}, {"b", "", true},
		{"a1", `"cache_salt":"mine",`, false}, {"a2", `"cache_salt":"mine",`, true}, {"a2", `"cache_salt":"other",`, false},
		{"open", `"cache_salt":"mine",`, false}, {"open", `"cache_salt":"mine",`, true},
		{"open", `"cache_salt":"` + sentSalt(t, p, as("a1"), body) + `",`, false}, // guessed
		{"open", "", true},
	} {
		a := p.placed(t, strings.Replace(body, `"max`, tt.more+`"max`, 1), as(tt.key))
		if hits := a.cached > 900; hits != tt.hits || a.overlap*16 != a.cached {
			t.Errorf("%s %s: %+v, want a hit: %v", tt.key, tt.more, a, tt.hits)
		}
		if !tt.hits {
			held += a.of
		}
		p.held(t, "w0", held)
	}
}

// A tenant's salt is made of what only its keys' holders know, is the same at every
// Kvasir with these keys, and cannot be had rid of.
func TestSaltCannotBeGuessed(t *testing.T) {
	one, two := Key{Name: "a1", SHA256: sumOf("a1"), Tenant: "a", Isolate: true}, Key{Name: "a2", SHA256: sumOf("a2"), Tenant: "a", Isolate: true}
	other := Key{Name: "x", SHA256: sumOf("a1, but another"), Tenant: "a", Isolate: true}
	alone := Key{Name: "a", SHA256: sumOf("a"), Isolate: true}
	as := func(key string) string { return "Authorization: Bearer " + key }
	with := func(keys ...Key) *testProxy {
		p, _ := startPlacing(t, 1, func(s *Settings) { s.Keys = keys })
		return p
	}
	here, there, elsewhere := with(one, two, alone), with(two, one), with(other)
	body := wordy("apple", 100, "")
	salt := sentSalt(t, here, as("a1"), body)
	for _, same := range []string{sentSalt(t, here, as("a2"), body), sentSalt(t, there, as("a1"), body)} {
		if same != salt {
			t.Errorf("the tenant has the salts %q and %q", salt, same)
		}
	}
	listed := strings.Replace(body, `"max`, `"cache_salt":["mine"],"max`, 1)
	for what, different := range map[string]string{
		"a tenant of the same name with other keys": sentSalt(t, elsewhere, as("a1, but another"), body),
		"a key of the tenant's name":                sentSalt(t, here, as("a"), body),
		"a salt that is no string":                  sentSalt(t, here, as("a1"), listed),
	} {
		if different == salt {
			t.Errorf("%s has the salt of the tenant", what)
		}
	}
}

// saltOf is the salt that a worker is sent for a key's request.
func sentSalt(t *testing.T, p *testProxy, key, body string) string {
	t.Helper()
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, err := c.Write([]byte(httpReply(200, "application/json", chatReply)))
		return err == nil
	})
	s := *p.state.Load().settings
	s.Workers = []Worker{{Name: "spy", URL: w.url, Engine: "vllm", Models: []string{"m"}}}
	spied := startProxy(t, &s)
	if r := spied.ask(t, "/v1/chat/completions", body, key); r.StatusCode != 200 {
		t.Fatal(r.StatusCode, r.body)
	}
	var sent struct {
		Salt string `json:"cache_salt"`
	}
	for _, body := range w.seen() {
		if strings.Contains(body, `"messages"`) && json.Unmarshal([]byte(body), &sent) == nil && sent.Salt != "" {
			break
		}
	}
	if !strings.HasPrefix(sent.Salt, reservedSalt) || len(sent.Salt) == 64 {
		t.Fatalf("the salt is %q", sent.Salt)
	}
	return sent.Salt
}

// A client's salt goes to the worker as it is, but one that events would not tell from the hash of an image: no prompt
// would meet its blocks.
func TestSaltsLikeImages(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, err := c.Write([]byte(httpReply(200, "application/json", chatReply)))
		return err == nil
	})
	s := placingSettings(w.url)
	s.Models[0].Tokenizer = "none"
	p := startProxy(t, s)
	hashed := fmt.Sprintf("%x", sha256.Sum256([]byte("mine")))
	for salt, kept := range map[string]bool{"mine": true, hashed[:63]: true, hashed[:63] + "x": true, hashed: false, strings.ToUpper(hashed): false} {
		p.placed(t, strings.Replace(plainChat, `"messages"`, `"cache_salt":"`+salt+`","messages"`, 1))
		var sent struct {
			Salt string `json:"cache_salt"`
		}
		if err := json.Unmarshal([]byte(w.seen()[len(w.seen())-1]), &sent); err != nil {
			t.Fatal(err)
		}
		if (sent.Salt == salt) != kept || sent.Salt == "" || !kept && likeImage(sent.Salt) {
			t.Errorf("%q is sent as %q", salt, sent.Salt)
		}
	}
}

// A worker that takes no salt is sent none, and /readyz says that nobody is isolated there.
func TestSaltOnlyWhereItIsTaken(t *testing.T) {
	reply := func(c net.Conn, _ string) bool {
		_, err := c.Write([]byte(httpReply(200, "application/json", chatReply)))
		return err == nil
	}
	for _, engine := range []string{"vllm", "sglang", "trtllm", "openai"} {
		w := startWorker(t, reply)
		s := placingSettings(w.url)
		s.Workers[0].Engine = engine
		s.Models[0].Tokenizer = "none" // or the last body may be the one that asks for tokens
		s.Keys = []Key{{Name: "a", SHA256: sumOf("a"), Isolate: true}}
		p := startProxy(t, s)
		r := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer a")
		if r.StatusCode != 200 {
			t.Fatal(r.StatusCode, r.body)
		}
		body := w.seen()[len(w.seen())-1]
		salted := strings.Contains(body, `"cache_salt":"kvasir-`)
		_, ready := p.readiness(t)
		told := strings.Contains(ready, "isolate has no effect at its engine, "+engine)
		if want := engine == "vllm" || engine == "sglang"; salted != want || told == want {
			t.Errorf("%s was sent %s, and /readyz says %s", engine, body, ready)
		}
	}
}

// A request may name its worker and its weights; what it names is taken out of the body.
func TestSteering(t *testing.T) {
	reply := func(c net.Conn, _ string) bool {
		_, err := c.Write([]byte(httpReply(200, "application/json", chatReply)))
		return err == nil
	}
	var workers []*testWorker
	var urls []string
	for range 3 {
		w := startWorker(t, reply)
		workers, urls = append(workers, w), append(urls, w.url)
	}
	s := placingSettings(urls...)
	s.Workers[2].Instance = "7587888"
	p := startProxy(t, s)
	for _, tt := range []struct{ body, header, worker, refused string }{
		{"", "x-worker-instance-id: w1", "w1", ""},
		{"", "X-Dynamo-Worker-Instance-Id: w2", "w2", ""},
		{"", "x-worker-instance-id: 7587888", "w2", ""},
		{`"nvext":{"backend_instance_id":7587888},`, "", "w2", ""},
		{`"nvext":{"backend_instance_id":"w0","decode_worker_id":"w1"},`, "", "w1", ""},
		{`"nvext":{"backend_instance_id":"w0"},`, "x-worker-instance-id: w1", "w1", ""},
		{`"nvext":null,`, "x-worker-instance-id: w0", "w0", ""},
		{`"router_config_override":{"overlap_score_credit":2,"router_temperature":0},`, "x-worker-instance-id: w0", "w0", ""},
		{"", "x-worker-instance-id: w9", "", `no worker \"w9\" serves model \"m\": want w0, w1, w2`},
		{"", "x-prefill-instance-id: w1", "", `no prefill worker`},
		{"", "X-data-parallel-rank: one", "", "The header x-data-parallel-rank must be the number of a data-parallel rank"},
		{"", "x-dp-rank: one", "", "The header x-dp-rank must be the number of a data-parallel rank"},
		{manyMembers(200) + `,"nvext":{"backend_instance_id":"w2"},`, "", "w2", ""},
		{manyMembers(200) + `,"nvext":{"backend_instance_id":"w9"},`, "", "", `no worker \"w9\" serves`},
		{`"nvex\u0074":{"backend_instance_id":"w9"},`, "", "", `no worker \"w9\" serves`},
		{`"nvext":{"backend_instance_i\u0064":"w\u0039"},`, "", "", `no worker \"w9\" serves`},
		{`"nvext":{"backend_instance_id":"w9","backend_instance_id":"w0"},`, "", "", "Duplicate parameter: 'nvext.backend_instance_id'"},
		{manyMembers(200) + `,"router_config_override":{"router_temperature":-1},`, "", "", "router_temperature must be a number from 0 to 1000"},
		{`"router_config_overrid\u0065":{"router_temperature":-1},`, "", "", "router_temperature must be a number from 0 to 1000"},
		{`"nvext":{"router_config_override":{"router_temperature":1,"router_temperature":2}},`, "", "", "Duplicate parameter: 'nvext.router_config_override.router_temperature'"},
		{`"nvext":7,`, "", "", "nvext must be an object"},
		{`"nvext":{"backend_instance_id":1.5},`, "", "", "nvext must be an object"},
		{`"nvext":{"router_config_override":{"router_temperature":-1}},`, "", "", "router_temperature must be a number from 0 to 1000"},
		{`"router_config_override":{"prefill_load_scale":1e9},`, "", "", "prefill_load_scale must be a number from 0 to 1000"},
		{`"router_config_override":[],`, "", "", "router_config_override must be an object"},
	} {
		headers := []string{}
		if tt.header != "" {
			headers = append(headers, tt.header)
		}
		body := strings.Replace(plainChat, `"messages"`, tt.body+`"messages"`, 1)
		r := p.ask(t, "/v1/chat/completions", body, headers...)
		switch {
		case tt.refused != "" && (r.StatusCode != 400 || !strings.Contains(r.body, tt.refused)):
			t.Errorf("%s %s: %d %s, want 400 and %s", tt.body, tt.header, r.StatusCode, r.body, tt.refused)
		case tt.refused == "" && (r.StatusCode != 200 || r.Header.Get("x-kvasir-worker") != tt.worker):
			t.Errorf("%s %s: %d by %q, want %q", tt.body, tt.header, r.StatusCode, r.Header.Get("x-kvasir-worker"), tt.worker)
		}
	}
	for _, w := range workers {
		for i, body := range w.seen() {
			if strings.Contains(body, "nvext") || strings.Contains(body, "router_config") || w.heads[i].Get("x-worker-instance-id") != "" {
				t.Errorf("a worker was sent %v %s", w.heads[i], body)
			}
		}
	}
	off := *s
	off.Routing.Overrides = false
	if err := p.Apply(&off); err != nil {
		t.Fatal(err)
	}
	if r := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"messages"`, `"nvext":7,"messages"`, 1), "x-worker-instance-id: w9"); r.StatusCode != 200 {
		t.Errorf("with routing.overrides off: %d %s", r.StatusCode, r.body)
	}
}

// Where the files are bad the worker's own route stands in, without tokens text: requests are answered, a repeated
// prompt goes to its holder, and it is said.
func TestBadTokenizersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"model":{"type":"BPE","vocab":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for setting, reason := range map[string]string{dir: `tokens of model \"m\": its files cannot be used`, "none": ""} {
		var urls []string
		for i := range 3 {
			urls = append(urls, "http://"+simtest.Start(t, sim.Options{Name: fmt.Sprintf("w%d", i), Events: true}, nil).Web)
		}
		s := placingSettings(urls...)
		s.Models[0].Tokenizer = setting
		p := startProxy(t, s)
		waitUntil(t, "the source was looked for", func() bool { return p.tokenizers.Of("m").Err != tokens.ErrPending })
		waitUntil(t, "block sizes are known", func() bool {
			for i := range 3 {
				if p.backendOf(t, fmt.Sprintf("w%d", i)).Engine().BlockSize == 0 {
					return false
				}
			}
			return true
		})
		body := wordy("apple", 2000, "")
		first := p.placed(t, body)
		p.held(t, first.worker, first.of)
		for range 4 {
			if a := p.placed(t, body); a.worker != first.worker || a.approximate != (setting == "none") || a.overlap < a.of-1 || a.of < 50 {
				t.Errorf("%q: %+v after %+v", setting, a, first)
			}
		}
		if _, ready := p.readiness(t); strings.Contains(ready, "tokens of model") != (reason != "") || !strings.Contains(ready, reason) {
			t.Errorf("%q: /readyz says %s", setting, ready)
		}
	}
}

// A chat template that cannot be read is said, and the worker's own route stands in.
func TestBadTemplatesAreSaid(t *testing.T) {
	dir := aTokenizer(t)
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{% for m in messages %}{{ m.content"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := startPlacing(t, 2, func(s *Settings) { s.Models[0].Tokenizer = dir })
	p.waitForTokens(t)
	body := wordy("apple", 1000, "")
	a := p.placed(t, body)
	p.held(t, a.worker, a.of)
	if b := p.placed(t, body); a.approximate || b.approximate || b.overlap*16 != b.cached || b.cached == 0 {
		t.Errorf("%+v, then %+v", a, b)
	}
	if _, ready := p.readiness(t); !strings.Contains(ready, "tokens of model") || !strings.Contains(ready, "its files cannot be used, or not for chats") {
		t.Errorf("/readyz says %s", ready)
	}
}

// A reload changes the policy for new requests, also to one that asks for tokens.
func TestReloadChangesPolicy(t *testing.T) {
	p, _ := startPlacing(t, 2, func(s *Settings) { s.Routing.Policy = kvroute.KV })
	body := wordy("apple", 1000, "")
	a := p.placed(t, body)
	p.held(t, a.worker, a.of)
	b := p.placed(t, body)
	if line := fmt.Sprintf(`"overlap":"cached blocks: %d"`, b.overlap); b.overlap == 0 || !strings.Contains(p.log.String(), line) {
		t.Errorf("the log does not say %s", line)
	}
	plain := *p.state.Load().settings
	plain.Routing.Policy = kvroute.RoundRobin
	if err := p.Apply(&plain); err != nil {
		t.Fatal(err)
	}
	one, two := p.placed(t, body), p.placed(t, body)
	if one.worker == two.worker || one.overlap != -1 || one.approximate {
		t.Errorf("round robin: %+v, %+v", one, two)
	}
	predict := plain
	predict.Routing.Policy = kvroute.Predict
	if err := p.Apply(&predict); err != nil {
		t.Fatal(err)
	}
	p.waitForTokens(t)
	if b := p.placed(t, body); b.overlap*16 != b.cached || b.cached == 0 {
		t.Errorf("predict: %+v", b)
	}
}

// POST /explain prices a request and takes nothing.
func TestExplainPlacement(t *testing.T) {
	p, _ := startPlacing(t, 2, nil)
	body := wordy("apple", 2000, "")
	a := p.placed(t, body)
	p.held(t, a.worker, a.of)
	waitUntil(t, "the request's placement has ended", func() bool { return p.backendOf(t, a.worker).Active() == 0 })
	for range 2 {
		r := fetchPost(t, p.admin, "/explain", body)
		var e PlacementExplained
		if err := json.Unmarshal([]byte(r), &e); err != nil {
			t.Fatal(err, r)
		}
		if e.Model != "m" || e.Policy != "predict" || e.Why != "predict" || !e.Exact || e.Tokens != a.prompt || e.Source == "" || len(e.Candidates) != 2 {
			t.Errorf("it is explained as %s", r)
		}
		for _, c := range e.Candidates {
			o := c.Overlap
			if mine := c.Worker == a.worker; c.Chosen != mine || (o.Device > 0) != mine || o.Of != a.of || o.BlockTokens != 16 || c.Load.Requests != 0 {
				t.Errorf("candidate %+v", c)
			}
		}
	}
	if r := fetchPost(t, p.admin, "/explain", body); strings.Contains(r, "slow") || strings.Contains(r, "aside") || strings.Contains(r, "hardware") {
		t.Errorf("of hardware that nothing is known of: %s", r)
	}
	p.backendOf(t, a.worker).SetHardware(kvroute.Hardware{Slow: 2.5, Aside: true, Why: "GPU 0: hot"})
	r := fetchPost(t, p.admin, "/explain", body)
	var e PlacementExplained
	if err := json.Unmarshal([]byte(r), &e); err != nil {
		t.Fatal(err, r)
	}
	for _, c := range e.Candidates {
		if mine := c.Worker == a.worker; c.Chosen == mine || c.Aside != mine || (c.Slow == 2.5) != mine || (c.Hardware == "GPU 0: hot") != mine || c.Cost == 0 {
			t.Errorf("beside one that is aside: %+v", c)
		}
	}
	if r := fetchPost(t, p.admin, "/explain", `{"model":"m"}`); !strings.Contains(r, "Missing required parameter: 'messages'") {
		t.Errorf("a bad body: %s", r)
	}
}

// A worker whose own counts disagree for long is named, and no longer once they agree again.
func TestAgreement(t *testing.T) {
	var a agreement
	for range agreementMemory {
		if a.problem() != "" {
			t.Fatal("it is told too early")
		}
		a.note(900, 0, 1000)
	}
	if !strings.Contains(a.problem(), "90 % were predicted to be cached and it says 0 %") {
		t.Errorf("the problem is %q", a.problem())
	}
	for range 2 * agreementMemory {
		a.note(900, 896, 1000)
	}
	if a.problem() != "" {
		t.Errorf("the problem is still %q", a.problem())
	}
}

func sumOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// readiness is what /readyz says.
func (p *testProxy) readiness(t testing.TB) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func fetchPost(t testing.TB, addr, path, body string) string {
	t.Helper()
	resp, err := http.Post("http://"+addr+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
