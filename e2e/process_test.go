// Programs under test: started on free ports, ready by condition, stopped with SIGTERM.

package e2e

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvasir/logtest"
)

// patience bounds every wait for something that comes at once on an idle machine.
const patience = 45 * time.Second

// A process is one program that a test has started. It is stopped when the test ends.
type process struct {
	cmd     *exec.Cmd
	output  logtest.Buffer // stdout and stderr together
	exited  chan struct{}  // closed when the process is gone; then state is set
	state   *os.ProcessState
	mayFail bool // a test kills it: its exit code says nothing
}

// binary is the kvasir under test.
func binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv("KVASIR_BIN")
	if path == "" {
		path = "../bin/kvasir"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no binary to test (make build): %v", err)
	}
	return path
}

// spawn starts a program with some more environment. When the test ends it must stop on SIGTERM
// with exit code 0.
func spawn(t testing.TB, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	// What somebody set for a Kvasir of their own, or for these tests, is not for this one.
	p.cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KVASIR_") }), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("cannot start %q: %v", path, err)
	}
	go p.wait()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("output of %s %v:\n%s", filepath.Base(path), args, tail(p.output.String(), 6000))
		}
	})
	return p
}

func (p *process) wait() {
	// The exit code is what is asked of state; the error adds nothing.
	_ = p.cmd.Wait()
	p.state = p.cmd.ProcessState
	close(p.exited)
}

// stop ends the process with SIGTERM and wants exit code 0. Stopping it again does nothing.
func (p *process) stop(t testing.TB) {
	t.Helper()
	select {
	case <-p.exited:
		if p.state.ExitCode() != 0 && !p.mayFail {
			t.Errorf("%s %v ended with %v", filepath.Base(p.cmd.Path), p.cmd.Args[1:], p.state)
		}
		return
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("cannot stop %q: %v", p.cmd.Path, err)
	}
	select {
	case <-p.exited:
		if p.state.ExitCode() != 0 && !p.mayFail {
			t.Errorf("%s %v: after SIGTERM %v, want exit code 0", filepath.Base(p.cmd.Path), p.cmd.Args[1:], p.state)
		}
	case <-time.After(patience):
		t.Errorf("%s %v did not stop within %v", filepath.Base(p.cmd.Path), p.cmd.Args[1:], patience)
		if err := p.cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-p.exited
	}
}

// command runs a program and gives its output; stderr is shown when it fails.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, tail(string(out), 3000), tail(stderr.String(), 3000))
	}
	return strings.TrimSpace(string(out))
}

// eventually waits until the condition holds, and fails the test when it does not within limit.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

var handedOut sync.Map // ports given to some test of this run

// freeAddress returns 127.0.0.1:PORT with nobody on it. The port lies below the range from which
// the system takes the ports of outgoing connections, so that none of those can sit on it.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(18000)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no free port")
	return ""
}

// tail is the last n bytes of s.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "..." + s[len(s)-n:]
}
