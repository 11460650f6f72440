// KV events of the simulated engine: after each pass they add up to what its cache holds.

package sim

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvasir/kvroute/kvevents"
)

// cache applies events and keeps the resulting set of blocks.
type cache struct {
	t      *testing.T
	tokens map[uint64][]uint32 // tokens of a block and of all before it
	stored int

	orphans int // blocks stored after a parent that is not there
}

func (c *cache) Stored(s *kvevents.Stored) {
	if s.Tier != kvevents.Device || s.Rank != 0 || s.Group != 0 || len(s.Tokens) != len(s.Handles)*s.BlockSize {
		c.t.Fatalf("%+v", s)
	}
	var before []uint32
	known := true
	if s.HasParent {
		// The parent may be unknown: the sequence had an unnamed second copy of it, and the first
		// one was evicted.
		before, known = c.tokens[s.Parent]
		known = known && len(before) > 0
	}
	for i, handle := range s.Handles {
		if known {
			before = append(slices.Clip(before), s.Tokens[i*s.BlockSize:(i+1)*s.BlockSize]...)
		} else {
			before = []uint32{}
			c.orphans++
		}
		if c.tokens[handle] != nil {
			c.t.Fatalf("block %x is stored twice", handle)
		}
		c.tokens[handle] = before
		c.stored++
	}
}

func (c *cache) Removed(r *kvevents.Removed) {
	for _, handle := range r.Handles {
		if c.tokens[handle] == nil {
			c.t.Fatalf("block %x is removed and was not there", handle)
		}
		delete(c.tokens, handle)
	}
}

func (c *cache) Cleared(kvevents.Cleared) { c.t.Fatal("cleared") }

// Prompts with shared beginnings, and their answers, run through a pool so small that sequences
// are preempted and blocks evicted all the time.
func TestEventsAddUpToTheCache(t *testing.T) {
	o := Options{BlockSize: 4, Blocks: 24, MaxBatchedTokens: 64}.withDefaults()
	o.MaxModelLen = 96
	e := New(o)
	w := eventWriter{blockSize: o.BlockSize}
	heard := &cache{t: t, tokens: map[uint64][]uint32{}}
	var decoder kvevents.Decoder
	var asked [][]uint32
	removed, messages := 0, 0
	for round := range 300 {
		key := mix(7, uint64(round))
		prompt := appendTokens(nil, strings.Repeat("one two three four ", 1+int(key%3)))
		for len(prompt) < 8+int(key>>8%40) {
			prompt = append(prompt, uint32(key>>16%5))
		}
		c := &completion{prompts: [][]uint32{prompt}, choices: 1, limits: limits{max: 1 + int(key>>32%30), ignoreEnd: true}}
		c.write(o)
		for i, r := range c.requests(o) {
			r.Owner = &ticket{prompt: prompt, answer: c.answers[i].tokens}
			if _, err := e.Submit(e.now, r); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, append(slices.Clone(prompt), c.answers[i].tokens...))
		}
		for range 1 + key>>40%8 {
			at, busy := e.Next()
			if !busy {
				break
			}
			p, ok := e.Advance(at)
			if !ok {
				p, ok = e.Advance(at + time.Hour)
			}
			if !ok {
				t.Fatal("no pass")
			}
			removed += len(p.Removed)
			for _, b := range p.Stored {
				hash := b.Sequence.Hash(b.Index)
				if e.pool.find(hash) == 0 {
					t.Fatalf("round %d: block %x is stored by the pass and not in the cache after it; removed: %v",
						round, hash, slices.Contains(p.Removed, hash))
				}
			}
			payload := w.payload(p, time.Unix(1, 0))
			if payload == nil {
				continue
			}
			messages++
			if batch, err := decoder.Decode(payload, heard); err != nil || batch.Time != 1 || batch.Rank != 0 {
				t.Fatalf("%+v, %v", batch, err)
			}
		}
		known := slices.Sorted(maps.Keys(heard.tokens))
		// A pass under way has changed the pool already; its events come at its end.
		pending := map[uint64]bool{}
		if e.under {
			for _, b := range e.pass.Stored {
				pending[b.Sequence.Hash(b.Index)] = true
			}
			for _, h := range e.pass.Removed {
				pending[h] = true
			}
		}
		cached := cachedHashes(e)
		differ := func(h uint64) bool { return pending[h] }
		if !slices.Equal(slices.DeleteFunc(known, differ), slices.DeleteFunc(cached, differ)) {
			t.Fatalf("round %d: the events say %d blocks, the cache has %d", round, len(heard.tokens), e.pool.cached.n)
		}
	}
	for handle, tokens := range heard.tokens {
		if !slices.ContainsFunc(asked, func(a []uint32) bool { return len(a) >= len(tokens) && slices.Equal(a[:len(tokens)], tokens) }) {
			t.Errorf("block %x stands for tokens that nobody asked for", handle)
		}
	}
	if heard.orphans > heard.stored/20 {
		t.Errorf("%d of %d blocks are stored after one that is not there", heard.orphans, heard.stored)
	}
	if removed < 300 || messages < 300 || e.Stats().Preemptions == 0 {
		t.Errorf("%d blocks removed in %d messages, %d preemptions: too few to see anything", removed, messages, e.Stats().Preemptions)
	}
}

func TestServerSaysWhereItsEventsAre(t *testing.T) {
	s, err := NewServer(Options{Events: true, EventTopic: "kv@a@m", EventBuffer: 7})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer s.Close()
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		s.handle(w, httptest.NewRequest(http.MethodGet, "/kv_event_sources", nil))
		body, _ := io.ReadAll(w.Body)
		return w.Code, string(body)
	}
	if status, body := ask(); status != http.StatusNotFound {
		t.Errorf("before there are any: %d %s", status, body)
	}
	events, replay := loopback(t), loopback(t)
	serving.Go(func() { _ = s.ServeEvents(events) })
	serving.Go(func() { _ = s.ServeReplay(replay) })
	deadline := time.Now().Add(time.Minute)
	for {
		status, body := ask()
		ranks, sources, err := kvevents.ReadSources([]byte(body), "host")
		if status == http.StatusOK && err == nil && len(sources) == 1 && sources[0].Replay != "" {
			port := func(ln net.Listener) string {
				_, p, _ := net.SplitHostPort(ln.Addr().String())
				return p
			}
			want := kvevents.Source{Events: "tcp://host:" + port(events), Replay: "tcp://host:" + port(replay), Topic: "kv@a@m"}
			if ranks[0] != 0 || sources[0] != want {
				t.Errorf("got %+v, want %+v", sources[0], want)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %s, %v", status, body, err)
		}
	}
	if !json.Valid([]byte(func() string { _, b := ask(); return b }())) {
		t.Error("no JSON")
	}
}

func TestEventsOff(t *testing.T) {
	s, err := NewServer(Options{Name: "quiet"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.ServeEvents(loopback(t))
	if err == nil || err.Error() != `cannot publish KV events of simulated worker "quiet": Options.Events is off` {
		t.Errorf("got %v", err)
	}
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}
