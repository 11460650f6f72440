// Idle streams: what one holds while its worker is silent.

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestIdleStreamsKeepSmallStacks: a goroutine's stack doubles when it is full, and stays so while the
// stream lives, which no profile of the heap shows. Each stream here comes on a fresh connection and
// has one to its worker dialled.
func TestIdleStreamsKeepSmallStacks(t *testing.T) {
	t.Parallel()
	w := httptest.NewServer(http.HandlerFunc(silentAfterAToken))
	t.Cleanup(w.Close)
	k := serve(t, "cache: {store: \"off\"}\nclassify: {jailbreak: {action: \"off\"}, pii: {action: \"off\"}}\ngpu: {mode: \"off\"}\n"+
		"routing: {policy: round_robin}\nmodels: [{name: sim, tokenizer: none, reasoning: none}]\nworkers: [{name: a, url: "+w.URL+", engine: openai}]\n", "sim")
	openSome := func(n int) {
		for range n {
			open(t, k.url+"/v1/chat/completions", chat(true, 5)).skip(t, 2)
		}
	}
	stacks := func() float64 { return metric(t, k.admin+"/metrics", "go_memstats_stack_inuse_bytes") }
	openSome(1) // what only the first one needs
	const streams = 200
	before := stacks()
	openSome(streams)
	if each := (stacks() - before) / streams; each > 11<<10 {
		t.Errorf("an idle stream holds %.1f KiB of stack, want 8 and a little", each/1024)
	}
}

// silentAfterAToken streams a role event and a token, then nothing for as long as the client stays.
func silentAfterAToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		rogue(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client goes
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{roleEvent(), deltaEvent("word")} {
		_, _ = io.WriteString(w, event)
		_ = http.NewResponseController(w).Flush()
	}
	<-r.Context().Done()
}
