// What the proxy learns of simulated engines and hears from them, over HTTP and ZeroMQ.

package proxy

import (
	"slices"
	"strings"
	"testing"

	"kvasir/kvroute"
	"kvasir/sim"
	"kvasir/sim/simtest"
)

func (p *testProxy) backendOf(t testing.TB, name string) *backend {
	t.Helper()
	for _, b := range p.state.Load().backends {
		if b.Name() == name {
			return b
		}
	}
	t.Fatalf("there is no worker %q", name)
	return nil
}

// holds says how many leading blocks of a prompt the index has for a worker.
func holds(b *backend, tokens []uint32, size int) func(want int) bool {
	return func(want int) bool {
		cache := b.Cache(0)
		return cache != nil && cache.BlockSize() == size && cache.Held() >= want && b.Engine().Events
	}
}

// A worker that publishes is found, asked what it is, and heard; a reload that names it as before does not disturb that;
// one that names it no longer ends it.
func TestEventsAreFoundAndHeard(t *testing.T) {
	e := simtest.Start(t, sim.Options{Name: "w0", BlockSize: 32, Blocks: 2000, Events: true}, nil)
	quiet := simtest.Start(t, sim.Options{Name: "w1"}, nil)
	p := startProxy(t, settingsFor("http://"+e.Web, "http://"+quiet.Web))
	b := p.backendOf(t, "w0")
	e.Complete(t, 200)
	waitUntil(t, "the blocks are known", func() bool { return holds(b, simtest.Sequence(200), 32)(6) })
	want := kvroute.EngineFacts{BlockSize: 32, Blocks: 2000, Ranks: 1, Events: true}
	if f := b.Engine(); f != want {
		t.Errorf("the engine is %+v, want %+v", f, want)
	}
	other := p.backendOf(t, "w1")
	waitUntil(t, "the one without events is known, too", func() bool { return other.Engine().Blocks == 16384 })
	if f := other.Engine(); f.Events || f.BlockSize != 16 || len(other.Events()) != 0 {
		t.Errorf("the engine without events is %+v", f)
	}
	waitUntil(t, "the blocks are counted", func() bool { // behind their coming into the index
		return p.metric(t, `kvasir_kv_events_total{kind="stored",worker="w0"}`) != "0"
	})
	scrape := fetchFrom(t, p.admin, "/metrics")
	for _, line := range []string{
		`kvasir_kv_events_connected{worker="w0"} 1`, `kvasir_kv_events_sources{worker="w0"} 1`, `kvasir_kv_events_sources{worker="w1"} 0`,
		`kvasir_kv_blocks_held{worker="w0"} 6`, `kvasir_kv_index_blocks{by="events"} 6`, `kvasir_kv_index_blocks{by="predicted"} 0`, `kvasir_kv_block_tokens{worker="w0"} 32`, `kvasir_kv_block_tokens_mismatch{worker="w0"} 0`,
		`kvasir_kv_events_total{kind="stored",worker="w0"} 6`, `kvasir_kv_messages_total{how="lost",worker="w0"} 0`,
		`kvasir_kv_clears_total{why="engine restarted",worker="w0"} 0`, `kvasir_kv_transfers_late_total{worker="w0"} 0`,
	} {
		if !strings.Contains(scrape, line+"\n") {
			t.Errorf("/metrics lack %s, and have\n%s", line, scrape)
		}
	}
	if got := fetchFrom(t, p.admin, "/readyz"); !strings.Contains(got, `{"status":"ready","reasons":[]}`) {
		t.Errorf("/readyz says %s", got)
	}

	if err := p.Apply(settingsFor("http://"+e.Web, "http://"+quiet.Web)); err != nil {
		t.Fatal(err)
	}
	if f := b.Events(); p.backendOf(t, "w0") != b || len(f) != 1 || f[0].Connections != 1 || f[0].Held != 6 {
		t.Errorf("after a reload: %+v", f)
	}
	gone := settingsFor("http://" + quiet.Web)
	gone.Workers[0].Name = "w1"
	if err := p.Apply(gone); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "nobody listens any more", func() bool { return len(b.Events()) == 0 })
}

// Addresses of the configuration are taken as they are, whatever the engine says or is; their block size comes from the
// first event.
func TestConfiguredEvents(t *testing.T) {
	e := simtest.Start(t, sim.Options{Name: "w0", BlockSize: 8, Events: true}, nil)
	s := settingsFor("http://" + e.Web)
	s.Workers[0].Engine = "dynamo"
	s.Workers[0].KVEvents, s.Workers[0].KVReplay = "tcp://"+e.Events, "tcp://"+e.Replay
	p := startProxy(t, s)
	b := p.backendOf(t, "w0")
	e.Complete(t, 100)
	waitUntil(t, "the blocks are known", func() bool { return holds(b, simtest.Sequence(100), 8)(12) })
	waitUntil(t, "so is their size", func() bool { return b.Engine().BlockSize == 8 })
	moved := *s
	moved.Workers = slices.Clone(s.Workers)
	moved.Workers[0].KVReplay = ""
	if err := p.Apply(&moved); err != nil {
		t.Fatal(err)
	}
	if p.backendOf(t, "w0") == b {
		t.Error("a worker whose events come from elsewhere is the same")
	}
}
