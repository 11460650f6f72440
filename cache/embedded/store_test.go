// The store passes the tests of every store, and its own: capacity, time, memory.

package embedded

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/cache"
	"kvasir/cache/storetest"
)

func TestStore(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) cache.Store { return open(t, Options{}) })
	})
	t.Run("file", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) cache.Store {
			return open(t, Options{Path: filepath.Join(t.TempDir(), "cache")})
		})
	})
}

// The search over many chunks, some with removed slots, against an exact search.
func TestNearestAgainstAllOfThem(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := open(t, Options{MaxEntries: 20_000})
	vectors, ids := map[string][cache.Dim]float32{}, map[string]cache.ID{}
	var centres [][cache.Dim]float32
	for range 40 {
		centres = append(centres, randomEmbedding(rng, nil, 0))
	}
	for i := range 2500 {
		v := randomEmbedding(rng, &centres[i%len(centres)], 0.6+0.39*rng.Float64())
		e := newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10)
		if err := s.Put(e, &v); err != nil {
			t.Fatal(err)
		}
		vectors[e.Text], ids[e.Text] = v, e.ID
		if i%3 == 2 { // holes
			gone := fmt.Sprint("question ", rng.IntN(i))
			if id, ok := ids[gone]; ok {
				if n, err := s.Delete(cache.Filter{ID: &id}); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				delete(vectors, gone)
				delete(ids, gone)
			}
		}
	}
	queries, exact := make([][cache.Dim]float32, len(centres)), make([][]float64, len(centres))
	for i := range centres {
		queries[i] = randomEmbedding(rng, &centres[i], 0.9)
		for _, v := range vectors {
			if c := cosine(&queries[i], &v); c >= 0.55 {
				exact[i] = append(exact[i], c)
			}
		}
		slices.Sort(exact[i])
		slices.Reverse(exact[i])
		exact[i] = exact[i][:min(8, len(exact[i]))]
	}
	withForm(t, func(t *testing.T) {
		want, got := 0, 0
		for i := range queries {
			found, err := s.Nearest(nil, cache.Scope{1}, &queries[i], 8, 0.55, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			for k, c := range found {
				if v, ok := vectors[c.Text]; !ok || cosine(&queries[i], &v) < c.Similarity-1e-3 || k > 0 && c.Similarity > found[k-1].Similarity {
					t.Fatalf("place %d: %q of %v", k, c.Text, c.Similarity)
				}
			}
			for _, e := range exact[i] {
				want++
				if slices.ContainsFunc(found, func(c cache.Candidate) bool { return c.Similarity > e-1e-4 && c.Similarity < e+1e-4 }) {
					got++
				}
			}
		}
		if want < 250 || float64(got) < 0.995*float64(want) {
			t.Errorf("found %d of %d", got, want)
		}
	})
}

func TestLookupsAllocateNothing(t *testing.T) {
	s := open(t, Options{})
	some := fill(t, s, 3000)
	text := []byte("question number 77 of many that are about as long as this")
	var room [8]cache.Candidate
	if n := testing.AllocsPerRun(100, func() {
		if e, err := s.Equal(cache.Scope{1}, text, time.Time{}); e == nil || err != nil {
			t.Fatal(e, err)
		}
		if found, err := s.Nearest(room[:0], cache.Scope{1}, &some[1], 8, 0.55, time.Time{}); len(found) != 1 || err != nil {
			t.Fatal(found, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRoom(t *testing.T) {
	t.Run("entries", func(t *testing.T) {
		s := open(t, Options{MaxEntries: 100})
		fill(t, s, 1000)
		if st := s.Stats(); st.Entries != 100 || st.Evicted != 900 || st.Stored != 1000 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		const limit = 1 << 20
		s := open(t, Options{MaxBytes: limit})
		fill(t, s, 2000)
		if st := s.Stats(); st.Bytes > limit || st.Bytes < limit*9/10 || st.Evicted == 0 {
			t.Errorf("%+v", st)
		}
		if err := s.Put(newEntry(cache.Scope{1}, "too large", limit/4), nil); err != cache.ErrTooLarge {
			t.Errorf("one entry may take a quarter: %v", err)
		}
		if st := s.Stats(); st.Dropped != 1 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("what is asked for stays", func(t *testing.T) {
		s := open(t, Options{MaxEntries: 100})
		for i := range 1000 {
			if err := s.Put(newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10), nil); err != nil {
				t.Fatal(err)
			}
			for k := range min(i+1, 10) { // the first ten again and again
				if e, err := s.Equal(cache.Scope{1}, fmt.Append(nil, "question ", k), time.Time{}); e == nil || err != nil {
					t.Fatalf("question %d is gone after %d", k, i)
				}
			}
		}
	})
	t.Run("what is near stays", func(t *testing.T) {
		s := open(t, Options{MaxEntries: 100})
		rng := rand.New(rand.NewPCG(1, 1))
		first := randomEmbedding(rng, nil, 0)
		for i := range 1000 {
			v := first
			if i > 0 {
				v = randomEmbedding(rng, nil, 0)
			}
			if err := s.Put(newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10), &v); err != nil {
				t.Fatal(err)
			}
			query := randomEmbedding(rng, &first, 0.9)
			if found, err := s.Nearest(nil, cache.Scope{1}, &query, 1, 0.5, time.Time{}); len(found) != 1 || found[0].Text != "question 0" || err != nil {
				t.Fatalf("after %d: %v, %v", i, found, err)
			}
		}
	})
	t.Run("all goes", func(t *testing.T) {
		s := open(t, Options{})
		fill(t, s, 2000)
		if n, err := s.Delete(cache.Filter{}); n != 2000 || err != nil {
			t.Error(n, err)
		}
		if st := s.Stats(); st.Bytes != 0 || st.Entries != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The memory in Stats against the memory that the runtime reports.
func TestBytesAreWhatItTakes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, row := range []struct {
		name   string
		n      int
		scopes int
		vector bool
	}{{"one scope", 30_000, 1, true}, {"scopes of one entry", 30_000, 30_000, true}, {"no vectors", 30_000, 1, false}} {
		t.Run(row.name, func(t *testing.T) {
			v := randomEmbedding(rand.New(rand.NewPCG(1, 1)), nil, 0)
			before := heap()
			s := open(t, Options{})
			for i := range row.n {
				scope := cache.Scope{byte(i % row.scopes), byte(i % row.scopes >> 8)}
				vector := &v
				if !row.vector {
					vector = nil
				}
				if err := s.Put(newEntry(scope, fmt.Sprint("question ", i), 200), vector); err != nil {
					t.Fatal(err)
				}
			}
			took, said := heap()-before, s.Stats().Bytes
			t.Logf("%d bytes an entry, said to be %d", took/int64(row.n), said/int64(row.n))
			if float64(said) < 0.9*float64(took) || float64(said) > 1.25*float64(took) {
				t.Errorf("it takes %d bytes and says %d", took, said)
			}
			runtime.KeepAlive(s)
		})
	}
}

func TestExpiredEntriesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{})
		for i := range 1000 {
			e := newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10)
			if i%2 == 0 {
				e.Expires = e.Created.Add(time.Minute)
			}
			if err := s.Put(e, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if e, err := s.Equal(cache.Scope{1}, []byte("question 0"), time.Time{}); e != nil || err != nil {
			t.Error("it has expired", err)
		}
		if e, err := s.Equal(cache.Scope{1}, []byte("question 1"), time.Time{}); e == nil || err != nil {
			t.Error("it has not expired", err)
		}
		time.Sleep(2 * round * tick)
		if st := s.Stats(); st.Entries != 500 || st.Expired != 500 {
			t.Errorf("%+v", st)
		}
	})
}

// Searches while entries are added, removed and moved: each finds the entries that stay all the
// time.
func TestSearchesDuringChanges(t *testing.T) {
	s := open(t, Options{MaxEntries: 50_000})
	rng := rand.New(rand.NewPCG(1, 1))
	stays := randomEmbedding(rng, nil, 0)
	if err := s.Put(newEntry(cache.Scope{1}, "stays", 10), &stays); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			var room [4]cache.Candidate
			for {
				select {
				case <-stop:
					return
				default:
				}
				found, err := s.Nearest(room[:0], cache.Scope{1}, &stays, 4, 0.9, time.Time{})
				if err != nil || len(found) != 1 || found[0].Text != "stays" {
					t.Error(len(found), err)
					return
				}
			}
		})
	}
	tenant := "acme"
	for i := range 2000 {
		v := randomEmbedding(rng, nil, 0)
		e := newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10)
		e.Tenant = fmt.Sprint("tenant ", i%3)
		if err := s.Put(e, &v); err != nil {
			t.Fatal(err)
		}
		if i%500 == 499 {
			tenant = fmt.Sprint("tenant ", i/500%3)
			if _, err := s.Delete(cache.Filter{Tenant: &tenant}); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	all.Wait()
}

func TestSearchesKeepToTheirTime(t *testing.T) {
	s := open(t, Options{})
	some := fill(t, s, 10)
	if _, err := s.Nearest(nil, cache.Scope{1}, &some[0], 1, 0, time.Now().Add(-time.Second)); err != cache.ErrTimeout {
		t.Error(err)
	}
	if _, err := s.Nearest(nil, cache.Scope{1}, &some[0], 1, 0, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestGet(t *testing.T) {
	s := open(t, Options{})
	e := newEntry(cache.Scope{1}, "question", 10)
	if err := s.Put(e, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(e.ID); got != e || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := s.Get(e.ID + 1); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// A scope that shrinks frees its memory, and its remaining entries are still found.
func TestScopesShrink(t *testing.T) {
	s := open(t, Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 3000
	var ids []cache.ID
	var last [cache.Dim]float32
	for i := range n {
		last = randomEmbedding(rng, nil, 0)
		e := newEntry(cache.Scope{1}, fmt.Sprint("question ", i), 10)
		ids = append(ids, e.ID)
		if err := s.Put(e, &last); err != nil {
			t.Fatal(err)
		}
	}
	g := s.index.group(&cache.Scope{1})
	for left := n - 1; left > 0; left-- {
		if _, err := s.Delete(cache.Filter{ID: &ids[n-1-left]}); err != nil {
			t.Fatal(err)
		}
		if left&(left-1) != 0 {
			continue
		}
		slots := 0
		for _, c := range g.list() {
			slots += len(c.items)
		}
		if slots > 3*left+2*chunkSlots || left < chunkSlots/4 && slots > 4*left {
			t.Errorf("%d entries are left in %d slots", left, slots)
		}
		found, err := s.Nearest(nil, cache.Scope{1}, &last, 1, 0.99, time.Time{})
		if err != nil || len(found) != 1 || found[0].ID != ids[n-1] {
			t.Errorf("%d entries are left: found %v, %v", left, found, err)
		}
	}
	if _, err := s.Delete(cache.Filter{ID: &ids[n-1]}); err != nil || s.index.group(&cache.Scope{1}) != nil || len(g.list()) != 0 {
		t.Errorf("the scope is still there: %v", err)
	}
}
