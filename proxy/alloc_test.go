// Allocations on the way of a plain request, counted and kept.
package proxy

import (
	"bufio"
	"bytes"
	"net"
	"runtime"
	"testing"
)

// A plain request costs two allocations in steady state: its id, and the
// model's name, which outlive fasthttp's buffers. The rest is lent and reused.
// The client and the worker of this test allocate nothing per request.
const allocsPerRequest = 2

func plainWay(tb testing.TB) (once func(), done func()) {
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
	p := startProxy(tb, s)
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		tb.Fatal(err)
	}
	request := []byte(post("/v1/chat/completions", plainChat, "X-Request-Id: 4ba0b3a9-29a5-4a0e-9f0c-5d1b1a6c7c4e"))
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
	got := float64(after.Mallocs-before.Mallocs) / requests
	t.Logf("%.2f allocations and %.0f bytes a request", got, float64(after.TotalAlloc-before.TotalAlloc)/requests)
	if got > allocsPerRequest+0.5 { // half a one for probes and refilled pools
		t.Errorf("%.2f allocations a request, want %d", got, allocsPerRequest)
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

// An event on its way costs no allocation, also where its usage is hidden.
func TestAllocationsOfAnEvent(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
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
	p := startProxy(t, settingsFor(w.url))
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
