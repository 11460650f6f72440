// A canary in every prompt, answer, key and Authorization: nothing that Kvasir writes may hold it.

package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const canary = "KvasirCanary7f3a"

// TestCanary looks at stdout, stderr, traces, /metrics and the health routes at the two most talkative levels.
func TestCanary(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"debug", "trace"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			traces := startCollector(t)
			k := serveIn(t, []string{"KVASIR_TRACING_ENDPOINT=http://" + traces.http}, canaryConfig(t, level), "sim")
			sing(t, k, "Authorization: Bearer "+canary)
			badReloads(t, k)

			said := k.publicPages(t)
			k.stop(t)
			said["its output"], said["its traces"] = k.output.String(), traces.text(t)
			for from, text := range said {
				wantNoCanary(t, from, text)
			}
			if n := len(traces.spans()); n < 400 {
				t.Errorf("%d spans came: too little to prove anything", n)
			}
			if n := strings.Count(said["its output"], "/v1/chat/completions"); n < 40 {
				t.Errorf("%d requests are in the log: too little to prove anything", n)
			}
		})
	}
}

// TestCanaryKeys: neither a good nor a bad key comes back in an error or a log.
func TestCanaryKeys(t *testing.T) {
	t.Parallel()
	good := "sk-good-" + canary
	file := t.TempDir() + "/key"
	if err := os.WriteFile(file, []byte(good+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := canaryConfig(t, "trace") + fmt.Sprintf("keys: [{name: alice, key_file: %q}]\n", file)
	k := serve(t, config)
	url := k.url + "/v1/chat/completions"
	for _, secret := range []string{
		"Authorization: Bearer sk-bad-" + canary, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(canary)),
		"Authorization: " + canary, "X-Api-Key: " + canary, "Api-Key: " + canary, "Authorization: Bearer " + canary + " " + canary,
	} {
		got := post(t, url, chat(false, 4), secret)
		wantError(t, got, http.StatusUnauthorized)
		wantNoCanary(t, "the reply to a bad key", string(got.body)+fmt.Sprint(got.header))
	}
	if got := post(t, url, chat(false, 4), "Authorization: Bearer "+good); got.status != http.StatusOK {
		t.Errorf("a good key: status %d, %s", got.status, got.body)
	}
	sing(t, k, "Authorization: Bearer "+good)
	said := k.publicPages(t)
	k.stop(t)
	said["its output"] = k.output.String()
	for from, text := range said {
		wantNoCanary(t, from, text)
	}
}

// canaryConfig is two workers that misbehave on request and have a secret of their own.
func canaryConfig(t *testing.T, level string) string {
	t.Helper()
	a, b := httptest.NewServer(http.HandlerFunc(rogue)), httptest.NewServer(http.HandlerFunc(rogue))
	t.Cleanup(a.Close)
	t.Cleanup(b.Close)
	return fmt.Sprintf(`
server:
  max_body: 64KiB
  timeouts: {header: 1s, body: 1s, connect: 1s, first_byte: 2s, idle: 2s}
  drain: {delay: 0s, timeout: 5s}
workers:
  - {name: a, url: %q, headers: {Authorization: "Bearer %s"}}
  - {name: b, url: %q}
log: {level: %s, format: json}
`, a.URL, canary, b.URL, level)
}

// publicPages is what anybody may read of Kvasir.
func (k *kvasir) publicPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, url := range []string{
		k.admin + "/metrics", k.admin + "/readyz", k.admin + "/livez",
		k.url + "/health", k.url + "/readyz", k.url + "/livez", k.url + "/v1/models",
	} {
		pages[url] = string(get(t, url).body)
	}
	return pages
}

// sing sends the canary through every route and every way to fail that there is.
func sing(t *testing.T, k *kvasir, authorization string) {
	t.Helper()
	var group sync.WaitGroup
	ask := func(request *http.Request) {
		name, value, _ := strings.Cut(authorization, ": ")
		request.Header.Set(name, value)
		request.Header.Set("Cookie", "session="+canary)
		group.Go(func() {
			got, err := http1.Do(request)
			if err != nil {
				return // Kvasir may close where it refuses
			}
			defer got.Body.Close()
			_, _ = io.Copy(io.Discard, got.Body) // a broken end is one of the ways to fail
		})
	}
	routes := []string{"chat/completions", "completions", "responses", "messages", "embeddings", "rerank", "score", "images/generations", "nowhere"}
	for _, route := range routes {
		for _, body := range canaryBodies() {
			ask(newPost(t, k.url+"/v1/"+route+"?api_key="+canary, body))
		}
	}
	for _, fault := range rogueFaults {
		for _, stream := range []string{"true", "false"} {
			body := `{"model":"sim","stream":` + stream + `,"messages":[{"role":"user","content":"` + canary + `"}]}`
			ask(newPost(t, k.url+"/v1/chat/completions", body, "X-Rogue: "+fault))
		}
	}
	ask(newForm(t, k.url+"/v1/audio/transcriptions"))
	for _, text := range malformed {
		text = strings.ReplaceAll(text, "AUTH", authorization)
		group.Go(func() { sendRaw(t, strings.TrimPrefix(k.url, "http://"), text) })
	}
	group.Wait()

	// A client that leaves in the middle of an answer.
	stream := open(t, k.url+"/v1/chat/completions", canaryBodies()[1], authorization, "X-Rogue: drip")
	if first := stream.skip(t, 2); !bytes.Contains(first, []byte(canary)) {
		t.Errorf("the worker's answer did not arrive: %q", first)
	}
	stream.cancel()
}

// canaryBodies are prompts good and bad.
func canaryBodies() []string {
	message := `[{"role":"user","content":"` + canary + `"}]`
	return []string{
		`{"model":"sim","input":"` + canary + `","prompt":"` + canary + `","query":"` + canary + `","documents":["` + canary + `"],"max_tokens":4,"messages":` + message + `}`,
		`{"model":"sim","stream":true,"input":"` + canary + `","prompt":"` + canary + `","max_tokens":4,"messages":` + message + `}`,
		`{"model":"no-such-model","input":"` + canary + `","prompt":"` + canary + `","messages":` + message + `}`,
		`{"model":"sim","messages":[{"role":"user","content":"` + canary,                                           // ends early
		`{"model":"sim","messages":` + message + ` ` + canary + `}`,                                                // not JSON here
		`{"model":"sim","model":"` + canary + `","messages":` + message + `}`,                                      // duplicate key
		`{"model":"sim","messages":[{"role":"user","content":"` + canary + ` \ud800"}]}`,                           // lone surrogate
		`{"model":"sim","messages":[{"role":"user","content":"` + canary + "\xff\xfe" + `"}]}`,                     // not UTF-8
		`{"model":"sim","messages":"` + canary + `","prompt":{"` + canary + `":1},"input":7}`,                      // wrong types
		`{"model":"sim","stream":"` + canary + `","messages":` + message + `}`,                                     // wrong type
		`{"model":"sim","messages":[{"content":"` + canary + `"}]}`,                                                // no role
		strings.Repeat(`[`, 100) + `"` + canary + `"` + strings.Repeat(`]`, 100),                                   // deep
		`{"model":"sim","messages":` + message + `,"x":"` + strings.Repeat(canary, 64<<10/16) + `"}`,               // too long
		`{"` + canary + `":1,"` + canary + `":2,"model":"sim","messages":` + message + `,"user":"` + canary + `"}`, // unknown keys
		canary,
	}
}

// malformed are requests that are no HTTP, each with the canary where a parser may quote it.
var malformed = []string{
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nno colon " + canary + "\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nBad Name: " + canary + "\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nX: a\r\n " + canary + "\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nX: \x00" + canary + "\r\n\r\n",
	"POST /v1/chat/completions HTTP/9.9\r\nHost: x\r\nAUTH\r\n\r\n" + canary,
	"POST /v1/chat/completions " + canary + "\r\nAUTH\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + canary,
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Length: " + canary + "\r\n\r\n" + canary,
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n" + canary,
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"" + canary,
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Encoding: gzip\r\nContent-Length: 16\r\n\r\n" + canary,
	"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTH\r\nContent-Length: 99999999\r\n\r\n" + canary,
	"GET /v1/models HTTP/1.1\r\nHost: x\r\nAUTH\r\nX: " + strings.Repeat(canary, 4096) + "\r\n\r\n",
	"\x16\x03\x01\x02\x00" + canary + "\r\n\r\n",
	canary + "\r\n\r\n",
}

// sendRaw sends bytes and reads until Kvasir closes or has nothing to say for a while.
func sendRaw(t *testing.T, address, text string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return // refused before all of it was sent
	}
	if err := conn.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, conn) // what it answers is looked at elsewhere
}

func newForm(t *testing.T, url string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"model": "sim", "prompt": canary} {
		if err := form.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	file, err := form.CreateFormFile("file", canary+".wav")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, strings.Repeat(canary, 100)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, url, &body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	return request
}

// badReloads gives Kvasir configurations with a secret where it does not belong. It keeps the old
// one and says why, without the secret.
func badReloads(t *testing.T, k *kvasir) {
	t.Helper()
	good, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	for i, bad := range []string{
		"keys: [{name: alice, sha256: " + canary + "}]\n", // the key itself instead of its hash
		"keys: [{name: alice, key: " + canary + "}]\n",
		"keys: " + canary + "\n",
		"workers: [{name: a, url: 'http://127.0.0.1:1', headers: 'Authorization: Bearer " + canary + "'}]\n",
		"workers: [{name: a, url: 'http://127.0.0.1:1', headers: {Authorization: [" + canary + "]}}]\n",
		"workers: [{name: a, url: 'ftp://user:" + canary + "@127.0.0.1:1'}]\n",
	} {
		before := strings.Count(k.output.String(), "\n")
		if err := os.WriteFile(k.file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := k.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, patience, fmt.Sprintf("bad configuration %d is refused", i), func() bool {
			lines := strings.Split(k.output.String(), "\n")
			return strings.Contains(strings.Join(lines[min(before, len(lines)):], "\n"), "kvasir.yaml")
		})
	}
	if err := os.WriteFile(k.file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := post(t, k.url+"/v1/chat/completions", chat(false, 4)); got.status != http.StatusOK {
		t.Errorf("after bad configurations: status %d, %s", got.status, got.body)
	}
}

// wantNoCanary fails where the text holds the canary, plain or in base64.
func wantNoCanary(t *testing.T, from, text string) {
	t.Helper()
	hidden := base64.StdEncoding.EncodeToString([]byte(canary))
	hidden = hidden[:len(hidden)-4] // the end depends on what follows
	for line := range strings.Lines(text) {
		if strings.Contains(strings.ToLower(line), strings.ToLower(canary)) || strings.Contains(line, hidden) {
			t.Errorf("the canary is in %s: %.1000q", from, line)
		}
	}
}
