// The soak of workers that come and go: no request is lost while a source finds others ten times a second.

package e2e

import (
	"context"
	"encoding/json"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	flapping  = 100                    // workers
	flapEvery = 100 * time.Millisecond // another half of them
)

// TestSoakFlapping has a hundred workers in a file of which every tenth of a second another half stands there.
func TestSoakFlapping(t *testing.T) {
	t.Parallel()
	long := 8 * time.Second // make soak has as long as for the rest
	if os.Getenv("KVASIR_SOAK") != "" {
		long = soakTime(t)
	}
	var all []string
	for range flapping {
		worker := httptest.NewServer(http.HandlerFunc(soakAnswer))
		t.Cleanup(worker.Close)
		all = append(all, worker.URL)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "workers.json")
	list := func() {
		mathrand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var found []map[string]any
		for _, url := range all[:flapping/2] {
			found = append(found, map[string]any{"url": url, "models": []string{"m"}})
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".part", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".part", file); err != nil {
			t.Fatal(err)
		}
	}
	list()
	config := "cache: {store: 'off'}\nmodels: [{name: m, default: true, tokenizer: none}]\ndiscovery: [{kind: file, path: '" + dir + "'}]\n"
	s := &soaking{k: serve(t, config, "m")}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.askAll(ctx, soakRate(t))
	}()
	lists := 0
	for tick := time.NewTicker(flapEvery); ctx.Err() == nil; <-tick.C {
		list()
		lists++
	}
	<-done
	t.Logf("%d requests over %d lists: %d whole, %d refused, %d interrupted, %d lost, %d mixed; %v seconds of CPU",
		s.sent.Load(), lists, s.whole.Load(), s.refused.Load(), s.interrupted.Load(), s.lost.Load(), s.mixed.Load(),
		metric(t, s.k.admin+"/metrics", "process_cpu_seconds_total"))
	if s.whole.Load() < s.sent.Load() || s.sent.Load() == 0 {
		t.Errorf("of %d requests %d were answered whole; the first that was not: %s", s.sent.Load(), s.whole.Load(), s.first)
	}
	if changes := metric(t, s.k.admin+"/metrics", "kvasir_discovery_changes_total"); changes < 5 {
		t.Errorf("%v changes were seen of %d lists", changes, lists)
	}
}
