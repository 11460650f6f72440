// Tests of what a service manager hears, on a socket as systemd's.

package serve

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"kvasir/config"
)

// TestServiceManager: ready when it serves and not before, reloading at a reload, good or not, and stopping with the
// time that its streams may take.
func TestServiceManager(t *testing.T) {
	dir, err := os.MkdirTemp("", "kv") // t.TempDir is too long for a socket
	do(t, err)
	defer os.RemoveAll(dir)
	defer setLogLevel("trace")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	do(t, err)
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "notify"))
	hears := func(want string) {
		t.Helper()
		do(t, manager.SetReadDeadline(time.Now().Add(30*time.Second)))
		message := make([]byte, 256)
		n, err := manager.Read(message)
		do(t, err)
		if got := string(message[:n]); got != want {
			t.Fatalf("it hears %q, want %q", got, want)
		}
	}
	r := &running{t: t, dir: dir, api: onSocket(filepath.Join(dir, "api")), admin: onSocket(filepath.Join(dir, "admin"))}
	defer r.api.CloseIdleConnections()
	defer r.admin.CloseIdleConnections()
	r.configure("simulate: [{}]\n")
	signals, ended := make(chan os.Signal, 2), make(chan error, 1)
	go func() {
		ended <- Run(&config.Layers{File: filepath.Join(dir, "kvasir.yaml")}, "v0.0.1-test", signals)
	}()
	hears("READY=1")
	if status, _, body := r.ask(""); status != 200 {
		t.Errorf("it says that it is ready, and answers %d: %s", status, body)
	}

	signals <- syscall.SIGHUP
	hears("RELOADING=1")
	hears("READY=1")
	write(t, filepath.Join(dir, "next"), "no: key\n")
	do(t, os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "kvasir.yaml"))) // seen by itself
	hears("RELOADING=1")
	hears("READY=1")

	signals <- syscall.SIGTERM
	hears("STOPPING=1\nEXTEND_TIMEOUT_USEC=61900000") // server.drain: 0 s and 60 s; endsWithin, and a second
	do(t, <-ended)
}

// TestServiceManagerIsGone: it is told of, and nothing waits for it.
func TestServiceManagerIsGone(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	n := notifier{zerolog.New(&said), filepath.Join(t.TempDir(), "nobody")}
	n.ready()
	if !strings.Contains(said.String(), "cannot tell the service manager") || !strings.Contains(said.String(), "READY=1") {
		t.Errorf("the log is %q", said.String())
	}
	said.Reset()
	n.socket = ""
	n.ready()
	n.stopping(time.Second)
	if said.Len() > 0 {
		t.Errorf("without a manager it says %q", said.String())
	}
}
