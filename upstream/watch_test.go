// Probes of workers that hang up, and of those that answer nonsense.

package upstream

import (
	"context"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"testing"
)

// rawWorker answers every connection with the same bytes after the request's
// first ones, and closes it.
func rawWorker(t *testing.T, reply string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4<<10))
			_, _ = io.WriteString(c, reply)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return "http://" + ln.Addr().String()
}

// A worker that closed the connection of a probe without a byte ended the
// whole process: the end of the connection was taken for the end of a body.
func TestProbeOfWorkersThatFail(t *testing.T) {
	for _, tc := range []struct{ name, reply, problem string }{
		{"hangs up", "", "cannot ask /health: EOF"},
		{"hangs up in the head", "HTTP/1.1 200 OK\r\nContent-", "cannot ask /health: EOF"},
		{"hangs up behind the head", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "cannot ask /health: the reply was cut before its end"},
		{"hangs up in the body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cannot ask /health: the reply was cut before its end"},
		{"speaks no HTTP", "SSH-2.0-OpenSSH\r\n", "cannot ask /health: "},
		{"is ill", "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "/health answers 500"},
		{"lists no models", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "cannot read /v1/models: "},
		{"ends its body by closing", "HTTP/1.1 200 OK\r\n\r\n{}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := Check(context.Background(), []Settings{{Name: "w", URL: rawWorker(t, tc.reply), Models: []string{"m"}}}, testTimeouts)[0].Err
			if (err == nil) != (tc.problem == "") || err != nil && !strings.HasPrefix(err.Error(), tc.problem) {
				t.Errorf("asking it gives %v, want %q", err, tc.problem)
			}
		})
	}
}

// A bug in what reads a probe's answer is told as a failed probe.
func TestWatchSurvivesABug(t *testing.T) {
	var told, stack string
	h := &Hooks{Bug: func(fault any, what string) { told, stack = what, string(debug.Stack()) }}
	if err := (&watch{w: &Worker{}, h: h}).askGuarded(context.Background()); err == nil { // it has no connections
		t.Error("no error")
	}
	if told != "a probe" || !strings.Contains(stack, "askGuarded") {
		t.Errorf("told is a bug in %q at %s", told, stack)
	}
}
