// Transcripts: what real vLLM and SGLang servers said, replayed as a worker.

package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvasir/openai"
)

// Requests that are refused before a worker hears of them.
var refusedHere = map[string]bool{
	"err_bad_type": true, "err_bad_utf8": true, "err_empty_body": true, "err_empty_messages": true, "err_json_array": true,
	"err_malformed_json": true, "err_missing_messages": true, "model_absent": true,
}

// Every transcript of a route that is passed on reaches the client byte for
// byte, but for what Kvasir documents: error bodies that are not OpenAI's are
// brought into its shape, an error event before any content becomes an error
// reply, and a stream that was cut ends with an error event.
func TestTranscripts(t *testing.T) {
	served := map[string]bool{}
	for _, rt := range openai.Routes {
		served[rt.Path] = true
	}
	files, err := filepath.Glob("../testdata/transcripts/*/*.request")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	pd, _ := filepath.Glob("../testdata/transcripts/vllm/pd/*.request")
	replayed := 0
	for _, file := range append(files, pd...) {
		request, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		response, err := os.ReadFile(strings.TrimSuffix(file, ".request") + ".response")
		req, parseErr := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil || parseErr != nil || req.Method != http.MethodPost || !served[req.URL.Path] {
			continue
		}
		replayed++
		name := strings.TrimSuffix(filepath.Base(file), ".request")
		t.Run(filepath.Base(filepath.Dir(file))+"/"+name, func(t *testing.T) {
			replayTranscript(t, name, request, response)
		})
	}
	if replayed < 100 {
		t.Errorf("only %d transcripts were replayed", replayed)
	}
}

func replayTranscript(t *testing.T, name string, request, response []byte) {
	w := startWorker(t, func(c net.Conn, _ string) bool {
		_, _ = c.Write(response)
		return false
	})
	s := settingsFor(w.url)
	s.Workers[0].Models = []string{"m", "tiny-qwen", "tiny-alias", "tiny-qwen-alias", "nope", "no-such-model"}
	p := startProxy(t, s)
	p.loopback.Store(false) // as on a network: some have no JSON in their head, on which engines have the word
	c := dial(t, p.addr)
	_, _ = c.Write(request)
	got := receive(t, bufio.NewReader(c))
	if refusedHere[name] {
		if got.StatusCode != 400 || len(w.seen()) != 0 {
			t.Errorf("got %d %q, the worker saw %d", got.StatusCode, got.body, len(w.seen()))
		}
		checkErrorShape(t, got.body)
		return
	}
	if len(w.seen()) == 0 {
		t.Fatalf("refused: %d %q", got.StatusCode, got.body)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
	if err != nil { // the worker died without a reply
		if got.StatusCode != 502 {
			t.Errorf("got %d %q", got.StatusCode, got.body)
		}
		return
	}
	want, cut := io.ReadAll(resp.Body)
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	switch {
	case got.body == string(want) && cut == nil && got.err == nil && got.StatusCode == resp.StatusCode:
	case cut != nil && stream && got.err != nil && strings.Contains(got.body, "stream_interrupted") && strings.HasPrefix(got.body, untilLastEvent(want)):
	case resp.StatusCode >= 400 && got.StatusCode == resp.StatusCode && !bytes.Contains(want, []byte(`"error":{`)):
		checkErrorShape(t, got.body)
	case stream && bytes.Contains(want, []byte(`data: {"error"`)) && got.StatusCode == 500:
		checkErrorShape(t, got.body)
	default:
		t.Errorf("%d %v\n got %q\nwant %q (%v)", got.StatusCode, got.err, got.body, want, cut)
	}
}

func untilLastEvent(b []byte) string { return string(b[:bytes.LastIndex(b, []byte("\n\n"))+2]) }
