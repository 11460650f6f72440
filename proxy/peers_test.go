// Two proxies before the same worker that know of each other, over a real NATS server.

package proxy

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"

	"kvasir/kvroute"
	"kvasir/peers"
)

func startNATS(t testing.TB) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not listen")
	}
	return s.ClientURL()
}

func startPeers(t testing.TB, name, url string) *peers.Peers {
	t.Helper()
	p, err := peers.Start(peers.Options{Log: zerolog.Nop(), Name: name, Group: "test", Servers: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// A worker that is full with another proxy's requests gets none of this one's; both call it
// differently, and a reload that changes its settings forgets nothing.
func TestPeersShareWorkers(t *testing.T) {
	free := make(chan struct{})
	w := startWorker(t, func(c net.Conn, _ string) bool {
		<-free
		_, err := fmt.Fprint(c, httpReply(200, "application/json", `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}]}`))
		return err == nil
	})
	nats := startNATS(t)
	settings := func(name string, p *peers.Peers, url string) *Settings {
		s := settingsFor(url)
		s.Workers[0].Name, s.Workers[0].MaxRequests = name, 2
		s.Peers, s.Routing.Queue, s.Routing.Policy = p, false, kvroute.Predict
		return s
	}
	one, two := startPeers(t, "one", nats), startPeers(t, "two", nats)
	a := startProxy(t, settings("a", one, w.url))
	b := startProxy(t, settings("b", two, strings.ToUpper(w.url[:4])+w.url[4:]+"/"))
	waitUntil(t, "they know each other", func() bool { return one.Others() == 1 && two.Others() == 1 })
	asked := make(chan received, 2)
	for range 2 {
		go func() { asked <- a.ask(t, "/v1/chat/completions", plainChat) }()
	}
	worker := func(p *testProxy) *backend { return p.state.Load().ordered[0] }
	waitUntil(t, "b knows of them", func() bool { return worker(b).Away() == 2 })
	if got := b.ask(t, "/v1/chat/completions", plainChat); got.StatusCode != 429 && got.StatusCode != 503 {
		t.Errorf("a full worker: %d %s", got.StatusCode, got.body)
	}
	next := settings("c", two, w.url)
	next.Workers[0].Headers = map[string]string{"X-New": "1"}
	if err := b.Apply(next); err != nil {
		t.Fatal(err)
	}
	if worker(b).Name() != "c" || worker(b).Away() != 2 {
		t.Errorf("%s has %d away", worker(b).Name(), worker(b).Away())
	}
	page := b.metricsPage(t)
	for _, want := range []string{`kvasir_peers_worker_requests_active{worker="c"} 2`, "kvasir_peers_known 1", "kvasir_peers_connected 1", "kvasir_peers_legs_active 2"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	close(free)
	for range 2 {
		if got := <-asked; got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
	}
	waitUntil(t, "b knows that they have ended", func() bool { return worker(b).Away() == 0 })
	if got := b.ask(t, "/v1/chat/completions", plainChat); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// Without NATS requests go on, and /readyz says what is missing.
func TestPeersWithoutNATS(t *testing.T) {
	s := settingsFor(goodWorker(t).url)
	s.Peers = startPeers(t, "alone", "nats://127.0.0.1:1")
	p := startProxy(t, s)
	if got := p.ask(t, "/v1/chat/completions", plainChat); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	waitUntil(t, "/readyz says it", func() bool {
		r := p.Readiness()
		return r.Code == 200 && r.Status == "degraded" && len(r.Reasons) == 1 && strings.HasPrefix(r.Reasons[0], "peers: NATS is away since ")
	})
}
