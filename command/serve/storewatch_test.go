// Tests of what the log says of a degraded store.

package serve

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"kvasir/cache"
)

// An illStore is a store that has nothing but a problem.
type illStore struct {
	cache.Store
	problem atomic.Pointer[string]
}

func (s *illStore) Stats() cache.Stats { return cache.Stats{Problem: *s.problem.Load()} }

// A problem is logged once, and its end once, however its wording changes meanwhile.
func TestStoreProblemIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &illStore{}
		store.problem.Store(new(string))
		w := watchStore(zerolog.New(&log), store)
		for _, problem := range []string{"", "1 entry waits", "2 entries wait", "", "", "it is gone"} {
			store.problem.Store(&problem)
			time.Sleep(storeLookEvery)
			synctest.Wait()
		}
		w.close()
		const degraded, well = `{"level":"warn","problem":"PROBLEM","message":"the cache is degraded; requests go on"}`, `{"level":"info","message":"the cache is well again"}`
		want := []string{strings.Replace(degraded, "PROBLEM", "1 entry waits", 1), well, strings.Replace(degraded, "PROBLEM", "it is gone", 1)}
		if got := strings.Split(strings.TrimSpace(log.String()), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the log is\n%s", log.String())
		}
	})
	watchStore(zerolog.Nop(), nil).close()
}
