// Recorded bytes of real engines (../testdata/transcripts), replayed by a worker behind Kvasir: each
// reply reaches the client as the engine sent it, however the network cuts it into pieces.

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const transcripts = "../testdata/transcripts"

// What Kvasir passes to a worker. Other recorded paths are not its own (404).
var passedOn = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
	"/v1/embeddings", "/tokenize", "/detokenize",
}

// A recording is one request to a real engine and the bytes that came back.
type recording struct {
	name     string
	request  *http.Request
	body     []byte // of the request
	response []byte // everything that the engine wrote, framing included
	want     reply  // the same as a client understands it; status 0: there was no reply
}

func TestReplay(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"directly", "in slices"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			recordings := readRecordings(t)
			engine := newReplay(t, recordings)
			address := engine.listener.Addr().String()
			if through == "in slices" {
				w := newWire(t, address)
				slicer := `{"type":"slicer","attributes":{"average_size":4,"size_variation":3,"delay":0}}`
				if _, err := w.Toxics.AddToxicJson(strings.NewReader(slicer)); err != nil {
					t.Fatal(err)
				}
				address = w.Listen
			}
			k := serve(t, behind(map[string]string{"engine": "http://" + address}), engine.models...)
			for _, r := range recordings {
				t.Run(r.name, func(t *testing.T) { r.replay(t, k, engine) })
			}
		})
	}
}

func (r recording) replay(t *testing.T, k *kvasir, engine *replayEngine) {
	request, err := http.NewRequest(http.MethodPost, k.url+r.request.URL.Path, bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = r.request.Header.Clone()
	request.Header.Del("Connection")
	request.Header.Set("X-Replay", r.name)
	got := do(t, request)
	switch _, reached := engine.reached.Load(r.name); {
	case !reached: // Kvasir refuses it by itself: a client's mistake
		if got.status < 400 || got.status >= 500 {
			t.Errorf("never reached the worker, and has status %d", got.status)
		}
		wantError(t, got, got.status)
	case r.want.status == 0:
		wantError(t, got, http.StatusBadGateway)
	case r.want.status >= 400:
		r.wantSameError(t, got)
	case r.want.end != nil:
		wantInterrupted(t, got)
		if intact := r.wholeEvents(); !bytes.HasPrefix(got.body, intact) {
			t.Errorf("before the cut came %.300q, want %.300q", got.body, intact)
		}
	case r.errorBeforeContent() != nil:
		// Kvasir has looked for another worker, and there is none: an HTTP error with the event's code.
		r.want.body = r.errorBeforeContent()
		r.want.status = http.StatusInternalServerError
		r.wantSameError(t, got)
	default:
		if got.status != r.want.status || got.end != nil || !bytes.Equal(got.body, r.want.body) {
			t.Errorf("status %d, end %v, body\n%q\nwant status %d, body\n%q", got.status, got.end, got.body, r.want.status, r.want.body)
		}
		if got, want := got.header.Get("Content-Type"), r.want.header.Get("Content-Type"); got != want {
			t.Errorf("content type %q, want %q", got, want)
		}
	}
}

// wantSameError: the engine's status and message, in OpenAI's shape. A bare 404 tells which route the
// worker lacks.
func (r recording) wantSameError(t *testing.T, got reply) {
	t.Helper()
	wantError(t, got, r.want.status)
	want := engineMessage(r.want.body)
	if r.want.status == http.StatusNotFound && want == "Not Found" { // the engine lacks the route
		want = `worker "engine" has no route ` + r.request.URL.Path + `: it answered 404 Not Found`
	}
	if want == "" {
		return // no message at all: it is Kvasir's
	}
	if message := engineMessage(got.body); message != want {
		t.Errorf("message %q, want the engine's %q", message, want)
	}
}

// engineMessage is the message of an error in OpenAI's shape, SGLang's or FastAPI's; "" if there is none.
func engineMessage(body []byte) string {
	var reply struct {
		Error           struct{ Message string }
		Message, Detail string
	}
	if json.Unmarshal(body, &reply) != nil {
		return ""
	}
	return cmp.Or(reply.Error.Message, reply.Message, reply.Detail)
}

// errorBeforeContent is the data of the error event of a stream in which no content came before it.
func (r recording) errorBeforeContent() []byte {
	before, event, found := bytes.Cut(r.want.body, []byte(`data: {"error":`))
	if !found || bytes.Contains(before, []byte(`"content":" `)) {
		return nil
	}
	data, _, _ := bytes.Cut(event, []byte("\n\n"))
	return append([]byte(`{"error":`), data...)
}

// wholeEvents are the events of a cut stream that came in full.
func (r recording) wholeEvents() []byte {
	return r.want.body[:bytes.LastIndex(r.want.body, []byte("\n\n"))+len("\n\n")]
}

// readRecordings reads what was asked of the routes that Kvasir passes on.
func readRecordings(t *testing.T) []recording {
	t.Helper()
	var found []recording
	for _, folder := range []string{"vllm", "vllm/pd", "sglang"} {
		files, err := filepath.Glob(filepath.Join(transcripts, folder, "*.request"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts in %s/%s: %v", transcripts, folder, err)
		}
		for _, file := range files {
			if r, ok := readRecording(t, file); ok {
				r.name = folder + "/" + strings.TrimSuffix(filepath.Base(file), ".request")
				found = append(found, r)
			}
		}
	}
	return found
}

func readRecording(t *testing.T, file string) (recording, bool) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	r := recording{request: request}
	if request.Method != http.MethodPost || !slices.Contains(passedOn, request.URL.Path) {
		return r, false
	}
	if r.body, err = io.ReadAll(request.Body); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	r.response, err = os.ReadFile(strings.TrimSuffix(file, "request") + "response")
	if os.IsNotExist(err) {
		return r, false // the engine never answered
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(r.response)), request)
	if err != nil {
		return r, true // not even a head
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	r.want = reply{got.StatusCode, got.Header, body, err}
	return r, true
}

// A replayEngine is a worker that writes the recorded bytes of the name in x-replay and closes.
type replayEngine struct {
	listener net.Listener
	replies  map[string][]byte
	models   []string // every model that was answered for
	reached  sync.Map // names asked for
	group    sync.WaitGroup
}

func newReplay(t *testing.T, recordings []recording) *replayEngine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &replayEngine{listener: listener, replies: map[string][]byte{}}
	for _, r := range recordings {
		e.replies[r.name] = r.response
		var asked struct{ Model string }
		if r.want.status == http.StatusOK && json.Unmarshal(r.body, &asked) == nil && asked.Model != "" && !slices.Contains(e.models, asked.Model) {
			e.models = append(e.models, asked.Model)
		}
	}
	e.group.Go(e.accept)
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		e.group.Wait()
	})
	return e
}

func (e *replayEngine) accept() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return
		}
		e.group.Go(func() { e.answer(conn) })
	}
}

// answer serves one request of one connection.
func (e *replayEngine) answer(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return
	}
	name := request.Header.Get("X-Replay")
	if recorded, ok := e.replies[name]; ok {
		e.reached.Store(name, true)
		_, _ = conn.Write(recorded) // who hangs up is looked at on the other side
		return
	}
	list := make([]string, 0, len(e.models))
	for _, model := range e.models {
		list = append(list, fmt.Sprintf(`{"id":%q,"object":"model","created":1,"owned_by":"vllm"}`, model))
	}
	body := `{"version":"0.32.0"}`
	if request.URL.Path == "/v1/models" {
		body = `{"object":"list","data":[` + strings.Join(list, ",") + `]}`
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
