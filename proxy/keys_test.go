// Keys: who may ask, for what, how much; and what of a key goes where.

package proxy

import (
	"crypto/sha256"
	"fmt"
	"io"
	"kvasir/classify"
	"net"
	"strings"
	"testing"
)

func keyed(s *Settings, keys ...Key) *Settings {
	for i := range keys {
		keys[i].SHA256 = sha256.Sum256([]byte("sk-" + keys[i].Name))
	}
	s.Keys = keys
	return s
}

func TestKeys(t *testing.T) {
	w := goodWorker(t)
	p := startProxy(t, keyed(settingsFor(w.url), Key{Name: "all"}, Key{Name: "none", Models: []string{"other"}}))
	for _, tc := range []struct {
		name, header string
		status       int
	}{
		{"missing", "", 401},
		{"unknown", "Authorization: Bearer sk-nobody", 401},
		{"empty", "Authorization: Bearer ", 401},
		{"basic", "Authorization: Basic c2stYWxs", 401},
		{"good", "Authorization: Bearer sk-all", 200},
		{"good, other case", "authorization: bearer sk-all", 200},
		{"good, as Anthropic's clients send it", "x-api-key: sk-all", 200},
		{"not for this model", "Authorization: Bearer sk-none", 404},
	} {
		var headers []string
		if tc.header != "" {
			headers = append(headers, tc.header)
		}
		a := p.ask(t, "/v1/chat/completions", plainChat, headers...)
		if a.StatusCode != tc.status {
			t.Errorf("%s: %d %q", tc.name, a.StatusCode, a.body)
		}
		if a.StatusCode == 401 && (!strings.Contains(a.body, `"type":"authentication_error"`) || !strings.Contains(a.body, "Authorization: Bearer KEY") || !strings.Contains(a.body, "X-Api-Key: KEY")) {
			t.Errorf("%s: %q", tc.name, a.body)
		}
		if a.StatusCode >= 400 {
			checkErrorShape(t, a.body)
		}
	}
	for i, h := range w.heads {
		if h.Get("Authorization") != "" || h.Get("X-Api-Key") != "" {
			t.Errorf("request %d took the key to the worker: %v", i, h)
		}
	}
	if got := raw(t, p.addr, "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 401") {
		t.Errorf("/v1/models without a key: %q", got)
	}
	if got := raw(t, p.addr, "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer sk-none\r\n\r\n"); strings.Contains(got, `"id":"m"`) {
		t.Errorf("the list shows what the key may not have: %q", got)
	}
	if strings.Contains(p.log.String(), "sk-") {
		t.Error("the log holds a key")
	}
}

// TestKeyForAuto: a list of models that holds only auto let the key have nothing.
func TestKeyForAuto(t *testing.T) {
	p := startProxy(t, keyed(settingsFor(goodWorker(t).url), Key{Name: "auto", Models: []string{"auto"}}, Key{Name: "other", Models: []string{"other"}}))
	for _, tc := range []struct {
		key, model string
		status     int
	}{{"auto", "auto", 200}, {"auto", "MoM", 200}, {"auto", "m", 404}, {"other", "auto", 404}} {
		a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"`+tc.model+`"`, 1), "Authorization: Bearer sk-"+tc.key)
		if a.StatusCode != tc.status {
			t.Errorf("key %s asks for %s: %d %q", tc.key, tc.model, a.StatusCode, a.body)
		}
	}
}

// TestKeyForAnotherName: a name that a decision stands another model in for is not refused because no
// worker has it, and of names that clients make up no count of tokens is kept.
func TestKeyForAnotherName(t *testing.T) {
	s := keyed(settingsFor(goodWorker(t).url), Key{Name: "all", TokensPerMinute: 100_000}, Key{Name: "old", Models: []string{"old"}},
		Key{Name: "both", Models: []string{"old", "m"}})
	s.Classify.Decisions = []classify.Decision{{Name: "d", Explicit: true, Model: "m",
		When: classify.Condition{Is: []classify.Is{{Kind: classify.KindModel, Values: []string{"old"}}}}}}
	p := startProxy(t, s)
	for _, tc := range []struct {
		key, model string
		status     int
	}{{"all", "old", 200}, {"all", "m", 200}, {"all", "made-up", 404}, {"both", "old", 200}, {"old", "old", 404}, {"old", "m", 404}} {
		a := p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"`+tc.model+`"`, 1), "Authorization: Bearer sk-"+tc.key)
		if a.StatusCode != tc.status {
			t.Errorf("key %s asks for %s: %d %q", tc.key, tc.model, a.StatusCode, a.body)
		}
	}
}

func TestAuthorizationGoesToTheWorkerOnlyWithoutKeys(t *testing.T) {
	own, plain := goodWorker(t), goodWorker(t)
	s := settingsFor(plain.url)
	s.Workers = append(s.Workers, Worker{Name: "own", URL: own.url, Models: []string{"n"}, Headers: map[string]string{"Authorization": "Bearer theirs"}})
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer mine")
	p.ask(t, "/v1/chat/completions", strings.Replace(plainChat, `"m"`, `"n"`, 1), "Authorization: Bearer mine")
	if got := plain.heads[0].Values("Authorization"); len(got) != 1 || got[0] != "Bearer mine" {
		t.Errorf("the plain worker got %q", got)
	}
	if got := own.heads[0].Values("Authorization"); len(got) != 1 || got[0] != "Bearer theirs" {
		t.Errorf("the worker with its own got %q", got)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	p := startProxy(t, keyed(settingsFor(goodWorker(t).url), Key{Name: "a", RequestsPerMinute: 2}, Key{Name: "b", RequestsPerMinute: 2}))
	for i := range 3 {
		a := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-a")
		want := 200
		if i == 2 {
			want = 429
		}
		if a.StatusCode != want || a.Header.Get("x-ratelimit-limit-requests") != "2" || a.Header.Get("x-ratelimit-remaining-requests") != fmt.Sprint(max(1-i, 0)) {
			t.Errorf("request %d: %d %v", i, a.StatusCode, a.Header)
		}
		if want == 429 && (a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, `"type":"rate_limit_error"`)) {
			t.Errorf("%v %q", a.Header, a.body)
		}
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-b"); a.StatusCode != 200 {
		t.Errorf("another key got %d", a.StatusCode)
	}
}

// Tokens are counted as the worker says, streamed or not, for each model apart.
func TestTokensPerMinute(t *testing.T) {
	w := startWorker(t, func(c net.Conn, body string) bool {
		out := httpReply(200, "application/json", chatReply)
		if strings.Contains(body, `"stream":true`) {
			out = streamHead + chunk(roleEvent+delta("a")+finishEvent+usageEvent+doneEvent) + "0\r\n\r\n"
		}
		_, err := io.WriteString(c, out)
		return err == nil
	})
	s := settingsFor(w.url)
	s.Workers[0].Models = []string{"m", "n"}
	// The first leaves one token, so that the second is taken, and both leave a debt of most of a minute.
	p := startProxy(t, keyed(s, Key{Name: "a", TokensPerMinute: 10}))
	for i, tc := range []struct {
		body   string
		status int
	}{{plainChat, 200}, {streamChat, 200}, {plainChat, 429}, {strings.Replace(plainChat, `"m"`, `"n"`, 1), 200}} {
		if a := p.ask(t, "/v1/chat/completions", tc.body, "Authorization: Bearer sk-a"); a.StatusCode != tc.status {
			t.Errorf("request %d: %d %q", i, a.StatusCode, a.body)
		}
	}
}

// A key that a reload leaves as it was keeps what it has used.
func TestLimitsOutliveAReload(t *testing.T) {
	w := goodWorker(t)
	s := keyed(settingsFor(w.url), Key{Name: "a", RequestsPerMinute: 1})
	p := startProxy(t, s)
	p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-a")
	again := *s
	if err := p.Apply(&again); err != nil {
		t.Fatal(err)
	}
	if a := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-a"); a.StatusCode != 429 {
		t.Errorf("got %d", a.StatusCode)
	}
}

// Whoever hangs up before the worker has counted pays an estimate.
func TestHangingUpIsNotFree(t *testing.T) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")+delta("b")))
		untilClosed(c)
		return false
	})
	p := startProxy(t, keyed(settingsFor(w.url), Key{Name: "a", TokensPerMinute: 1000}))
	long := strings.Replace(streamChat, "hi", strings.Repeat("word ", 1000), 1)
	c := dial(t, p.addr)
	_, _ = io.WriteString(c, post("/v1/chat/completions", long, "Authorization: Bearer sk-a"))
	readUntil(t, c, delta("b"))
	_ = c.Close()
	waitUntil(t, "the request is booked", func() bool { return strings.Contains(p.log.String(), `"end":"client_gone"`) })
	if a := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-a"); a.StatusCode != 429 {
		t.Errorf("the next request gets %d %v", a.StatusCode, a.Header)
	}
}

// Without a valid key a large body is not even read.
func TestStrangersBodiesAreNotRead(t *testing.T) {
	p := startProxy(t, keyed(settingsFor(goodWorker(t).url), Key{Name: "a"}))
	large := strings.Replace(plainChat, "hi", strings.Repeat("x", 1<<20), 1)
	for i, more := range []string{"X: y", "Expect: 100-continue"} {
		if a := p.ask(t, "/v1/chat/completions", large, "Authorization: Bearer sk-b", more); a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("got %d %v", a.StatusCode, a.Header)
		}
		if got := p.metric(t, "kvasir_keys_refused_total"); got != fmt.Sprint(i+1) {
			t.Errorf("%s refused keys are counted after %d", got, i+1)
		}
	}
	if a := p.ask(t, "/v1/chat/completions", large, "Authorization: Bearer sk-a"); a.StatusCode != 200 {
		t.Errorf("a known key got %d %q", a.StatusCode, a.body)
	}
}

// Every request has one line in the log, also those that no worker hears of.
func TestEveryRequestHasALine(t *testing.T) {
	p := startProxy(t, settingsFor(goodWorker(t).url))
	for path, route := range map[string]string{"/v1/models": "/v1/models", "/v1/nothing/S3CRET": "other", "/health": "/health"} {
		fetchFrom(t, p.addr, path)
		waitUntil(t, path+" is in the log", func() bool { return strings.Contains(p.log.String(), `"route":"`+route+`"`) })
	}
	raw(t, p.addr, "GET /S3CRET HTTP/1.1\r\nS3CRET\r\n\r\n")
	waitUntil(t, "what cannot be read is in the log", func() bool { return strings.Contains(p.log.String(), `"route":"unreadable"`) })
	if strings.Contains(p.log.String(), "S3CRET") {
		t.Error("the log holds a client's path")
	}
}

// What is never counted, such as tokenizing, costs nothing; a stream that was
// asked not to count does.
func TestWhatIsCounted(t *testing.T) {
	w := startWorker(t, func(c net.Conn, body string) bool {
		out := httpReply(200, "application/json", `{"count":1,"tokens":[1]}`)
		if strings.Contains(body, `"stream":true`) {
			out = streamHead + chunk(roleEvent+delta("a")+finishEvent+doneEvent) + "0\r\n\r\n"
		}
		_, err := io.WriteString(c, out)
		return err == nil
	})
	p := startProxy(t, keyed(settingsFor(w.url), Key{Name: "a", TokensPerMinute: 20}))
	remaining := func(path, body string) string {
		return p.ask(t, path, body, "Authorization: Bearer sk-a").Header.Get("x-ratelimit-remaining-tokens")
	}
	long := strings.Repeat("x", 400)
	for range 2 {
		if got := remaining("/tokenize", `{"model":"m","prompt":"`+long+`"}`); got != "20" {
			t.Errorf("%s tokens are left", got)
		}
	}
	uncounted := `{"model":"m","stream":true,"stream_options":{"continuous_usage_stats":true},"messages":[{"role":"user","content":"` + long + `"}]}`
	remaining("/v1/chat/completions", uncounted)
	waitUntil(t, "the tokens are taken", func() bool { return remaining("/tokenize", `{"model":"m","prompt":"x"}`) == "0" })
}
