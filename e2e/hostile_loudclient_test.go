// Attacks on others' time: one client whose texts would make everybody wait to be judged.

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// plainWords is text of n bytes that was not there before.
func plainWords(n int) string {
	words := strings.Fields("the quick brown fox jumps over lazy dogs while seven wizards quietly mix potions near river banks")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[rand.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

// TestHostileLoudClientMakesOthersWait: 24 connections with texts of 4 MiB each made a short question wait for all
// that came before it, and most often for its guard's timeout: guard_failed. It is asked of one with the same address,
// where no keys tell them apart, and of another with a key of its own.
func TestHostileLoudClientMakesOthersWait(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("it takes one processor to be loud and another to measure")
	}
	for _, keys := range []string{"", "keys: [{name: loud, sha256: " + frugalSum + "}, {name: quiet, sha256: " + quietSum + "}]\n"} {
		t.Run(fmt.Sprint(keys != ""), func(t *testing.T) {
			w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				fmt.Fprintf(w, frugalAnswer, 1, 2)
			}))
			defer w.Close()
			k := serve(t, fmt.Sprintf("server: {drain: {delay: 0s, timeout: 1s}}\nworkers: [{name: w, url: %q, engine: openai, models: [m]}]\nmodels: [{name: m, tokenizer: none}]\ncache: {store: off}\n"+
				"classify: {jailbreak: {action: block}, pii: {allow: [], action: block}}\n%s", w.URL, keys))

			blob := plainWords(4 << 20)
			ctx, stop := context.WithCancel(t.Context())
			var loud sync.WaitGroup
			for i := range 24 {
				loud.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						request := newPost(t, k.url+"/v1/chat/completions", frugalChat(fmt.Sprint(i, n, blob), ""), frugalKey).WithContext(ctx)
						if got, err := http1.Do(request); err == nil {
							got.Body.Close()
						}
					}
				})
			}
			defer loud.Wait()
			defer stop()
			eventually(t, patience, "the loud client is at it", func() bool { return metric(t, k.admin+"/metrics", "kvasir_requests_in_flight") >= 12 })

			var took []time.Duration
			for i := range 20 {
				start := time.Now()
				got := post(t, k.url+"/v1/chat/completions", frugalChat(fmt.Sprintf("What grows in wood %d?", i), ""), "Authorization: Bearer bob")
				if got.status != http.StatusOK {
					t.Errorf("question %d: %d %s", i, got.status, got.body)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			t.Logf("median %v, longest %v", took[10], took[19])
			if took[10] > 5*time.Second {
				t.Errorf("half of the questions took more than %v", took[10])
			}
		})
	}
}

const quietSum = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9" // of "bob"
