// Requests that are answered from the cache.

package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/classify"
	"kvasir/openai/answer"
	"kvasir/proxy/browser"
)

// byNumbers verifies as simply as can be: the numbers have to be the same, the
// rest is the cosine.
type byNumbers struct{}

var digits = regexp.MustCompile(`\d+`)

func (byNumbers) Compare(a, b []byte, similarity float64) (float64, string) {
	if fmt.Sprintf("%q", digits.FindAll(a, -1)) != fmt.Sprintf("%q", digits.FindAll(b, -1)) {
		return 0, "number"
	}
	return similarity, ""
}

// caching is a configuration with both guards and an embedded cache in memory.
func caching(t testing.TB, urls ...string) *Settings {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Embedding: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s := guarded(classify.Block, urls...)
	s.Classify.Jailbreak.Action = classify.Off // what it thinks of short questions changes with its weights
	s.CacheOptions.MaxTemperature = 1
	s.Cache = cache.New(cache.Options{Store: store, Verifier: byNumbers{}, Threshold: 0.8, TTL: time.Hour})
	return s
}

// keep puts an answer to the request into the cache.
func (p *testProxy) keep(t testing.TB, path, body string, a *answer.Answer) cache.ID {
	t.Helper()
	_, q := posed(t, p.Proxy, path, body)
	id, err := p.state.Load().settings.Cache.Put(q, a.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func towerAnswer() *answer.Answer {
	return &answer.Answer{
		Model: "tiny", Created: 1600000000, Text: []byte("It is 330 m tall."), Finish: "stop", Pieces: []int32{2, 5, 17},
		RawUsage: []byte(`{"prompt_tokens":7,"total_tokens":27,"completion_tokens":20}`),
	}
}

const (
	towerAsked     = `{"model":"m","messages":[{"role":"user","content":"How tall is the Eiffel Tower?"}]}`
	towerRephrased = `{"model":"m","messages":[{"role":"user","content":"What is the height of the Eiffel Tower?"}]}`
)

var madeUp = regexp.MustCompile(`cache-[0-9a-f]{16}|"created":\d+`)

// A rephrased question gets the kept answer, says so, and costs no worker.
func TestRephrasedQuestionIsAHit(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	id := p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	for body, similarity := range map[string]string{towerAsked: `^1\.0000$`, towerRephrased: `^0\.[89]\d{3}$`} {
		a := p.ask(t, "/v1/chat/completions", body, "X-Request-Id: r1")
		for name, want := range map[string]string{
			"Content-Type": "^application/json$", "X-Request-Id": "^r1$",
			"x-vsr-cache-hit": "^true$", "x-vsr-cache-similarity": similarity, "x-vsr-response-path": "^cache$", "x-vsr-selected-model": "^m$",
			"x-kvasir-cache": "^hit$", "x-kvasir-cache-entry": "^" + id.String() + "$", "x-kvasir-cache-age": `^\d$`, "x-kvasir-worker": "^$", "x-kvasir-overhead-us": `^\d+$`,
		} {
			if got := a.Header.Get(name); !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s: %s is %q, want %s", body, name, got, want)
			}
		}
		const want = `{"id":"chatcmpl-cache-X","object":"chat.completion","created":X,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"It is 330 m tall."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"total_tokens":27,"completion_tokens":20}}`
		got := madeUp.ReplaceAllStringFunc(a.body, func(s string) string {
			if s[0] == 'c' {
				return "cache-X"
			}
			return `"created":X`
		})
		if a.StatusCode != 200 || got != want {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if len(w.seen()) != 0 {
		t.Errorf("the worker was asked %d times", len(w.seen()))
	}
	for name, want := range map[string]string{
		`kvasir_cache_lookups_total{result="exact"}`: "1", `kvasir_cache_lookups_total{result="semantic"}`: "1",
		`kvasir_cache_lookup_seconds_count`: "2", `kvasir_cache_embed_seconds_count`: "2", `kvasir_cache_entries`: "1",
	} {
		if got := p.metric(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	waitUntil(t, "the hit is booked", func() bool { return strings.Contains(p.log.String(), `"cache":"hit"`) })
	if log := p.log.String(); !strings.Contains(log, `"cache":"hit","cache_similarity":`) || !strings.Contains(log, `"cache_entry":"`+id.String()) || strings.Contains(log, "Eiffel") {
		t.Errorf("the log says %s", log)
	}
}

// Another number is another question: the worker answers it.
func TestAnotherNumberIsAMiss(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	p.keep(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"What is 12 times 7?"}]}`, towerAnswer())
	a := p.ask(t, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"What is 13 times 7?"}]}`)
	if a.body != chatReply || a.Header.Get("x-kvasir-cache") != "miss" || a.Header.Get("x-kvasir-cache-why") != "number" || a.Header.Get("x-vsr-cache-hit") != "" || a.Header.Get("x-vsr-response-path") != "upstream" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	for name, want := range map[string]string{`kvasir_cache_lookups_total{result="miss"}`: "1", `kvasir_cache_refused_total{why="number"}`: "1"} {
		if got := p.metric(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	waitUntil(t, "the log says why", func() bool {
		return strings.Contains(p.log.String(), `"cache":"miss","cache_why":"number","cache_similarity":`)
	})
}

// A hit is streamed or not, with usage or without, as it was asked for; the
// connection stays open, on HTTP/1.0 as well.
func TestHitsComeInTheFormAskedFor(t *testing.T) {
	p := startProxy(t, caching(t, goodWorker(t).url))
	p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	c := dial(t, p.addr)
	r := bufio.NewReader(c)
	for _, form := range []struct {
		extra  string
		stream bool
		usage  bool
	}{
		{``, false, true}, {`,"stream":true`, true, false}, {`,"stream":true,"stream_options":{"include_usage":true}`, true, true}, {`,"stream":false`, false, true},
	} {
		body := strings.TrimSuffix(towerRephrased, "}") + form.extra + "}"
		for _, version := range []string{"1.1", "1.0"} {
			to, from := io.Writer(c), r
			if version == "1.0" {
				c := dial(t, p.addr)
				to, from = c, bufio.NewReader(c)
			}
			_, _ = io.WriteString(to, strings.Replace(post("/v1/chat/completions", body), "HTTP/1.1", "HTTP/"+version, 1))
			a := receive(t, from)
			stream := a.Header.Get("Content-Type") == "text/event-stream; charset=utf-8"
			if a.err != nil || a.StatusCode != 200 || a.Header.Get("x-vsr-cache-hit") != "true" || stream != form.stream || strings.Contains(a.body, `"usage"`) != form.usage {
				t.Errorf("%s %s: %v %d %v %s", version, body, a.err, a.StatusCode, a.Header, a.body)
			}
			if form.stream && (strings.Count(a.body, `"delta":{"content":`) != 3 || !strings.HasSuffix(a.body, doneEvent)) {
				t.Errorf("%s %s: %s", version, body, a.body)
			}
			if chunked := len(a.TransferEncoding) > 0; chunked != (form.stream && version == "1.1") {
				t.Errorf("%s %s: chunked is %v", version, body, chunked)
			}
		}
	}
}

// Kept for one route, an answer is told in that route's words.
func TestHitsOfEveryRoute(t *testing.T) {
	p := startProxy(t, caching(t, goodWorker(t).url))
	for path, body := range map[string]string{
		"/v1/completions": `{"model":"m","prompt":"How tall is it?"%s}`,
		"/v1/messages":    `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"How tall is the Eiffel Tower?"}]%s}`,
	} {
		plain := fmt.Sprintf(body, "")
		p.keep(t, path, plain, towerAnswer())
		for _, extra := range []string{"", `,"stream":true`} {
			a := p.ask(t, path, fmt.Sprintf(body, extra))
			if a.Header.Get("x-vsr-cache-hit") != "true" || !strings.Contains(a.body, "330 m tall") {
				t.Errorf("%s%s: %v %s", path, extra, a.Header, a.body)
			}
		}
		other := strings.Replace(plain, "How tall", "how tall", 1)
		if a := p.ask(t, path, other); (a.Header.Get("x-kvasir-cache") == "hit") != (path == "/v1/messages") {
			t.Errorf("%s: another wording is a %s", path, a.Header.Get("x-kvasir-cache"))
		}
	}
	if a := p.ask(t, "/v1/embeddings", `{"model":"m","input":"hi"}`); a.Header.Get("x-kvasir-cache") != "" {
		t.Errorf("an embedding is a %s", a.Header.Get("x-kvasir-cache"))
	}
}

// Whoever asks for no cache is not answered from it, and is told so.
func TestBypassesGoToTheWorker(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	for i, c := range []struct{ extra, header, why string }{
		{"", "Cache-Control: no-store", bypassNoStore},
		{"", "Cache-Control: no-cache", bypassNoCache},
		{"", "x-kvasir-cache: bypass", bypassClient},
		{`,"n":2`, "x-a: b", bypassChoices},
		{`,"temperature":1.5`, "x-a: b", bypassTemperature},
	} {
		a := p.ask(t, "/v1/chat/completions", strings.TrimSuffix(towerAsked, "}")+c.extra+"}", c.header)
		if len(w.seen()) != i+1 || a.Header.Get("x-kvasir-cache") != "bypass" || a.Header.Get("x-kvasir-cache-why") != c.why || a.Header.Get("x-vsr-cache-hit") != "" {
			t.Errorf("%+v: %v", c, a.Header)
		}
		if got := p.metric(t, `kvasir_cache_bypassed_total{why="`+c.why+`"}`); got != "1" {
			t.Errorf("%s is counted %q times", c.why, got)
		}
	}
}

// A guard blocks what a kept answer would answer.
func TestGuardsBlockBeforeTheCache(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	const asked = `{"model":"m","messages":[{"role":"user","content":"charge 4111 1111 1111 1111"}]}`
	p.keep(t, "/v1/chat/completions", asked, towerAnswer())
	a := p.ask(t, "/v1/chat/completions", asked)
	if a.Header.Get("x-vsr-pii-violation") != "true" || a.Header.Get("x-kvasir-cache") != "" || strings.Contains(a.body, "330 m tall") {
		t.Errorf("%v %s", a.Header, a.body)
	}
}

// An entry that is older than the client takes is not taken.
func TestMaxAge(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, caching(t, w.url))
	_, q := posed(t, p.Proxy, "/v1/chat/completions", towerAsked)
	for age, want := range map[string]string{"max-age=3600": "hit", "max-age=60": "miss"} {
		store := agedStore{p.state.Load().settings.Cache, &cache.Entry{
			ID: 5, Scope: q.Scope, Text: string(q.Text), Answer: towerAnswer().AppendTo(nil), Created: time.Now().Add(-10 * time.Minute), Expires: time.Now().Add(time.Hour),
		}}
		s := caching(t, w.url)
		s.Cache = cache.New(cache.Options{Store: store, Verifier: byNumbers{}, Threshold: 0.8, TTL: time.Hour})
		if err := p.Apply(s); err != nil {
			t.Fatal(err)
		}
		a := p.ask(t, "/v1/chat/completions", towerAsked, "Cache-Control: "+age)
		waitUntil(t, "the call is over", func() bool { return p.coalesced.Stats().Calls == 0 }) // or the next one joins it
		old, _ := strconv.Atoi(a.Header.Get("x-kvasir-cache-age"))
		if got := a.Header.Get("x-kvasir-cache"); got != want || want == "hit" && (old < 600 || old > 660) {
			t.Errorf("%s: %s, %v", age, got, a.Header)
		}
	}
}

// An agedStore has one entry of some age.
type agedStore struct {
	*cache.Cache
	e *cache.Entry
}

func (s agedStore) Equal(cache.Scope, []byte, time.Time) (*cache.Entry, error) { return s.e, nil }
func (s agedStore) Nearest(dst []cache.Candidate, _ cache.Scope, _ *[cache.Dim]float32, _ int, _ float64, _ time.Time) ([]cache.Candidate, error) {
	return dst, nil
}
func (s agedStore) Put(*cache.Entry, *[cache.Dim]float32) error { return nil }
func (s agedStore) Close() error                                { return nil }

// A brokenStore fails as it is told to.
type brokenStore struct {
	agedStore
	fail func(scope cache.Scope, text []byte) (*cache.Entry, error)
}

func (s brokenStore) Equal(scope cache.Scope, text []byte, _ time.Time) (*cache.Entry, error) {
	return s.fail(scope, text)
}
func (s brokenStore) Stats() cache.Stats               { return cache.Stats{Problem: "it is down", Breaker: "open"} }
func (s brokenStore) Delete(cache.Filter) (int, error) { return 0, cache.ErrUnavailable }

// Whatever is wrong with the cache, requests go on, and it is counted.
func TestBrokenStoresCostTheHitOnly(t *testing.T) {
	w := goodWorker(t)
	s := caching(t, w.url)
	for name, fail := range map[string]func(cache.Scope, []byte) (*cache.Entry, error){
		"error": func(cache.Scope, []byte) (*cache.Entry, error) { return nil, cache.ErrTimeout },
		"bug":   func(cache.Scope, []byte) (*cache.Entry, error) { panic("broken") },
		"unreadable": func(scope cache.Scope, text []byte) (*cache.Entry, error) {
			return &cache.Entry{Scope: scope, Text: string(text), Answer: []byte("?")}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.Cache = cache.New(cache.Options{Store: brokenStore{fail: fail}, Verifier: byNumbers{}, TTL: time.Hour})
			p := startProxy(t, s)
			a := p.ask(t, "/v1/chat/completions", towerAsked)
			if a.StatusCode != 200 || a.body != chatReply || a.Header.Get("x-kvasir-cache") != "miss" {
				t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
			}
			if got := p.metric(t, `kvasir_cache_lookups_total{result="error"}`); got != "1" {
				t.Errorf("counted %q", got)
			}
			waitUntil(t, "the log says why", func() bool { return strings.Contains(p.log.String(), `"cache_why":"`+name) })
			if _, ready := p.onAdmin(t, "GET", "/readyz"); !strings.Contains(ready, `"degraded"`) || !strings.Contains(ready, "the cache: it is down") {
				t.Errorf("ready says %s", ready)
			}
			if got := p.metric(t, `kvasir_cache_breaker{state="open"}`); got != "1" {
				t.Errorf("the breaker is %q", got)
			}
			if status, body := p.onAdmin(t, "DELETE", "/cache?all=true"); status != 503 || !strings.Contains(body, "cache_unavailable") {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// A hit takes a request of its key's, and no token.
func TestHitsCostNoTokens(t *testing.T) {
	s := caching(t, goodWorker(t).url)
	s.Keys = []Key{{Name: "ann", SHA256: sha256.Sum256([]byte("secret")), RequestsPerMinute: 10, TokensPerMinute: 1000}}
	p := startProxy(t, s)
	_, q := posed(t, p.Proxy, "/v1/chat/completions", towerAsked, "Authorization: Bearer secret")
	if _, err := s.Cache.Put(q, towerAnswer().AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		a := p.ask(t, "/v1/chat/completions", towerAsked, "Authorization: Bearer secret")
		if a.Header.Get("x-vsr-cache-hit") != "true" || a.Header.Get("x-ratelimit-remaining-tokens") != "1000" || a.Header.Get("x-ratelimit-remaining-requests") != fmt.Sprint(9-i) {
			t.Errorf("%v", a.Header)
		}
	}
}

func (p *testProxy) onAdmin(t testing.TB, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set(browser.AdminHeader, "1")
	resp, err := http.DefaultClient.Do(req)
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

// Calls that were kept while cache.tool_calls was on answer nobody when it is off.
func TestKeptCallsNeedToolCalls(t *testing.T) {
	w := goodWorker(t)
	s := caching(t, w.url)
	p := startProxy(t, s)
	a := towerAnswer()
	a.Calls, a.Finish = []byte(`[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`), "tool_calls"
	for _, on := range []bool{true, false} {
		changed := *s
		changed.CacheOptions.ToolCalls = on
		if err := p.Apply(&changed); err != nil {
			t.Fatal(err)
		}
		p.keep(t, "/v1/chat/completions", towerAsked, a)
		got := p.ask(t, "/v1/chat/completions", towerAsked)
		if called := strings.Contains(got.body, "tool_calls"); called != on || (got.Header.Get("x-kvasir-cache") == "hit") != on {
			t.Errorf("tool_calls %v: %v %s", on, got.Header, got.body)
		}
	}
}

// An entry that an operator drops answers nobody.
func TestDroppedEntryAnswersNobody(t *testing.T) {
	p := startProxy(t, caching(t, goodWorker(t).url))
	id := p.keep(t, "/v1/chat/completions", towerAsked, towerAnswer())
	if a := p.ask(t, "/v1/chat/completions", towerAsked); a.Header.Get("x-kvasir-cache-entry") != id.String() {
		t.Errorf("%v", a.Header)
	}
	if status, body := p.onAdmin(t, "DELETE", "/cache?tenant=&model=m"); status != 200 || body != `{"deleted":1}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	if a := p.ask(t, "/v1/chat/completions", towerAsked); a.Header.Get("x-kvasir-cache") != "miss" {
		t.Errorf("%v", a.Header)
	}
	off := startProxy(t, settingsFor(goodWorker(t).url))
	if status, body := off.onAdmin(t, "GET", "/cache"); status != 404 || !strings.Contains(body, "cache_off") {
		t.Errorf("%d %s", status, body)
	}
}

// hits sends one request and reads its hit, again and again on one connection.
func hits(tb testing.TB, p *testProxy, body string) (once func()) {
	c := dial(tb, p.addr)
	_ = c.SetDeadline(time.Time{})
	request := []byte(post("/v1/chat/completions", body, "X-Request-Id: 4ba0b3a9-29a5-4a0e-9f0c-5d1b1a6c7c4e"))
	if _, err := c.Write(request); err != nil {
		tb.Fatal(err)
	}
	if a := receive(tb, bufio.NewReader(c)); a.Header.Get("x-vsr-cache-hit") != "true" {
		tb.Fatalf("no hit: %v", a.Header)
	}
	reply := make([]byte, 64<<10)
	return func() {
		if _, err := c.Write(request); err != nil {
			tb.Error(err)
			return
		}
		for n := 0; !bytes.HasSuffix(reply[:n], []byte("}}")); {
			k, err := c.Read(reply[n:])
			if err != nil {
				tb.Error(err)
				return
			}
			n += k
		}
	}
}

// BenchmarkHit is a hit end to end, client included, on as many connections as
// cores: by the same text, and by another wording, guards on.
func BenchmarkHit(b *testing.B) {
	p := startProxy(b, caching(b, goodWorker(b).url))
	p.keep(b, "/v1/chat/completions", towerAsked, towerAnswer())
	for name, body := range map[string]string{"exact": towerAsked, "semantic": towerRephrased} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				once := hits(b, p, body)
				for pb.Next() {
					once()
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hits/s")
		})
	}
}
