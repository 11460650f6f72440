// The cache on the embedded store: which entry answers which question.

package cache_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"
)

// byScore verifies with a table: for each stored text its score, or the rule that refuses it.
type byScore map[string]any

func (v byScore) Compare(a, _ []byte, similarity float64) (float64, string) {
	switch x := v[string(a)].(type) {
	case float64:
		return x, ""
	case string:
		return 0.99, x
	}
	return similarity, ""
}

func store(tb testing.TB) *embedded.Store {
	tb.Helper()
	s, err := embedded.Open(embedded.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func newCache(tb testing.TB, v cache.Verifier) *cache.Cache {
	return cache.New(cache.Options{Store: store(tb), Verifier: v, Threshold: 0.9, TTL: time.Hour})
}

// near returns an Embed function whose vector has this cosine to that of near(1).
func near(similarity float64) func(*[cache.Dim]float32) bool {
	return func(dst *[cache.Dim]float32) bool {
		dst[0], dst[1] = float32(similarity), float32(math.Sqrt(1-similarity*similarity))
		return true
	}
}

func ask(text string, similarity float64) *cache.Query {
	return &cache.Query{Scope: cache.Scope{1}, Text: []byte(text), MaxAge: -1, Embed: near(similarity)}
}

func put(tb testing.TB, c *cache.Cache, text string, similarity float64) cache.ID {
	tb.Helper()
	id, err := c.Put(ask(text, similarity), []byte("answer to "+text))
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func TestWhatAnswers(t *testing.T) {
	for _, row := range []struct {
		name     string
		stored   map[string]float64 // similarity to the question, by text
		verifier byScore
		change   func(q *cache.Query)
		entry    string // the one that answers, or the nearest
		hit      bool
		why      string
	}{
		{name: "nothing", why: "empty"},
		{name: "the very text", stored: map[string]float64{"the question": 0.1, "the near": 1}, entry: "the question", hit: true},
		{name: "white space around it", stored: map[string]float64{"\n the question \n": 0.1}, entry: "the question", hit: true},
		{name: "another case", stored: map[string]float64{"the Question": 0.1}, why: "empty"},
		{name: "a near one", stored: map[string]float64{"the near": 0.95}, entry: "the near", hit: true},
		{name: "a near one below the threshold", stored: map[string]float64{"the near": 0.89}, entry: "the near", why: "score"},
		{name: "one that is too far to be asked about", stored: map[string]float64{"the far": 0.5}, verifier: byScore{"the far": 1.0}, why: "empty"},
		{name: "the rule that refuses", stored: map[string]float64{"the near": 0.99}, verifier: byScore{"the near": "number"}, entry: "the near", why: "number"},
		{name: "the second, where the first is refused", stored: map[string]float64{"the first": 0.99, "the second": 0.97},
			verifier: byScore{"the first": "number"}, entry: "the second", hit: true},
		{name: "the one with the best score", stored: map[string]float64{"the first": 0.99, "the second": 0.97, "the third": 0.95},
			verifier: byScore{"the first": 0.91, "the second": 0.93, "the third": 0.92}, entry: "the second", hit: true},
		{name: "of two that do not answer the better", stored: map[string]float64{"the first": 0.99, "the second": 0.97},
			verifier: byScore{"the first": 0.1, "the second": 0.5}, entry: "the second", why: "score"},
		{name: "a score that is no number", stored: map[string]float64{"the near": 0.99}, verifier: byScore{"the near": math.NaN()}, entry: "the near", why: "score"},
		{name: "a threshold of its own", stored: map[string]float64{"the near": 0.95},
			change: func(q *cache.Query) { q.Threshold = 0.96 }, entry: "the near", why: "score"},
		{name: "none for another scope", stored: map[string]float64{"the question": 1, "the near": 1},
			change: func(q *cache.Query) { q.Scope[15] ^= 1 }, why: "empty"},
		{name: "none without an embedding", stored: map[string]float64{"the near": 1},
			change: func(q *cache.Query) { q.Embed = func(*[cache.Dim]float32) bool { return false } }, why: "empty"},
		{name: "the same bytes alone for a prompt", stored: map[string]float64{"the near": 1},
			change: func(q *cache.Query) { q.Embed = nil }, why: "empty"},
		{name: "no white space more for a prompt", stored: map[string]float64{"the question": 1},
			change: func(q *cache.Query) { q.Embed, q.Text = nil, []byte("the question\n") }, why: "empty"},
		{name: "none too old", stored: map[string]float64{"the question": 1},
			change: func(q *cache.Query) { q.MaxAge = 0 }, entry: "the question", why: "age"},
		{name: "none near that is too old", stored: map[string]float64{"the near": 0.95},
			change: func(q *cache.Query) { q.MaxAge = 0 }, entry: "the near", why: "age"},
		{name: "only the very text when it is long", stored: map[string]float64{"the near": 1},
			change: func(q *cache.Query) { q.Text = []byte(strings.Repeat("word ", 1000)) }, why: "empty"},
		{name: "only the very bytes when a character is hidden", stored: map[string]float64{"the near": 1, "the question": 1},
			change: func(q *cache.Query) { q.Text = []byte("the question\u200b") }, why: cache.WhyHidden},
		{name: "with a hidden character the very bytes", stored: map[string]float64{"the\u200b question": 1},
			change: func(q *cache.Query) { q.Text = []byte("the\u200b question") }, entry: "the\u200b question", hit: true},
		{name: "no white space more with a hidden character", stored: map[string]float64{"the\u200b question": 1},
			change: func(q *cache.Query) { q.Text = []byte("the\u200b question ") }, why: cache.WhyHidden},
		{name: "nothing that has hidden characters", stored: map[string]float64{"the near\u200b": 1}, why: "empty"},
		{name: "no emoji for another", stored: map[string]float64{"🍕": 1}, change: func(q *cache.Query) { q.Text = []byte("🤮") }, why: cache.WhyShort},
		{name: "only the very bytes when they are no text", stored: map[string]float64{"the near": 1},
			change: func(q *cache.Query) { q.Text = []byte("the \xff question") }, why: "empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCache(t, row.verifier)
			for text, similarity := range row.stored {
				put(t, c, text, similarity)
			}
			q := ask("the question", 1)
			if row.change != nil {
				row.change(q)
			}
			r := c.Lookup(q)
			entry := ""
			if r.Entry != nil {
				entry = r.Entry.Text
				if string(r.Entry.Answer) != "answer to "+entry && row.name != "white space around it" {
					t.Errorf("%q is answered by %q", entry, r.Entry.Answer)
				}
			}
			if r.Hit != row.hit || entry != row.entry || r.Why != row.why || r.Err != nil {
				t.Errorf("got %+v of %q, want hit %v of %q, why %q", r, entry, row.hit, row.entry, row.why)
			}
			if r.Exact != (row.entry == "the question" || row.entry == "the\u200b question") {
				t.Errorf("exact %v", r.Exact)
			}
		})
	}
}

func TestEmbedIsCalledOnceAndOnlyWhenNeeded(t *testing.T) {
	c := newCache(t, byScore{})
	calls := 0
	q := ask("the question", 1)
	q.Embed = func(dst *[cache.Dim]float32) bool { calls++; return near(1)(dst) }
	if r := c.Lookup(q); r.Hit || calls != 1 {
		t.Errorf("%+v after %d calls", r, calls)
	}
	if _, err := c.Put(q, []byte("answer")); err != nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	calls = 0
	again := ask("the question", 1)
	again.Embed = q.Embed
	if r := c.Lookup(again); !r.Hit || calls != 0 {
		t.Errorf("%+v after %d calls", r, calls)
	}
	failing := ask("another one", 1)
	failing.Embed = func(*[cache.Dim]float32) bool { calls++; return false }
	c.Lookup(failing)
	if _, err := c.Put(failing, []byte("answer")); err != nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if r := c.Lookup(ask("another one", 1)); !r.Exact || !r.Hit {
		t.Errorf("without a vector: %+v", r)
	}
}

func TestEntriesLiveForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, byScore{})
		put(t, c, "the question", 1)
		time.Sleep(59 * time.Minute)
		if r := c.Lookup(ask("the question", 1)); !r.Hit || r.Age != 59*time.Minute {
			t.Errorf("%+v", r)
		}
		q := ask("the question", 1)
		q.MaxAge = 58 * time.Minute
		if r := c.Lookup(q); r.Hit || r.Why != "age" || r.Age != 59*time.Minute {
			t.Errorf("%+v", r)
		}
		if r := c.Lookup(ask("the near", 0.95)); !r.Hit {
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Minute)
		for _, text := range []string{"the question", "the near"} {
			if r := c.Lookup(ask(text, 1)); r.Hit || r.Entry != nil {
				t.Errorf("%s: %+v", text, r)
			}
		}
	})
}

// brokenStore fails, or returns entries that it should not.
type brokenStore struct {
	cache.Store
	equalErr, nearestErr error
	other                *cache.Entry
}

func (s *brokenStore) Equal(cache.Scope, []byte, time.Time) (*cache.Entry, error) {
	return s.other, s.equalErr
}

func (s *brokenStore) Nearest(dst []cache.Candidate, _ cache.Scope, _ *[cache.Dim]float32, _ int, _ float64, _ time.Time) ([]cache.Candidate, error) {
	if s.other != nil {
		dst = append(dst, cache.Candidate{Entry: s.other, Similarity: 1})
	}
	return dst, s.nearestErr
}

func TestStoreErrorsAreMisses(t *testing.T) {
	bad := errors.New("broken")
	for _, s := range []*brokenStore{{equalErr: bad}, {nearestErr: bad}} {
		c := cache.New(cache.Options{Store: s, Verifier: byScore{}})
		if r := c.Lookup(ask("the question", 1)); r.Hit || !errors.Is(r.Err, bad) || r.Why != "error" {
			t.Errorf("%+v", r)
		}
	}
}

// Entries of an older version, or of another Kvasir on the same Milvus, may have vectors although
// their texts must not be matched by similarity.
func TestHiddenEntryWithAVectorAnswersNobody(t *testing.T) {
	now := time.Now()
	bad := &cache.Entry{Scope: cache.Scope{1}, Text: "the near\U000e0065\U000e0076", Created: now, Expires: now.Add(time.Hour)}
	c := cache.New(cache.Options{Store: &brokenStore{other: bad}, Verifier: byScore{bad.Text: 1.0}})
	if r := c.Lookup(ask("the question", 1)); r.Hit || r.Entry != nil {
		t.Errorf("%+v", r)
	}
}

// The cache rejects entries of a wrong scope or text from the store.
func TestStoreIsNotBelieved(t *testing.T) {
	now := time.Now()
	for _, other := range []*cache.Entry{
		{Scope: cache.Scope{2}, Text: "the question", Created: now, Expires: now.Add(time.Hour)},
		{Scope: cache.Scope{2}, Text: "the near", Created: now, Expires: now.Add(time.Hour)},
	} {
		c := cache.New(cache.Options{Store: &brokenStore{other: other}, Verifier: byScore{}})
		if r := c.Lookup(ask("the question", 1)); r.Hit || r.Entry != nil {
			t.Errorf("%+v", r)
		}
	}
	mixed := &cache.Entry{Scope: cache.Scope{1}, Text: "the other", Created: now, Expires: now.Add(time.Hour)}
	c := cache.New(cache.Options{Store: &brokenStore{other: mixed}, Verifier: byScore{"the other": "name"}})
	if r := c.Lookup(ask("the question", 1)); r.Hit || r.Why != "name" {
		t.Errorf("%+v", r)
	}
}

// 10,000 pairs of nearly equal scopes, with the same question, the same vector, and a verifier
// that accepts every pair.
func TestNothingCrossesScopes(t *testing.T) {
	c := newCache(t, byScore{"the question": 1.0})
	rng := rand.New(rand.NewPCG(1, 2))
	stored := map[cache.Scope]bool{}
	var first cache.Scope
	for i := range first {
		first[i] = byte(rng.Uint32())
	}
	differing := func() cache.Scope {
		s := first
		for range 1 + rng.IntN(2) {
			s[rng.IntN(16)] ^= 1 << rng.IntN(8)
		}
		return s
	}
	for range 500 {
		q := ask("the question", 1)
		q.Scope = differing()
		if _, err := c.Put(q, q.Scope[:]); err != nil {
			t.Fatal(err)
		}
		stored[q.Scope] = true
	}
	hits := 0
	for range 10_000 {
		for _, text := range []string{"the question", "another question"} {
			q := ask(text, 1)
			q.Scope = differing()
			r := c.Lookup(q)
			if r.Hit != stored[q.Scope] || r.Entry != nil && (r.Entry.Scope != q.Scope || string(r.Entry.Answer) != string(q.Scope[:])) {
				t.Fatalf("scope %v: %+v", q.Scope, r)
			}
			if r.Hit {
				hits++
			}
		}
	}
	if hits == 0 || hits > 15_000 {
		t.Errorf("%d hits: the pairs are not what they should be", hits)
	}
}

func TestDeleteAndGet(t *testing.T) {
	c := newCache(t, byScore{})
	id := put(t, c, "the question", 1)
	if e, err := c.Get(id); err != nil || e == nil || e.Text != "the question" {
		t.Errorf("got %+v, %v", e, err)
	}
	if n, err := c.Delete(cache.Filter{ID: &id}); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if e, err := c.Get(id); err != nil || e != nil {
		t.Errorf("got %+v, %v", e, err)
	}
	if r := c.Lookup(ask("the question", 1)); r.Hit {
		t.Errorf("%+v", r)
	}
	if st := c.Stats(); st.Stored != 1 || st.Deleted != 1 || st.Entries != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := cache.New(cache.Options{Store: &brokenStore{}}).Get(id); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

func TestAskedByManyAtOnce(t *testing.T) {
	c := newCache(t, byScore{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 200 {
				text := fmt.Sprint("question ", k%20, " of ", i%2)
				q := ask(text, 0.99)
				q.Scope = cache.Scope{byte(i % 2)}
				if r := c.Lookup(q); r.Hit {
					if r.Entry.Scope != q.Scope || string(r.Entry.Answer) != fmt.Sprint("of ", i%2) {
						t.Errorf("%+v", r)
					}
				} else if _, err := c.Put(q, fmt.Append(nil, "of ", i%2)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestLookupAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has pools drop what they keep")
	}
	c := newCache(t, byScore{})
	long := strings.Repeat("a long question ", 200)
	put(t, c, "the question", 1)
	put(t, c, long, 0.99)
	exact, semantic, other := ask("the question", 1), ask(long+"?", 1), ask("the other", 0.1)
	for name, q := range map[string]*cache.Query{"exact": exact, "semantic": semantic, "miss": other} {
		if n := testing.AllocsPerRun(100, func() {
			if r := c.Lookup(q); r.Hit != (name != "miss") {
				t.Fatalf("%s: %+v", name, r)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	c := newCache(b, byScore{})
	put(b, c, "the question", 1)
	for name, q := range map[string]*cache.Query{"exact": ask("the question", 1), "semantic": ask("another one", 0.99)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !c.Lookup(q).Hit {
					b.Fatal("no hit")
				}
			}
		})
	}
}
