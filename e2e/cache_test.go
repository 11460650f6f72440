// The semantic cache as users meet it: over restarts, in both forms, with each store.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// asked is a request with one question, and its reply.
type asked struct {
	header http.Header
	text   string
}

// askCached asks a question that may be answered from the cache: the answer has no bound that would
// cut it off.
func askCached(t testing.TB, k *kvasir, model, question string, stream bool, headers ...string) asked {
	t.Helper()
	r := post(t, k.url+"/v1/chat/completions", cachedBody(model, question, stream), headers...)
	if r.status != 200 || r.end != nil {
		t.Fatalf("%q: %d %v %s", question, r.status, r.end, tail(string(r.body), 600))
	}
	return asked{r.header, contentOf(t, string(r.body), stream)}
}

// cachedBody is one question. Members of messages always have one order: another one is another
// scope.
func cachedBody(model, question string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":%q}]}`, model, stream, question)
}

// contentOf is the text of a chat's answer, whole or put together from its events.
func contentOf(t testing.TB, body string, stream bool) string {
	t.Helper()
	type choice struct {
		Message, Delta struct{ Content string }
	}
	var whole struct{ Choices []choice }
	if !stream {
		if err := json.Unmarshal([]byte(body), &whole); err != nil || len(whole.Choices) != 1 {
			t.Fatalf("no answer: %v\n%s", err, tail(body, 600))
		}
		return whole.Choices[0].Message.Content
	}
	if !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Fatalf("no whole stream: %s", tail(body, 300))
	}
	text := ""
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || strings.HasPrefix(data, "[DONE]") {
			continue
		}
		var event struct{ Choices []choice }
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, c := range event.Choices {
			text += c.Delta.Content
		}
	}
	return text
}

// untilKept asks until the answer comes from the cache: it is kept after it was sent.
func untilKept(t testing.TB, k *kvasir, model, question string) (hit asked) {
	t.Helper()
	eventually(t, patience, "the answer is kept", func() bool {
		hit = askCached(t, k, model, question, false)
		return hit.header.Get("x-vsr-cache-hit") == "true"
	})
	return hit
}

// TestCacheAsMakeRun is what the cache does with the configuration of `make run`.
func TestCacheAsMakeRun(t *testing.T) {
	t.Parallel()
	testCache(t, asMakeRun(t))
}

// TestCacheInMilvus is the same with a real Milvus.
func TestCacheInMilvus(t *testing.T) {
	t.Parallel()
	k := serve(t, fmt.Sprintf("simulate: [{}]\ncache: {store: milvus, milvus: {address: %q, timeout: 2s}}\n", aMilvus(t)), "sim")
	eventually(t, patience, "Milvus is connected", func() bool {
		return !strings.Contains(string(get(t, k.admin+"/readyz").body), "Milvus")
	})
	testCache(t, k)
}

func testCache(t *testing.T, k *kvasir) {
	const question = "How do I reset the password of my account?"
	first := askCached(t, k, "sim", question, false)
	if first.header.Get("x-kvasir-cache") != "miss" || first.header.Get("x-vsr-cache-hit") != "" {
		t.Errorf("the first answer's headers: %v", first.header)
	}
	kept := untilKept(t, k, "sim", question)
	for _, stream := range []bool{false, true} {
		for _, same := range []string{question, "how can I reset the password of my account", "Please tell me: how do I reset my account's password?"} {
			got := askCached(t, k, "sim", same, stream)
			if got.text != kept.text || got.text == "" {
				t.Errorf("stream %v: %q is answered %q", stream, same, tail(got.text, 200))
			}
			for name, want := range map[string]string{
				"x-vsr-cache-hit": "true", "x-vsr-response-path": "cache", "x-kvasir-cache": "hit", "x-kvasir-worker": "",
				"x-kvasir-cache-entry": kept.header.Get("x-kvasir-cache-entry"),
			} {
				if got.header.Get(name) != want {
					t.Errorf("stream %v: %q: %s is %q, want %q", stream, same, name, got.header.Get(name), want)
				}
			}
			if s := got.header.Get("x-vsr-cache-similarity"); s == "" || s > "1.0000" || got.header.Get("x-kvasir-cache-age") == "" {
				t.Errorf("%q: similarity %q, age %q", same, s, got.header.Get("x-kvasir-cache-age"))
			}
		}
	}
	untilKept(t, k, "sim", "Convert 250 miles to kilometres for me")
	for _, other := range []string{
		"How do I not reset the password of my account?", "How do I delete the password of my account?",
		"How do I reset the password of Maria Schmidt's account?", "Convert 350 miles to kilometres for me", "Convert 250 kilometres to miles for me",
	} {
		if got := askCached(t, k, "sim", other, false); got.header.Get("x-vsr-cache-hit") != "" {
			t.Errorf("%q is answered from the cache: %v", other, got.header)
		}
	}
	if resp, _ := askChat(t, k, "sim", cardNumber, false); resp.Header.Get("x-vsr-pii-violation") != "true" {
		t.Errorf("a guard is skipped: %v", resp.Header)
	}
	dropFromCache(t, k, question, kept.header.Get("x-kvasir-cache-entry"))
}

// dropFromCache drops an entry on the admin listener: the question is asked anew.
func dropFromCache(t *testing.T, k *kvasir, question, id string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodDelete, k.admin+"/cache/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Kvasir-Admin", "1")
	if r := do(t, request); r.status != 200 {
		t.Errorf("DELETE /cache/%s: %d %s", id, r.status, r.body)
	}
	eventually(t, patience, "the entry is gone", func() bool {
		got := askCached(t, k, "sim", question, false, "x-kvasir-cache: no-store", "Cache-Control: no-store")
		return got.header.Get("x-kvasir-cache-entry") != id
	})
}

// TestCacheOutlivesKill kills Kvasir in the middle of writes: every entry that was seen in the cache
// before is there after.
func TestCacheOutlivesKill(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf("simulate: [{speedup: 100}]\ncache: {path: %q}\n", filepath.Join(t.TempDir(), "answers.kvasir"))
	k := serve(t, config, "sim")
	var mu sync.Mutex
	seen := map[string]asked{}
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				question := fmt.Sprintf("Write a note about item %d of shelf %d.", i, w)
				body := cachedBody("sim", question, false)
				for range 2 { // made and kept, then seen
					r, err := http1.Post(k.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						return // killed
					}
					_ = r.Body.Close()
					if r.Header.Get("x-vsr-cache-hit") == "true" {
						mu.Lock()
						seen[question] = asked{header: r.Header}
						mu.Unlock()
					}
				}
			}
		})
	}
	eventually(t, patience, "40 entries are seen", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) >= 40
	})
	k.kill(t)
	writers.Wait()
	k = serve(t, config, "sim")
	for question, before := range seen {
		after := askCached(t, k, "sim", question, true)
		if id := after.header.Get("x-kvasir-cache-entry"); id == "" || id != before.header.Get("x-kvasir-cache-entry") {
			t.Errorf("%q: entry %q, was %q", question, id, before.header.Get("x-kvasir-cache-entry"))
		}
	}
	explainsHit(t, k, seen)
}

// explainsHit asks kvasir explain about one of the questions, while Kvasir has the file open.
func explainsHit(t *testing.T, k *kvasir, seen map[string]asked) {
	t.Helper()
	for question, before := range seen {
		cmd := exec.Command(binary(t), "explain", "--config", k.file)
		cmd.Stdin = strings.NewReader(cachedBody("sim", question, false))
		out, err := cmd.Output()
		if want := "a hit: entry " + before.header.Get("x-kvasir-cache-entry"); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: explain does not say %q:\n%s", err, want, out)
		}
		return
	}
}
