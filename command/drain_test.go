// Tests of `kvasir drain` and of the page at a whole Kvasir.

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// askDrain runs the command and gives its one line, from wherever it stands.
func askDrain(t *testing.T, wantCode int, want string, args ...string) {
	t.Helper()
	cmd := command(t, nil, append([]string{"drain"}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != wantCode || !regexp.MustCompile("^(?:"+want+")\n$").Match(out) {
		t.Errorf("drain %v: %d %q, want %d %q", args, code, out, wantCode, want)
	}
}

// TestDrainCommand: with the admin listener's key, a worker is taken out and put back; it stays out
// over a reload, /readyz and the metrics say so, and a name that is mistyped is recognised.
func TestDrainCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := filepath.Join(dir, "admin.key")
	do(t, os.WriteFile(key, []byte("sk-admin\n"), 0o600))
	p := run(t, nil, append(anywhere, "--set", "server.admin_key_file="+key)...)
	asked := func(path, secret string) (int, string) {
		method := http.MethodGet
		if path == "/reload" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, p.admin+path, nil)
		do(t, err)
		req.Header.Set("X-Kvasir-Admin", "1")
		if secret != "" {
			req.Header.Set("Authorization", "Bearer "+secret)
		}
		resp, err := plainClient.Do(req)
		do(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		do(t, err)
		return resp.StatusCode, string(body)
	}
	p.until("the workers to be up", func() bool {
		_, body := asked("/readyz", "sk-admin")
		return strings.Contains(body, `"status":"ready"`)
	})
	admin := "--admin=" + p.admin
	askDrain(t, 1, `kvasir: The admin listener requires its key: .*`, "decode-0", admin)
	askDrain(t, 1, `kvasir: there is no worker "decode-O", did you mean "decode-0"\?`, "decode-O", admin, "--key-file", key)
	askDrain(t, 0, `decode-0 gets nothing new until --undo, or until this Kvasir is started anew; 0 requests under way there`, "decode-0", admin, "--key-file", key)
	if code, body := asked("/reload", "sk-admin"); code != 200 {
		t.Errorf("reload: %d %s", code, body)
	}
	if _, body := asked("/readyz", "sk-admin"); !strings.Contains(body, `worker \"decode-0\" is draining`) {
		t.Errorf("/readyz says %s", body)
	}
	if code, body := asked("/metrics", "sk-admin"); code != 200 || !strings.Contains(body, `kvasir_worker_up{role="decode",state="draining",worker="decode-0"} 0`) {
		t.Errorf("/metrics: %d, without the state", code)
	}
	p.until("the log to say so", func() bool { return strings.Contains(p.log.String(), "worker is drained") })
	askDrain(t, 0, `decode-0 gets requests again`, "decode-0", admin, "--key-file", key, "--undo")
	if _, body := asked("/readyz", ""); strings.Contains(body, "reasons") || !strings.Contains(body, `"status":"ready"`) {
		t.Errorf("/readyz tells a stranger %s", body)
	}

	explain := command(t, nil, "explain", "--admin", address(p.admin), "--set", "server.admin_key_file="+key)
	explain.Stdin = strings.NewReader(`{"model":"auto","messages":[{"role":"user","content":"hi"}]}`)
	if out, err := explain.CombinedOutput(); err != nil || !strings.Contains(string(out), "decode-0") || strings.Contains(string(out), "401") {
		t.Errorf("kvasir explain with the key: %v, %s", err, out)
	}

	// The key is read again with the file; the configuration in force does not show it.
	do(t, os.WriteFile(key, []byte("sk-other\n"), 0o600))
	p.until("the new key to be taken", func() bool { code, _ := asked("/api/config", "sk-other"); return code == 200 })
	if code, _ := asked("/api/config", "sk-admin"); code != 401 {
		t.Errorf("the old key gets %d", code)
	}
	var shown struct {
		Values []struct {
			Key, From, At string
			Value         any
			Secret        bool
		}
		Reloads []struct{ Taken bool }
	}
	p.until("both reloads to be told", func() bool {
		_, body := asked("/api/config", "sk-other")
		do(t, json.Unmarshal([]byte(body), &shown))
		if strings.Contains(body, "admin.key") {
			t.Errorf("the configuration is %s", body)
		}
		return len(shown.Reloads) >= 2
	})
	for _, v := range shown.Values {
		if v.Key == "keys" && (fmt.Sprint(v.Value) != "[]" || v.From != "default") {
			t.Errorf("without keys they are shown as %+v", v)
		}
		if v.Key == "server.admin_key_file" && (v.Value != "hidden" || !v.Secret || v.From != "flag" || v.At != "--set server.admin_key_file") {
			t.Errorf("the key's file is shown as %+v", v)
		}
	}
}

// TestDrainWaits: with --wait the command ends when nothing is under way at the worker: with 0, with 3 when there still
// is something in the end, with 1 when it was put back meanwhile.
func TestDrainWaits(t *testing.T) {
	t.Parallel()
	p := run(t, nil, append(anywhere, "--set", "simulate=[{name: only}]", "--set", "server.drain.timeout=1s")...)
	ready := func() bool {
		code, body := get(plainClient, p.admin+"/readyz")
		return code == 200 && strings.Contains(body, `"status":"ready"`)
	}
	p.until("the worker to be up", ready)
	admin := "--admin=" + p.admin
	stream := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.api+"/v1/chat/completions", strings.NewReader(`{"model":"auto","stream":true,"ignore_eos":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`))
		do(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := plainClient.Do(req)
		do(t, err)
		t.Cleanup(func() { cancel(); resp.Body.Close() })
		return cancel
	}
	end := stream()
	askDrain(t, 3, `only gets nothing new until --undo, or until this Kvasir is started anew; 1 request under way there
kvasir: after 1ms still 1 request under way at "only"; it stays drained`, "only", admin, "--wait", "--timeout", "1ms")

	ended := make(chan string, 1)
	wait := command(t, nil, "drain", "only", admin, "--wait")
	out, err := wait.StdoutPipe()
	do(t, err)
	do(t, wait.Start())
	lines := bufio.NewScanner(out)
	lines.Scan() // it waits now
	go func() { lines.Scan(); ended <- lines.Text() }()
	end()
	if got := <-ended; got != "nothing is under way there any more" {
		t.Errorf("it ends with %q", got)
	}
	do(t, wait.Wait())
	askDrain(t, 0, `only gets nothing new until --undo, or until this Kvasir is started anew; 0 requests under way there`, "only", admin, "--wait")

	askDrain(t, 0, `only gets requests again`, "only", admin, "--undo")
	p.until("it to take requests", ready)
	stream()
	var said bytes.Buffer
	wait = command(t, nil, "drain", "only", admin, "--wait")
	wait.Stderr = &said
	out, err = wait.StdoutPipe()
	do(t, err)
	do(t, wait.Start())
	lines = bufio.NewScanner(out)
	lines.Scan()
	askDrain(t, 0, `only gets requests again`, "only", admin, "--undo")
	if err := wait.Wait(); wait.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "put \"only\" back meanwhile") {
		t.Errorf("put back meanwhile: %v %s", err, said.String())
	}
	askDrain(t, 2, `kvasir: --wait and --undo cannot both be meant
.*`, "only", admin, "--wait", "--undo")
}
