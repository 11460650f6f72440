// Equal requests at four Kvasirs that have one cache, a real Milvus, are asked once.

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestReplicasAskOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	answer := make(chan struct{})
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
			return
		}
		asked.Add(1)
		<-answer
		_, _ = fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Red, green, blue."}}],"usage":{"prompt_tokens":4,"completion_tokens":6,"total_tokens":10}}`)
	}))
	t.Cleanup(worker.Close)
	free := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(free)
	address := freeAddress(t)
	startNATS(t, address)
	token := t.TempDir() + "/token"
	if err := os.WriteFile(token, []byte("let-me-in\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`cache: {store: milvus, milvus: {address: %q, timeout: 2s}}
models: [{name: m, default: true, tokenizer: none}]
peers: {servers: ["nats://%s"], token_file: %s}
workers: [{url: %s}]
`, aMilvus(t), address, token, worker.URL)
	var all []*kvasir
	for range 4 {
		all = append(all, serve(t, config, "m"))
	}
	for _, k := range all {
		eventually(t, patience, "all know each other and Milvus", func() bool {
			return metric(t, k.admin+"/metrics", "kvasir_peers_known") == 3 && !strings.Contains(string(get(t, k.admin+"/readyz").body), "Milvus")
		})
	}
	const body = `{"model":"m","messages":[{"role":"user","content":"Name three colours."}]}`
	var asking sync.WaitGroup
	ask := func(k *kvasir) {
		asking.Go(func() {
			if got := post(t, k.url+"/v1/chat/completions", body); got.status != 200 || !strings.Contains(string(got.body), "Red, green, blue.") {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	ask(all[0])
	eventually(t, patience, "the worker is asked, and the others know", func() bool {
		for _, k := range all[1:] {
			if metric(t, k.admin+"/metrics", "kvasir_peers_worker_requests_active") != 1 {
				return false
			}
		}
		return asked.Load() == 1
	})
	for _, k := range all[1:] {
		ask(k)
		ask(k)
	}
	for _, k := range all[1:] {
		eventually(t, patience, "they wait", func() bool { return metric(t, k.admin+"/metrics", "kvasir_coalesced_followers") == 2 })
	}
	free()
	asking.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the worker was asked %d times", n)
	}
	for i, k := range all {
		if n := metric(t, k.admin+"/metrics", "kvasir_peers_bad_messages_total"); n != 0 {
			t.Errorf("%d: %v bad messages", i, n)
		}
	}
}
