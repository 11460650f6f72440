// What an engine's events leave in the index is what the engine holds.

package holdings

import (
	"testing"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
	"kvasir/sim"
)

// small is an engine that evicts under the load of these tests.
var small = sim.Options{Blocks: 96, MaxModelLen: 1024}

func TestIndexIsWhatTheEngineHolds(t *testing.T) {
	e := startEngine(t, small, "", "")
	list := prompts(120)
	e.load(t, list[:40]) // before anybody listens
	p := newPlace(blockSize)
	l := p.listen(t, e.source())
	p.agrees(t, e, list)
	e.load(t, list)
	p.agrees(t, e, list)
	f := l.Status()[0]
	if f.Kinds[Removed] == 0 || f.Kinds[Stored] == 0 || f.Held == 0 || !f.Connected || !f.Since.IsZero() {
		t.Errorf("%+v", f)
	}
	if n := f.Kinds[RemoveUnknown] + f.Kinds[Orphan] + f.Kinds[Reused] + f.Lost; n > 0 || len(p.said()) > 0 {
		t.Errorf("%d events in trouble: %+v, %q", n, f, p.said())
	}
	l.Close()
	if held := p.at(0).Held(); held != 0 {
		t.Errorf("%d blocks are held for a worker that has left", held)
	}
}

// Connections that break under load lose nothing where a replay socket gives it again.
func TestCutConnections(t *testing.T) {
	e := startEngine(t, small, "", "")
	r := startRelay(t, e.events)
	p := newPlace(blockSize)
	source := e.source()
	source.Events = "tcp://" + r.ln.Addr().String()
	l := p.listen(t, source)
	list := prompts(160)
	for i := 0; i < len(list); i += 20 {
		e.load(t, list[i:i+20])
		r.cut()
	}
	p.agrees(t, e, list)
	eventually(t, "the connections are counted", func() bool { return l.Status()[0].Connections > 1 })
	if f := l.Status()[0]; f.Lost > 0 || f.Cleared["messages missed"] > 0 || !f.LostAt.IsZero() {
		t.Errorf("%+v", f)
	}
}

// A replay buffer too small for what was missed leaves a gap: what is known from before is forgotten, what is held
// after it is true as far as it goes, and the gap is told.
func TestUnrepairedGap(t *testing.T) {
	o := small
	o.EventBuffer = 3
	e := startEngine(t, o, "", "")
	r := startRelay(t, e.events)
	p := newPlace(blockSize)
	source := e.source()
	source.Events = "tcp://" + r.ln.Addr().String()
	l := p.listen(t, source)
	eventually(t, "it listens", func() bool { return l.Status()[0].Connected })
	list := prompts(80)
	e.load(t, list[:8])
	// Cut until a burst falls between two connections.
	eventually(t, "messages are lost", func() bool {
		r.cut()
		e.load(t, list)
		return l.Status()[0].Lost > 0
	})
	f := l.Status()[0]
	if f.LostAt.IsZero() || f.Cleared["messages missed"] == 0 || len(p.said()) == 0 {
		t.Errorf("%+v, %q", f, p.said())
	}
	for i, prompt := range list { // never more than is there once all is heard
		eventually(t, "the index says no more than is true", func() bool {
			engine, _ := e.Holds(prompt, saltOf(i))
			return p.leading(prompt, saltOf(i)) <= engine
		})
	}
}

// An engine that dies and comes back at the same ports is learnt anew, and said to have restarted once.
func TestRestartedEngine(t *testing.T) {
	e := startEngine(t, small, "", "")
	p := newPlace(blockSize)
	l := p.listen(t, e.source())
	list := prompts(60)
	e.load(t, list)
	p.agrees(t, e, list)
	e.stop()
	again := startEngine(t, small, e.events, e.replay)
	again.load(t, list[:7])
	p.agrees(t, again, list)
	again.load(t, list)
	p.agrees(t, again, list)
	p.mu.Lock()
	restarted := p.restarted
	p.mu.Unlock()
	if restarted != 1 || !l.Told() || l.Told() {
		t.Errorf("restarted %d times, or told more or less than once", restarted)
	}
}

// A caller that finds a restart by other means, or whose place for the blocks is another one now, has all learnt anew.
func TestRelearn(t *testing.T) {
	e := startEngine(t, small, "", "")
	p := newPlace(blockSize)
	l := p.listen(t, e.source())
	list := prompts(40)
	e.load(t, list)
	p.agrees(t, e, list)
	p.forget(blockSize)
	l.Relearn()
	p.agrees(t, e, list)
	// Nobody says so: the next event does.
	p.forget(blockSize)
	e.load(t, [][]uint32{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}})
	p.agrees(t, e, list)
}

// The events are right about the engine's block size: what was assumed is corrected, said once, and nothing is lost.
func TestBlockSizeIsCorrected(t *testing.T) {
	e := startEngine(t, small, "", "")
	p := newPlace(2 * blockSize)
	l := p.listen(t, e.source())
	list := prompts(40)
	e.load(t, list)
	p.agrees(t, e, list)
	f := l.Status()[0]
	if f.Kinds[WrongSize] == 0 || f.Engine != 0 || len(p.said()) != 1 || p.said()[0] != "the engine's blocks are of 16 tokens, not 32" {
		t.Errorf("%+v, %q", f, p.said())
	}
	// A place that insists stays wrong, and says so.
	p = newPlace(2 * blockSize)
	o := p.options()
	o.BlockSize = nil
	stubborn := New(o)
	defer stubborn.Close()
	if err := stubborn.Follow([]Source{e.source()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mismatch is told", func() bool {
		f := stubborn.Status()[0]
		return f.Assumed == 32 && f.Engine == 16 && f.Held == 0 && len(p.said()) == 1
	})
	// Nothing assumed: the first event says it.
	p = newPlace(0)
	l = p.listen(t, e.source())
	p.agrees(t, e, list)
	if f := l.Status()[0]; f.Kinds[WrongSize] > 0 || p.at(0).BlockSize() != blockSize {
		t.Errorf("%+v", f)
	}
}

// Sources come and go while others go on; one that nobody can connect to is an error and left out.
func TestFollow(t *testing.T) {
	e := startEngine(t, small, "", "")
	caches := map[int]*kvindex.Worker{}
	x := kvindex.New(kvindex.Options{})
	for rank := range 2 {
		caches[rank], _ = x.Add(kvindex.WorkerOptions{})
	}
	l := New(Options{Cache: func(rank int) *kvindex.Worker { return caches[rank] }})
	defer l.Close()
	second := e.source()
	second.Rank = 1
	if err := l.Follow([]Source{second, e.source()}); err != nil {
		t.Fatal(err)
	}
	e.load(t, prompts(3))
	_, all := e.Holds(nil, "")
	held := func(first, second int) func() bool {
		return func() bool { return caches[0].Held() == first && caches[1].Held() == second }
	}
	eventually(t, "both hear", held(all, all))
	before := l.Status()
	if err := l.Follow([]Source{second, {2, kvevents.Source{Events: "udp://nowhere"}}}); err == nil {
		t.Error("an address of no kind is no error")
	}
	eventually(t, "the first is forgotten", held(0, all))
	after := l.Status()
	if len(before) != 2 || before[0].Rank != 0 || len(after) != 1 || after[0].Rank != 1 || after[0].Connections != 1 {
		t.Errorf("%+v\n%+v", before, after)
	}
	l.Close()
	if err := l.Follow([]Source{e.source()}); err != nil || len(l.Status()) != 0 || !held(0, 0)() {
		t.Errorf("after the end: %v, %+v", err, l.Status())
	}
}
