// Allowances: what is set aside of a key's tokens while requests are under way, and that it comes back.

package proxy

import (
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/classify"
)

// left is how many tokens of a model a key has, as its next request would find them.
func (p *testProxy) left(t *testing.T, key, model string) float64 {
	t.Helper()
	for _, k := range p.state.Load().keys.byDigest {
		if k.Name == key {
			return k.allowanceOf(model).Level(time.Now())
		}
	}
	t.Fatalf("no key %q", key)
	return 0
}

// However a request ends, what it had set aside is settled: the whole minute's
// tokens are there again but for what was used.
func TestReservationsEnd(t *testing.T) {
	const limit = 1 << 20 // of which the clock earns little during a test
	w := startWorker(t, func(c net.Conn, body string) bool {
		out := httpReply(200, "application/json", chatReply)
		switch {
		case strings.Contains(body, "refuse"):
			out = httpReply(400, "application/json", `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`)
		case strings.Contains(body, "break"):
			return false
		case strings.Contains(body, "hang"):
			_, _ = io.WriteString(c, streamHead+chunk(roleEvent+delta("a")))
			untilClosed(c)
			return false
		case strings.Contains(body, `"stream":true`):
			out = streamHead + chunk(roleEvent+delta("a")+finishEvent+usageEvent+doneEvent) + "0\r\n\r\n"
		}
		_, err := io.WriteString(c, out)
		return err == nil
	})
	chat := func(text, more string) string {
		return `{"model":"m","max_tokens":500000,` + more + `"messages":[{"role":"user","content":"` + text + `"}]}`
	}
	for _, tc := range []struct {
		name, body string
		status     int
		used       float64 // at most
	}{
		{"answered", chat("hi", ""), 200, 9},
		{"streamed", chat("hi", `"stream":true,`), 200, 9},
		{"refused by the worker", chat("refuse", ""), 400, 0},
		{"the worker breaks off", chat("break", ""), 502, 0},
		{"blocked by a guard", chat("card 4111 1111 1111 1111", ""), 200, 0},
		{"a bug", chat("hi", ""), 500, 0},
		{"nothing asked for", `{"model":"m","messages":[]}`, 400, 0},
		{"not served", strings.Replace(chat("hi", ""), `"m"`, `"none"`, 1), 404, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := keyed(guarded(classify.Block, w.url), Key{Name: "a", TokensPerMinute: limit})
			p := startProxy(t, s)
			if tc.name == "a bug" {
				sound := p.state.Load()
				broken := *sound
				broken.pool = nil
				p.state.Store(&broken)
				defer p.state.Store(sound)
			}
			a := p.ask(t, "/v1/chat/completions", tc.body, "Authorization: Bearer sk-a")
			if a.StatusCode != tc.status {
				t.Fatalf("%d %q", a.StatusCode, a.body)
			}
			waitUntil(t, "the tokens are back", func() bool { return p.left(t, "a", "m") >= limit-tc.used })
			if said, err := strconv.Atoi(a.Header.Get("x-ratelimit-remaining-tokens")); tc.status == 200 && !strings.Contains(tc.body, "stream") && (err != nil || said < limit-9) {
				t.Errorf("the reply says that %d tokens are left (%v)", said, err)
			}
		})
	}
	t.Run("the client is gone", func(t *testing.T) {
		p := startProxy(t, keyed(settingsFor(w.url), Key{Name: "a", TokensPerMinute: limit}))
		c := dial(t, p.addr)
		_, _ = io.WriteString(c, post("/v1/chat/completions", chat("hang", `"stream":true,`), "Authorization: Bearer sk-a"))
		readUntil(t, c, delta("a"))
		if got := p.left(t, "a", "m"); got > limit-400000 {
			t.Errorf("%v tokens are left while the answer goes on", got)
		}
		_ = c.Close()
		waitUntil(t, "the tokens are back", func() bool { return p.left(t, "a", "m") > limit-100 })
	})
}

// A decision or a fallback that changes the model moves what was set aside.
func TestReservationsMove(t *testing.T) {
	const limit = 1 << 20
	var p *testProxy
	var during sync.Map
	w := startWorker(t, func(c net.Conn, _ string) bool {
		during.Store("m", p.left(t, "a", "m"))
		during.Store("n", p.left(t, "a", "n"))
		_, err := io.WriteString(c, httpReply(200, "application/json", chatReply))
		return err == nil
	})
	s := keyed(settingsFor(w.url), Key{Name: "a", TokensPerMinute: limit}, Key{Name: "b", TokensPerMinute: 10})
	s.Models = []Model{{Name: "m", Fallback: []string{"n"}}, {Name: "n"}}
	s.Workers[0].Models = []string{"n"}
	p = startProxy(t, s)
	a := p.ask(t, "/v1/chat/completions", `{"model":"m","max_tokens":500000,"messages":[{"role":"user","content":"hi"}]}`, "Authorization: Bearer sk-a")
	if a.StatusCode != 200 || a.Header.Get("x-kvasir-fallback") != "n" {
		t.Fatalf("%d %v %q", a.StatusCode, a.Header, a.body)
	}
	m, _ := during.Load("m")
	n, _ := during.Load("n")
	if m.(float64) < limit || n.(float64) > limit-400000 {
		t.Errorf("while n answers, %v tokens of m are left and %v of n", m, n)
	}
	// A key that has none left of the fallback's gets no answer from it.
	for i, status := range []int{200, 200, 503} {
		a := p.ask(t, "/v1/chat/completions", plainChat, "Authorization: Bearer sk-b")
		if a.StatusCode != status {
			t.Errorf("request %d: %d %q", i, a.StatusCode, a.body)
		}
	}
}

// The estimate of an answer that is not bounded follows what answers were.
func TestUnboundedAnswersAreLearnt(t *testing.T) {
	a := newAllowance(1 << 20)
	for _, tc := range []struct{ tokens, want int }{{10, 1024}, {5000, 5000}, {10, 4688}, {6000, 6000}} {
		if a.learn(tc.tokens); int(a.usual.Load()) != tc.want {
			t.Errorf("after %d tokens %d are expected, want %d", tc.tokens, a.usual.Load(), tc.want)
		}
	}
}
