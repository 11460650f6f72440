// Reload: a configuration that changes all the time, and is wrong or half-written in between.

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestHostileReloadLosesRequests: every request is answered, by the last configuration that could be read.
func TestHostileReloadLosesRequests(t *testing.T) {
	t.Parallel()
	w := echoWorker(t)
	configOf := func(i int) string {
		return fmt.Sprintf("workers: [{name: w%d, url: \"%s\", engine: openai, models: [m]}]\nmodels: [{name: m, default: true, tokenizer: none}]\ngpu: {mode: \"off\"}\n"+
			"cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\nrouting: {policy: %s}\n", i%3, w.URL, []string{"predict", "kv", "p2c"}[i%3])
	}
	k := serve(t, configOf(0), "m")
	var stop atomic.Bool
	var load sync.WaitGroup
	var answered atomic.Int64
	for range 4 {
		load.Go(func() {
			for !stop.Load() {
				if r := post(t, k.url+"/v1/chat/completions", chatOf("What is the old market of Lyon known for?")); r.status != http.StatusOK || r.end != nil {
					t.Errorf("%d %s %v", r.status, r.body, r.end)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 60 {
		text := configOf(i)
		switch i % 4 {
		case 1:
			text = text[:len(text)*i/60] // half-written
		case 2:
			text = strings.Replace(text, "predict", "best", 1) + "unknown: 1\n"
		case 3:
			text = "\x00\xff: [{{{"
		}
		if err := os.WriteFile(k.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			_ = k.cmd.Process.Signal(syscall.SIGHUP)
		}
		r := post(t, k.admin+"/reload", "", "X-Kvasir-Admin: 1")
		if good := r.status == http.StatusOK; i%4 != 1 && good != (i%4 == 0) {
			t.Errorf("reload %d answers %d %s", i, r.status, r.body)
		}
	}
	if err := os.WriteFile(k.file, []byte(configOf(2)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the last one holds", func() bool {
		return post(t, k.admin+"/reload", "", "X-Kvasir-Admin: 1").status == http.StatusOK &&
			post(t, k.url+"/v1/chat/completions", chatOf("And Lille?")).header.Get("x-kvasir-worker") == "w2"
	})
	stop.Store(true)
	load.Wait()
	if answered.Load() < 60 {
		t.Errorf("%d requests", answered.Load())
	}
}
