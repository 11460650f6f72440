// Where tokens come from: what engines say of themselves, and what becomes of requests where they say too little.

package proxy

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvasir/proxy/tokens"
)

// tokenRoute is a worker that answers requests for tokens by tell, and others as a worker does.
func tokenRoute(t *testing.T, tell func(c net.Conn, body string) bool) (w *testWorker) {
	t.Helper()
	ready := make(chan struct{})
	w = startWorker(t, func(c net.Conn, body string) bool {
		<-ready
		w.mu.Lock()
		ours := w.heads[len(w.heads)-1].Get("User-Agent") == "kvasir"
		w.mu.Unlock()
		if ours {
			return tell(c, body)
		}
		_, err := c.Write([]byte(httpReply(200, "application/json", chatReply)))
		return err == nil
	})
	close(ready)
	return w
}

// Only vLLM's way from a request to a prompt is known to the last field: prompts with tools of another engine are
// placed by their text. (They got vLLM's tokens, and met no block of the engine's events.)
func TestTokensAreTheEnginesOwn(t *testing.T) {
	for _, engine := range []string{"vllm", "sglang"} {
		w := tokenRoute(t, func(c net.Conn, _ string) bool {
			_, err := c.Write([]byte(httpReply(404, "text/plain", "")))
			return err == nil
		})
		s := placingSettings(w.url)
		s.Workers[0].Engine = engine
		s.Models[0].Tokenizer = aTokenizer(t)
		p := startProxy(t, s)
		p.waitForTokens(t)
		tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],`
		for _, tt := range []struct {
			more        string
			approximate bool
		}{{"", false}, {tools, engine != "vllm"}} {
			body := `{"model":"m","max_tokens":4,` + tt.more + `"messages":[{"role":"user","content":"hello"}]}`
			r := p.ask(t, "/v1/chat/completions", body)
			if got := r.Header.Get("x-kvasir-placement") == "approximate"; r.StatusCode != 200 || got != tt.approximate {
				t.Errorf("%s %q: %d, approximate: %v", engine, tt.more, r.StatusCode, got)
			}
		}
	}
}

// A worker that is slow with tokens, a byte at a time, delays one request by a second, and no other.
func TestSlowTokensDelayOnce(t *testing.T) {
	var asked atomic.Int32
	w := tokenRoute(t, func(c net.Conn, _ string) bool {
		asked.Add(1)
		if _, err := c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")); err != nil {
			return false
		}
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := c.Write([]byte(" ")); err != nil {
				return false
			}
		}
		return false
	})
	p := startProxy(t, placingSettings(w.url))
	p.waitForTokens(t)
	for range 5 {
		r := p.ask(t, "/v1/chat/completions", `{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`)
		if r.StatusCode != 200 || r.Header.Get("x-kvasir-placement") != "approximate" {
			t.Errorf("%d %s", r.StatusCode, r.Header.Get("x-kvasir-placement"))
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	b := p.backendOf(t, "w0")
	if !b.Muted(time.Now()) {
		t.Error("it would be asked again")
	}
}

// Of a request with a thousand prompts the worker is asked for the tokens of one.
func TestManyPromptsAreAskedForOnce(t *testing.T) {
	var asked atomic.Int32
	w := tokenRoute(t, func(c net.Conn, body string) bool {
		asked.Add(1)
		_, err := c.Write([]byte(httpReply(200, "application/json", `{"count":2,"tokens":[5,6]}`)))
		return err == nil
	})
	p := startProxy(t, placingSettings(w.url))
	p.waitForTokens(t)
	asked.Store(0)
	prompts := strings.Repeat(`"x",`, 999) + `"x"`
	if r := p.ask(t, "/v1/completions", `{"model":"m","max_tokens":4,"prompt":[`+prompts+`]}`); r.StatusCode != 200 {
		t.Fatal(r.StatusCode, r.body)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A worker without the route is asked once for all requests, and it is said.
func TestNoTokenRouteIsSaid(t *testing.T) {
	var asked atomic.Int32
	w := tokenRoute(t, func(c net.Conn, _ string) bool {
		asked.Add(1)
		_, err := c.Write([]byte(httpReply(404, "text/plain", "")))
		return err == nil
	})
	p := startProxy(t, placingSettings(w.url))
	waitUntil(t, "the source was looked for", func() bool { return p.tokenizers.Of("m").Err != tokens.ErrPending })
	for range 3 {
		r := p.ask(t, "/v1/chat/completions", `{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`)
		if r.StatusCode != 200 || r.Header.Get("x-kvasir-placement") != "approximate" {
			t.Errorf("%d %s", r.StatusCode, r.Header.Get("x-kvasir-placement"))
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, ready := p.readiness(t); !strings.Contains(ready, `tokens of model \"m\" are not known`) || !strings.Contains(ready, `worker \"w0\" answers 404`) {
		t.Errorf("/readyz says %s", ready)
	}
}

// aTokenizer is a directory with a tokenizer and a template.
func aTokenizer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tokenizer, err := os.ReadFile("../tokenize/testdata/cl100k.json")
	if err != nil {
		t.Fatal(err)
	}
	config := `{"tokenizer_class":"PreTrainedTokenizerFast","chat_template":"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ tools|tojson if tools }}"}`
	for name, data := range map[string][]byte{"tokenizer.json": tokenizer, "tokenizer_config.json": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
