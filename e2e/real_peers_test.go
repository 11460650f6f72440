//go:build real

// How long first tokens take with one Kvasir, with four that know of each other, and with four that do not.

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRealReplicasTTFT sends the same requests in the same moments to one Kvasir and to four, before
// four simulated workers that are two thirds busy. It is no test of speed: it logs what it found,
// and wants only that those who know of each other do better than those who do not.
func TestRealReplicasTTFT(t *testing.T) {
	address := freeAddress(t)
	startNATS(t, address)
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("let-me-in"), 0o600); err != nil {
		t.Fatal(err)
	}
	peers := fmt.Sprintf("peers: {servers: [\"nats://%s\"], token_file: %s}\n", address, token)
	var means []time.Duration
	for _, c := range []struct {
		name     string
		replicas int
		peers    string
	}{{"one", 1, ""}, {"four that know of each other", 4, peers}, {"four that do not", 4, ""}} {
		config := "cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\n" +
			"models: [{name: sim, tokenizer: none}]\n" + c.peers + "workers:\n"
		for range 4 {
			config += "  - url: " + simulate(t).url() + "\n"
		}
		var all []*kvasir
		for range c.replicas {
			all = append(all, serve(t, config, "sim"))
		}
		if c.peers != "" {
			for _, k := range all {
				eventually(t, patience, "they know each other", func() bool { return metric(t, k.admin+"/metrics", "kvasir_peers_known") == 3 })
			}
		}
		took := play(t, all)
		mean := time.Duration(0)
		for _, d := range took {
			mean += d / time.Duration(len(took))
		}
		slices.Sort(took)
		means = append(means, mean)
		text := fmt.Sprintf("%s: mean %v, p50 %v, p99 %v", c.name, mean.Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond))
		if c.peers != "" {
			messages, bytes := 0.0, 0.0
			for _, k := range all {
				messages += metric(t, k.admin+"/metrics", `kvasir_peers_messages_total{direction="out"}`)
				bytes += metric(t, k.admin+"/metrics", `kvasir_peers_bytes_total{direction="out"}`)
			}
			text += fmt.Sprintf("; %.1f messages and %.0f bytes a request", messages/float64(len(took)), bytes/float64(len(took)))
		}
		t.Log(text)
		for _, k := range all {
			k.stop(t)
		}
	}
	if means[2] < means[1] {
		t.Errorf("those who do not know of each other do better")
	}
}

// TestRealReplicasInside is TestReplicasPartition with the NATS server that is built in with its tag: one that is killed
// takes it along.
func TestRealReplicasInside(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kvasir")
	build := exec.Command("go", "build", "-trimpath", "-tags", "nats_server", "-o", program, ".")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build: %v\n%s", err, out)
	}
	t.Setenv("KVASIR_BIN", program)
	cluster, between := clusterAddresses(t)
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("let-me-in"), 0o600); err != nil {
		t.Fatal(err)
	}
	partitioned(t, between, func(i int) string {
		routes := ""
		for _, to := range cluster[i].routes {
			routes += fmt.Sprintf("%q, ", "nats://"+to)
		}
		return fmt.Sprintf("{token_file: %s, embed: {listen: %q, routes: [%s]}}", token, cluster[i].listen, routes)
	})
}

// play sends 600 requests at random moments of 40 s, each to one of them, and returns how long the
// first tokens took.
func play(t *testing.T, all []*kvasir) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	words := strings.Fields("the quick brown fox jumps over a lazy dog and runs far away from here until night falls")
	took := make([]time.Duration, 600)
	var playing sync.WaitGroup
	next := time.Now()
	for i := range took {
		var text strings.Builder
		for range 2000 + random.IntN(8000) {
			text.WriteString(words[random.IntN(len(words))] + " ")
		}
		body := strings.Replace(chat(true, 20+random.IntN(60)), "Name three colours.", text.String(), 1)
		k := all[random.IntN(len(all))]
		next = next.Add(time.Duration(-math.Log(1-random.Float64()) * float64(40*time.Second) / float64(len(took))))
		time.Sleep(time.Until(next))
		playing.Go(func() {
			began := time.Now()
			s := open(t, k.url+chatRoute, body)
			s.skip(t, 1)
			took[i] = time.Since(began)
			s.rest()
		})
	}
	playing.Wait()
	return took
}
