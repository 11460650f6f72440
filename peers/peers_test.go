// Kvasirs that know of each other over a real NATS server: load, loss, restarts, strangers and the end.

package peers

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"kvasir/kvroute"
	"kvasir/kvroute/peering"
	"kvasir/peers/natsserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*Server).startGWReplyMapExpiration.func1"))
}

// natsServer starts a NATS server; port 0 is any.
func natsServer(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs = "127.0.0.1", true
	if o.Port == 0 {
		o.Port = -1
	}
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not listen")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// A replica is a pool before workers that have the same URLs at each of them.
type replica struct {
	*Peers
	pool    *kvroute.Pool
	workers []*kvroute.Worker
	log     *logged
}

// logged is a log that tests look into.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

func newReplica(t testing.TB, o Options) *replica {
	t.Helper()
	r := &replica{log: &logged{}}
	o.Log = zerolog.New(r.log)
	if o.Group == "" {
		o.Group = "test"
	}
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Peers = p
	urls := map[string]*kvroute.Worker{}
	for i := range 2 {
		w := kvroute.NewWorker(fmt.Sprint(o.Name, "-", i), kvroute.Both, 0)
		w.SetModels([]kvroute.Model{{Name: "m"}})
		w.SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 10000, MaxBatchedTokens: 8192, MaxSeqs: 256})
		w.ProbeOK(time.Now())
		urls[fmt.Sprintf("http://10.0.0.%d:8000", i)] = w
		r.workers = append(r.workers, w)
	}
	p.SetWorkers(urls)
	r.pool = kvroute.NewPool(kvroute.PoolOptions{Workers: r.workers, Policy: kvroute.Predict, News: p.Tell})
	t.Cleanup(p.Close)
	return r
}

func (r *replica) place(t testing.TB, tokens int) kvroute.Placement {
	t.Helper()
	ids := make([]uint32, tokens)
	at, err := r.pool.Place(kvroute.Query{Now: time.Now(), Model: "m", Prompt: &kvroute.Prompt{IDs: ids}})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// away is what others have under way, by slots.
func (r *replica) away() (n int) {
	for _, w := range r.workers {
		n += w.Away()
	}
	return n
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}

func (r *replica) knows(t testing.TB, others int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s knows %d others: %+v", r.options.Name, others, r.Status()), func() bool { return len(r.Status().Peers) == others })
}

// sees waits until the replica knows of so many legs and requests of others, and of no more.
func (r *replica) sees(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s sees %d: %+v, %d away", r.options.Name, n, r.Status(), r.away()), func() bool { return r.Status().Legs == n && r.away() == n })
}

func fleet(t testing.TB, o Options, n int) (all []*replica) {
	t.Helper()
	for i := range n {
		o.Name = fmt.Sprint("r", i)
		all = append(all, newReplica(t, o))
	}
	for _, r := range all {
		r.knows(t, n-1)
	}
	return all
}

func TestLoadIsShared(t *testing.T) {
	s := natsServer(t, server.Options{})
	all := fleet(t, Options{Servers: []string{s.ClientURL()}}, 4)
	var placed []kvroute.Placement
	for i := range 20 {
		placed = append(placed, all[i%2].place(t, 1600))
	}
	all[2].sees(t, 20)
	all[0].sees(t, 10)
	for i := range placed {
		placed[i].Release()
	}
	for _, r := range all {
		r.sees(t, 0)
		if s := r.Status(); s.Problem != "" || s.Malformed+s.Foreign+s.Unserved+s.Dropped+s.Gaps > 0 || s.In == 0 || s.InBytes == 0 || s.Out == 0 || s.OutBytes == 0 {
			t.Errorf("%+v", s)
		}
	}
}

// A replica whose NATS connection ends without a word is forgotten after three heartbeats; one that
// stops is at once.
func TestGone(t *testing.T) {
	s := natsServer(t, server.Options{})
	all := fleet(t, Options{Servers: []string{s.ClientURL()}}, 3)
	for _, r := range all {
		at := r.place(t, 160)
		defer at.Release()
	}
	all[0].sees(t, 2)
	began := time.Now()
	all[1].conn.Load().Close()
	all[0].sees(t, 1)
	if took := time.Since(began); took < peering.Silent-peering.Heartbeat {
		t.Errorf("forgotten after %v", took)
	}
	last := newReplica(t, Options{Name: "r3", Servers: []string{s.ClientURL()}})
	last.sees(t, 2) // it was told what began before it came
	at := last.place(t, 160)
	defer at.Release()
	all[0].sees(t, 2)
}

// NATS is stopped and comes again: each goes on alone meanwhile, and is right again after it.
func TestNATSRestarted(t *testing.T) {
	s := natsServer(t, server.Options{})
	all := fleet(t, Options{Servers: []string{s.ClientURL()}}, 2)
	before := all[0].place(t, 160)
	all[1].sees(t, 1)
	port := s.Addr().String()[strings.LastIndex(s.Addr().String(), ":")+1:]
	s.Shutdown()
	s.WaitForShutdown()
	eventually(t, "NATS is away", func() bool { return strings.HasPrefix(all[0].Status().Problem, "NATS is away since 2") })
	before.Release()
	during := all[0].place(t, 320)
	all[1].sees(t, 0) // forgotten
	var number int
	_, _ = fmt.Sscan(port, &number)
	natsServer(t, server.Options{Port: number})
	all[1].sees(t, 1)
	if all[1].log.count("NATS is away") != 1 || all[1].log.count("connected to NATS") != 2 {
		t.Errorf("the log: %s", all[1].log.text.String())
	}
	during.Release()
	all[1].sees(t, 0)
	if p := all[0].Status().Problem; p != "" {
		t.Errorf("it is back: %s", p)
	}
}

// What strangers publish is counted and dropped.
func TestStrangers(t *testing.T) {
	s := natsServer(t, server.Options{})
	all := fleet(t, Options{Servers: []string{s.ClientURL()}}, 2)
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	garbage := make([]byte, 1000)
	_, _ = rand.Read(garbage)
	garbage[0] = 2 // the version
	for range 3 {
		for _, m := range [][]byte{garbage, {99, 1}, nil} {
			if err := conn.Publish(all[0].subject, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the bad are counted", func() bool {
		s := all[0].Status()
		return s.Malformed+uint64(len(s.Peers)-1) >= 1 && s.Foreign == 3
	})
	if n := all[0].log.count("speaks another version"); n != 1 {
		t.Errorf("told %d times of another version", n)
	}
	at := all[1].place(t, 160)
	all[0].sees(t, 1)
	at.Release()
	all[0].sees(t, 0)
}

// A replica that does not keep up loses messages, and gets a snapshot when it does again.
func TestSlowConsumer(t *testing.T) {
	s := natsServer(t, server.Options{})
	held, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := newReplica(t, Options{Name: "slow", Servers: []string{s.ClientURL()}})
	slow.HearSpent(func(time.Time, uint64, float64) {
		once.Do(func() { close(held) })
		<-free
	})
	fast := newReplica(t, Options{Name: "fast", Servers: []string{s.ClientURL()}})
	slow.knows(t, 1)
	fast.knows(t, 1)
	fast.Spend(1, 1) // known from here on
	fast.Spend(1, 1)
	eventually(t, "it hangs", func() bool {
		fast.Spend(1, 1)
		select {
		case <-held:
			return true
		default:
			return false
		}
	})
	at := fast.place(t, 160)
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range mostWaiting + 1000 {
		if err := conn.Publish(slow.subject, []byte{77}); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.Flush()
	eventually(t, "messages are dropped", func() bool { return slow.slow.Load() > 0 })
	at2 := fast.place(t, 160)
	close(free)
	slow.sees(t, 2)
	at.Release()
	at2.Release()
	slow.sees(t, 0)
}

// Who shows no credentials, or others, is told so, and nothing is shared.
func TestCredentials(t *testing.T) {
	pair, _ := nkeys.CreateUser()
	public, _ := pair.PublicKey()
	seed, _ := pair.Seed()
	token := natsServer(t, server.Options{Authorization: "right"})
	nkey := natsServer(t, server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}})
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"right token", Options{Servers: []string{token.ClientURL()}, Token: "right"}, ""},
		{"wrong token", Options{Servers: []string{token.ClientURL()}, Token: "wrong"}, "Authorization Violation"},
		{"no token", Options{Servers: []string{token.ClientURL()}}, "Authorization Violation"},
		{"nkey", Options{Servers: []string{nkey.ClientURL()}, Seed: seed}, ""},
		{"no nkey", Options{Servers: []string{nkey.ClientURL()}}, ""},
	} {
		c.o.Name, c.o.Group = "r", "test"
		_, err := Check(context.Background(), c.o)
		if bad := c.want != "" || c.name == "no nkey"; (err != nil) != bad {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "no nkey" {
			continue
		}
		r := newReplica(t, c.o)
		eventually(t, c.name, func() bool {
			p := r.Status().Problem
			return c.want == "" && p == "" || c.want != "" && strings.Contains(strings.ToLower(p), strings.ToLower(c.want))
		})
	}
}

// A user that may not publish is a problem that status tells, and that the log has once.
func TestMayNotPublish(t *testing.T) {
	s := natsServer(t, server.Options{Users: []*server.User{{
		Username: "u", Password: "p",
		Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{">"}}},
	}}})
	r := newReplica(t, Options{Name: "r", Servers: []string{strings.Replace(s.ClientURL(), "nats://", "nats://u:p@", 1)}})
	eventually(t, "it is told", func() bool { return strings.Contains(strings.ToLower(r.Status().Problem), "permissions violation") })
	for range 3 {
		r.publish([][]byte{{1}})
	}
	r.trouble(fmt.Errorf("another: %w", nats.ErrPermissionViolation))
	eventually(t, "the other one is told", func() bool { return r.log.count("NATS tells of a problem") >= 2 })
	_ = r.conn.Load().FlushTimeout(patience)
	if n := r.log.count("NATS tells of a problem"); n != 2 {
		t.Errorf("told %d times", n)
	}
	r.setAway("") // as after a reconnect
	if p := r.Status().Problem; strings.Contains(p, "another") {
		t.Errorf("after a reconnect: %s", p)
	}
}

// Servers inside two Kvasirs are one cluster, with a token.
func TestInside(t *testing.T) {
	one := inside(t, natsserver.Options{Name: "one", Token: "secret"})
	two := inside(t, natsserver.Options{Name: "two", Token: "secret", Routes: []string{"nats://" + one.Address()}})
	wrong := inside(t, natsserver.Options{Name: "wrong", Token: "guessed", Routes: []string{"nats://" + one.Address()}})
	a := newReplica(t, Options{Name: "a", Server: one})
	b := newReplica(t, Options{Name: "b", Server: two})
	c := newReplica(t, Options{Name: "c", Server: wrong})
	at := a.place(t, 160)
	b.sees(t, 1)
	at.Release()
	b.sees(t, 0)
	if p := b.Status().Problem; p != "" {
		t.Error(p)
	}
	if p := c.Status(); !strings.Contains(p.Problem, "peers.embed.routes") || len(p.Peers) > 0 {
		t.Errorf("with a wrong token: %+v", p)
	}
}

// Two Kvasirs of one name, as of one configuration, are clustered all the same.
func TestInsideOfOneName(t *testing.T) {
	one := inside(t, natsserver.Options{Name: "same"})
	two := inside(t, natsserver.Options{Name: "same", Routes: []string{"nats://" + one.Address()}})
	a := newReplica(t, Options{Name: "same", Server: one})
	b := newReplica(t, Options{Name: "same", Server: two})
	a.knows(t, 1)
	b.knows(t, 1)
}

func inside(t testing.TB, o natsserver.Options) *natsserver.Server {
	t.Helper()
	o.Log, o.Group, o.Listen = zerolog.Nop(), "test", "127.0.0.1:0"
	s, err := natsserver.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	return s // whoever uses it closes it
}

// All of them place, answer and stop at once.
func TestStopInTheMiddle(t *testing.T) {
	s := natsServer(t, server.Options{})
	all := fleet(t, Options{Servers: []string{s.ClientURL()}}, 4)
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, r := range all {
		for range 4 {
			working.Go(func() {
				pace := time.NewTicker(time.Millisecond) // more than that, and two cores do nothing else
				defer pace.Stop()
				for {
					select {
					case <-stop:
						return
					case <-pace.C:
					}
					at := r.place(t, 640)
					at.Tokens(time.Now(), 1)
					at.Tokens(time.Now(), 300)
					at.Release()
				}
			})
		}
	}
	eventually(t, "messages flow", func() bool { return all[0].Status().In > 50 })
	last := newReplica(t, Options{Name: "last", Servers: []string{s.ClientURL()}})
	last.Peers.Close()
	last.options.Log.Info().Msg("closed")
	all[1].Peers.conn.Load().Close()
	close(stop)
	working.Wait()
	for _, i := range []int{0, 2, 3} {
		all[i].sees(t, 0)
	}
	if !slices.Contains(all[0].Status().Peers, "r2") {
		t.Errorf("%+v", all[0].Status())
	}
}

// The network between two NATS servers is cut for a while: each side goes on alone, and both are right again after it.
func TestPartition(t *testing.T) {
	one := natsServer(t, server.Options{Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: -1, NoAdvertise: true, PoolSize: -1}})
	between := newRelay(t, one.ClusterAddr().String())
	route, _ := url.Parse("nats://" + between.Addr().String())
	two := natsServer(t, server.Options{Routes: []*url.URL{route}, Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: -1, NoAdvertise: true, PoolSize: -1}})
	a := newReplica(t, Options{Name: "a", Servers: []string{one.ClientURL()}})
	b := newReplica(t, Options{Name: "b", Servers: []string{two.ClientURL()}})
	kept, ends := a.place(t, 160), a.place(t, 320)
	b.sees(t, 2)
	between.cut(true)
	b.sees(t, 0)
	a.knows(t, 0)
	ends.Release()
	during := a.place(t, 1600)
	at := b.place(t, 160)
	if s := a.Status(); s.Problem != "" {
		t.Errorf("its own NATS is there: %s", s.Problem)
	}
	between.cut(false)
	b.sees(t, 2)
	a.sees(t, 1)
	for _, one := range []*kvroute.Placement{&kept, &during, &at} {
		one.Release()
	}
	a.sees(t, 0)
	b.sees(t, 0)
}

// A relay is a TCP proxy that can be cut.
type relay struct {
	net.Listener
	mu    sync.Mutex
	isCut bool
	conns []net.Conn
	ends  sync.WaitGroup
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: ln}
	r.ends.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			r.pass(c, to)
		}
	})
	t.Cleanup(func() { _ = ln.Close(); r.cut(true); r.ends.Wait() })
	return r
}

func (r *relay) pass(c net.Conn, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil || r.isCut {
		_ = c.Close()
		if err == nil {
			_ = far.Close()
		}
		return
	}
	r.conns = append(r.conns, c, far)
	copyAll := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	r.ends.Go(func() { copyAll(c, far) })
	r.ends.Go(func() { copyAll(far, c) })
}

func (r *relay) cut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCut = cut; cut {
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.conns = nil
	}
}

// Workers at loopback addresses are each host's own.
func TestLoopbackWorkers(t *testing.T) {
	for raw, own := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost:8000": true, "http://[::1]:8000": true, "http://10.0.0.5:8000": false, "https://vllm.example:443": false, "%": false,
	} {
		if got := between(raw, "a") != between(raw, "b"); got != own {
			t.Errorf("%s: a worker of each host's own: %t", raw, got)
		}
	}
}
