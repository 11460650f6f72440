// Bombs: bodies that are small on the wire and large, or many, once they are read.

package e2e

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestHostileBombsTakeMemory: each is refused with what was wrong with it, memory stays, and others are answered.
func TestHostileBombsTakeMemory(t *testing.T) {
	t.Parallel()
	k := plainKvasir(t, "", "GOMEMLIMIT=460MiB")
	packed := func(w io.WriteCloser, out *bytes.Buffer) string {
		t.Helper()
		zeros := make([]byte, 1<<20)
		for range 300 {
			if _, err := w.Write(zeros); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	var gz, zl, raw, zs bytes.Buffer
	deflate, err := flate.NewWriter(&raw, 9)
	if err != nil {
		t.Fatal(err)
	}
	zstandard, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	gzipBomb := packed(gzip.NewWriter(&gz), &gz)
	const form = "Content-Type: multipart/form-data; boundary=x"
	bombs := map[string]struct {
		path, body string
		headers    []string
		statuses   []int
	}{
		"gzip":            {"/v1/chat/completions", gzipBomb, []string{"Content-Encoding: gzip"}, []int{413}},
		"deflate":         {"/v1/chat/completions", packed(zlib.NewWriter(&zl), &zl), []string{"Content-Encoding: deflate"}, []int{413}},
		"bare deflate":    {"/v1/chat/completions", packed(deflate, &raw), []string{"Content-Encoding: deflate"}, []int{400, 413}},
		"zstd":            {"/v1/chat/completions", packed(zstandard, &zs), []string{"Content-Encoding: zstd"}, []int{400, 413}},
		"br, cut":         {"/v1/chat/completions", "\x5b\xff\xff\x3f\x00", []string{"Content-Encoding: br"}, []int{400}},
		"gzip twice":      {"/v1/chat/completions", gzipBomb, []string{"Content-Encoding: gzip, gzip"}, []int{415}},
		"many parts":      {"/v1/audio/transcriptions", strings.Repeat("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n", 100_000) + "--x--\r\n", []string{form}, []int{400, 413}},
		"a long head":     {"/v1/audio/transcriptions", "--x\r\nContent-Disposition: form-data; name=\"" + strings.Repeat("a", 8<<20) + "\"\r\n\r\n1\r\n--x--\r\n", []string{form}, []int{400, 413}},
		"many lines":      {"/v1/audio/transcriptions", "--x\r\n" + strings.Repeat("X-A: b\r\n", 500_000) + "\r\n1\r\n--x--\r\n", []string{form}, []int{400, 413}},
		"deep brackets":   {"/v1/chat/completions", strings.Repeat("[", 1<<20), nil, []int{400}},
		"many members":    {"/v1/chat/completions", `{"model":"sim",` + strings.Repeat(`"a":1,`, 1<<20) + `"messages":[]}`, nil, []int{400}},
		"many messages":   {"/v1/chat/completions", `{"model":"sim","messages":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`, nil, []int{400, 413, 503}},
		"a long exponent": {"/v1/chat/completions", `{"model":"sim","max_tokens":1e` + strings.Repeat("9", 1<<20) + `,"messages":[]}`, nil, []int{400}},
	}
	var all sync.WaitGroup
	for range 4 {
		for name, bomb := range bombs {
			all.Go(func() {
				got, err := http1.Do(newPost(t, k.url+bomb.path, bomb.body, bomb.headers...))
				if err != nil {
					return // it was refused while it was sent
				}
				defer got.Body.Close()
				text, _ := io.ReadAll(got.Body)
				for _, status := range bomb.statuses {
					if got.StatusCode == status && bytes.Contains(text, []byte(`"error"`)) {
						return
					}
				}
				if got.StatusCode != http.StatusServiceUnavailable { // no memory left for bodies
					t.Errorf("%s: %d %.300s", name, got.StatusCode, text)
				}
			})
		}
	}
	wantAnswered(t, k)
	all.Wait()
	wantAnswered(t, k)
	if most := k.memory(t, "VmHWM"); most >= 460 {
		t.Errorf("it took %d MiB", most)
	}
}
