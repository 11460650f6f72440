// Tests of workers that are found while a whole Kvasir runs within this process.

package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/command/wiring"
	"kvasir/config"
	"kvasir/proxy"
	"kvasir/proxy/browser"
)

// A running is a Kvasir in this process, behind Unix sockets.
type running struct {
	t          *testing.T
	dir        string // of its files
	api, admin *http.Client
}

// runWith serves a configuration of these workers, sources and the like until the test
// ends. It runs alone, because the level of the log is one for all.
func runWith(t *testing.T, text string) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "kv") // t.TempDir is too long for a socket
	do(t, err)
	r := &running{t: t, dir: dir, api: onSocket(filepath.Join(dir, "api")), admin: onSocket(filepath.Join(dir, "admin"))}
	r.configure(text)
	signals := make(chan os.Signal, 2)
	ended := make(chan error, 1)
	go func() {
		ended <- Run(&config.Layers{File: filepath.Join(dir, "kvasir.yaml")}, "v0.0.1-test", signals)
	}()
	t.Cleanup(func() {
		defer setLogLevel("trace")
		signals <- syscall.SIGTERM
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.api.CloseIdleConnections()
		r.admin.CloseIdleConnections()
		do(t, os.RemoveAll(dir))
	})
	r.until("it serves", func() bool { return r.get(r.admin, "/livez") != "" })
	return r
}

func onSocket(path string) *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: 8,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
}

// configure writes the configuration file.
func (r *running) configure(text string) {
	r.t.Helper()
	write(r.t, filepath.Join(r.dir, "kvasir.yaml"), fmt.Sprintf(`server: {listen: "unix:%s/api", admin: "unix:%s/admin", drain: {delay: 0s}}
cache: {store: off}
classify: {jailbreak: {action: off}, pii: {action: off}}
routing: {policy: least_loaded}
gpu: {mode: off}
log: {level: error}
`, r.dir, r.dir)+text)
}

func (r *running) reload() {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://kvasir/reload", nil)
	do(r.t, err)
	req.Header.Set(browser.AdminHeader, "1")
	resp, err := r.admin.Do(req)
	do(r.t, err)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		r.t.Fatalf("the reload gives %d: %s", resp.StatusCode, body)
	}
}

// get is the body of a GET; "" if nobody answers.
func (r *running) get(client *http.Client, path string) string {
	resp, err := client.Get("http://kvasir" + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("in vain for %s; /readyz: %s", what, r.get(r.admin, "/readyz"))
		}
	}
}

// ask sends a chat and gives the status, the worker that answered, and the body.
func (r *running) ask(more string) (status int, worker, body string) {
	resp, err := r.api.Post("http://kvasir/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim","max_tokens":8,"messages":[{"role":"user","content":"Hello"}]`+more+`}`))
	if err != nil {
		return 0, "", err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", err.Error()
	}
	return resp.StatusCode, resp.Header.Get("x-kvasir-worker"), string(text)
}

// metric is the value of a series.
func (r *running) metric(series string) float64 {
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(r.get(r.admin, "/metrics"))
	if m == nil {
		return -1
	}
	v, _ := strconv.ParseFloat(m[1], 64)
	return v
}

// engines starts simulated engines and gives their URLs.
func engines(t *testing.T, n int, speedup float64) (urls []string) {
	t.Helper()
	var list []config.Simulate
	l := &config.Layers{BuiltIn: []byte("simulate: [{}]")}
	g, _, err := l.Load()
	do(t, err)
	for i := range n {
		c := g.Config.Simulate[0]
		c.Name, c.Speedup, c.Events = fmt.Sprintf("e%d", i), speedup, false
		list = append(list, c)
	}
	e, err := wiring.StartEngines(list, func(err error) { t.Error(err) })
	do(t, err)
	t.Cleanup(e.Close)
	for _, w := range e.Workers {
		urls = append(urls, w.URL)
	}
	return urls
}

// fileOf is a file of workers, written as Kubernetes and careful programs do: beside, and
// renamed.
func (r *running) fileOf(name string, urls ...string) {
	r.t.Helper()
	text := "[]\n"
	for i, u := range urls {
		if i == 0 {
			text = ""
		}
		text += "- url: " + u + "\n"
	}
	path := filepath.Join(r.dir, name)
	write(r.t, path+".new", text)
	do(r.t, os.Rename(path+".new", path))
}

func bare(url string) string { return strings.TrimPrefix(url, "http://") }

// TestDiscovery goes through what a source does to a Kvasir that runs: nothing is known at
// first, workers come and go, a source fails, the configuration changes.
func TestDiscovery(t *testing.T) {
	e := engines(t, 3, 100)
	const sources = "discovery: [{kind: file, path: w.yaml, grace: 100ms}, {kind: file, path: more.yaml}]\n"
	r := runWith(t, sources)
	file, more := "file "+r.dir+"/w.yaml", "file "+r.dir+"/more.yaml"
	readyz := func() string { return r.get(r.admin, "/readyz") }
	if got := readyz(); !strings.Contains(got, `"no worker is up"`) || !strings.Contains(got, file+": cannot look at") {
		t.Errorf("without any worker: %s", got)
	}
	r.fileOf("w.yaml", e[0])
	r.fileOf("more.yaml")
	r.until("the first worker", func() bool { status, worker, _ := r.ask(""); return status == 200 && worker == bare(e[0]) })
	r.until("no problem", func() bool { return strings.Contains(readyz(), `"status":"ready"`) })
	if got := r.metric(fmt.Sprintf(`kvasir_worker_source{source="%s",worker="%s"}`, file, bare(e[0]))); got != 1 {
		t.Errorf("the worker's source is not in the metrics: %s", r.get(r.admin, "/metrics"))
	}

	// Sources that do not agree: the first one holds, and that is told.
	write(t, filepath.Join(r.dir, "more.yaml"), "- {url: "+e[0]+", role: prefill}\n- {url: http://127.0.0.1:9}\n")
	r.until("the conflict", func() bool {
		got := readyz()
		return strings.Contains(got, `"degraded"`) && strings.Contains(got, "do not agree about "+e[0]+" (role)") &&
			strings.Contains(got, `worker \"127.0.0.1:9\" (`+more+`) is down`)
	})
	if status, worker, body := r.ask(""); status != 200 || worker != bare(e[0]) {
		t.Errorf("%d from %s: %s", status, worker, body)
	}
	r.fileOf("more.yaml", e[1])
	r.until("it is mended", func() bool { return strings.Contains(readyz(), `"status":"ready"`) })

	// A source that fails keeps what it said.
	write(t, filepath.Join(r.dir, "w.yaml"), "- {ur: x}\n")
	r.until("stale", func() bool {
		return strings.Contains(readyz(), `w.yaml:1:4: workers[0].ur: unknown key, did you mean \"url\"?`)
	})
	if got := r.metric(`kvasir_discovery_stale{source="` + file + `"}`); got != 1 {
		t.Errorf("kvasir_discovery_stale is %v", got)
	}
	if status, _, body := r.ask(""); status != 200 {
		t.Errorf("with a stale source: %d, %s", status, body)
	}

	// A reload that changes other things keeps it; one that leaves the source out does not.
	r.configure(sources + "headers: {vsr: false}\n")
	r.reload()
	if got := readyz(); !strings.Contains(got, "unknown key") || r.metric(`kvasir_discovery_workers{source="`+file+`"}`) != 1 {
		t.Errorf("after a reload: %s", got)
	}
	r.configure("discovery: [{kind: file, path: more.yaml}]\nworkers: [{name: mine, url: " + e[2] + "}]\n")
	r.reload()
	if got := r.get(r.admin, "/metrics"); strings.Contains(got, bare(e[0])) || !strings.Contains(got, `kvasir_worker_source{source="config",worker="mine"} 1`) {
		t.Errorf("a source that is not named any more still has workers:\n%s", got)
	}

	// One of workers wins over a source, without a word.
	r.fileOf("more.yaml", e[1], e[2])
	r.until("both", func() bool { return r.metric(`kvasir_discovery_workers{source="`+more+`"}`) == 2 })
	r.until("ready", func() bool { return strings.Contains(readyz(), `"status":"ready"`) })
	if got := r.get(r.admin, "/metrics"); strings.Count(got, "kvasir_worker_up{") != 2 {
		t.Errorf("workers are not two:\n%s", got)
	}
}

// heldEngine is a server that answers each chat with a stream that it holds in the middle
// until finish is called.
func heldEngine(t *testing.T) (url string, finish func()) {
	t.Helper()
	finished := make(chan struct{})
	finish = sync.OnceFunc(func() { close(finished) })
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
	})
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		const event = `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}` + "\n\n"
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, event, `"role":"assistant","content":"one "`, "null")
		_ = http.NewResponseController(w).Flush()
		<-finished
		fmt.Fprintf(w, event, `"content":"two"`, `"stop"`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		finish()
		s.Close()
	})
	return s.URL, finish
}

// TestDiscoveryKeepsStreams: a worker that is gone finishes its stream and gets nothing new;
// one that stays keeps its connections.
func TestDiscoveryKeepsStreams(t *testing.T) {
	held, finish := heldEngine(t)
	e := engines(t, 1, 100)
	r := runWith(t, "discovery: [{kind: file, path: w.yaml}]\n")
	r.fileOf("w.yaml", held)
	up := func(u string) float64 {
		return r.metric(fmt.Sprintf(`kvasir_worker_up{role="both",state="up",worker="%s"}`, bare(u)))
	}
	r.until("the worker", func() bool { return up(held) == 1 })
	stream, err := r.api.Post("http://kvasir/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"Hello"}]}`))
	do(t, err)
	defer stream.Body.Close()
	if got := stream.Header.Get("x-kvasir-worker"); got != bare(held) {
		t.Errorf("the stream is of %q", got)
	}

	r.fileOf("w.yaml", e[0])
	r.until("the other worker instead", func() bool { return up(e[0]) == 1 && up(held) == -1 })
	for range 5 {
		if status, worker, body := r.ask(""); status != 200 || worker != bare(e[0]) {
			t.Errorf("%d from %s: %s", status, worker, body)
		}
	}
	connections := func() float64 {
		return r.metric(fmt.Sprintf(`kvasir_worker_connections{worker="%s"}`, bare(e[0])))
	}
	before, applied := connections(), r.metric("kvasir_discovery_applied_total")
	r.fileOf("w.yaml", e[0], "http://127.0.0.1:9")
	r.until("one more", func() bool { return r.metric("kvasir_discovery_applied_total") > applied })
	if after := connections(); before < 1 || after < before {
		t.Errorf("connections were %v and are %v", before, after)
	}

	finish()
	text, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(text), "two") || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("the stream ends with %q, %v", text, err)
	}
}

// TestDiscoveryFlapping: half of the workers come and go ten times a second under steady
// requests. None fails, and it costs no more than two new generations a second.
func TestDiscoveryFlapping(t *testing.T) {
	const lasts = 4 * time.Second
	e := engines(t, 6, 200)
	r := runWith(t, "discovery: [{kind: file, path: w.yaml}]\n")
	r.fileOf("w.yaml", e...)
	r.until("all", func() bool { return strings.Count(r.get(r.admin, "/metrics"), `state="up"`) == 6 })
	before := r.metric("kvasir_discovery_applied_total")
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var sent, failed atomic.Int64
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			more := ""
			if i%2 == 0 {
				more = `,"stream":true`
			}
			for ctx.Err() == nil {
				status, worker, body := r.ask(more)
				if sent.Add(1); status != http.StatusOK || i%2 == 0 && !strings.HasSuffix(body, "data: [DONE]\n\n") {
					failed.Add(1)
					t.Errorf("%d from %q: %.200s", status, worker, body)
				}
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	flaps := 0
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		flaps++
		r.fileOf("w.yaml", e[:3+3*(flaps%2)]...)
	}
	clients.Wait()
	if sent.Load() < 50 || failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), sent.Load())
	}
	applied := r.metric("kvasir_discovery_applied_total") - before
	if applied < 1 || applied > 2*time.Since(began).Seconds()+1 {
		t.Errorf("%d flaps were taken over %v times", flaps, applied)
	}
	t.Logf("%d flaps, taken over %v times, %d requests, %d failed", flaps, applied, sent.Load(), failed.Load())
}

// BenchmarkDiscoveryChange is one change: 100 workers that a source has found stay, one
// beside them, where nobody listens, is another than before; merged, and taken over.
func BenchmarkDiscoveryChange(b *testing.B) {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	defer setLogLevel("trace")
	dir := b.TempDir()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "- url: http://127.0.0.1:%d\n  models: [m]\n", 10000+i)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.yaml"), []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "kvasir.yaml")
	if err := os.WriteFile(file, []byte("discovery: [{kind: file, path: w.yaml}]\ncache: {store: off}\ngpu: {mode: off}\nserver: {listen: 127.0.0.1:0, admin: \"\"}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	l := &config.Layers{File: file}
	g, read, err := l.Load()
	if err != nil {
		b.Fatal(err)
	}
	e := newShutdown(make(chan os.Signal))
	defer e.close()
	s := &server{log: zerolog.Nop(), layers: l, shutdown: e, failed: make(chan error, 8), started: g.Config, current: g, read: read}
	if err := s.start(); err != nil {
		b.Fatal(err)
	}
	defer s.stop()
	two := [2]proxy.Settings{*s.settled, *s.settled}
	for i := range two {
		two[i].Workers = []proxy.Worker{{Name: "other", URL: fmt.Sprintf("http://127.0.0.1:%d", 1+i), Role: "both"}}
	}
	for i := 0; b.Loop(); i++ {
		s.settled = &two[i%2]
		s.foundChanged()
	}
}
