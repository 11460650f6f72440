// Attacks on a key's tokens a minute: what parallel requests, large estimates and unclean ends would let through.

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	frugalSum = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90" // of "alice"
	frugalKey = "Authorization: Bearer alice"
)

// serveFrugal is Kvasir with one key of 100 tokens a minute, in front of a worker.
func serveFrugal(t *testing.T, worker http.HandlerFunc) *kvasir {
	t.Helper()
	w := httptest.NewServer(worker)
	t.Cleanup(w.Close)
	return serve(t, fmt.Sprintf("server: {drain: {delay: 0s}}\nworkers: [{name: w, url: %q, engine: openai, models: [m]}]\nmodels: [{name: m, tokenizer: none}]\n"+
		"cache: {store: off}\nkeys: [{name: alice, sha256: %s, tokens_per_minute: 100}]\n", w.URL, frugalSum))
}

func frugalChat(text, more string) string {
	return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":%q}]}`, more, text)
}

const frugalAnswer = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`

// TestHostileParallelRequestsPastTheAllowance: 150 requests at once, of 200 tokens each, found the same
// 100 tokens and got 30,000.
func TestHostileParallelRequestsPastTheAllowance(t *testing.T) {
	t.Parallel()
	asks := func(bound string) func(int) (string, string) {
		return func(i int) (path, body string) {
			return "/v1/chat/completions", frugalChat(fmt.Sprintf("What is %d?", i), bound)
		}
	}
	for name, ask := range map[string]func(int) (path, body string){
		"bounded": asks(`"max_tokens":190,`), "unbounded": asks(""), "many choices": asks(`"max_tokens":10,"n":19,`),
		"the best of many":          asks(`"max_tokens":10,"best_of":19,`),
		"bounded for another route": asks(`"max_output_tokens":1,`),
		"responses bounded otherwise": func(i int) (string, string) {
			return "/v1/responses", fmt.Sprintf(`{"model":"m","max_tokens":1,"max_completion_tokens":1,"input":"What is %d?"}`, i)
		},
		"completions bounded otherwise": func(i int) (string, string) {
			return "/v1/completions", fmt.Sprintf(`{"model":"m","max_completion_tokens":1,"max_output_tokens":1,"prompt":"What is %d?"}`, i)
		},
		"the best of many in quotes": func(i int) (string, string) {
			return "/v1/completions", fmt.Sprintf(`{"model":"m","max_tokens":10,"best_of":"19","prompt":"What is %d?"}`, i)
		},
		"many empty prompts": func(int) (path, body string) {
			return "/v1/completions", `{"model":"m","max_tokens":2,"prompt":[` + strings.Repeat(`"",`, 99) + `""]}`
		},
		"many small parts": func(int) (path, body string) {
			return "/v1/chat/completions", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, 199) + `{"type":"text","text":"a"}]}]}`
		},
		"many small prompts": func(int) (path, body string) {
			return "/v1/completions", `{"model":"m","max_tokens":2,"prompt":[` + strings.Repeat(`"a",`, 99) + `"a"]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests = 150
			var here sync.WaitGroup // one for each request that has come to the worker or was refused
			here.Add(requests)
			k := serveFrugal(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					_, _ = io.Copy(io.Discard, r.Body)
					here.Done()
					here.Wait() // none has ended before all are there
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, frugalAnswer, 190, 200)
			})
			var answered, refused atomic.Int64
			var asking sync.WaitGroup
			for i := range requests {
				asking.Go(func() {
					path, body := ask(i)
					got := post(t, k.url+path, body, frugalKey)
					switch got.status {
					case http.StatusOK:
						answered.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
						here.Done()
					default:
						here.Done()
						t.Errorf("%d %s", got.status, got.body)
					}
				})
			}
			asking.Wait()
			if n := answered.Load(); n != 1 {
				t.Errorf("%d requests of 200 tokens were answered of 100 tokens a minute, want the first alone; %d were refused", n, refused.Load())
			}
		})
	}
}

// TestHostileEstimateLocksAKeyOut: a request that asks for more than a minute has is answered while nothing else is
// under way, and what it does not use is there for the next.
func TestHostileEstimateLocksAKeyOut(t *testing.T) {
	t.Parallel()
	k := serveFrugal(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "fail") {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, frugalAnswer, 2, 12)
	})
	ask := func(text, bound string) reply {
		return post(t, k.url+"/v1/chat/completions", frugalChat(text, bound), frugalKey)
	}
	for i, bound := range []string{`"max_tokens":1000000000,`, `"n":100,`, `"max_completion_tokens":9223372036854775807,`, ""} {
		for _, step := range []struct {
			text         string
			status, left int
		}{
			{fmt.Sprintf("fail %d", i), http.StatusInternalServerError, 100 - 12*i},
			{fmt.Sprintf("What is %d?", i), http.StatusOK, 100 - 12*(i+1)},
		} {
			got := ask(step.text, bound)
			if got.status != step.status {
				t.Errorf("%s and %q: %d %s", bound, step.text, got.status, got.body)
			}
			if left, err := strconv.Atoi(got.header.Get("x-ratelimit-remaining-tokens")); err != nil || left < step.left {
				t.Errorf("%s and %q: the reply says that %d tokens are left (%v), want %d", bound, step.text, left, err, step.left)
			}
		}
	}
}
