// Tests of `kvasir health`.

package command

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"kvasir/config/certtest"
)

// askHealth runs the command and gives its one line, from wherever it stands.
func askHealth(t *testing.T, args ...string) (line string, code int) {
	t.Helper()
	cmd := command(t, nil, append([]string{"health"}, args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	line, code = stdout.String()+stderr.String(), cmd.ProcessState.ExitCode()
	if strings.Count(line, "\n") != 1 || (stdout.Len() > 0) != (code == 0) {
		t.Errorf("health %v: stdout %q, stderr %q, exit code %d", args, stdout.String(), stderr.String(), code)
	}
	return line, code
}

func wantHealth(t *testing.T, wantCode int, want string, args ...string) {
	t.Helper()
	if line, code := askHealth(t, args...); code != wantCode || !regexp.MustCompile("^(?:"+want+")\n$").MatchString(line) {
		t.Errorf("health %v: %d %q, want %d %q", args, code, line, wantCode, want)
	}
}

func address(url string) string { return url[strings.Index(url, "://")+3:] }

func TestHealth(t *testing.T) {
	t.Parallel()
	// One simulated worker and one that is down, so that it is up and not all well.
	p := run(t, nil, append(anywhere, "--set", "workers=[{name: down, url: 'http://127.0.0.1:1'}]", "--set", "server.drain.delay=1m")...)
	api, admin := "--listen="+address(p.api), "--admin="+address(p.admin)
	p.until("a worker to be up", func() bool { code, _ := get(plainClient, p.admin+"/readyz"); return code == 200 })
	p.until("the other one to be down", func() bool {
		_, body := get(plainClient, p.admin+"/readyz")
		return strings.Contains(body, "degraded")
	})

	wantHealth(t, 0, `alive at server\.admin "127\.0\.0\.1:\d+"`, admin)
	wantHealth(t, 0, `degraded; .*down.* at server\.admin "127\.0\.0\.1:\d+"`, admin, "--ready")
	wantHealth(t, 0, `alive at server\.listen "127\.0\.0\.1:\d+"`, api, "--admin=")
	wantHealth(t, 0, `degraded; .* at server\.listen "127\.0\.0\.1:\d+"`, api, "--admin=", "--ready")
	wantHealth(t, 0, `alive at server\.admin "0\.0\.0\.0:\d+"`, strings.Replace(admin, "127.0.0.1", "0.0.0.0", 1))

	// What drains is there, and wants no more requests.
	p.signal(syscall.SIGTERM)
	p.until("503 while draining", func() bool { code, _ := get(plainClient, p.admin+"/readyz"); return code == 503 })
	wantHealth(t, 0, `alive at .*`, admin)
	wantHealth(t, 1, `kvasir: shutting down; .* at server\.admin "127\.0\.0\.1:\d+"`, admin, "--ready")
}

// No file beside the configuration is read, and what is wrong in it does not
// make a Kvasir ill that runs with what it had before.
func TestHealthOfBadFiles(t *testing.T) {
	t.Parallel()
	p := run(t, nil, anywhere...)
	file := filepath.Join(t.TempDir(), "kvasir.yaml")
	write(t, file, "server: {admin: '"+address(p.admin)+"'}\nkeys: [{name: a, key_file: nowhere}]\nrouting: {policy: best}\n")
	wantHealth(t, 0, `alive at .*`, "--config", file)
	p.until("it is ready", func() bool { code, _ := get(plainClient, p.admin+"/readyz"); return code == 200 })
	// Another address waits for a restart: until then it is somewhere else.
	write(t, file, "server: {admin: '127.0.0.1:1'}\n")
	wantHealth(t, 0, `alive at server\.listen .*`, "--config", file, "--listen", address(p.api))
	wantHealth(t, 0, `ready at server\.listen .*`, "--config", file, "--listen", address(p.api), "--ready")
	wantHealth(t, 1, `kvasir: no Kvasir answers at server\.admin .*: connection refused`, "--config", file, "--listen", "127.0.0.1:1")
	wantHealth(t, 1, `kvasir: nowhere\.yaml: cannot read the configuration: no such file or directory`, "--config", "nowhere.yaml")
}

func TestHealthByTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certtest.Write(t, filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem"), "elsewhere", nil)
	file := filepath.Join(dir, "kvasir.yaml")
	const files = "simulate: [{name: s}]\nserver: {admin: '', listen: '127.0.0.1:0', tls: {cert: c.pem, key: k.pem"
	write(t, file, files+"}}\n")
	p := run(t, nil, "--config", file)
	wantHealth(t, 0, `alive at server\.listen "127\.0\.0\.1:\d+"`, "--config", file, "--listen", address(p.api))

	write(t, file, files+", client_ca: c.pem}}\n")
	q := run(t, nil, "--config", file)
	wantHealth(t, 0, `alive at server\.listen "127\.0\.0\.1:\d+", by its TLS handshake`, "--config", file, "--listen", address(q.api))
	wantHealth(t, 1, `kvasir: cannot ask server\.listen .* wants a certificate of its clients; switch server\.admin on`,
		"--config", file, "--listen", address(q.api), "--ready")
	// Where nobody listens: the port of one that has ended may be another test's.
	wantHealth(t, 1, `kvasir: no Kvasir answers at server\.listen .*: connection refused`, "--config", file, "--listen", "127.0.0.1:1")
}

func TestHealthByUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kv") // t.TempDir is too long for a socket
	do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	api, admin := "--listen=unix:"+filepath.Join(dir, "api"), "--admin=unix:"+filepath.Join(dir, "admin")
	run(t, nil, api, admin)
	wantHealth(t, 0, `alive at server\.admin "unix:.*/admin"`, admin)
	wantHealth(t, 0, `alive at server\.listen "unix:.*/api"`, api, "--admin=")
	wantHealth(t, 1, `kvasir: no Kvasir answers at server\.admin "unix:.*/none": no such file or directory`, "--admin=unix:"+filepath.Join(dir, "none"), "--listen=unix:"+filepath.Join(dir, "nobody"))
}

// Others may have the port.
func TestHealthOfStrangers(t *testing.T) {
	t.Parallel()
	serve := func(handle http.HandlerFunc) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		do(t, err)
		s := &http.Server{Handler: handle}
		go func() { _ = s.Serve(ln) }()
		t.Cleanup(func() { s.Close() })
		return "--admin=" + ln.Addr().String()
	}
	stranger := serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	wantHealth(t, 1, `kvasir: what answers at server\.admin .* is not Kvasir: it says 200 for /livez`, stranger)
	wantHealth(t, 1, `kvasir: what answers at server\.admin .* is not Kvasir: it says 200 for /readyz`, stranger, "--ready")
	silent := serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	wantHealth(t, 1, `kvasir: no Kvasir answers at server\.admin .* within 3s`, silent)
}
