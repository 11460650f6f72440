// The start: NATS is reached beside it, and what can never work is told at once.

package peers

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

// A server that takes connections and says nothing holds nobody up: Start has returned before it
// was given up, and the very connection that was begun then is the one that is used.
func TestStartWaitsForNobody(t *testing.T) {
	s := natsServer(t, server.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	r := newReplica(t, Options{Name: "r", Servers: []string{"nats://" + ln.Addr().String()}})
	if p := r.Status().Problem; !strings.Contains(p, "not connected yet") {
		t.Errorf("before NATS has said a word: %q", p)
	}
	at := r.place(t, 160)
	defer at.Release()
	near, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	copied := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		copied <- struct{}{}
	}
	go pass(near, far)
	go pass(far, near)
	eventually(t, "it is connected by the first connection", func() bool { return r.Status().Problem == "" })
	other := newReplica(t, Options{Name: "other", Servers: []string{s.ClientURL()}})
	other.sees(t, 1)
	r.Close()
	<-copied
	<-copied
	other.sees(t, 0)
}

// Close does not wait for servers that were not tried yet.
func TestCloseWhileConnecting(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	p, err := Start(Options{Log: zerolog.Nop(), Name: "r", Group: "test", Servers: []string{"nats://" + at}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	_ = conn.Close()
	p.Close() // goleak tells of what goes on
}

// What can be known to be wrong without NATS is told by Start.
func TestStartRefuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		o          Options
	}{
		{"no URL", "cannot use peers.servers: ", Options{Servers: []string{"nats://a:b:c"}}},
		{"two kinds", "cannot use peers.servers: ", Options{Servers: []string{"nats://127.0.0.1:1", "ws://127.0.0.1:1"}}},
		{"credentials that are none", "cannot read the NATS credentials: ", Options{Servers: []string{"nats://127.0.0.1:1"}, Creds: []byte("none")}},
		{"a seed that is none", "cannot read the seed of an nkey: ", Options{Servers: []string{"nats://127.0.0.1:1"}, Seed: []byte("none")}},
	} {
		c.o.Log, c.o.Name, c.o.Group = zerolog.Nop(), "r", "test"
		p, err := Start(c.o)
		if p.Close(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What others have used of accounts comes with their first snapshot, which may be heard while this Kvasir
// still loads its models: it counts as soon as somebody wants to know, and but once.
func TestSpentBeforeAnybodyAsks(t *testing.T) {
	s := natsServer(t, server.Options{})
	spends := newReplica(t, Options{Name: "spends", Servers: []string{s.ClientURL()}})
	spends.Spend(7, 60)
	starts := newReplica(t, Options{Name: "starts", Servers: []string{s.ClientURL()}})
	named := func(r *replica, name string) {
		eventually(t, "the snapshot of "+name+" was heard", func() bool { return slices.Contains(r.Status().Peers, name) })
	}
	named(starts, "spends")
	spends.knows(t, 1)
	spends.Spend(7, -20)
	heard := func() float64 {
		starts.spending.Lock()
		defer starts.spending.Unlock()
		return starts.early[7].amount
	}
	eventually(t, "all was heard", func() bool { return heard() == 40 })
	var mu sync.Mutex
	got := map[uint64]float64{}
	starts.HearSpent(func(_ time.Time, account uint64, amount float64) {
		mu.Lock()
		defer mu.Unlock()
		got[account] += amount
	})
	if mu.Lock(); got[7] != 40 {
		t.Errorf("told %v, want 40", got[7])
	}
	mu.Unlock()
	spends.Spend(7, 2)
	eventually(t, "it goes on", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return got[7] == 42
	})
	var p Peers
	for account := range uint64(mostEarly + 10) {
		p.hearSpent(time.Now(), account, 1)
	}
	if len(p.early) != mostEarly {
		t.Errorf("%d accounts are kept", len(p.early))
	}
}
