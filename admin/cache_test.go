// Tests of the cache's routes.

package admin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/embedded"
	"kvasir/openai/answer"
)

// Operators look at a wrong hit, and drop it, or all entries like it.
func TestCache(t *testing.T) {
	store, err := embedded.Open(embedded.Options{Embedding: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := cache.New(cache.Options{Store: store, TTL: time.Hour})
	o := options()
	o.Cache = func() *cache.Cache { return c }
	q := &cache.Query{Scope: cache.Scope{1, 2, 3}, Model: "m", Text: []byte("How tall is the Eiffel Tower?")}
	keep := func() cache.ID {
		t.Helper()
		id, err := c.Put(q, (&answer.Answer{
			Model: "tiny", Created: 1600000000, Text: []byte("It is 330 m tall."), Finish: "stop", Pieces: []int32{2, 5, 17},
			RawUsage: []byte(`{"prompt_tokens":7,"total_tokens":27,"completion_tokens":20}`),
		}).AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := keep()
	status, body := ask(o, "GET", "/cache/"+id.String(), "")
	var entry cacheEntryAnswer
	if err := json.Unmarshal([]byte(body), &entry); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	want := cacheEntryAnswer{
		ID: id.String(), Scope: q.Scope.String(), Model: "m", Expires: entry.Expires, Question: "How tall is the Eiffel Tower?", Preview: "It is 330 m tall.", Bytes: entry.Bytes,
	}
	if entry != want || entry.Expires < 3500 || entry.Bytes < 40 {
		t.Errorf("%+v", entry)
	}
	if status, body := ask(o, "GET", "/cache", ""); status != 200 || !strings.HasPrefix(body, `{"entries":1,"bytes":`) || !strings.Contains(body, `"stored":1`) {
		t.Errorf("%d %s", status, body)
	}
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"DELETE", "/cache", 400, "tenant, model or scope, or all=true"},
		{"DELETE", "/cache?modle=m", 400, "is no condition"},
		{"DELETE", "/cache?model=m&tenat=a", 400, "is no condition"},
		{"DELETE", "/cache?model=m&model=n", 400, "twice"},
		{"DELETE", "/cache?scope=abc", 400, "32 hexadecimal digits"},
		{"DELETE", "/cache?all=yes", 400, "expected true"},
		{"DELETE", "/cache?all=true&model=m", 400, "no other condition"},
		{"DELETE", "/cache/xyz", 400, "16 hexadecimal digits"},
		{"GET", "/cache/0000000000000001", 404, "entry_not_found"},
		{"DELETE", "/cache/0000000000000001", 404, "entry_not_found"},
		{"DELETE", "/cache?tenant=", 400, "without keys that is every entry"}, // as from a script whose variable is not set
		{"DELETE", "/cache?tenant", 400, "without keys that is every entry"},
		{"DELETE", "/cache?tenant=acme", 200, `{"deleted":0}`},
		{"DELETE", "/cache?model=n", 200, `{"deleted":0}`},
		{"DELETE", "/cache?tenant=&model=m&scope=" + q.Scope.String(), 200, `{"deleted":1}`},
		{"GET", "/cache/" + id.String(), 404, "entry_not_found"},
	} {
		status, body := ask(o, c.method, c.path, "")
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
		if status >= 400 {
			checkErrorShape(t, body)
		}
	}
	id = keep()
	if status, body := ask(o, "DELETE", "/cache/"+id.String(), ""); status != 200 || body != `{"deleted":1}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	keep()
	if status, body := ask(o, "DELETE", "/cache?all=true", ""); status != 200 || body != `{"deleted":1}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
}

// A brokenStore is down. A forgetful one, as on a full disk, still drops entries, but cannot
// record that.
type brokenStore struct {
	cache.Store
	dropped int
}

func (brokenStore) Stats() cache.Stats                 { return cache.Stats{Problem: "it is down", Breaker: "open"} }
func (s brokenStore) Delete(cache.Filter) (int, error) { return s.dropped, cache.ErrUnavailable }

// A client whose delete fails learns why, and how much was done.
func TestDroppingThatFails(t *testing.T) {
	for want, store := range map[string]cache.Store{
		"The cache's store failed: it is down\"":                             brokenStore{},
		"it is down. 3 entries were dropped and may come back with the next": brokenStore{dropped: 3},
	} {
		c := cache.New(cache.Options{Store: store})
		o := options()
		o.Cache = func() *cache.Cache { return c }
		if status, body := ask(o, "DELETE", "/cache?all=true", ""); status != 503 || !strings.Contains(body, want) {
			t.Errorf("%d %s", status, body)
		}
	}
}
