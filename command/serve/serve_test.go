// Tests of a whole Kvasir within this process. Those of the program stand in the directory above.

package serve

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvasir/config"
)

// TestServeLeavesNothing runs serve in this process: every goroutine is waited
// for. It runs alone, because the level of the log is one for all.
func TestServeLeavesNothing(t *testing.T) {
	// fasthttp's own, which end by themselves or live as long as the process.
	fasthttps := []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).workerFunc"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreCurrent(),
	}
	defer setLogLevel("trace")
	dir, err := os.MkdirTemp("", "kv") // t.TempDir is too long for a socket
	do(t, err)
	defer os.RemoveAll(dir)
	api := filepath.Join(dir, "api")
	builtIn, err := os.ReadFile("../../config.yaml")
	do(t, err)
	l := &config.Layers{BuiltIn: builtIn}
	for path, text := range map[string]string{
		"server.listen": "unix:" + api, "server.admin": "127.0.0.1:0", "server.drain.delay": "0s", "log.level": "error",
	} {
		l.Flags = append(l.Flags, config.FlagValue{Flag: "--set " + path, Path: path, Text: text})
	}
	signals := make(chan os.Signal, 2)
	ctx, ended := context.WithCancel(t.Context())
	var signalled sync.WaitGroup
	signalled.Go(func() {
		// Not before it serves: until its configuration is read it is ended by force
		// after less than a second, and a busy machine takes that long to start.
		for ctx.Err() == nil {
			conn, err := net.Dial("unix", api)
			if err == nil {
				_ = conn.Close()
				break
			}
			time.Sleep(time.Millisecond)
		}
		signals <- syscall.SIGHUP
		signals <- syscall.SIGTERM
	})
	if err := Run(l, "v0.0.1-test", signals); err != nil {
		t.Error(err)
	}
	ended()
	signalled.Wait()
	goleak.VerifyNone(t, fasthttps...)

	// A start that fails half way leaves nothing, either.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	do(t, err)
	defer ln.Close()
	l.Flags = append(l.Flags, config.FlagValue{Flag: "--admin", Path: "server.admin", Text: ln.Addr().String()})
	if err := Run(l, "v0.0.1-test", signals); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error is %v", err)
	}
	goleak.VerifyNone(t, fasthttps...)
}

// TestSecondServe: a second Kvasir beside one that has the address by default for operators serves
// without; one that was asked for such an address does not start, and says which key it is about.
func TestSecondServe(t *testing.T) {
	defer setLogLevel("trace")
	first, err := net.Listen("tcp", "127.0.0.1:0")
	do(t, err)
	defer first.Close()
	taken := first.Addr().String()
	builtIn := "server: {listen: 127.0.0.1:0, admin: " + taken + ", drain: {delay: 0s}}\nsimulate: [{name: s, events: false}]\ncache: {store: off}\ngpu: {mode: off}\nlog: {level: error}\n"
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if err := Run(&config.Layers{BuiltIn: []byte(builtIn)}, "v0.0.1-test", signals); err != nil {
		t.Errorf("it does not serve: %v", err)
	}
	for _, row := range [][3]string{{"--admin", "server.admin", "server.admin (--admin): cannot listen on"}, {"--listen", "server.listen", "server.listen (--listen): cannot listen on"}} {
		l := &config.Layers{BuiltIn: []byte(builtIn), Flags: []config.FlagValue{{Flag: "--admin", Path: "server.admin"}, {Flag: row[0], Path: row[1], Text: taken}}}
		if err := Run(l, "v0.0.1-test", make(chan os.Signal)); err == nil || !strings.HasPrefix(err.Error(), row[2]) {
			t.Errorf("%s: %v", row[0], err)
		}
	}
}
