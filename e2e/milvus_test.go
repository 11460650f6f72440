// A real Milvus (milvus-lite over TCP) under the cache's store.

package e2e

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvasir/cache"
	"kvasir/cache/milvus"
	"kvasir/cache/storetest"
)

// unhurried is a budget for what is tested apart from its time: Milvus Lite looks at each row in
// Python.
const unhurried = 10 * time.Second

// startMilvus starts a Milvus Lite on an address. It ends in any way: it knows SIGINT only.
func startMilvus(t *testing.T, address, folder string) *process {
	t.Helper()
	part(t, "milvus-lite")
	program, err := filepath.Abs("../.cache/milvus-lite/bin/milvus-lite")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(address, ":")
	// It searches what it has not yet indexed row by row, 100 times as slowly as the rest.
	env := []string{"PYTHONUNBUFFERED=1", "MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES=1000000"}
	p := spawn(t, env, program, "server", "--data-dir", folder, "--host", host, "--port", port)
	p.mayFail = true
	eventually(t, time.Minute, "Milvus Lite listens", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("Milvus Lite ended: %v\n%s", p.state, p.output.String())
		default:
		}
		return strings.Contains(p.output.String(), "listening")
	})
	return p
}

// kill ends a process as a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.mayFail = true
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.exited
}

// aMilvus is a server of its own for a test.
func aMilvus(t *testing.T) string {
	t.Helper()
	address := freeAddress(t)
	startMilvus(t, address, t.TempDir())
	return address
}

// openStore opens a store, which need not be connected. The version names the collection: stores of
// one test see each other's entries, and nobody else's.
func openStore(t *testing.T, o milvus.Options) *milvus.Store {
	t.Helper()
	if o.Version == "" {
		o.Version = t.Name()
	}
	s, err := milvus.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connected opens a store and waits until nothing is wrong with it.
func connected(t *testing.T, o milvus.Options) *milvus.Store {
	t.Helper()
	s := openStore(t, o)
	well(t, s)
	return s
}

func well(t *testing.T, s *milvus.Store) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("stats: %+v", s.Stats())
		}
	}()
	eventually(t, time.Minute, "the store is well", func() bool { return s.Stats().Problem == "" })
}

// ill waits for a problem that says these words.
func ill(t *testing.T, s *milvus.Store, words ...string) {
	t.Helper()
	problem := ""
	defer func() {
		if t.Failed() {
			t.Logf("the problem is %q", problem)
		}
	}()
	eventually(t, time.Minute, "the problem says "+strings.Join(words, ", "), func() bool {
		problem = s.Stats().Problem
		for _, word := range words {
			if !strings.Contains(problem, word) {
				return false
			}
		}
		return true
	})
}

// An entry of a test, and its vector.
func entryOf(scope cache.Scope, text, answer string) *cache.Entry {
	now := time.Now()
	return &cache.Entry{
		ID: cache.NewID(), Scope: scope, Tenant: "tenant", Model: "model", Text: text, Answer: []byte(answer),
		Created: now, Expires: now.Add(time.Hour),
	}
}

func direction(seed uint64) *[cache.Dim]float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	var v [cache.Dim]float32
	sum := 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return &v
}

// stored puts an entry and waits until the server has it.
func stored(t *testing.T, s *milvus.Store, e *cache.Entry, vector *[cache.Dim]float32) {
	t.Helper()
	before := s.Stats().Stored
	if err := s.Put(e, vector); err != nil {
		t.Fatalf("put: %v", err)
	}
	eventually(t, time.Minute, "the entry is stored", func() bool { return s.Stats().Stored > before })
}

func wantEqual(t *testing.T, s *milvus.Store, want *cache.Entry) {
	t.Helper()
	got, err := s.Equal(want.Scope, []byte(want.Text), time.Time{})
	if err != nil || got == nil {
		t.Fatalf("equal: %v, %v", got, err)
	}
	sameEntry(t, got, want)
}

func sameEntry(t *testing.T, got, want *cache.Entry) {
	t.Helper()
	if got.ID != want.ID || got.Scope != want.Scope || got.Tenant != want.Tenant || got.Model != want.Model ||
		got.Text != want.Text || !bytes.Equal(got.Answer, want.Answer) {
		t.Errorf("got the entry %v %q, want %v %q", got.ID, tail(got.Text, 50), want.ID, tail(want.Text, 50))
	}
	if got.Created.UnixMilli() != want.Created.UnixMilli() || got.Expires.UnixMilli() != want.Expires.UnixMilli() {
		t.Errorf("got the times %v and %v, want %v and %v", got.Created, got.Expires, want.Created, want.Expires)
	}
}

func wantNone(t *testing.T, s *milvus.Store, scope cache.Scope, text string) {
	t.Helper()
	if got, err := s.Equal(scope, []byte(text), time.Time{}); got != nil || err != nil {
		t.Errorf("equal %q: %v, %v, want nothing", tail(text, 50), got, err)
	}
}

// TestMilvusStore: what every store of the cache must do.
func TestMilvusStore(t *testing.T) {
	t.Parallel()
	address := aMilvus(t)
	storetest.Run(t, func(t *testing.T) cache.Store {
		return connected(t, milvus.Options{Address: address, Timeout: unhurried})
	})
}

func TestMilvusEntries(t *testing.T) {
	t.Parallel()
	address := aMilvus(t)
	s := connected(t, milvus.Options{Address: address, Timeout: unhurried})
	one, two := cache.Scope{1}, cache.Scope{2}

	t.Run("found by text and by vector, in its scope", func(t *testing.T) {
		e := entryOf(one, "How high is the Zugspitze?", "2,962 metres.")
		stored(t, s, e, direction(1))
		wantEqual(t, s, e)
		if got, err := s.Get(e.ID); got == nil || err != nil {
			t.Errorf("get: %v, %v", got, err)
		} else {
			sameEntry(t, got, e)
		}
		if got, err := s.Get(e.ID + 1); got != nil || err != nil {
			t.Errorf("get another: %v, %v", got, err)
		}
		wantNone(t, s, two, e.Text)
		wantNone(t, s, one, e.Text+" ")
		near, err := s.Nearest(nil, one, direction(1), 8, 0.9, time.Time{})
		if err != nil || len(near) != 1 || near[0].Similarity < 0.9999 || near[0].Similarity > 1 {
			t.Fatalf("nearest: %v, %v", near, err)
		}
		sameEntry(t, near[0].Entry, e)
		for name, ask := range map[string]func() ([]cache.Candidate, error){
			"another scope": func() ([]cache.Candidate, error) { return s.Nearest(nil, two, direction(1), 8, -1, time.Time{}) },
			"another vector": func() ([]cache.Candidate, error) {
				return s.Nearest(nil, one, direction(2), 8, 0.9, time.Time{})
			},
		} {
			if near, err := ask(); err != nil || len(near) != 0 {
				t.Errorf("%s: %v, %v", name, near, err)
			}
		}
	})
	t.Run("the most similar first", func(t *testing.T) {
		scope := cache.Scope{3}
		for i := range uint64(5) {
			v := *direction(100)
			far := direction(200 + i)
			length := 0.0
			for j := range v {
				v[j] += float32(i) * 0.2 * far[j]
				length += float64(v[j]) * float64(v[j])
			}
			for j := range v {
				v[j] /= float32(math.Sqrt(length))
			}
			stored(t, s, entryOf(scope, "text "+string(rune('a'+i)), "answer"), &v)
		}
		near, err := s.Nearest(nil, scope, direction(100), 3, 0, time.Time{})
		if err != nil || len(near) != 3 {
			t.Fatalf("nearest: %v, %v", near, err)
		}
		for i, c := range near {
			if want := "text " + string(rune('a'+i)); c.Text != want || i > 0 && c.Similarity > near[i-1].Similarity {
				t.Errorf("%d: %q with %v, want %q", i, c.Text, c.Similarity, want)
			}
		}
	})
	t.Run("without a vector it is found by its text alone", func(t *testing.T) {
		scope := cache.Scope{4}
		e := entryOf(scope, "no vector", "answer")
		stored(t, s, e, nil)
		wantEqual(t, s, e)
		var axis [cache.Dim]float32
		axis[0] = 1 // what stands in the place of a vector
		if near, err := s.Nearest(nil, scope, &axis, 8, -1, time.Time{}); err != nil || len(near) != 0 {
			t.Errorf("nearest: %v, %v", near, err)
		}
	})
	t.Run("replaced by the same text, of another replica too", func(t *testing.T) {
		scope := cache.Scope{5}
		other := connected(t, milvus.Options{Address: address, Timeout: unhurried, Version: "TestMilvusEntries"})
		stored(t, s, entryOf(scope, "again", "first"), direction(5))
		second := entryOf(scope, "again", "second")
		stored(t, other, second, direction(6))
		wantEqual(t, s, second)
		near, err := s.Nearest(nil, scope, direction(6), 8, -1, time.Time{})
		if err != nil || len(near) != 1 {
			t.Errorf("nearest: %v, %v, want one entry", near, err)
		}
	})
	t.Run("expired", func(t *testing.T) {
		scope := cache.Scope{6}
		e := entryOf(scope, "short of life", "answer")
		e.Expires = time.Now().Add(8 * time.Second) // until then it is to be stored and found
		stored(t, s, e, direction(7))
		wantEqual(t, s, e)
		eventually(t, patience, "it is gone", func() bool {
			got, err := s.Equal(scope, []byte(e.Text), time.Time{})
			near, also := s.Nearest(nil, scope, direction(7), 8, -1, time.Time{})
			return got == nil && err == nil && len(near) == 0 && also == nil
		})
	})
	t.Run("another embedding", func(t *testing.T) {
		scope := cache.Scope{7}
		stored(t, s, entryOf(scope, "of the old embedding", "answer"), direction(8))
		other := connected(t, milvus.Options{Address: address, Timeout: unhurried, Version: "another embedding"})
		wantNone(t, other, scope, "of the old embedding")
	})
	t.Run("any bytes, long and short", func(t *testing.T) {
		noise := make([]byte, 60<<10)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		for name, e := range map[string]*cache.Entry{
			"long answer":      entryOf(cache.Scope{8}, "long answer", strings.Repeat("Milvus holds 65,535 bytes in a field. ", 40000)),
			"binary":           entryOf(cache.Scope{8}, "binary \xff\x00\xfe", string(noise[:40000])),
			"text that fits":   entryOf(cache.Scope{8}, strings.Repeat("A very long question. ", 20000), "answer"),
			"text not kept":    entryOf(cache.Scope{8}, string(noise), "answer"),
			"nothing":          entryOf(cache.Scope{8}, "", ""),
			"other characters": entryOf(cache.Scope{8}, "日本語\u0000\"'\\\n💥", "“\"\\n"),
		} {
			stored(t, s, e, direction(9))
			wantEqual(t, s, e)
			wantNone(t, s, e.Scope, e.Text+"!")
			if t.Failed() {
				t.Fatal(name)
			}
		}
		dropped := s.Stats().Dropped
		if err := s.Put(entryOf(cache.Scope{8}, "too large", string(noise)), nil); !errors.Is(err, cache.ErrTooLarge) {
			t.Errorf("an answer that does not fit: %v", err)
		}
		if s.Stats().Dropped != dropped+1 {
			t.Error("it is not counted")
		}
	})
}

// Names that would end a string of an expression if they stood in one.
func TestMilvusDelete(t *testing.T) {
	t.Parallel()
	s := connected(t, milvus.Options{Address: aMilvus(t), Timeout: unhurried})
	names := []string{`plain`, `" || "" == "`, `\`, `\" or expires > 0 or tenant == \"`, "%", `x" in ["x`, "", "名前", `'`, "{tenant}"}
	entries := map[string]*cache.Entry{}
	for i, name := range names {
		e := entryOf(cache.Scope{byte(i)}, "text", "answer")
		e.Tenant, e.Model = name, names[(i+1)%len(names)]
		stored(t, s, e, direction(uint64(i)))
		entries[name] = e
	}
	remove := func(f cache.Filter, want int) {
		t.Helper()
		if n, err := s.Delete(f); n != want || err != nil {
			t.Errorf("deleted %d, %v, want %d", n, err, want)
		}
	}
	nobody, nowhere := "nobody", cache.Scope{0xff}
	remove(cache.Filter{Tenant: &nobody}, 0)
	remove(cache.Filter{Scope: &nowhere}, 0)
	for i, name := range names[:len(names)-2] {
		e := entries[name]
		switch i % 4 {
		case 0:
			remove(cache.Filter{Tenant: &e.Tenant, Model: &e.Tenant}, 0)
			remove(cache.Filter{Tenant: &e.Tenant}, 1)
		case 1:
			remove(cache.Filter{Model: &e.Model}, 1)
		case 2:
			remove(cache.Filter{Scope: &e.Scope}, 1)
		case 3:
			remove(cache.Filter{ID: &e.ID, Tenant: &e.Tenant, Model: &e.Model, Scope: &e.Scope}, 1)
		}
		wantNone(t, s, e.Scope, e.Text)
		for _, rest := range names[i+1:] {
			wantEqual(t, s, entries[rest])
		}
	}
	remove(cache.Filter{}, 2)
	if got := s.Stats().Deleted; got != uint64(len(names)) {
		t.Errorf("counted %d deleted, want %d", got, len(names))
	}
}
