// Four Kvasirs, each with a NATS server beside it that is clustered with the others': one dies under load, one is cut
// off for a while.

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Keys of the partition beside alice, who has a limit: bob's is for the load, carol has a limit and asks one side alone
// while the other is cut off.
const (
	bobSum        = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9" // of "bob"
	bobKey        = "Authorization: Bearer bob"
	carolSum      = "4c26d9074c27d89ede59270c0ac14b71e071b15239519f75474b2f3ba63481f5" // of "carol"
	carolKey      = "Authorization: Bearer carol"
	limitedMinute = 60 // requests of alice, and of carol
	cutFor        = 10 * time.Second
)

// limited is how many requests a key may have within so long that it did not ask before.
func limited(long time.Duration) int { return limitedMinute + arriving(long) }

// arriving is what comes into its bucket within so long.
func arriving(long time.Duration) int { return int(long.Minutes()*limitedMinute) + 1 }

// clustered starts a NATS server whose clients show the token, clustered by routes.
func clustered(t *testing.T, cluster string, routes ...string) (client string) {
	t.Helper()
	host, port, err := net.SplitHostPort(cluster)
	if err != nil {
		t.Fatal(err)
	}
	o := &server.Options{
		Host: "127.0.0.1", Port: -1, NoSigs: true, Authorization: "let-me-in",
		// As those inside have it (peers/natsserver).
		Cluster: server.ClusterOpts{Name: "c", Host: host, NoAdvertise: true, PingInterval: 2 * time.Second, MaxPingsOut: 2, ConnectRetries: 1 << 30},
	}
	if _, err := fmt.Sscan(port, &o.Cluster.Port); err != nil {
		t.Fatal(err)
	}
	for _, route := range routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: route})
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not listen")
	}
	return s.ClientURL()
}

// A dividedLoad asks some Kvasirs all the time, one request at a time each.
type dividedLoad struct {
	t     *testing.T
	sent  []atomic.Int64
	dead  atomic.Int64 // the one that is killed, from 0; -1: none
	spare string       // who is asked instead of it
	under sync.WaitGroup
	stop  context.CancelFunc
}

func startDividedLoad(t *testing.T, all []*kvasir) *dividedLoad {
	ctx, stop := context.WithCancel(t.Context())
	l := &dividedLoad{t: t, sent: make([]atomic.Int64, len(all)), spare: all[0].url, stop: stop}
	l.dead.Store(-1)
	for i, k := range all {
		l.under.Go(func() {
			pace := time.NewTicker(20 * time.Millisecond)
			defer pace.Stop()
			for ; ctx.Err() == nil; <-pace.C {
				l.ask(i, k.url)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// ask asks one. What fails at the one that is killed is asked elsewhere, as a load balancer does.
func (l *dividedLoad) ask(i int, url string) {
	status, body, err := l.post(url)
	if (err != nil || status != http.StatusOK) && l.dead.Load() == int64(i) {
		status, body, err = l.post(l.spare)
	}
	if err != nil || status != http.StatusOK {
		l.t.Errorf("replica %d: %d %v %s", i, status, err, tail(string(body), 300))
	}
	l.sent[i].Add(1)
}

func (l *dividedLoad) post(url string) (status int, body []byte, err error) {
	response, err := http1.Do(newPost(l.t, url+"/v1/chat/completions", chat(false, 5), bobKey))
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// goesOn waits until each has answered some more.
func (l *dividedLoad) goesOn() {
	l.t.Helper()
	for i := range l.sent {
		before := l.sent[i].Load()
		eventually(l.t, patience, fmt.Sprintf("replica %d answers more", i), func() bool { return l.sent[i].Load() > before+20 })
	}
}

func (l *dividedLoad) end() {
	l.stop()
	l.under.Wait()
}

// allowed asks with a key that has a limit, at each in turn, for so long and until at least so many requests were let
// through, as a busy machine asks slowly, and returns how many were. Nothing is refused before that many were.
func allowed(t *testing.T, key string, long time.Duration, least int, at ...*kvasir) (n int) {
	t.Helper()
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for began := time.Now(); time.Since(began) < long || n < least && time.Since(began) < patience; <-pace.C {
		for _, k := range at {
			switch got := post(t, k.url+"/v1/chat/completions", chat(false, 1), key); got.status {
			case http.StatusOK:
				n++
			case http.StatusTooManyRequests:
				if n < least {
					t.Errorf("refused after %d requests, of %d", n, least)
					return n
				}
			default:
				t.Errorf("%d %s", got.status, got.body)
			}
		}
	}
	return n
}

// streamOn has a stream that goes on until the test ends, and is read: Kvasir would take the client for lost. It is begun
// when it returns.
func streamOn(t *testing.T, k *kvasir) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	response, err := http1.Transport.RoundTrip(newPost(t, k.url+"/v1/chat/completions", chat(true, 20000), bobKey).WithContext(ctx)) // the client would end it after a minute
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, response.Body)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = response.Body.Close()
	})
}

// TestReplicasPartition: no request fails when one of four is killed, nor when one is cut off from the others and comes
// back. While it is cut off each side lets a key have as much as one Kvasir would, and no more; then what either side
// let through counts for both, and each knows again what the others have under way.
func TestReplicasPartition(t *testing.T) {
	t.Parallel()
	cluster, between := clusterAddresses(t)
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("let-me-in"), 0o600); err != nil {
		t.Fatal(err)
	}
	partitioned(t, between, func(i int) string {
		return fmt.Sprintf("{servers: [%q], token_file: %s}", clustered(t, cluster[i].listen, cluster[i].routes...), token)
	})
}

// A member of a cluster of NATS servers.
type member struct {
	listen string
	routes []string
}

// clusterAddresses are those of four servers, and the wires between the last one and the others. Servers tell each other
// of third ones by the address that their connections come from, which is 127.0.0.1, and would connect past the wires.
func clusterAddresses(t *testing.T) (all [4]member, between []wire) {
	t.Helper()
	for i := range all {
		_, port, err := net.SplitHostPort(freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		all[i].listen = fmt.Sprintf("127.0.79.%d:%s", i+1, port)
	}
	for i := range all[:3] {
		for _, to := range all[:i] {
			all[i].routes = append(all[i].routes, to.listen)
		}
		between = append(between, newWire(t, all[i].listen))
		all[3].routes = append(all[3].routes, between[i].Listen)
	}
	return all, between
}

// partitioned has four Kvasirs, of which the last one reaches the others by these wires alone.
func partitioned(t *testing.T, between []wire, peers func(i int) string) {
	workers := fmt.Sprintf("[{url: %s}, {url: %s}]", simulate(t).url(), simulate(t).url())
	var all []*kvasir
	for i := range 4 {
		k := serve(t, fmt.Sprintf(`cache: {store: "off"}
classify: {jailbreak: {action: "off"}, pii: {action: "off"}}
gpu: {mode: "off"}
models: [{name: sim, tokenizer: none}]
keys:
  - {name: alice, sha256: %s, requests_per_minute: %d}
  - {name: carol, sha256: %s, requests_per_minute: %d}
  - {name: bob, sha256: %s}
peers: %s
workers: %s
`, frugalSum, limitedMinute, carolSum, limitedMinute, bobSum, peers(i), workers))
		eventually(t, patience, "its workers are up", func() bool { return metric(t, k.admin+"/metrics", "kvasir_worker_up") == 2 })
		all = append(all, k)
	}
	know := func(n float64, who ...int) {
		t.Helper()
		for _, i := range who {
			eventually(t, patience, fmt.Sprintf("%d knows %v others", i, n), func() bool { return metric(t, all[i].admin+"/metrics", "kvasir_peers_known") == n })
		}
	}
	know(3, 0, 1, 2, 3)
	streamOn(t, all[0])
	streamOn(t, all[3])
	streamOn(t, all[2]) // it dies with its Kvasir
	load := startDividedLoad(t, all)
	load.goesOn()

	load.dead.Store(2)
	all[2].mayFail = true
	if err := all[2].cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	know(2, 0, 1, 3)
	load.goesOn()

	// The network swallows everything and closes nothing.
	for _, w := range between {
		w.inject(toxin{"timeout", "upstream", `{"timeout":0}`})
		w.inject(toxin{"timeout", "downstream", `{"timeout":0}`})
	}
	cut := time.Now()
	know(1, 0, 1)
	know(0, 3)
	streamOn(t, all[1])
	streamOn(t, all[3])
	var a, b, before int
	carol := time.Now()
	var sides sync.WaitGroup
	sides.Go(func() { before = allowed(t, carolKey, 2*time.Second, limitedMinute, all[0], all[1]) })
	sides.Go(func() { a = allowed(t, frugalKey, cutFor-time.Since(cut), limitedMinute, all[0], all[1]) })
	sides.Go(func() { b = allowed(t, frugalKey, cutFor-time.Since(cut), limitedMinute, all[3]) })
	sides.Wait()
	for side, n := range map[string]int{"two": a, "one": b} {
		if most := limited(time.Since(cut)); n > most || n < limitedMinute {
			t.Errorf("the side of %s let %d requests through, of %d to %d", side, n, limitedMinute, most)
		}
	}
	load.goesOn()

	for _, w := range between {
		w.heal()
	}
	know(2, 0, 1, 3)
	// Each has paid for what the other side let through: there is nothing left at any of them but what comes into the
	// one bucket of all.
	after := allowed(t, carolKey, time.Second, 0, all[3])
	if most := limited(time.Since(carol)); before+after > most {
		t.Errorf("one side let %d requests through, and then the other %d, of %d", before, after, most)
	}
	began := time.Now()
	if n, most := allowed(t, frugalKey, 3*time.Second, 0, all[0], all[1], all[3]), arriving(time.Since(began)); n > most {
		t.Errorf("together again they let %d requests through, of %d", n, most)
	}
	load.goesOn()
	load.end()
	for i, n := range map[int]float64{0: 3, 1: 3, 3: 2} { // of the others' streams
		var legs, requests float64
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%d knew of %v legs and %v requests of the others, of %v", i, legs, requests, n)
			}
		})
		eventually(t, patience, fmt.Sprintf("%d knows what the others have under way", i), func() bool {
			page := all[i].admin + "/metrics"
			legs, requests = metric(t, page, "kvasir_peers_legs_active"), metric(t, page, "kvasir_peers_worker_requests_active")
			return legs == n && requests == n
		})
		if n := metric(t, all[i].admin+"/metrics", "kvasir_peers_bad_messages_total"); n != 0 {
			t.Errorf("%d: %v bad messages", i, n)
		}
	}
	t.Logf("%d, %d, %d and %d requests; while cut off one side let alice have %d, the other %d; carol had %d at the one, and %d at the other after it",
		load.sent[0].Load(), load.sent[1].Load(), load.sent[2].Load(), load.sent[3].Load(), a, b, before, after)
}
