// The soak: everything that goes wrong in a day, in a minute (make test) or half an hour (make soak), and at the end
// nothing is lost, mixed or left behind.

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What the soak does how often. KVASIR_SOAK is how long it goes on, KVASIR_SOAK_RATE how many requests a second it sends.
const (
	soakReload = 10 * time.Second
	soakKill   = 20 * time.Second
	soakIdle   = 20 // streams that have said something and wait
	soakSlow   = 4  // clients that read slowly
	soakRude   = 4  // clients that leave, or send what is no request
	soakMost   = 400
)

// TestSoakWorker is no test: it is the worker that TestSoak runs in a process of its own, to kill it.
func TestSoakWorker(t *testing.T) {
	address := os.Getenv("SOAK_WORKER")
	if address == "" {
		t.Skip("only as a process of TestSoak")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(http.Serve(listener, http.HandlerFunc(soakAnswer)))
}

// soakAnswer answers with the question in it: idle ones begin and wait, long ones go on for a megabyte.
func soakAnswer(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
		} else if r.URL.Path != "/health" {
			http.NotFound(w, r)
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	question := rawRequest{body: string(body)}.question()
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, completionOf(answerTo(question)))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event string) {
		_, _ = io.WriteString(w, event)
		w.(http.Flusher).Flush()
	}
	say(roleEvent())
	switch {
	case strings.HasPrefix(question, "idle"):
		say(deltaEvent("so"))
		<-r.Context().Done()
		return
	case strings.HasPrefix(question, "long"):
		for i := 0; i < 1000 && r.Context().Err() == nil; i++ {
			say(deltaEvent(strings.Repeat("x", 1000)))
		}
	}
	for word := range strings.SplitAfterSeq(answerTo(question), " ") {
		say(deltaEvent(word))
		time.Sleep(time.Millisecond) // an engine's pace
	}
	say(finishEvent("stop") + dataEvent("[DONE]"))
}

// A soaking is what the soak has counted.
type soaking struct {
	sent, whole, refused, interrupted, lost, mixed atomic.Int64

	k       *kvasir
	workers [2]*process
	address [2]string
	config  string

	mu    sync.Mutex // guards first
	first string     // of what was lost or mixed
}

// TestSoak has clients of every kind, reloads and dying workers at once.
func TestSoak(t *testing.T) {
	t.Parallel()
	long, rate := 40*time.Second, soakRate(t) // a minute with the warm-up and the rest after it
	if os.Getenv("KVASIR_SOAK") != "" {
		long = soakTime(t, "KVASIR_SOAK")
	}
	s := &soaking{}
	for i := range s.workers {
		s.address[i] = freeAddress(t)
		s.startWorker(t, i)
	}
	s.config = "server: {drain: {delay: 0s, timeout: 1s}, timeouts: {header: 3s, body: 3s}}\ncache: {max_entries: 200}\nmodels: [{name: m, default: true, tokenizer: none}]\nworkers:\n" +
		fmt.Sprintf("  - {name: a, url: 'http://%s', models: [m]}\n  - {name: b, url: 'http://%s', models: [m]}\n", s.address[0], s.address[1])
	s.k = serve(t, s.config, "m")
	s.run(t, max(long/6, 8*time.Second), rate) // everything has been met once, pools and caches are as large as they become
	before := s.settled(t)
	s.run(t, long, rate)
	s.noLeak(t, before)
	t.Logf("%d requests, %.0f a second of %d asked for: %d whole, %d refused in shape, %d told as interrupted, %d lost, %d mixed; before %v, after %v",
		s.sent.Load(), float64(s.sent.Load())/(long+max(long/6, 8*time.Second)).Seconds(), rate, s.whole.Load(), s.refused.Load(),
		s.interrupted.Load(), s.lost.Load(), s.mixed.Load(), before, s.left(t))
	if s.lost.Load() > 0 || s.mixed.Load() > 0 {
		t.Errorf("%d lost, %d mixed; the first: %s", s.lost.Load(), s.mixed.Load(), s.first)
	}
	if s.whole.Load() < s.sent.Load()*8/10 {
		t.Errorf("of %d requests only %d were answered whole", s.sent.Load(), s.whole.Load())
	}
	for _, bug := range []string{"kvasir_panics_total", "kvasir_bugs_total"} {
		if n := metric(t, s.k.admin+"/metrics", bug); n > 0 {
			t.Errorf("%s is %v", bug, n)
		}
	}
}

// soakTime is how long a variable says.
func soakTime(t *testing.T, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(os.Getenv(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func soakRate(t *testing.T) int {
	text := os.Getenv("KVASIR_SOAK_RATE")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KVASIR_SOAK_RATE: %q is no number above 0", text)
	}
	return n
}

func (s *soaking) startWorker(t *testing.T, i int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.workers[i] = spawn(t, []string{"SOAK_WORKER=" + s.address[i]}, self, "-test.run=^TestSoakWorker$", "-test.timeout=0")
	s.workers[i].mayFail = true // it is killed, and SIGTERM is no orderly end for it either
	eventually(t, patience, "the worker answers", func() bool { return answers("http://" + s.address[i] + "/health") })
}

// run does all of it for so long, and returns when every client is done.
func (s *soaking) run(t *testing.T, long time.Duration, rate int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	var clients sync.WaitGroup
	each := func(n int, client func(context.Context)) {
		for range n {
			clients.Add(1)
			go func() {
				defer clients.Done()
				for ctx.Err() == nil {
					client(ctx)
				}
			}()
		}
	}
	each(soakIdle, s.idleStream)
	each(soakSlow, s.slowReader)
	each(soakRude, s.rudeClient)
	clients.Add(1)
	go func() {
		defer clients.Done()
		s.askAll(ctx, rate)
	}()
	s.disturb(ctx, t)
	clients.Wait()
}

// disturb reloads, and kills one of the workers and then the other. It is the test's goroutine.
func (s *soaking) disturb(ctx context.Context, t *testing.T) {
	t.Helper()
	reload, kill := time.NewTicker(soakReload), time.NewTicker(soakKill)
	defer reload.Stop()
	defer kill.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-reload.C:
			n++
			config := s.config + fmt.Sprintf("classify: {category: {threshold: 0.%d}}\n", 5+n%3)
			if err := os.WriteFile(s.k.file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.k.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		case <-kill.C:
			i := n % len(s.workers)
			if err := s.workers[i].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-s.workers[i].exited
			s.startWorker(t, i)
		}
	}
}

// askAll sends so many requests a second, as far as the answers keep up.
func (s *soaking) askAll(ctx context.Context, rate int) {
	var under sync.WaitGroup
	defer under.Wait()
	places := make(chan struct{}, soakMost)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		places <- struct{}{}
		under.Add(1)
		go func() {
			defer under.Done()
			s.ask(n)
			<-places
		}()
	}
}

// ask asks one question, every third of which others ask too, at the same time or before.
func (s *soaking) ask(n int) {
	question := fmt.Sprintf("What grows in meadow %d?", n)
	if n%3 == 0 {
		question = fmt.Sprintf("What grows in garden %d?", mathrand.IntN(300))
	}
	s.sent.Add(1)
	body := askModel("m", question, n%2 == 0)
	if n%10 == 0 { // one that takes of the memory for bodies
		body = `{"metadata":{"padding":"` + strings.Repeat("x", 100<<10) + `"},` + body[1:]
	}
	request, err := http.NewRequest(http.MethodPost, s.k.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		s.wrong(&s.lost, question, err.Error())
		return
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http1.Do(request)
	if err != nil {
		s.wrong(&s.lost, question, err.Error())
		return
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	got := reply{response.StatusCode, response.Header, answer, err}
	text, whole := said(got)
	switch {
	case whole && text == answerTo(question):
		s.whole.Add(1)
	case whole:
		s.wrong(&s.mixed, question, text)
	case got.status != http.StatusOK && inShape(answer):
		s.refused.Add(1)
	case got.status == http.StatusOK && err != nil && bytes.Contains(answer, []byte("stream_interrupted")):
		s.interrupted.Add(1)
	default:
		s.wrong(&s.lost, question, fmt.Sprintf("%d %v %s", got.status, err, tail(string(answer), 500)))
	}
}

// inShape reports whether a body is an error in OpenAI's form.
func inShape(body []byte) bool {
	var shaped struct {
		Error struct{ Message, Type string }
	}
	return json.Unmarshal(body, &shaped) == nil && shaped.Error.Message != "" && shaped.Error.Type != ""
}

func (s *soaking) wrong(count *atomic.Int64, question, what string) {
	count.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == "" {
		s.first = fmt.Sprintf("%q: %s", question, what)
	}
}

// stream begins a stream; nil where none could be had.
func (s *soaking) stream(ctx context.Context, question string) io.ReadCloser {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.k.url+"/v1/chat/completions", strings.NewReader(askModel("m", question, true)))
	if err != nil {
		return nil
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http1.Do(request)
	if err != nil {
		return nil
	}
	return response.Body
}

// idleStream waits for an answer that does not go on, until its worker is killed or the soak is over.
func (s *soaking) idleStream(ctx context.Context) {
	if body := s.stream(ctx, fmt.Sprintf("idle %d", mathrand.Uint32())); body != nil {
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
	}
}

// slowReader reads a megabyte at 100 KB a second, and leaves after a while.
func (s *soaking) slowReader(ctx context.Context) {
	body := s.stream(ctx, fmt.Sprintf("long %d", mathrand.Uint32()))
	if body == nil {
		return
	}
	defer body.Close()
	for range 50 + mathrand.IntN(100) {
		if _, err := io.CopyN(io.Discard, body, 10<<10); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// rudeClient leaves in the middle, or sends what is no request, or not all of one.
func (s *soaking) rudeClient(ctx context.Context) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.k.url, "http://"))
	if err != nil {
		return
	}
	defer c.Close()
	body := askModel("m", fmt.Sprintf("long %d", mathrand.Uint32()), true)
	whole := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	sent := whole
	switch mathrand.IntN(4) {
	case 0:
		sent = whole[:mathrand.IntN(len(whole))]
	case 1:
		noise := make([]byte, 1+mathrand.IntN(4000))
		_, _ = rand.Read(noise) // crypto/rand's never fails
		sent = string(noise)
	case 2:
		sent = strings.Replace(whole, "messages", "massages", 1) + whole
	}
	if _, err := io.WriteString(c, sent); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(mathrand.IntN(300)) * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c, int64(mathrand.IntN(200<<10)))
	}
}

// What is left of a load when nobody asks any more.
type leftovers struct {
	goroutines, descriptors, heapMiB float64
}

// left waits until no request is under way and no body is held, and reads what Kvasir holds then: goroutines, descriptors but for those of
// connections that are kept for the next request, and the heap after a collection.
func (s *soaking) left(t *testing.T) leftovers {
	t.Helper()
	eventually(t, patience, "no request is under way", func() bool {
		page := s.k.admin + "/metrics"
		return metric(t, page, "kvasir_requests_in_flight") == 0 && metric(t, page, "kvasir_body_bytes") == 0
	})
	get(t, s.k.admin+"/debug/pprof/heap?gc=1")
	page := s.k.admin + "/metrics"
	return leftovers{
		goroutines:  metric(t, page, "go_goroutines"),
		descriptors: metric(t, page, "process_open_fds") - metric(t, page, "kvasir_worker_connections"),
		heapMiB:     metric(t, page, "go_memstats_heap_alloc_bytes") / (1 << 20),
	}
}

// settled is left once the server's goroutines, each of which waits ten seconds for another request, have ended.
func (s *soaking) settled(t *testing.T) leftovers {
	t.Helper()
	now := s.left(t)
	for quiet := time.Now(); time.Since(quiet) < 12*time.Second; time.Sleep(500 * time.Millisecond) {
		if next := s.left(t); next.goroutines < now.goroutines {
			now, quiet = next, time.Now()
		}
	}
	return now
}

// noLeak wants as much to be left as before, but for what a few threads of the server and the cache's entries take: one
// goroutine or descriptor more a reload, let alone a request, is more than that.
func (s *soaking) noLeak(t *testing.T, before leftovers) {
	t.Helper()
	var after leftovers
	deadline := time.Now().Add(patience) // the server's goroutines end some seconds after their last request
	for {
		after = s.left(t)
		if after.goroutines <= before.goroutines+3 && after.descriptors <= before.descriptors+3 && after.heapMiB <= before.heapMiB*1.2+8 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("before the soak %+v were left, after it %+v", before, after)
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
