// Allocations on the way of a plain request, counted and kept.

package proxy

import (
	"bufio"
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"

	"kvasir/kvroute"
)

// A plain request costs two allocations in steady state: its id, and the
// model's name, which outlive fasthttp's buffers. The rest is lent and reused.
// The client and the worker of this test allocate nothing per request.
const allocsPerRequest = 2

func plainWay(tb testing.TB) (once func(), done func()) {
	return wayOf(tb, plainChat, func(*Settings) {})
}

// observed is called with the proxy of wayOf; nil: nobody looks.
var observed func(p *testProxy)

// wayOf is the way of a chat that is no stream, under a configuration that is
// plain but for change.
func wayOf(tb testing.TB, body string, change func(*Settings)) (once func(), done func()) {
	answer := []byte(httpReply(200, "application/json", chatReply))
	w := startWorker(tb, func(c net.Conn, _ string) bool { // the first request; then without net/http
		if _, err := c.Write(answer); err != nil {
			return false
		}
		b := make([]byte, 64<<10)
		for {
			if n, err := c.Read(b); err != nil || n == 0 {
				return false
			}
			if _, err := c.Write(answer); err != nil {
				return false
			}
		}
	})
	s := settingsFor(w.url)
	change(s)
	p := startProxy(tb, s)
	if observed != nil {
		observed(p)
	}
	if s.Routing.Policy == kvroute.Predict && s.Models[0].Tokenizer != "none" {
		p.waitForTokens(tb)
	}
	p.backendOf(tb, "w0").SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 16384, MaxBatchedTokens: 8192, MaxSeqs: 256})
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		tb.Fatal(err)
	}
	request := []byte(post("/v1/chat/completions", body, "X-Request-Id: 4ba0b3a9-29a5-4a0e-9f0c-5d1b1a6c7c4e"))
	_, _ = c.Write(request)
	receive(tb, bufio.NewReader(c))
	reply := make([]byte, 64<<10)
	return func() {
		if _, err := c.Write(request); err != nil {
			tb.Fatal(err)
		}
		for n := 0; !bytes.HasSuffix(reply[:n], []byte(chatReply)); {
			k, err := c.Read(reply[n:])
			if err != nil {
				tb.Fatal(err)
			}
			n += k
		}
	}, func() { _ = c.Close() }
}

func TestAllocationsOfAPlainRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	once, done := plainWay(t)
	defer done()
	got, _ := allocationsOf(t, once)
	if got > allocsPerRequest+0.5 { // half a one for probes and refilled pools
		t.Errorf("%.2f allocations a request, want %d", got, allocsPerRequest)
	}
}

// allocationsOf counts what one request costs in steady state.
func allocationsOf(t *testing.T, once func()) (count, size float64) {
	t.Helper()
	for range 100 {
		once()
	}
	const requests = 2000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range requests {
		once()
	}
	runtime.ReadMemStats(&after)
	count, size = float64(after.Mallocs-before.Mallocs)/requests, float64(after.TotalAlloc-before.TotalAlloc)/requests
	t.Logf("%.2f allocations and %.0f bytes a request", count, size)
	return count, size
}

// Placing by price costs a few allocations more, and none of them grows with the
// prompt: its text, its tokens and the names of its blocks have memory that is
// used again.
func TestAllocationsOfAPricedRequest(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and empties pools at random")
	}
	var sizes []float64
	for _, n := range []int{2 << 10, 32 << 10} {
		body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("word ", n/5) + `"}]}`
		once, done := wayOf(t, body, func(s *Settings) {
			*s = *placingSettings(s.Workers[0].URL)
			s.Models[0].Tokenizer, s.Workers[0].Engine = "none", "openai"
		})
		count, size := allocationsOf(t, once)
		done()
		if count > allocsPerRequest+1.5 {
			t.Errorf("%.2f allocations a request of %d bytes", count, n)
		}
		sizes = append(sizes, size)
	}
	if sizes[1] > sizes[0]+2048 {
		t.Errorf("%.0f bytes a request with 2 KiB of prompt, %.0f with 32 KiB", sizes[0], sizes[1])
	}
}

func BenchmarkPlainRequest(b *testing.B) {
	once, done := plainWay(b)
	defer done()
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// An event on its way costs no allocation, also where its usage is hidden, and where the time since
// the one before is counted.
func TestAllocationsOfAnEvent(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	t.Run("plain", func(t *testing.T) { allocationsOfEvents(t, func(*Settings) {}) })
	t.Run("names of others", func(t *testing.T) { allocationsOfEvents(t, func(s *Settings) { everyName(s) }) })
}

func allocationsOfEvents(t *testing.T, change func(*Settings)) {
	t.Helper()
	const events = 5000
	head, event, end := []byte(streamHead+chunk(roleEvent)), []byte(chunk(delta("abc"))), []byte(chunk(finishEvent+usageEvent+doneEvent)+"0\r\n\r\n")
	next := make(chan struct{}, 1)
	w := startWorker(t, func(c net.Conn, _ string) bool {
		if _, err := c.Write(head); err != nil {
			return false
		}
		for range events {
			<-next // one event a read: the proxy must not find several at once
			if _, err := c.Write(event); err != nil {
				return false
			}
		}
		_, err := c.Write(end)
		return err == nil
	})
	s := settingsFor(w.url)
	change(s)
	p := startProxy(t, s)
	c := dial(t, p.addr)
	_, _ = c.Write([]byte(post("/v1/chat/completions", streamChat)))
	got := make([]byte, 64<<10)
	read := func(n int) {
		for range n {
			next <- struct{}{}
			if _, err := c.Read(got); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(500)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	read(events - 500)
	runtime.ReadMemStats(&after)
	if got := float64(after.Mallocs-before.Mallocs) / (events - 500); got > 0.1 { // probes go on meanwhile
		t.Errorf("%.2f allocations an event", got)
	}
}
