// Attacks on the end: workers, clients, templates and files that would keep Kvasir from stopping.

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon is how long an end takes at most that should take a second, on a busy machine.
const soon = 20 * time.Second

// anyCode is a process that ended by itself or, where something took longer than a second to stop, by force: both keep
// the promise, and on a busy machine the second happens.
const anyCode = -1

// stops sends the signals and wants the process to end with this exit code.
func (k *kvasir) stops(t *testing.T, code int, signals ...os.Signal) {
	t.Helper()
	k.mayFail = code != 0
	for _, sig := range signals {
		if err := k.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // two of a kind at once are one
	}
	select {
	case <-k.exited:
		if got := k.state.ExitCode(); got != code && (code != anyCode || got != 0 && got != 1) {
			t.Errorf("exit code %d, want %d", got, code)
		}
	case <-time.After(soon):
		if err := k.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		t.Fatalf("it still runs %v after %v", soon, signals)
	}
}

// hangingWorker answers as the mode says until its connections are closed.
func hangingWorker(t *testing.T, mode string) *httptest.Server {
	t.Helper()
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health" && mode != "mute":
		case r.Method == http.MethodGet && r.URL.Path != "/v1/models" && mode != "mute":
			http.NotFound(w, r)
		case r.Method == http.MethodGet && mode != "mute":
			io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}`)
		case mode == "endless":
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"`+strings.Repeat("a", 4000)+"\"}}]}\n\n")
				w.(http.Flusher).Flush()
			}
		case mode == "head":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-over
		default:
			<-over
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(over) }) // before Close, which waits for the handlers
	return s
}

// TestHostileWorkersAndClientsHoldTheEnd: each is let go when server.drain.timeout is over.
func TestHostileWorkersAndClientsHoldTheEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"silent", "head", "endless", "mute"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := hangingWorker(t, mode)
			config := fmt.Sprintf("server: {drain: {delay: 0s, timeout: 100ms}}\nworkers: [{name: w, url: %q, models: [m]}]\nmodels: [{name: m, tokenizer: worker}]\ncache: {store: off}\n", w.URL)
			k := serve(t, config)
			if mode != "mute" {
				eventually(t, patience, "the worker is up", func() bool { return answers(k.url + "/v1/models/m") })
			}
			body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"Why?"}]}`
			for range 3 { // clients that do not read
				conn, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
			half, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://")) // one that does not send what it says
			if err != nil {
				t.Fatal(err)
			}
			defer half.Close()
			fmt.Fprint(half, "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
			eventually(t, patience, "the requests are under way", func() bool { return metric(t, k.admin+"/metrics", "kvasir_requests_in_flight") >= 3 || mode == "mute" })
			k.stops(t, 0, syscall.SIGTERM)
		})
	}
}

// TestHostileProfileHoldsTheEnd: a trace of an hour is cut short.
func TestHostileProfileHoldsTheEnd(t *testing.T) {
	t.Parallel()
	k := serve(t, "server: {drain: {delay: 0s, timeout: 100ms}}\nsimulate: [{name: sim}]\n")
	for _, path := range []string{"/debug/pprof/trace?seconds=3600", "/debug/pprof/profile?seconds=3600"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(k.admin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path)
	}
	k.stops(t, 0, syscall.SIGTERM)
}

// bombed is the configuration of a worker whose model has this chat template.
func bombed(t *testing.T, template string) string {
	t.Helper()
	dir := t.TempDir()
	tokenizer, err := os.ReadFile("../tokenize/testdata/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tokenizer.json": string(tokenizer), "tokenizer_config.json": `{"bos_token":"<s>","eos_token":"</s>"}`, "chat_template.jinja": template} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := hangingWorker(t, "silent")
	return fmt.Sprintf("server: {drain: {delay: 0s, timeout: 100ms}}\nworkers: [{name: w, url: %q}]\nmodels: [{name: m, tokenizer: %q}]\ncache: {store: off}\n", w.URL, dir)
}

// TestHostileTemplateHoldsTheEnd: it compared two texts of 60 MB 99,999 times when it was looked at first, and
// neither the first signal nor the second ended that.
func TestHostileTemplateHoldsTheEnd(t *testing.T) {
	t.Parallel()
	for name, bomb := range map[string]string{
		"equal":    "{% set s='a'*6000000 %}{% set t='a'*6000000 %}{% for i in range(99999) %}{% set x=s==t %}{% endfor %}",
		"nothing":  "{{ '' * 9000000000000000000 }}",
		"reversed": "{% set s='é'*3000000 %}{% for i in range(99999) %}{% set x=s[::-1] %}{% endfor %}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := serve(t, bombed(t, bomb+"{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"), "m")
			body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"Why?"}]}`
			go func() {
				if got, err := http1.Post(k.url+"/v1/chat/completions", "application/json", strings.NewReader(body)); err == nil {
					got.Body.Close()
				}
			}()
			eventually(t, patience, "the request has met the template", func() bool { return metric(t, k.admin+"/metrics", "kvasir_requests_in_flight") >= 1 })
			k.stops(t, anyCode, syscall.SIGTERM)
		})
	}
}

// fifo makes a file one that waits for who writes to it, for ever.
func fifo(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHostileFileHoldsTheEnd: a reload that hangs keeps neither the first signal from ending the process, nor the
// second from doing so at once.
func TestHostileFileHoldsTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout string
		code    int
		signals []os.Signal
	}{
		{"100ms", 1, []os.Signal{syscall.SIGTERM}},
		{"1h", 0, []os.Signal{syscall.SIGTERM, os.Interrupt}},
	} {
		t.Run(c.timeout, func(t *testing.T) {
			t.Parallel()
			k := serve(t, "server: {drain: {delay: 0s, timeout: "+c.timeout+"}}\nsimulate: [{name: sim}]\n")
			fifo(t, k.file)
			k.stops(t, c.code, append([]os.Signal{syscall.SIGHUP}, c.signals...)...)
			if !strings.Contains(k.output.String(), "ended by force") {
				t.Error("it does not say that it ended by force")
			}
		})
	}
}
