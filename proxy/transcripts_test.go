// Transcripts: the recorded bytes of real engines as test rows.
package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"kvasir/openai"
)

// A transcript is one recorded exchange.
type transcript struct {
	name     string      // "vllm/chat_stream"
	kind     openai.Kind // of the route that was asked
	response []byte      // exact bytes
	head     int         // of them, blank line included
	body     []byte      // decoded, as far as it came
	cut      bool        // the body has no right end
}

// readTranscripts returns every exchange that has a reply. The body is decoded
// by net/http, not by what is being tested.
func readTranscripts(tb testing.TB) []transcript {
	tb.Helper()
	var all []transcript
	for _, dir := range []string{"vllm", "vllm/pd", "sglang"} {
		files, err := filepath.Glob(filepath.Join("..", "testdata", "transcripts", dir, "*.response"))
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
			t := transcript{name: dir + "/" + strings.TrimSuffix(filepath.Base(file), ".response"), response: response}
			t.kind = kindOf(strings.Fields(string(request[:bytes.IndexByte(request, '\r')]))[1])
			t.decode(tb)
			all = append(all, t)
		}
	}
	return all
}

func kindOf(path string) openai.Kind {
	for _, r := range openai.Routes {
		if r.Path == path {
			return r.Kind
		}
	}
	return openai.KindOpaque
}

func (t *transcript) decode(tb testing.TB) {
	head, body, ok := bytes.Cut(t.response, []byte("\r\n\r\n"))
	if !ok {
		tb.Fatalf("%s has no head", t.name)
	}
	t.head = len(head) + 4
	if !bytes.Contains(head, []byte("transfer-encoding: chunked")) {
		t.body = body
		return
	}
	decoded, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(body)))
	if err != nil && err != io.ErrUnexpectedEOF {
		tb.Fatalf("%s: %v", t.name, err)
	}
	t.body, t.cut = decoded, err != nil
}

// events are the events of a streamed body, none of a body that is no stream.
func (t transcript) events() []string {
	if !bytes.Contains(t.response[:t.head], []byte("text/event-stream")) {
		return nil
	}
	events := strings.SplitAfter(string(t.body), "\n\n")
	return events[:len(events)-1]
}

func findTranscript(tb testing.TB, name string) transcript {
	tb.Helper()
	for _, t := range readTranscripts(tb) {
		if t.name == name {
			return t
		}
	}
	tb.Fatalf("no transcript %s", name)
	return transcript{}
}

func TestTranscriptsAreWhole(t *testing.T) {
	all := readTranscripts(t)
	var cut []string
	for _, tr := range all {
		if tr.cut {
			cut = append(cut, tr.name)
		}
		resp, err := http.ReadResponse(newReader(tr.response), nil)
		if err != nil {
			t.Fatalf("%s: %v", tr.name, err)
		}
		if n := resp.Header.Get("Content-Length"); n != "" && n != strconv.Itoa(len(tr.body)) {
			t.Errorf("%s: Content-Length %s, body of %d bytes", tr.name, n, len(tr.body))
		}
	}
	if strings.Join(cut, " ") != "vllm/pd/sigterm_stream" {
		t.Errorf("cut transcripts: %q", cut)
	}
}
