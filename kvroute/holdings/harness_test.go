// A simulated engine on loopback, a relay that can cut its connections, and an index that listens.

package holdings

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const patience = time.Minute
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-tick.C
	}
}

const blockSize = 16

// An engine is a simulated one behind HTTP and ZeroMQ.
type engine struct {
	*sim.Server
	web, events, replay string // host:port
	serving             sync.WaitGroup
}

// startEngine starts an engine whose event sockets are at the given addresses; "" picks them.
func startEngine(t testing.TB, o sim.Options, events, replay string) *engine {
	t.Helper()
	o.Name, o.Model, o.BlockSize, o.Speedup, o.Events = "w", "m", blockSize, 1000, true
	server, err := sim.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{Server: server}
	e.web = e.serve(t, "", server.Serve)
	e.replay = e.serve(t, replay, server.ServeReplay) // first: who finds the events asks there at once
	e.events = e.serve(t, events, server.ServeEvents)
	t.Cleanup(e.stop)
	return e
}

func (e *engine) serve(t testing.TB, address string, serve func(net.Listener) error) string {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	var ln net.Listener
	eventually(t, "the address is free", func() (free bool) { // one that is used again may be another's for a moment
		var err error
		if ln, err = net.Listen("tcp", address); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	e.serving.Go(func() {
		if err := serve(ln); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func (e *engine) stop() {
	_ = e.Close()
	e.serving.Wait()
	http.DefaultClient.CloseIdleConnections()
}

func (e *engine) source() Source {
	return Source{0, kvevents.Source{Events: "tcp://" + e.events, Replay: "tcp://" + e.replay}}
}

// complete asks for an answer.
func (e *engine) complete(t testing.TB, prompt []uint32, salt string) {
	ask := map[string]any{"model": "m", "prompt": prompt, "max_tokens": 20}
	if salt != "" {
		ask["cache_salt"] = salt
	}
	body, _ := json.Marshal(ask)
	resp, err := http.Post("http://"+e.web+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Error(resp.Status, string(b), err)
	}
}

// prompts are of three shared beginnings, more than a small engine can hold.
func prompts(n int) (list [][]uint32) {
	for i := range n {
		prompt := make([]uint32, 40+i*37%300)
		for at := range prompt {
			prompt[at] = uint32(97 + i%3 + at%7 + at/(50+i%5*40)*(i%11))
		}
		list = append(list, prompt)
	}
	return list
}

func saltOf(i int) string { return []string{"", "tenant"}[i%2] }

// load asks for many answers, several at a time.
func (e *engine) load(t testing.TB, list [][]uint32) {
	t.Helper()
	var asking sync.WaitGroup
	for worker := range 4 {
		asking.Go(func() {
			for i := worker; i < len(list); i += 4 {
				e.complete(t, list[i], saltOf(i))
			}
		})
	}
	asking.Wait()
}

// A place is where a rank's blocks are kept, as the worker table of the proxy has it.
type place struct {
	index *kvindex.Index

	mu        sync.Mutex // guards all below
	size      int
	cache     *kvindex.Worker
	problems  []string
	restarted int
}

func newPlace(size int) *place { return &place{index: kvindex.New(kvindex.Options{}), size: size} }

func (p *place) at(rank int) *kvindex.Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if rank != 0 {
		return nil
	}
	if p.cache == nil {
		p.cache, _ = p.index.Add(kvindex.WorkerOptions{BlockSize: p.size})
	}
	return p.cache
}

// forget replaces the cache by an empty one for blocks of size tokens.
func (p *place) forget(size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache != nil {
		p.cache.Forget()
	}
	p.cache, p.size = nil, size
}

// sized is told a block size. What is held stays where it is the one of the first event.
func (p *place) sized(tokens int) {
	if cache := p.at(0); cache == nil || cache.BlockSize() != tokens {
		p.forget(tokens)
	}
}

func (p *place) report(_ int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, err.Error())
}

// said are the problems so far.
func (p *place) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems
}

func (p *place) options() Options {
	return Options{Cache: p.at, BlockSize: p.sized, Report: p.report,
		Restarted: func(int) {
			p.mu.Lock()
			p.restarted++
			size := p.size
			p.mu.Unlock()
			p.forget(size)
		},
		Subscriber: kvevents.Options{RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond, Quiet: 20 * time.Millisecond,
			Recheck: time.Millisecond, Stall: 20 * time.Second}}
}

// listen follows a source until the test ends.
func (p *place) listen(t testing.TB, source Source) *Listener {
	t.Helper()
	l := New(p.options())
	t.Cleanup(l.Close)
	if err := l.Follow([]Source{source}); err != nil {
		t.Fatal(err)
	}
	return l
}

// leading is how many leading blocks of a prompt the index says are held.
func (p *place) leading(prompt []uint32, salt string) int {
	for _, o := range p.index.Find(nil, kvindex.AppendNames(nil, kvindex.SeedOf("", "", salt), prompt, blockSize)) {
		return int(o.Device)
	}
	return 0
}

// agrees waits until the index holds what the engine does: as many blocks in all, and of each prompt as many leading
// ones.
func (p *place) agrees(t testing.TB, e *engine, list [][]uint32) {
	t.Helper()
	differs := func() (i, index, engine, held, all int) {
		for i, prompt := range list {
			engine, all := e.Holds(prompt, saltOf(i))
			index := p.leading(prompt, saltOf(i))
			if cache := p.at(0); cache == nil || index != engine || cache.Held() != all {
				return i, index, engine, cache.Held(), all
			}
		}
		return -1, 0, 0, 0, 0
	}
	const patience = time.Minute
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		i, index, engine, held, all := differs()
		if i < 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("prompt %d: %d leading blocks in the index, %d in the engine; %d and %d in all; %q",
				i, index, engine, held, all, p.said())
		}
		<-tick.C
	}
}

// A relay stands before a socket, and cuts its connections on demand.
type relay struct {
	ln net.Listener
	to string

	mu     sync.Mutex // guards open
	open   map[net.Conn]struct{}
	copies sync.WaitGroup
}

func startRelay(t testing.TB, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{ln: ln, to: to, open: map[net.Conn]struct{}{}}
	r.copies.Go(r.accept)
	t.Cleanup(func() {
		ln.Close()
		r.cut()
		r.copies.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		down, err := r.ln.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", r.to)
		if err != nil {
			down.Close()
			continue
		}
		r.mu.Lock()
		r.open[down], r.open[up] = struct{}{}, struct{}{}
		r.mu.Unlock()
		r.copies.Go(func() { r.copy(down, up) })
		r.copies.Go(func() { r.copy(up, down) })
	}
}

func (r *relay) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
	clear(r.open)
}
