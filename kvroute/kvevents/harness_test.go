// An engine's event sockets on loopback, a proxy that loses things between, and an ear that waits.

package kvevents

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"kvasir/sim"
	"kvasir/zmtp"
)

const patience = time.Minute // of tests; the machine may be busy

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
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

// storing is a payload that stores one block of one token after nothing, as vLLM's newest releases write it.
func storing(handle uint64) []byte { return batchOf("BlockStored", handle) }

func removing(handle uint64) []byte { return batchOf("BlockRemoved", handle) }

func batchOf(kind string, handle uint64) []byte {
	b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), float64(time.Now().UnixNano())/1e9)
	b = msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(msgp.AppendArrayHeader(b, 1), 5), "type"), kind)
	b = msgp.AppendUint64(msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), 1), handle)
	b = msgp.AppendNil(msgp.AppendString(b, "parent_block_hash"))
	b = msgp.AppendInt(msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), 1), 7)
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), 1)
	return msgp.AppendInt(b, 0)
}

// engine is a publisher with its two sockets.
type engine struct {
	*sim.Publisher
	events, replay string // host:port
	serving        sync.WaitGroup
}

// startEngine listens at the given addresses; ":0" picks one, and no replay address means no such socket.
func startEngine(t testing.TB, events, replay string, buffer int) *engine {
	t.Helper()
	e := &engine{Publisher: sim.NewPublisher("kv@w1@m", buffer, 1000)}
	ln := listenAt(t, events)
	e.events = ln.Addr().String()
	e.serving.Go(func() { serve(t, e.Serve, ln) })
	if replay != "" {
		ln := listenAt(t, replay)
		e.replay = ln.Addr().String()
		e.serving.Go(func() { serve(t, e.ServeReplay, ln) })
	}
	t.Cleanup(e.stop)
	return e
}

func serve(t testing.TB, serve func(net.Listener) error, ln net.Listener) {
	if err := serve(ln); err != nil {
		t.Error(err)
	}
}

func listenAt(t testing.TB, address string) net.Listener {
	t.Helper()
	if address == ":0" {
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
	return ln
}

func (e *engine) stop() {
	e.Close()
	e.serving.Wait()
}

func (e *engine) source() Source {
	s := Source{Events: "tcp://" + e.events}
	if e.replay != "" {
		s.Replay = "tcp://" + e.replay
	}
	return s
}

// ear is a sink that counts blocks, and remembers why it had to forget them.
type ear struct {
	mu      sync.Mutex // guards all below
	blocks  map[uint64]int
	reasons []Reason
	gate    sync.Mutex // what it hears waits for this
}

// slow lets what the ear hears wait from now on, or go on.
func (e *ear) slow(on bool) {
	if on {
		e.gate.Lock()
	} else {
		e.gate.Unlock()
	}
}

func newEar() *ear { return &ear{blocks: map[uint64]int{}} }

func (e *ear) Stored(s *Stored) {
	e.gate.Lock()
	e.gate.Unlock() //nolint:staticcheck // only the waiting is wanted
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range s.Handles {
		e.blocks[h]++
	}
}

func (e *ear) Removed(r *Removed) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range r.Handles {
		if e.blocks[h]--; e.blocks[h] <= 0 {
			delete(e.blocks, h)
		}
	}
}

func (e *ear) Cleared(c Cleared) {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.blocks)
	e.reasons = append(e.reasons, c.Reason)
}

// why are the reasons so far.
func (e *ear) why() []Reason {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.reasons)
}

// holds waits until the ear holds the blocks from first to last once each and no others.
func (e *ear) holds(t testing.TB, first, last uint64) {
	t.Helper()
	want := map[uint64]int{}
	for h := first; h <= last; h++ {
		want[h] = 1
	}
	eventually(t, fmt.Sprintf("the blocks from %d to %d are known", first, last), func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return maps.Equal(e.blocks, want)
	})
}

// hasHeard checks the reasons so far.
func (e *ear) hasHeard(t testing.TB, want ...Reason) {
	t.Helper()
	if got := e.why(); !slices.Equal(got, want) {
		t.Errorf("had to forget because of %v, want %v", got, want)
	}
}

// hasty are options for tests: everything at once.
func hasty(t testing.TB) Options {
	return Options{RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond, Quiet: 5 * time.Millisecond, Recheck: time.Millisecond,
		Stall: patience, Patience: time.Hour, Report: func(err error) { t.Log("reported:", err) }}
}

// listenTo runs a subscriber until the test ends, or the function that it returns is called.
func listenTo(t testing.TB, source Source, sink Sink, o Options) (*Subscriber, func()) {
	t.Helper()
	s, err := New(source, sink, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	stop := func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return s, stop
}

// live waits until messages come by subscription, and returns the number of the next.
func live(t testing.TB, s *Subscriber, e *engine) uint64 {
	t.Helper()
	var seq uint64
	before := s.Stats().LastAt
	eventually(t, "messages come live", func() bool {
		if st := s.Stats(); st.LastAt.After(before) && st.Next == seq+1 {
			return true
		}
		seq = e.Publish(removing(1 << 40))
		return false
	})
	return seq + 1
}

// connected waits until a subscriber has its first connection.
func connected(t testing.TB, s *Subscriber) {
	t.Helper()
	eventually(t, "the subscriber is connected", func() bool { return s.Stats().Connected })
}

// lossy stands between a subscriber and an engine's PUB socket, drops some messages and cuts connections.
type lossy struct {
	t       testing.TB
	address string
	to      string
	ln      net.Listener
	serving sync.WaitGroup

	mu    sync.Mutex // guards all below
	drops map[uint64]bool
	conns []*zmtp.Conn
	shut  bool
}

func startLossy(t testing.TB, to string) *lossy {
	t.Helper()
	l := &lossy{t: t, to: to, ln: listenAt(t, ":0"), drops: map[uint64]bool{}}
	l.address = l.ln.Addr().String()
	l.serving.Go(l.accept)
	t.Cleanup(func() {
		l.mu.Lock()
		l.shut = true
		l.mu.Unlock()
		l.ln.Close()
		l.cut()
		l.serving.Wait()
	})
	return l
}

func (l *lossy) accept() {
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.serving.Go(func() { l.forward(conn) })
	}
}

// forward passes the subscription up and messages down, until either side ends.
func (l *lossy) forward(conn net.Conn) {
	down, err := zmtp.Open(conn, "PUB")
	if err != nil {
		return
	}
	defer down.Close()
	up, err := zmtp.Dial(l.t.Context(), "tcp://"+l.to, "SUB")
	if err != nil {
		return
	}
	defer up.Close()
	l.mu.Lock()
	l.conns = append(l.conns, down, up)
	shut := l.shut
	l.mu.Unlock()
	if shut {
		return
	}
	var m zmtp.Message
	if ok, err := down.Read(&m, patience); !ok || err != nil {
		return
	}
	if err := up.Subscribe(string(m.Frame(0)[1:])); err != nil {
		return
	}
	for {
		ok, err := up.Read(&m, patience)
		if err != nil {
			return
		}
		if !ok || l.dropped(binary.BigEndian.Uint64(m.Frame(1))) {
			continue
		}
		if err := down.Write(m.Frame(0), m.Frame(1), m.Frame(2)); err != nil {
			return
		}
	}
}

// drop makes it lose messages from now on.
func (l *lossy) drop(seqs ...uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range seqs {
		l.drops[seq] = true
	}
}

func (l *lossy) dropped(seq uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drops[seq]
}

func (l *lossy) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// acting plays one connection after the other of a socket by hand.
func acting(t testing.TB, socket string, play func(c *zmtp.Conn, turn int)) (address string) {
	t.Helper()
	ln := listenAt(t, ":0")
	var serving sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	shut := false
	serving.Go(func() {
		for turn := 0; ; turn++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			over := shut
			mu.Unlock()
			if c, err := zmtp.Open(conn, socket); err == nil && !over {
				play(c, turn)
			}
			conn.Close()
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		shut = true
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return "tcp://" + ln.Addr().String()
}

// untilClosed reads until the other side ends the connection.
func untilClosed(c *zmtp.Conn) {
	var m zmtp.Message
	for {
		if _, err := c.Read(&m, patience); err != nil {
			return
		}
	}
}

// asked reads a replay request and returns its number.
func asked(t testing.TB, c *zmtp.Conn) (uint64, bool) {
	var m zmtp.Message
	ok, err := c.Read(&m, patience)
	if err != nil || !ok {
		return 0, false
	}
	if m.Len() != 2 || len(m.Frame(0)) != 0 || len(m.Frame(1)) != 8 {
		t.Errorf("a replay was asked for with %d frames", m.Len())
		return 0, false
	}
	return binary.BigEndian.Uint64(m.Frame(1)), true
}

func number(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// tell writes a message; a peer that is gone does not matter.
func tell(c *zmtp.Conn, frames ...[]byte) { _ = c.Write(frames...) }

var end = bytes.Repeat([]byte{0xff}, 8)

// storingRun is a payload that stores a run of n blocks, with all the fields that vLLM 0.32 sends.
func storingRun(n, size int) []byte {
	b := msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), float64(time.Now().UnixNano())/1e9)
	b = msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(msgp.AppendArrayHeader(b, 1), 11), "type"), "BlockStored")
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "block_hashes"), uint32(n))
	for i := range n {
		b = msgp.AppendUint64(b, 1<<63+uint64(i))
	}
	b = msgp.AppendUint64(msgp.AppendString(b, "parent_block_hash"), 1<<62)
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "token_ids"), uint32(n*size))
	for i := range n * size {
		b = msgp.AppendInt(b, i*7919%150_000)
	}
	b = msgp.AppendInt(msgp.AppendString(b, "block_size"), size)
	b = msgp.AppendNil(msgp.AppendString(b, "lora_id"))
	b = msgp.AppendString(msgp.AppendString(b, "medium"), "GPU")
	b = msgp.AppendNil(msgp.AppendString(b, "lora_name"))
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "extra_keys"), uint32(n))
	for range n {
		b = msgp.AppendNil(b)
	}
	b = msgp.AppendInt(msgp.AppendString(b, "group_idx"), 0)
	b = msgp.AppendString(msgp.AppendString(b, "kv_cache_spec_kind"), "full_attention")
	return msgp.AppendInt(b, 0)
}
