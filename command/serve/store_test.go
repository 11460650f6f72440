// Trouble: what of a store's trouble stands in the log.

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

// An illStore is a store whose only part is its trouble.
type illStore struct {
	cache.Store
	problem atomic.Pointer[string]
}

func (s *illStore) Stats() cache.Stats { return cache.Stats{Problem: *s.problem.Load()} }

// Each trouble is said once, and its end, whatever its words become meanwhile.
func TestTroubleIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &illStore{}
		store.problem.Store(new(string))
		w := watchTrouble(zerolog.New(&log), store)
		for _, problem := range []string{"", "1 entry waits", "2 entries wait", "", "", "it is gone"} {
			store.problem.Store(&problem)
			time.Sleep(troubleEvery)
			synctest.Wait()
		}
		w.close()
		const degraded, well = `{"level":"warn","problem":"PROBLEM","message":"the cache is degraded; requests go on"}`, `{"level":"info","message":"the cache is well again"}`
		want := []string{strings.Replace(degraded, "PROBLEM", "1 entry waits", 1), well, strings.Replace(degraded, "PROBLEM", "it is gone", 1)}
		if got := strings.Split(strings.TrimSpace(log.String()), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the log is\n%s", log.String())
		}
	})
	watchTrouble(zerolog.Nop(), nil).close()
}
