// Tests of finding the sources of tokens, with workers that answer as a test says.

package tokens

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"kvasir/kvroute"
	"kvasir/logtest"
	"kvasir/proxy/health"
	"kvasir/upstream"
)

// Every goroutine is waited for, but for fasthttp's, which ends by itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

// found is the sources of one model "m" on one worker "w0", and what is told of them.
type found struct {
	*Sources
	worker  *upstream.Worker
	reasons health.Reasons
	log     logtest.Buffer
}

// finding looks for the tokens of m on a worker that answers by reply, and waits until
// it has looked.
func finding(t *testing.T, tokenizer string, reply http.HandlerFunc) *found {
	t.Helper()
	server := httptest.NewServer(reply)
	w, err := upstream.NewWorker(upstream.Settings{Name: "w0", URL: server.URL, Engine: "vllm", Models: []string{"m"}},
		upstream.Timeouts{Connect: 2 * time.Second, FirstByte: 5 * time.Second, Idle: 5 * time.Second, Write: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f := &found{worker: w}
	f.Sources = New(zerolog.New(&f.log), f.reasons.Set, func(fault any, what string) { t.Errorf("%s: %v", what, fault) })
	t.Cleanup(func() {
		f.Close()
		w.Conns.CloseIdle()
		server.Close()
	})
	f.Follow(&Served{
		Wanted: true, Pool: kvroute.NewPool(kvroute.PoolOptions{Workers: []*kvroute.Worker{w.Worker}}),
		Workers: []*upstream.Worker{w}, Tokenizers: map[string]string{"m": tokenizer},
	})
	waitUntil(t, "the source was looked for", func() bool { return f.Of("m").Err != ErrPending })
	return f
}

func (f *found) ready() string { return strings.Join(f.reasons.List(), "\n") }

// told answers each request with one status and body.
func told(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// either answers by one or the other.
func either(is *atomic.Bool, yes, no http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if is.Load() {
			yes(w, r)
		} else {
			no(w, r)
		}
	}
}

var tokensOfHello = told(200, `{"count":2,"tokens":[5,6]}`)

// waitUntil waits for a condition; there are no sleeps in tests besides this one.
func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	const patience = 25 * time.Second
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A worker that does not say tokens, or none, for the time being or for good, is said as long as it is so.
func TestNoTokensAreSaid(t *testing.T) {
	for says, reply := range map[string]http.HandlerFunc{
		"answers 500; where the worker does not say them placement is approximate": told(500, ""),
		"no tokens for a text": told(200, `{"tokens":[]}`),
		"answers 404":          told(404, ""),
	} {
		var answers atomic.Bool
		f := finding(t, "", either(&answers, tokensOfHello, reply))
		if ready := f.ready(); !strings.Contains(ready, `tokens of model "m"`) || !strings.Contains(ready, says) {
			t.Errorf("/readyz says %s", ready)
		}
		answers.Store(true)
		waitUntil(t, "/readyz says no more of them", func() bool {
			f.Look()
			return !strings.Contains(f.ready(), "tokens of model")
		})
	}
}

// A worker that says no tokens any more is named in /readyz, and no longer when it says them again.
func TestTokenRouteThatGoes(t *testing.T) {
	var gone atomic.Bool
	f := finding(t, "", either(&gone, told(500, ""), tokensOfHello))
	for _, is := range []bool{true, false} {
		gone.Store(is)
		waitUntil(t, fmt.Sprintf("/readyz says that the route is gone: %v", is), func() bool {
			f.Look()
			return strings.Contains(f.ready(), "/tokenize") == is
		})
	}
}

// Files are compared with the worker until it answers, and that is in the log once for each outcome. (A worker that was
// too busy to be asked was not asked again, and files that were not its own stayed in use.)
func TestFilesAreComparedInTheEnd(t *testing.T) {
	var answers atomic.Bool
	f := finding(t, aTokenizer(t), either(&answers, tokensOfHello, told(503, "")))
	look := func() *Source {
		before := f.Of("m")
		f.Look()
		waitUntil(t, "it was looked again", func() bool { return f.Of("m") != before })
		return f.Of("m")
	}
	for range 3 {
		if got := look(); !strings.HasPrefix(got.Model.Source(), "directory ") || !got.ReadsTokens() {
			t.Error(got.Model.Source())
		}
	}
	answers.Store(true)
	waitUntil(t, "the worker is asked", func() bool { return look().Model.Source() == "the worker's own route" }) // a look may have begun before
	if f.Of("m").ReadsTokens() {
		t.Error("files that are not the worker's read tokens")
	}
	if n := strings.Count(f.log.String(), "tokens of the model are known"); n != 2 {
		t.Errorf("%d lines: %s", n, &f.log)
	}
}

// A worker that is slow with tokens is asked once, and then left alone for a while.
func TestSlowWorkerIsLeftAlone(t *testing.T) {
	f := finding(t, "", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only behind it the server sees that the client leaves
		<-r.Context().Done()
	})
	if !f.worker.Muted(time.Now()) {
		t.Error("it would be asked again")
	}
	if _, err := f.askerOf("m")(t.Context(), "/tokenize", []byte("{}")); err == nil || !strings.Contains(err.Error(), "answers in time") {
		t.Error(err)
	}
}

// Sources are forgotten with their models, and none is looked for where placement asks
// for no tokens.
func TestSourcesFollowWhatIsServed(t *testing.T) {
	f := finding(t, "", told(500, ""))
	of := f.served.Load()
	f.Follow(&Served{Wanted: true, Pool: kvroute.NewPool(kvroute.PoolOptions{}), Tokenizers: of.Tokenizers})
	waitUntil(t, "m is forgotten", func() bool { return f.Of("m").Err == ErrPending && f.ready() == "" })
	f.Follow(&Served{Pool: of.Pool, Workers: of.Workers, Tokenizers: of.Tokenizers})
	f.findAll(t.Context())
	if f.Of("m").Err != ErrPending {
		t.Error("m was looked for")
	}
}

// aTokenizer is a directory with a tokenizer and a template.
func aTokenizer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tokenizer, err := os.ReadFile("../../tokenize/testdata/cl100k.json")
	if err != nil {
		t.Fatal(err)
	}
	config := `{"tokenizer_class":"PreTrainedTokenizerFast","chat_template":"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}`
	for name, data := range map[string][]byte{"tokenizer.json": tokenizer, "tokenizer_config.json": []byte(config)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
