// Four Kvasirs before the same workers, as processes, that know of each other over a real NATS server.

package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startNATS starts a NATS server at an address, with a token.
func startNATS(t testing.TB, address string) *server.Server {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{Host: a.IP.String(), Port: a.Port, NoSigs: true, Authorization: "let-me-in"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not listen")
	}
	return s
}

// TestReplicas: what each of four has under way is known to all; one that is killed is forgotten with
// it; NATS may stop and come again, and no request fails for any of that.
func TestReplicas(t *testing.T) {
	t.Parallel()
	workers := []*worker{simulate(t), simulate(t)}
	address := freeAddress(t)
	nats := startNATS(t, address)
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("let-me-in\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`cache: {store: "off"}
classify: {jailbreak: {action: "off"}, pii: {action: "off"}}
gpu: {mode: "off"}
models: [{name: sim, tokenizer: none}]
peers: {servers: ["nats://%s"], token_file: %s}
workers: [{url: %s}, {url: %s/}]
`, address, token, workers[0].url(), workers[1].url())
	var all []*kvasir
	for range 4 {
		all = append(all, serve(t, config, "sim"))
	}
	known := func(k *kvasir, n float64) {
		t.Helper()
		eventually(t, patience, fmt.Sprintf("%v others are known", n), func() bool { return metric(t, k.admin+"/metrics", "kvasir_peers_known") == n })
	}
	away := func(k *kvasir, n float64) {
		t.Helper()
		eventually(t, patience, fmt.Sprintf("%v requests of others are known", n), func() bool {
			page := k.admin + "/metrics"
			return metric(t, page, "kvasir_peers_worker_requests_active") == n && metric(t, page, "kvasir_peers_legs_active") == n
		})
	}
	for _, k := range all {
		known(k, 3)
	}
	// Two long streams at each. Policy predict prices by what all have, so that the workers share them.
	var streams []*liveStream
	for _, k := range all {
		for range 2 {
			s := open(t, k.url+"/v1/chat/completions", chat(true, 20000))
			s.skip(t, 1)
			streams = append(streams, s)
			for _, other := range all {
				if other != k {
					eventually(t, patience, "it is known", func() bool { return metric(t, other.admin+"/metrics", "kvasir_peers_legs_active") > 0 })
				}
			}
		}
	}
	for _, k := range all {
		away(k, 6)
	}
	a, b := workers[0].running(t), workers[1].running(t)
	if a+b != 8 || a < 2 || b < 2 {
		t.Errorf("the workers have %v and %v requests", a, b)
	}
	// One dies.
	all[3].mayFail = true
	if err := all[3].cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	away(all[0], 4)
	known(all[0], 2)
	// NATS goes, and comes again.
	nats.Shutdown()
	nats.WaitForShutdown()
	eventually(t, patience, "/readyz says it", func() bool {
		return strings.Contains(string(get(t, all[0].admin+"/readyz").body), "peers: NATS is away")
	})
	away(all[0], 0)
	for _, k := range all[:3] {
		if got := post(t, k.url+"/v1/chat/completions", chat(false, 5)); got.status != 200 {
			t.Errorf("without NATS: %d %s", got.status, got.body)
		}
	}
	startNATS(t, address)
	for _, k := range all[:3] {
		away(k, 4)
	}
	// They stop, one after the other, while requests come.
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for range 50 {
				if got := post(t, all[0].url+"/v1/chat/completions", chat(false, 5)); got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	for _, s := range streams {
		s.cancel()
	}
	all[1].stop(t)
	known(all[0], 1)
	asking.Wait()
	away(all[0], 0)
	if n := metric(t, all[0].admin+"/metrics", "kvasir_peers_bad_messages_total"); n != 0 {
		t.Errorf("%v bad messages", n)
	}
	began := time.Now()
	all[0].stop(t)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to stop", took)
	}
}
