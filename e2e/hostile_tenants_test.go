// Two tenants that ask the same at the same time: neither sees an answer of the other, nor one to another question.

package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHostileTenantSeesAnothersAnswer has two tenants ask a few questions thousands of times, streamed and not, and hang up
// on some. The worker numbers its answers: a number belongs to one tenant and one question for ever.
func TestHostileTenantSeesAnothersAnswer(t *testing.T) {
	t.Parallel()
	var made atomic.Int64
	numbered := func(r rawRequest) rawReply {
		text := fmt.Sprintf("N%dN %s", made.Add(1), answerTo(r.question()))
		if !r.streams() {
			return rawReply{bytes: withLength(completionOf(text)), end: endKept}
		}
		return rawReply{bytes: eventStream(roleEvent(), deltaEvent(text[:5]), deltaEvent(text[5:]), finishEvent("stop"), doneEvent), end: endKept}
	}
	w := startRaw(t, numbered, "m")
	config := strings.Replace(behind(map[string]string{"raw": w.url}), `cache: {store: "off"}`, `cache: {store: embedded}`, 1) + "keys:\n"
	tenants := []string{"alice-key", "bob-key"}
	for _, key := range tenants {
		config += fmt.Sprintf("  - {name: %s, sha256: %x}\n", key, sha256.Sum256([]byte(key)))
	}
	k := serve(t, config)

	const clients, each = 12, 250
	var mu sync.Mutex // guards owners and counts
	owners, counts := map[string]string{}, map[string]int{}
	answers := 0
	number := regexp.MustCompile(`^N(\d+)N (.*)$`)
	var group sync.WaitGroup
	for i := range clients {
		tenant := tenants[i%2]
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 21))
			for n := range each {
				// Questions go on as the run does, so that some are new, some equal at once, and some stored.
				question := fmt.Sprintf("What is the story of the lamp in book %d?", n/10*3+random.IntN(3))
				request := newPost(t, k.url+"/v1/chat/completions", askModel("m", question, random.IntN(2) == 0), "Authorization: Bearer "+tenant)
				response, err := http1.Do(request)
				if err != nil {
					t.Errorf("no answer: %v", err)
					return
				}
				if random.IntN(10) == 0 {
					_ = response.Body.Close()
					continue
				}
				body, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				text, whole := said(reply{response.StatusCode, response.Header, body, err})
				found := number.FindStringSubmatch(text)
				if !whole || found == nil || found[2] != answerTo(question) {
					t.Errorf("%s asked %q and got %d %v %q", tenant, question, response.StatusCode, err, tail(string(body), 300))
					continue
				}
				mu.Lock()
				answers++
				counts[response.Header.Get("X-Kvasir-Cache")]++
				owner := tenant + " " + question
				if other, ok := owners[found[1]]; ok && other != owner {
					t.Errorf("answer %s was for %q and went to %q", found[1], other, owner)
				}
				owners[found[1]] = owner
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d answers, %d made by the worker, by the cache's verdict %v", answers, made.Load(), counts)
	if counts["hit"] == 0 || answers < clients*each/2 {
		t.Errorf("%d answers, verdicts %v: too little to show anything", answers, counts)
	}
}
