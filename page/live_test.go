// Tests of the live stream.

package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvasir/proxy/roster"
)

func TestMain(m *testing.M) {
	writeWithin = time.Hour // no test waits for it
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).workerFunc"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// watchers says how many watch, and whether anything ticks.
func (h *hub) state() (watchers int, ticks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers), h.ends != nil
}

// TestLive: who opens the stream is told everything, then what changes: workers whole, those that
// are gone by name, requests in their order, and of too many only how many.
func TestLive(t *testing.T) {
	var now workersNow
	now.set(named("a", "b")...)
	o := testOptions()
	o.Workers = now.get
	p := serve(t, o)
	p.Observe(ended()) // before anybody watches: it is in the list of requests

	w := p.watch(t)
	if kind := w.resp.Header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" || w.resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the head is %v", w.resp.Header)
	}
	first := w.until("overview")
	if first["status"] != "ready" || first["workers_up"] != 2.0 || first["workers_all"] != 2.0 || first["in_flight"] != 2.0 || first["queued"] != 1.0 || first["queue"] != 1.0 || first["t"] == nil {
		t.Errorf("the overview is %v", first)
	}
	if all := w.until("workers"); len(all["workers"].([]any)) != 2 || len(all["gone"].([]any)) != 0 {
		t.Errorf("the workers are %v", all)
	}
	changed := named("b", "c")
	changed[0].Requests = 5
	now.set(changed...)
	got := w.until("workers")
	if list := got["workers"].([]any); len(list) != 2 || list[0].(map[string]any)["requests"] != 5.0 || list[1].(map[string]any)["name"] != "c" || fmt.Sprint(got["gone"]) != "[a]" {
		t.Errorf("the change is %v", got)
	}
	for i := range 2 {
		r := ended()
		r.ID = requestsNamed(i)
		p.Observe(r)
	}
	for i := range 2 {
		if r := w.until("request"); r["id"] != requestsNamed(i) || r["seq"] != float64(i+2) {
			t.Errorf("request %d is %v", i, r)
		}
	}
	told, skipped := 0, 0
	p.live.mu.Lock() // so that no tick comes in between
	for i := range mostRequestsBy + 30 {
		r := ended()
		r.ID = requestsNamed(i)
		p.Observe(r)
	}
	p.live.mu.Unlock()
	for skipped == 0 {
		var data map[string]any
		switch name, err := w.next(&data); {
		case err != nil:
			t.Fatal(err)
		case name == "request":
			if told++; data["id"] != requestsNamed(29+told) {
				t.Errorf("the %d. that is told is %v", told, data["id"])
			}
		case name == "skipped":
			skipped = int(data["count"].(float64))
		}
	}
	if told != mostRequestsBy || skipped != 30 {
		t.Errorf("%d told, %d skipped", told, skipped)
	}
}

// TestNobodyWatches: without an open page nothing is asked and nothing runs but the series.
func TestNobodyWatches(t *testing.T) {
	var now workersNow
	now.set(named("a")...)
	o := testOptions()
	o.Workers = now.get
	p := serve(t, o)
	if _, ticks := p.live.state(); ticks || now.asked.Load() != 0 {
		t.Errorf("it ticks, and asked %d times", now.asked.Load())
	}
	w := p.watch(t)
	w.until("workers")
	w.until("overview")
	if watchers, ticks := p.live.state(); watchers != 1 || !ticks {
		t.Errorf("%d watch, %v", watchers, ticks)
	}
	_ = w.conn.Close()
	waitUntil(t, "it ticks no more", func() bool { watchers, ticks := p.live.state(); return watchers == 0 && !ticks })
	again := p.watch(t)
	again.until("workers") // from the beginning
}

// TestSlowWatcher: one that does not read is dropped, and nobody waits for it.
func TestSlowWatcher(t *testing.T) {
	var now workersNow
	big := named("a")
	big[0].Why = strings.Repeat("x", 256<<10) // more than the kernel takes of a few of them
	now.set(big...)
	o := testOptions()
	var turn atomic.Int64
	o.Workers = func(at time.Time) []roster.Worker {
		all := append([]roster.Worker{}, now.get(at)...)
		all[0].Requests = int(turn.Add(1))
		return all
	}
	p := serve(t, o)
	good, slow := p.watch(t), p.watch(t)
	_ = slow.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	ends := p.tickByHand()
	for watchers := 2; watchers == 2; watchers, _ = p.live.state() {
		p.live.tell(ends, time.Now())
		good.until("workers") // whatever the other one does
	}
	// Its connection ends, in the middle of what it did not read.
	if _, err := io.Copy(io.Discard, slow.body); err == nil {
		t.Error("the slow one is told that this was all")
	}
}

// TestTooManyWatchers: one more than the bound is refused, and let in when another has left.
func TestTooManyWatchers(t *testing.T) {
	o := testOptions()
	o.Connections = func() int { return 21 }
	p := serve(t, o)
	var all []*watching
	for range 10 {
		all = append(all, p.watch(t))
	}
	refused := p.watch(t)
	if refused.resp.StatusCode != http.StatusServiceUnavailable || refused.resp.Header.Get("Retry-After") != "5" {
		t.Errorf("one more gets %d", refused.resp.StatusCode)
	}
	_ = all[0].conn.Close()
	waitUntil(t, "one has left", func() bool { watchers, _ := p.live.state(); return watchers < 10 })
	if again := p.watch(t); again.resp.StatusCode != http.StatusOK {
		t.Errorf("then it gets %d", again.resp.StatusCode)
	}
}

// TestStopWithWatchers: the end of the page ends the streams rightly; serve waits for them.
func TestStopWithWatchers(t *testing.T) {
	p := serve(t, testOptions())
	w := p.watch(t)
	w.until("workers")
	p.once.Do(p.end)
	if rest, err := io.ReadAll(w.body); err != nil {
		t.Errorf("the stream is cut: %v behind %q", err, rest)
	}
}

// TestStopWithSlowWatcher: nor does the end wait for a browser that does not read. Here a write may
// take an hour.
func TestStopWithSlowWatcher(t *testing.T) {
	var now workersNow
	big := named("a")
	big[0].Why = strings.Repeat("x", 16<<20) // more than the kernel takes
	now.set(big...)
	o := testOptions()
	o.Workers = now.get
	p := serve(t, o)
	slow := p.watch(t)
	if _, err := io.ReadFull(slow.body, make([]byte, 1)); err != nil { // now the rest is under way
		t.Fatal(err)
	}
	p.once.Do(p.end)
}

// TestOldClients cannot read chunks.
func TestOldClients(t *testing.T) {
	p := serve(t, testOptions())
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /api/live HTTP/1.0\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Errorf("%v, %v", resp, err)
	}
}

// tickByHand stops the clock of the live stream: tell is called with what this returns.
func (p *served) tickByHand() (ends chan struct{}) {
	ends = make(chan struct{})
	p.live.mu.Lock()
	defer p.live.mu.Unlock()
	close(p.live.ends)
	p.live.ends = ends
	return ends
}

// BenchmarkTell is a second of 50 open pages over loopback, with 16 workers that all change and 50
// requests: the time is what all of it costs, the clients' reading among it.
func BenchmarkTell(b *testing.B) {
	o := testOptions()
	var turn atomic.Int64
	o.Workers = func(time.Time) []roster.Worker {
		all := make([]roster.Worker, 16)
		for i := range all {
			n := int(turn.Add(1))
			all[i] = roster.Worker{Name: fmt.Sprint("worker-", i), State: "up", Models: []string{"m"}, Requests: n, Waiting: &n, Context: &n, Backlog: &n, GPUs: []roster.GPU{}}
		}
		return all
	}
	p := serve(b, o)
	var reading sync.WaitGroup
	var frames atomic.Int64
	const pages = 50
	for range pages {
		w := p.watch(b)
		reading.Go(func() {
			for {
				line, err := w.body.ReadSlice('\n')
				if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
					return
				}
				if string(line) == "event: overview\n" {
					frames.Add(1)
				}
			}
		})
	}
	ends := p.tickByHand()
	var begin int64
	waitUntil(b, "all have the first ones", func() bool {
		last := begin
		begin = frames.Load()
		return begin >= pages && begin%pages == 0 && begin == last
	})
	b.ResetTimer()
	n := int64(0)
	for b.Loop() {
		for range 50 {
			p.Observe(ended())
		}
		p.live.tell(ends, time.Now())
		n++
		for frames.Load() < begin+n*pages {
			time.Sleep(10 * time.Microsecond)
		}
	}
	b.StopTimer()
	p.once.Do(p.end)
	reading.Wait()
}
