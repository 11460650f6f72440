//go:build linux

// Tests of the parts that the results depend on: parsers, quantiles, the worker and its client.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	samples := []int{5, 1, 4, 2, 3}
	for q, want := range map[float64]int{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(slices.Clone(samples), q); got != want {
			t.Errorf("quantile %v of %v: %d, want %d", q, samples, got, want)
		}
	}
	if got := quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("quantile of nothing: %d", got)
	}
	if median(samples); samples[0] != 5 {
		t.Error("median reordered its samples")
	}
	if got := ratios([]float64{2, 9}, []float64{4, 3}); got[0] != 0.5 || got[1] != 3 {
		t.Errorf("ratios: %v", got)
	}
}

func TestParseLoad(t *testing.T) {
	l, err := parseLoad("Running 1s test\nBENCH 1000 2000000 1500000 0 250 900\n")
	if err != nil || l.perSec != 500 || l.bytes != 1500000 || l.p50 != 250*time.Microsecond || l.p99 != 900*time.Microsecond {
		t.Errorf("good line: %+v, %v", l, err)
	}
	for name, out := range map[string]string{
		"one failed":  "BENCH 1000 2000000 1500000 1 250 900",
		"no requests": "BENCH 0 2000000 0 0 0 0",
		"short":       "BENCH 1000 2000000",
		"no line":     "unable to connect",
	} {
		if l, err := parseLoad(out); err == nil {
			t.Errorf("%s: read as %+v", name, l)
		}
	}
}

func TestParseRSS(t *testing.T) {
	if n, err := parseRSS("Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n"); err != nil || n != 2<<20 {
		t.Errorf("got %d, %v", n, err)
	}
	for _, bad := range []string{"", "VmRSS:\n", "VmRSS: 12 MB\n", "VmRSS: x kB\n"} {
		if n, err := parseRSS(bad); err == nil {
			t.Errorf("%q read as %d", bad, n)
		}
	}
	if n, err := treeRSS(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("own memory: %d, %v", n, err)
	}
	if d, err := parseCPU("7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 150 25 3 4 20 0 1 0 9\n"); err != nil || d != 1750*time.Millisecond {
		t.Errorf("processor time is %v, %v", d, err)
	}
	for _, bad := range []string{"", "7 (a) S 1 2", "7 (a) S 1 7 7 0 -1 4194560 9 0 0 0 x 25 3 4"} {
		if d, err := parseCPU(bad); err == nil {
			t.Errorf("%q: got %v", bad, d)
		}
	}
}

func TestNoise(t *testing.T) {
	u, err := parseUsage("cpu  100 0 50 800 7 1 2 30 0 0\ncpu0 1\n")
	if err != nil || u.all != 153*jiffy || u.stole != 30*jiffy {
		t.Errorf("got %+v, %v", u, err)
	}
	if _, err := parseUsage("cpu 1 2\n"); err == nil {
		t.Error("a short line was read")
	}
	from := usage{at: time.Unix(0, 0)}
	to := usage{at: time.Unix(10, 0), all: 8 * time.Second, own: 6 * time.Second, stole: time.Second}
	if got := noise(from, to, 2); !strings.Contains(got, "others used 10 %") || !strings.Contains(got, "took 5 %") || !strings.Contains(got, "busy machine") {
		t.Error(got)
	}
	to.all, to.stole = to.own, 0
	if got := noise(from, to, 2); strings.Contains(got, "busy machine") {
		t.Error(got)
	}
}

func TestTexts(t *testing.T) {
	if n := len(chat2K()); n != 2048 || !json.Valid([]byte(chat2K())) {
		t.Errorf("chat2K: %d bytes, or no JSON", n)
	}
	if n := len(completion); n < 1000 || n > 1300 || !json.Valid([]byte(completion)) {
		t.Errorf("completion: %d bytes, or no JSON", n)
	}
	// nginx returns it from a string in '...', where a dollar begins a variable.
	if strings.ContainsAny(completion+modelList(), `'$`) {
		t.Error("nginx cannot say this")
	}
}

func TestChoose(t *testing.T) {
	chosen, err := choose([]string{"start", "stream"})
	if err != nil || len(chosen) != 2 || chosen[0].name != "stream" {
		t.Errorf("got %v, %v", chosen, err)
	}
	if _, err := choose([]string{"speed"}); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("unknown name: %v", err)
	}
}

func TestMissingToolIsNamed(t *testing.T) {
	t.Setenv("PATH", "")
	err := run([]string{"-under", "nginx", "-dir", t.TempDir(), "start"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "apt-get install") || !strings.Contains(err.Error(), "wrk") {
		t.Errorf("got %v", err)
	}
}

func TestReport(t *testing.T) {
	r := &report{machine: "a machine.", subject: "kvasir", noise: "Quiet."}
	r.judge(verdict{"speed", "2 x", ">= 1 x", true})
	r.judge(verdict{"memory", "a|b", "flat", false})
	r.missing("peer", ">= 1", errors.New("left out"))
	r.add(table{title: "More", head: []string{"way", "p50"}, rows: [][]string{{"direct", "1 us"}}, notes: []string{"So."}})
	const want = `# Measured: kvasir

a machine.
Quiet.

| what | kvasir | at least | holds |
|---|---|---|---|
| speed | 2 x | >= 1 x | yes |
| memory | a\|b | flat | **no** |
| peer | not measured: left out | >= 1 | **?** |

## More

| way | p50 |
|---|---|
| direct | 1 us |

So.
`
	if got := r.markdown(); got != want {
		t.Errorf("got:\n%s", got)
	}
	if r.missed() != 2 {
		t.Errorf("%d missed", r.missed())
	}
}

func TestInspect(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	if size, _, err := inspect(self); err != nil || size != info.Size() {
		t.Errorf("got %d bytes, %v; want %d", size, err, info.Size())
	}
	if _, static, err := inspect("/bin/sh"); err != nil || static {
		t.Errorf("a shell with a dynamic linker: static %v, %v", static, err)
	}
}

func startTestWorker(t *testing.T) *worker {
	t.Helper()
	w, err := listenWorker("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.listener.Close() })
	go w.serve()
	return w
}

func TestWorkerPlain(t *testing.T) {
	address := startTestWorker(t).listener.Addr().String()
	if status, text, err := post(address, chat2K()); err != nil || status != 200 || text != completion {
		t.Errorf("plain: %d, %v, %q", status, err, text)
	}
	if status, _, err := post(address, chat("unknown", false, 1)); err != nil || status != 404 {
		t.Errorf("unknown model: %d, %v", status, err)
	}
	if status, text, err := get(address, "/v1/models"); err != nil || status != 200 || !json.Valid(text) {
		t.Errorf("models: %d, %v, %q", status, err, text)
	}
}

// Every event arrives, directly and through the relay, and no clock runs backwards.
func TestStreamOnce(t *testing.T) {
	direct := startTestWorker(t).listener.Addr().String()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = relay(l, direct) }()
	for _, address := range []string{direct, l.Addr().String()} {
		found, err := streamOnce(context.Background(), address, 5)
		if err != nil || len(found) != 5 {
			t.Fatalf("got %v, %v", found, err)
		}
		for _, d := range found {
			if d <= 0 || d > time.Minute {
				t.Errorf("an event took %v", d)
			}
		}
	}
}

// A proxy that drops the end of a stream, or part of an event, must not count as working.
func TestClientTellsCutStreams(t *testing.T) {
	event := string(appendEvent(nil, time.Second))
	for name, text := range map[string]string{
		"cut between chunks": streamHead + event,
		"cut in an event":    streamHead + event[:len(event)/2],
		"no end of framing":  streamHead + event + chunk(doneEvent),
		"more after its end": streamHead + event + chunk(doneEvent) + streamTail,
		"strange event":      streamHead + chunk("data: {}\n\n") + streamTail,
		"refused":            "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			request := make([]byte, 4096)
			_, _ = conn.Read(request)
			_, _ = io.WriteString(conn, text)
		}()
		if found, err := streamOnce(context.Background(), l.Addr().String(), 1); err == nil {
			t.Errorf("%s: taken for a whole stream of %d events", name, len(found))
		}
		l.Close()
	}
}

func TestLostEverySituation(t *testing.T) {
	rig, err := newLostRig()
	if err != nil {
		t.Fatal(err)
	}
	defer rig.close()
	direct := &way{name: wayDirect, address: rig.address()}
	for _, s := range situations {
		for _, how := range []string{"FIN", "RST"} {
			found, err := rig.samples(context.Background(), direct, s, how, 3)
			if err != nil || len(found) != 3 {
				t.Errorf("%s, %s: %v, %v", s.name, how, found, err)
			}
		}
	}
}

// A proxy that never closes its side must be reported as such, and not waited for 200 times.
func TestLostNeverClosed(t *testing.T) {
	rig, err := newLostRig()
	if err != nil {
		t.Fatal(err)
	}
	defer rig.close()
	rig.patience = 20 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go forgetful(t, l, rig.address())
	found, err := rig.samples(context.Background(), &way{name: "forgetful", address: l.Addr().String()}, situations[0], "FIN", 200)
	if err != nil || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

// forgetful forwards requests and closes its connections only when the test ends.
func forgetful(t *testing.T, l net.Listener, to string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		t.Cleanup(func() { server.Close(); client.Close() })
		go func() { _, _ = io.Copy(server, client) }()
	}
}
