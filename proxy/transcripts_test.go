// Transcripts: the recorded bytes of real engines as test rows.

package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"kvasir/openai/answer/answertest"
)

func TestTranscriptsAreWhole(t *testing.T) {
	all := answertest.Transcripts(t)
	var cut []string
	for _, tr := range all {
		if tr.Cut {
			cut = append(cut, tr.Name)
		}
		resp, err := http.ReadResponse(newReader(tr.Response), nil)
		if err != nil {
			t.Fatalf("%s: %v", tr.Name, err)
		}
		if n := resp.Header.Get("Content-Length"); n != "" && n != strconv.Itoa(len(tr.Body)) {
			t.Errorf("%s: Content-Length %s, body of %d bytes", tr.Name, n, len(tr.Body))
		}
	}
	if strings.Join(cut, " ") != "vllm/pd/sigterm_stream" {
		t.Errorf("cut transcripts: %q", cut)
	}
}
