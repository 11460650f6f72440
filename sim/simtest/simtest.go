// Simulated engines for tests.

// Package simtest starts simulated engines on loopback, for tests of their clients and
// subscribers.
//
//	e := simtest.Start(t, sim.Options{Name: "w0", Events: true}, nil)
//	settings.URL = "http://" + e.Web
package simtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvasir/sim"
)

// An Engine is a simulated engine on loopback.
type Engine struct {
	*sim.Server
	Web, Events, Replay string // host:port; the last two only if it publishes events
	serving             sync.WaitGroup
}

// Start starts an engine of the model m, and stops it when the test ends. at is a stopped engine
// whose addresses it takes over; nil: it gets new ones.
func Start(t testing.TB, o sim.Options, at *Engine) *Engine {
	t.Helper()
	o.Model, o.Speedup = "m", 1000
	server, err := sim.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Engine{Server: server}
	addresses := [3]string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}
	if at != nil {
		addresses = [3]string{at.Web, at.Events, at.Replay}
	}
	if o.Events {
		s.Events = s.serve(t, addresses[1], server.ServeEvents)
		s.Replay = s.serve(t, addresses[2], server.ServeReplay)
		asked := s.serve(t, "127.0.0.1:0", server.Serve) // an address that no other test knows
		waitUntil(t, "it says where its events are", func() bool { return strings.Count(fetch(t, "http://"+asked+"/kv_event_sources"), "tcp://") == 2 })
	}
	s.Web = s.serve(t, addresses[0], server.Serve)
	t.Cleanup(s.Stop)
	return s
}

func (s *Engine) serve(t testing.TB, address string, serve func(net.Listener) error) string {
	t.Helper()
	var ln net.Listener
	waitUntil(t, "the address is free", func() (free bool) { // another process may have a reused address for a moment
		var err error
		if ln, err = net.Listen("tcp", address); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	s.serving.Go(func() {
		if err := serve(ln); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// Stop ends the engine, and waits until it has ended.
func (s *Engine) Stop() {
	_ = s.Close()
	s.serving.Wait()
}

// Complete sends a prompt of n tokens directly to the engine and waits for its answer.
func (s *Engine) Complete(t testing.TB, n int) {
	t.Helper()
	tokens := strings.Trim(fmt.Sprint(Sequence(n)), "[]")
	resp, err := client.Post("http://"+s.Web+"/v1/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":3,"prompt":[`+strings.ReplaceAll(tokens, " ", ",")+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, string(body))
	}
}

// Sequence returns a prompt of n tokens: the letters of the alphabet, repeated.
func Sequence(n int) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(97 + i%26)
	}
	return tokens
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(t testing.TB, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

const patience = 25 * time.Second

func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}
