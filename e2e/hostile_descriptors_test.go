// Hostile descriptors: clients that take all connections there are.

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHostileIdleClientsTakeAllDescriptors: 400 idle connections under a limit of 256 left none for workers. 19 of 20
// requests failed then, and the worker was ejected for it.
func TestHostileIdleClientsTakeAllDescriptors(t *testing.T) {
	t.Parallel()
	k := fewFiles(t, 256)
	good := make([]net.Conn, 20)
	for i := range good {
		good[i] = k.idle(t)
		answered(t, good[i])
	}
	// They ask for little now and then: who lies idle for 10 s makes place, as slow as this machine may be.
	ask := func() {
		for _, c := range good {
			fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
			answered(t, c)
		}
	}
	for i := range 300 {
		k.idle(t)
		if i%50 == 0 {
			ask()
		}
	}
	eventually(t, patience, "accepting waits", func() bool {
		ask()
		return metric(t, k.admin+"/metrics", "kvasir_descriptor_shortages_total") > 0
	})
	if ready := get(t, k.admin+"/readyz"); ready.status != http.StatusOK || !strings.Contains(string(ready.body), "file descriptors run short") {
		t.Errorf("readyz says %d %s", ready.status, ready.body)
	}
	ask()
	for _, c := range good { // all at once: each needs a connection to the worker
		body := chat(false, 5)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Slow: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for i, c := range good {
		c.SetReadDeadline(time.Now().Add(patience))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if r.StatusCode != http.StatusOK {
			t.Errorf("client %d: %s", i, r.Status)
		}
	}
	if n := metric(t, k.admin+"/metrics", "kvasir_worker_errors_total"); n != 0 {
		t.Errorf("the worker is blamed %v times", n)
	}
}

// TestHostileIdleClientsShutOutNewOnes: who lies idle for long makes place.
func TestHostileIdleClientsShutOutNewOnes(t *testing.T) {
	t.Parallel()
	k := fewFiles(t, 256)
	for range 150 {
		k.idle(t)
	}
	wantAnswered(t, k)
}

// TestHostileKeptConnectionsLeaveNoneToDial: connections that lie idle to one worker left none to another.
func TestHostileKeptConnectionsLeaveNoneToDial(t *testing.T) {
	t.Parallel()
	k := fewFiles(t, 256)
	clients := make([]net.Conn, 80)
	for i := range clients {
		clients[i] = k.idle(t)
	}
	for round, model := range []string{"sim", "other", "third", "sim"} {
		for _, c := range clients {
			body := strings.Replace(chat(false, 5), `"sim"`, `"`+model+`"`, 1)
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Slow: 1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		for i, c := range clients {
			c.SetReadDeadline(time.Now().Add(patience))
			in := bufio.NewReader(c)
			for range 2 - min(round, 1) { // the first time, what idle asked for comes first
				r, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatalf("client %d: %v", i, err)
				}
				if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
					t.Fatalf("client %d, %s: %s %s", i, model, r.Status, text)
				}
			}
		}
	}
}

// TestTooFewFiles: what cannot serve says so.
func TestTooFewFiles(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("/bin/sh", "-c", `ulimit -n 100 && exec "$0" serve --set server.listen=127.0.0.1:0 --set server.admin=`, binary(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot serve with 100 open files: raise the limit to 256 at least") {
		t.Errorf("%v\n%s", err, out)
	}
}

// fewFiles is a Kvasir that may open so many files, with workers that answer slowly on request.
func fewFiles(t *testing.T, files int) *kvasir {
	t.Helper()
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			time.Sleep(200 * time.Millisecond) // so that the requests are there together
		}
		rogue(w, r)
	}))
	t.Cleanup(w.Close)
	dir := t.TempDir()
	config, wrapper := filepath.Join(dir, "kvasir.yaml"), filepath.Join(dir, "few.sh")
	listen, admin := freeAddress(t), freeAddress(t)
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(config, "cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\n"+
		"models: [{name: sim, tokenizer: none, reasoning: none}]\nworkers:\n- {name: a, url: "+w.URL+", engine: openai}\n"+
		"- {name: b, url: "+w.URL+", engine: openai, models: [other]}\n- {name: c, url: "+w.URL+", engine: openai, models: [third]}\n", 0o600)
	write(wrapper, fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec %q \"$@\"\n", files, binary(t)), 0o700)
	k := &kvasir{
		process: spawn(t, []string{"KVASIR_SERVER_LISTEN=" + listen, "KVASIR_SERVER_ADMIN=" + admin}, "/bin/sh", wrapper, "serve", "--config", config),
		url:     "http://" + listen, admin: "http://" + admin, file: config,
	}
	eventually(t, patience, "kvasir serves", func() bool { return answers(k.url + "/v1/models/sim") })
	return k
}

// idle is a client that asks for little once, and then keeps its connection; one that is not accepted waits.
func (k *kvasir) idle(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(k.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	return c
}

// answered reads one reply, which need not be a good one.
func answered(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, r.Body)
}
