// A real Milvus that is down, killed, stopped, behind a bad network, or holds another's collection.

package e2e

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"kvasir/cache"
	"kvasir/cache/milvus"
)

func TestMilvusDownAtStart(t *testing.T) {
	t.Parallel()
	part(t, "milvus-lite")
	address := freeAddress(t)
	s := openStore(t, milvus.Options{Address: address, Timeout: unhurried})
	e := entryOf(cache.Scope{1}, "put before there was a server", "answer")
	if err := s.Put(e, direction(1)); err != nil {
		t.Fatal(err)
	}
	ill(t, s, address, "does not listen")
	if got, err := s.Equal(e.Scope, []byte(e.Text), time.Time{}); got != nil || !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("equal: %v, %v", got, err)
	}
	if near, err := s.Nearest(nil, e.Scope, direction(1), 8, 0, time.Time{}); near != nil || !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("nearest: %v, %v", near, err)
	}
	if n, err := s.Delete(cache.Filter{ID: new(cache.ID)}); n != 0 || !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("delete: %d, %v", n, err)
	}
	startMilvus(t, address, t.TempDir())
	well(t, s)
	eventually(t, time.Minute, "the entry is stored", func() bool { return s.Stats().Stored == 1 })
	wantEqual(t, s, e)
}

func TestMilvusRestart(t *testing.T) {
	t.Parallel()
	address, folder := freeAddress(t), t.TempDir()
	first := startMilvus(t, address, folder)
	s := connected(t, milvus.Options{Address: address, Timeout: unhurried})
	before := entryOf(cache.Scope{1}, "before", "answer")
	stored(t, s, before, direction(1))
	first.kill(t)

	between := entryOf(cache.Scope{1}, "in between", "answer")
	if err := s.Put(between, direction(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the breaker opens", func() bool {
		if _, err := s.Equal(cache.Scope{1}, []byte("before"), time.Time{}); err == nil {
			t.Fatal("an answer without a server")
		}
		return s.Stats().Breaker == "open"
	})
	ill(t, s, address)
	startMilvus(t, address, folder)
	well(t, s)
	wantEqual(t, s, before)
	eventually(t, time.Minute, "the entry is stored", func() bool { return s.Stats().Stored == 2 })
	wantEqual(t, s, between)
}

// TestMilvusFaults: lookups end in time however bad the network is, the breaker opens and says why,
// and all is well again when the network is.
func TestMilvusFaults(t *testing.T) {
	t.Parallel()
	address := aMilvus(t)
	for name, fault := range map[string]struct {
		toxin
		words string
	}{
		"slow":           {toxin{"latency", "downstream", `{"latency":100}`}, "lookups in a row"},
		"swallowed":      {toxin{"timeout", "downstream", `{"timeout":0}`}, "does not answer"},
		"swallowed up":   {toxin{"timeout", "upstream", `{"timeout":0}`}, "does not answer"},
		"reset":          {toxin{"reset_peer", "downstream", `{"timeout":0}`}, "hangs up"},
		"cut in a reply": {toxin{"limit_data", "downstream", `{"bytes":100}`}, "hangs up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, address)
			s := connected(t, milvus.Options{Address: w.Listen})
			e := entryOf(cache.Scope{1}, "text", "answer")
			stored(t, s, e, direction(1))
			w.inject(fault.toxin)
			slowest := failUntilOpen(t, s, e)
			t.Logf("the slowest of the lookups took %v", slowest)
			ill(t, s, w.Listen, fault.words)
			t.Log(s.Stats().Problem)

			w.heal()
			well(t, s)
			eventually(t, time.Minute, "it is found again", func() bool {
				got, err := s.Equal(e.Scope, []byte(e.Text), time.Time{})
				return got != nil && err == nil
			})
			if got := s.Stats().Breaker; got != "closed" {
				t.Errorf("the breaker is %s", got)
			}
		})
	}
}

// failUntilOpen looks up from several goroutines until the breaker is open, and returns how long the
// slowest lookup took: each has a budget of 20 ms, and a machine that is busy with other tests.
func failUntilOpen(t *testing.T, s *milvus.Store, e *cache.Entry) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var slowest time.Duration
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for end := time.Now().Add(patience); time.Now().Before(end) && s.Stats().Breaker != "open"; {
				began := time.Now()
				_, err := s.Equal(e.Scope, []byte(e.Text), time.Time{})
				if took := time.Since(began); err != nil {
					mu.Lock()
					slowest = max(slowest, took)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if got := s.Stats().Breaker; got != "open" {
		t.Fatalf("the breaker is %s", got)
	}
	if slowest > 5*time.Second {
		t.Errorf("a lookup took %v", slowest)
	}
	began := time.Now()
	if _, err := s.Equal(e.Scope, []byte(e.Text), time.Time{}); !errors.Is(err, cache.ErrUnavailable) || time.Since(began) > 5*time.Second {
		t.Errorf("with an open breaker: %v after %v", err, time.Since(began))
	}
	return slowest
}

// inject makes the wire bad at once, for connections that are there too, but those that the toxin
// would only hit at their start.
func (w wire) inject(bad toxin) {
	w.t.Helper()
	if bad.kind == "reset_peer" || bad.kind == "limit_data" {
		w.poison(bad)
		return
	}
	spec := `{"type":"` + bad.kind + `","stream":"` + bad.direction + `","attributes":` + bad.attributes + `}`
	if _, err := w.Toxics.AddToxicJson(strings.NewReader(spec)); err != nil {
		w.t.Fatalf("cannot add the toxin %s: %v", spec, err)
	}
}

func (w wire) heal() { w.Toxics.ResetToxics(context.Background()) }

// TestMilvusForeignCollection: what has the cache's name but not its shape is neither written nor
// dropped.
func TestMilvusForeignCollection(t *testing.T) {
	t.Parallel()
	address := aMilvus(t)
	sdk, err := client.NewClient(t.Context(), client.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	for name, c := range map[string]struct {
		change func(*entity.Schema)
		metric entity.MetricType
		words  string
	}{
		"dimension": {func(s *entity.Schema) { fieldOf(s, "embedding").WithDim(64) }, entity.COSINE, "64 dimensions, not 512"},
		"type":      {func(s *entity.Schema) { fieldOf(s, "created").WithDataType(entity.FieldTypeDouble) }, entity.COSINE, `"created" is of type Double, not Int64`},
		"length":    {func(s *entity.Schema) { fieldOf(s, "answer").WithMaxLength(100) }, entity.COSINE, `"answer" holds 100 bytes, not 65535`},
		"missing": {func(s *entity.Schema) {
			s.Fields = append(s.Fields[:1:1], s.Fields[2:]...)
		}, entity.COSINE, `no field "scope"`},
		"more": {func(s *entity.Schema) {
			s.WithField(entity.NewField().WithName("mine").WithDataType(entity.FieldTypeInt64))
		}, entity.COSINE, `"mine"`},
		"metric": {func(*entity.Schema) {}, entity.L2, "compared by L2, not COSINE"},
	} {
		t.Run(name, func(t *testing.T) {
			schema := shapeOfCache(t, sdk, address)
			c.change(schema)
			makeCollection(t, sdk, schema, c.metric)
			s := openStore(t, milvus.Options{Address: address, Collection: "c_" + name, Version: name})
			ill(t, s, address, schema.CollectionName, c.words, "cache.milvus.collection")
			if _, err := s.Equal(cache.Scope{}, []byte("text"), time.Time{}); !errors.Is(err, cache.ErrUnavailable) {
				t.Errorf("a lookup: %v", err)
			}
			have, err := sdk.DescribeCollection(t.Context(), schema.CollectionName)
			if err != nil || len(have.Schema.Fields) != len(schema.Fields) {
				t.Errorf("the collection is changed: %v, %v", have, err)
			}
		})
	}
}

// shapeOfCache lets a store make its collection, and drops it.
func shapeOfCache(t *testing.T, sdk client.Client, address string) *entity.Schema {
	t.Helper()
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	s, err := milvus.Open(milvus.Options{Address: address, Collection: "c_" + name, Version: name})
	if err != nil {
		t.Fatal(err)
	}
	well(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	have, err := sdk.DescribeCollection(t.Context(), s.Collection())
	if err != nil {
		t.Fatal(err)
	}
	if err := sdk.DropCollection(t.Context(), s.Collection()); err != nil {
		t.Fatal(err)
	}
	return have.Schema
}

func makeCollection(t *testing.T, sdk client.Client, schema *entity.Schema, metric entity.MetricType) {
	t.Helper()
	if err := sdk.CreateCollection(t.Context(), schema, 1); err != nil {
		t.Fatal(err)
	}
	index := entity.NewGenericIndex("", entity.Flat, map[string]string{"index_type": "FLAT", "metric_type": string(metric)})
	if err := sdk.CreateIndex(t.Context(), schema.CollectionName, "embedding", index, false); err != nil {
		t.Fatal(err)
	}
}

func fieldOf(s *entity.Schema, name string) *entity.Field {
	for _, f := range s.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// TestMilvusHung: the server is stopped with SIGSTOP, so that the kernel takes what is sent and
// nobody answers, and goes on later.
func TestMilvusHung(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	p := startMilvus(t, address, t.TempDir())
	s := connected(t, milvus.Options{Address: address})
	e := entryOf(cache.Scope{1}, "text", "answer")
	stored(t, s, e, direction(1))
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	failUntilOpen(t, s, e)
	ill(t, s, address)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	well(t, s)
}
