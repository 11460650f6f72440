// Recorded exchanges of real engines, for tests.

// Package transcript reads the recorded bytes of real engines in
// testdata/transcripts, as rows for tests.
//
//	for _, tr := range transcript.All(t) {
//		head, body := tr.Response[:tr.Head], tr.Body
//	}
package transcript

import (
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A Transcript is one recorded exchange.
type Transcript struct {
	Name     string // "vllm/chat_stream"
	Path     string // that was asked: "/v1/chat/completions"
	Response []byte // exact bytes
	Head     int    // of them, blank line included
	Body     []byte // decoded, as far as it came
	Cut      bool   // the body has no right end
}

// All returns every exchange that has a reply. The bodies are decoded by net/http,
// not by what is being tested.
func All(tb testing.TB) []Transcript {
	tb.Helper()
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "..", "..", "testdata", "transcripts")
	var all []Transcript
	for _, dir := range []string{"vllm", "vllm/pd", "sglang"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.response"))
		if err != nil || len(files) == 0 {
			tb.Fatalf("no transcripts in %s: %v", dir, err)
		}
		for _, file := range files {
			response, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			if len(response) == 0 {
				continue
			}
			request, err := os.ReadFile(strings.TrimSuffix(file, "response") + "request")
			if err != nil {
				tb.Fatal(err)
			}
			t := Transcript{Name: dir + "/" + strings.TrimSuffix(filepath.Base(file), ".response"), Response: response}
			t.Path = strings.Fields(string(request[:bytes.IndexByte(request, '\r')]))[1]
			t.decode(tb)
			all = append(all, t)
		}
	}
	return all
}

// Find returns one exchange by its name.
func Find(tb testing.TB, name string) Transcript {
	tb.Helper()
	for _, t := range All(tb) {
		if t.Name == name {
			return t
		}
	}
	tb.Fatalf("no transcript %s", name)
	return Transcript{}
}

func (t *Transcript) decode(tb testing.TB) {
	head, body, ok := bytes.Cut(t.Response, []byte("\r\n\r\n"))
	if !ok {
		tb.Fatalf("%s has no head", t.Name)
	}
	t.Head = len(head) + 4
	if !bytes.Contains(head, []byte("transfer-encoding: chunked")) {
		t.Body = body
		return
	}
	decoded, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		tb.Fatalf("%s: %v", t.Name, err)
	}
	t.Body, t.Cut = decoded, err != nil
}
