// Hostile bodies: what is announced, what comes, and what never comes.

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHostileAnnouncedBodiesTakeMemory: a Content-Length was believed before a byte of the body came; 400 heads of 90
// bytes took 5 GiB and kept them for minutes.
func TestHostileAnnouncedBodiesTakeMemory(t *testing.T) {
	t.Parallel()
	k := plainKvasir(t, "")
	before := k.memory(t, "VmRSS")
	for _, path := range []string{"/v1/chat/completions", "/v1/nothing"} {
		for range 100 {
			k.liar(t, k.url, path, 32<<20, 5000)
		}
	}
	for range 50 {
		k.liar(t, k.admin, "/explain", 4<<20, 5000)
	}
	eventually(t, patience, "the liars are read from", func() bool {
		return metric(t, k.admin+"/metrics", "kvasir_body_bytes") >= 250*8<<10
	})
	if grown := k.memory(t, "VmHWM") - before; grown > 100 {
		t.Errorf("250 liars cost %d MiB", grown)
	}
	wantAnswered(t, k)
}

// TestHostileStalledBodiesShutOutOthers: bodies that come in large parts and then stall fill the budget; ordinary
// prompts are answered all the same, larger ones told to come again.
func TestHostileStalledBodiesShutOutOthers(t *testing.T) {
	t.Parallel()
	k := plainKvasir(t, "server: {max_body: 4MiB, body_memory: 12MiB}\n")
	for range 20 {
		k.liar(t, k.url, "/v1/chat/completions", 4<<20, 1<<20)
	}
	eventually(t, patience, "some are refused", func() bool { return metric(t, k.admin+"/metrics", "kvasir_bodies_refused_total") > 5 })
	if held := metric(t, k.admin+"/metrics", "kvasir_body_bytes"); held > 9<<20 {
		t.Errorf("%.0f bytes are held, more than large bodies may have", held)
	}
	wantAnswered(t, k)
	got := post(t, k.url+"/v1/chat/completions", strings.Repeat(" ", 900<<10)+chat(false, 5))
	wantError(t, got, http.StatusServiceUnavailable)
	if got.header.Get("Retry-After") == "" || !bytes.Contains(got.body, []byte("server.body_memory")) {
		t.Errorf("got %v %s", got.header, got.body)
	}
}

// plainKvasir is a Kvasir with one worker that answers at once, without classifiers, cache and telemetry.
func plainKvasir(t *testing.T, more string, env ...string) *kvasir {
	t.Helper()
	w := httptest.NewServer(http.HandlerFunc(rogue))
	t.Cleanup(w.Close)
	config := "cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\n" +
		"models: [{name: sim, tokenizer: none, reasoning: none}]\nworkers: [{name: a, url: " + w.URL + ", engine: openai}]\n" + more
	return serveIn(t, env, config, "sim")
}

// liar announces a body of announced bytes, and sends only some of them.
func (k *kvasir) liar(t *testing.T, url, path string, announced, sent int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetWriteDeadline(time.Now().Add(patience))
	// One that is refused is closed while it still sends.
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, announced)
	_, _ = io.WriteString(c, strings.Repeat("x", sent))
	return c
}

// wantAnswered asks an ordinary question.
func wantAnswered(t *testing.T, k *kvasir) {
	t.Helper()
	if got := post(t, k.url+"/v1/chat/completions", chat(false, 5)); got.status != http.StatusOK || got.end != nil {
		t.Errorf("an ordinary question gets %d %s %v", got.status, got.body, got.end)
	}
}

// memory is a line of the process's status in MiB: VmRSS, or VmHWM for the most it ever was.
func (k *kvasir) memory(t *testing.T, line string) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", k.cmd.Process.Pid))
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n >> 10
		}
	}
	t.Fatalf("no %s in %s", line, b)
	return 0
}
