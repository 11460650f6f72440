// Kvasir and its simulated workers as a test sees them.

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A kvasir is a running `kvasir serve`.
type kvasir struct {
	*process
	url   string // of the OpenAI listener, without a path
	admin string // of the admin listener
	file  string // its configuration
}

// serve starts Kvasir on free ports with this configuration (all but the addresses) and waits until
// it serves each of the models.
func serve(t testing.TB, config string, models ...string) *kvasir {
	t.Helper()
	return serveIn(t, nil, config, models...)
}

// serveIn is serve with some more environment.
func serveIn(t testing.TB, env []string, config string, models ...string) *kvasir {
	t.Helper()
	return serveWith(t, env, nil, config, models...)
}

// serveWith is serveIn with some more flags.
func serveWith(t testing.TB, env, flags []string, config string, models ...string) *kvasir {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kvasir.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, admin := freeAddress(t), freeAddress(t)
	env = append([]string{"KVASIR_SERVER_LISTEN=" + listen, "KVASIR_SERVER_ADMIN=" + admin}, env...)
	k := &kvasir{
		process: spawn(t, env, binary(t), append([]string{"serve", "--config", file}, flags...)...),
		url:     "http://" + listen,
		admin:   "http://" + admin,
		file:    file,
	}
	eventually(t, patience, "kvasir serves "+strings.Join(models, ", "), func() bool {
		select {
		case <-k.exited:
			t.Fatalf("kvasir serve ended: %v", k.state)
		default:
		}
		for _, model := range models {
			if !answers(k.url + "/v1/models/" + model) {
				return false
			}
		}
		return answers(k.admin + "/readyz")
	})
	return k
}

// A worker is a running `kvasir simulate` with faults on request.
type worker struct {
	*process
	address string // host:port
}

func (w *worker) url() string { return "http://" + w.address }

// simulate starts a worker that serves the model "sim" and waits until it does.
func simulate(t testing.TB) *worker {
	t.Helper()
	address := freeAddress(t)
	w := &worker{
		process: spawn(t, nil, binary(t), "simulate", "--listen", address, "--model", "sim", "--faults"),
		address: address,
	}
	eventually(t, patience, "the worker answers", func() bool { return answers(w.url() + "/v1/models") })
	return w
}

// running is how many requests the worker works on, by its own count.
func (w *worker) running(t testing.TB) float64 {
	t.Helper()
	return metric(t, w.url()+"/metrics", "vllm:num_requests_running")
}

// metric sums the series of one name in a Prometheus exposition; 0 when there is none.
func metric(t testing.TB, url, name string) float64 {
	t.Helper()
	reply := get(t, url)
	sum := 0.0
	lines := bufio.NewScanner(strings.NewReader(string(reply.body)))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			t.Fatalf("%s: %q: %v", url, lines.Text(), err)
		}
		sum += value
	}
	return sum
}

// http1 keeps no connections: a test's requests do not depend on those before.
var http1 = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: time.Minute}

func answers(url string) bool {
	reply, err := http1.Get(url)
	if err != nil {
		return false
	}
	defer reply.Body.Close()
	return reply.StatusCode == http.StatusOK
}

// A reply is the bytes received up to the end; end is nil only for a clean end.
type reply struct {
	status int
	header http.Header
	body   []byte
	end    error
}

func get(t testing.TB, url string) reply {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, request)
}

// post sends JSON; headers are "Name: value".
func post(t testing.TB, url, body string, headers ...string) reply {
	t.Helper()
	return do(t, newPost(t, url, body, headers...))
}

func newPost(t testing.TB, url, body string, headers ...string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	return request
}

func do(t testing.TB, request *http.Request) reply {
	t.Helper()
	got, err := http1.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", request.Method, request.URL, err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return reply{got.StatusCode, got.Header, body, err}
}

// chat is a chat request for the model "sim".
func chat(stream bool, maxTokens int) string {
	return fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":"Name three colours."}],"max_tokens":%d,"ignore_eos":true,"stream":%t}`, maxTokens, stream)
}

// A liveStream is a streamed reply that is still under way.
type liveStream struct {
	reply  *http.Response
	body   *bufio.Reader
	cancel context.CancelFunc
}

// open asks for a stream and returns when its head is there.
func open(t testing.TB, url, body string, headers ...string) *liveStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request := newPost(t, url, body, headers...).WithContext(ctx)
	got, err := http1.Do(request)
	if err != nil {
		t.Fatalf("POST %s: %v", url, err)
	}
	t.Cleanup(func() { _ = got.Body.Close() }) // closing it twice is no error
	return &liveStream{got, bufio.NewReader(got.Body), cancel}
}

// skip reads n whole events.
func (s *liveStream) skip(t testing.TB, n int) []byte {
	t.Helper()
	var read []byte
	for n > 0 {
		line, err := s.body.ReadBytes('\n')
		read = append(read, line...)
		if err != nil {
			t.Fatalf("the stream ended early: %v after %q", err, tail(string(read), 300))
		}
		if string(line) == "\n" {
			n--
		}
	}
	return read
}

// rest reads to the end of the stream.
func (s *liveStream) rest() reply {
	body, err := io.ReadAll(s.body)
	return reply{s.reply.StatusCode, s.reply.Header, body, err}
}
