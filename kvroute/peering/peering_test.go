// Routers that tell each other, without a network between them: what gets through, what gets lost, and who is forgotten.

package peering

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/kvindex"
)

// A router is a pool with an Exchange, before workers of its own that stand for the same ones as those of others.
type router struct {
	t       testing.TB
	x       *Exchange
	pool    *kvroute.Pool
	workers []*kvroute.Worker
	ready   int
	known   []string
	spent   map[uint64]float64
}

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newRouter(t testing.TB, id uint64, workers ...string) *router {
	r := &router{t: t, spent: map[uint64]float64{}}
	r.x = New(Options{
		ID: id, Name: fmt.Sprint("r", id), Ready: func() { r.ready++ },
		Spent: func(_ time.Time, account uint64, amount float64) { r.spent[account] += amount },
		Known: func(name string, known bool) { r.known = append(r.known, fmt.Sprint(name, " ", known)) },
	})
	for _, name := range workers {
		r.workers = append(r.workers, newWorker(name))
	}
	r.x.SetWorkers(begin, byKey(r.workers))
	r.pool = kvroute.NewPool(kvroute.PoolOptions{Workers: r.workers, Policy: kvroute.Predict, News: r.x.Tell, Now: func() time.Time { return begin }})
	return r
}

func newWorker(name string) *kvroute.Worker {
	w := kvroute.NewWorker(name, kvroute.Both, 0)
	w.SetModels([]kvroute.Model{{Name: "m"}})
	w.SetEngine(kvroute.EngineFacts{BlockSize: 16, Blocks: 1000, MaxBatchedTokens: 8192, MaxSeqs: 256})
	w.ProbeOK(begin)
	return w
}

func byKey(workers []*kvroute.Worker) map[uint64]*kvroute.Worker {
	by := map[uint64]*kvroute.Worker{}
	for _, w := range workers {
		by[Key(w.Name())] = w
	}
	return by
}

func (r *router) place(tokens int) kvroute.Placement {
	r.t.Helper()
	at, err := r.pool.Place(kvroute.Query{Now: begin, Model: "m", Prompt: prompt(1, tokens)})
	if err != nil {
		r.t.Fatal(err)
	}
	return at
}

func prompt(first, tokens int) *kvroute.Prompt {
	p := &kvroute.Prompt{IDs: make([]uint32, tokens)}
	for i := range p.IDs {
		p.IDs[i] = uint32(first + i)
	}
	return p
}

// load is how many requests a router thinks its workers have, and of how many blocks they are.
func (r *router) load() (requests, predicted, away int) {
	r.t.Helper()
	at := r.place(1600)
	defer at.Release()
	for _, c := range at.Candidates {
		requests += c.Load.Requests
		predicted = max(predicted, c.Overlap.Predicted)
		away += c.Worker.Away()
	}
	return requests, predicted, away
}

func copies(messages [][]byte) (all [][]byte) {
	for _, m := range messages {
		all = append(all, bytes.Clone(m))
	}
	return all
}

// hear gives messages to others, and fails if one does not take them.
func hear(t testing.TB, now time.Time, messages [][]byte, to ...*router) {
	t.Helper()
	for _, m := range messages {
		for _, r := range to {
			if err := r.x.Take(now, m); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// meet lets routers hear each other until nobody has anything to say.
func meet(t testing.TB, now time.Time, all ...*router) {
	t.Helper()
	for range 4 {
		for _, r := range all {
			hear(t, now, copies(r.x.Tick(now)), all...)
		}
	}
}

func TestLoadIsShared(t *testing.T) {
	a, b, c := newRouter(t, 1, "w1", "w2"), newRouter(t, 2, "w2", "w1"), newRouter(t, 3, "w1", "w2")
	meet(t, begin, a, b, c)
	if a.x.Peers() != 2 || !slices.Equal(a.known, []string{"r2 true", "r3 true"}) {
		t.Fatalf("%d %v", a.x.Peers(), a.known)
	}
	var placed []kvroute.Placement
	for range 10 {
		placed = append(placed, a.place(1600))
	}
	hear(t, begin, a.x.Flush(begin), a, b, c)
	if requests, predicted, away := b.load(); requests != 10 || predicted != 100 || away != 10 {
		t.Fatalf("%d requests, %d blocks, %d away", requests, predicted, away)
	}
	if s := b.x.Stats(); s.Legs != 10 || s.Gaps != 0 || s.Ignored != 0 || !slices.Equal(s.Peers, []string{"r1", "r3"}) {
		t.Fatalf("%+v", s)
	}
	for i := range placed {
		placed[i].Tokens(begin, 1)
		placed[i].Release()
	}
	hear(t, begin, a.x.Flush(begin), b, c)
	if requests, _, away := b.load(); requests != 0 || away != 0 || b.x.Stats().Legs != 0 {
		t.Fatalf("%d requests, %d away", requests, away)
	}
	if m := a.x.Flush(begin); len(m) != 0 {
		t.Errorf("%d messages of nothing", len(m))
	}
}

// Names need not be sent twice, and come as they were.
func TestPrefixesAreSentOnce(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	first := a.place(1600)
	one := copies(a.x.Flush(begin))
	second := a.place(1616)
	two := copies(a.x.Flush(begin))
	if len(one[0]) < 800 || len(two[0]) > 100 {
		t.Errorf("%d bytes, then %d", len(one[0]), len(two[0]))
	}
	hear(t, begin, append(one, two...), b)
	for _, p := range b.x.in.peers {
		for _, l := range p.legs {
			want := kvindex.AppendNames(nil, 0, prompt(1, l.away.Prompt).IDs, 16)
			if !slices.Equal(l.away.Names, want) {
				t.Errorf("%d tokens: %v, want %v", l.away.Prompt, l.away.Names, want)
			}
		}
	}
	first.Release()
	second.Release()
}

// Whoever misses a message goes on, and is right again after the snapshot that it asks for.
func TestGap(t *testing.T) {
	a, b := newRouter(t, 1, "w1", "w2"), newRouter(t, 2, "w1", "w2")
	meet(t, begin, a, b)
	now := begin.Add(2 * time.Second)
	kept, ends := a.place(160), a.place(320)
	hear(t, now, a.x.Flush(now), b)
	ends.Release()
	lost := a.place(1600)
	a.x.Flush(now) // to nobody
	also := a.place(1616)
	hear(t, now, a.x.Flush(now), b)
	if s := b.x.Stats(); s.Gaps != 1 || s.Legs != 3 {
		t.Fatalf("%+v", s)
	}
	for _, p := range b.x.in.peers {
		for _, l := range p.legs {
			if l.away.Prompt == 1616 && len(l.away.Names) != 0 {
				t.Errorf("%d names of blocks that were never told", len(l.away.Names))
			}
		}
	}
	hear(t, now, b.x.Flush(now), a)
	hear(t, now, a.x.Flush(now), b)
	if requests, _, away := b.load(); requests != 3 || away != 3 || b.x.Stats().Legs != 3 || a.x.Stats().Snapshots != 2 {
		t.Fatalf("%d requests, %d away; %+v %+v", requests, away, b.x.Stats(), a.x.Stats())
	}
	if b.ready == 0 || a.ready == 0 {
		t.Error("nobody was told that there is something to send")
	}
	for _, at := range []kvroute.Placement{kept, lost, also} {
		at.Release()
	}
	hear(t, now, a.x.Flush(now), b)
	if requests, _, away := b.load(); requests != 0 || away != 0 {
		t.Fatalf("%d requests, %d away", requests, away)
	}
}

// A router that is silent is forgotten with all it had under way; so is one that leaves, at once.
func TestForgotten(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	at := a.place(1600)
	hear(t, begin, a.x.Flush(begin), b)
	b.x.Tick(begin.Add(Silent))
	if requests, _, _ := b.load(); requests != 1 || b.x.Peers() != 1 {
		t.Fatalf("%d requests, %d peers", requests, b.x.Peers())
	}
	late := begin.Add(Silent + time.Millisecond)
	b.x.Tick(late)
	if requests, _, away := b.load(); requests != 0 || away != 0 || b.x.Peers() != 0 {
		t.Fatalf("%d requests, %d away, %d peers", requests, away, b.x.Peers())
	}
	meet(t, late, a, b) // it was only cut off
	if requests, _, away := b.load(); requests != 1 || away != 1 {
		t.Fatalf("after the cut: %d requests, %d away", requests, away)
	}
	a.x.Leave()
	hear(t, late, a.x.Flush(late), b)
	if requests, _, _ := b.load(); requests != 0 || b.x.Peers() != 0 {
		t.Fatalf("after it left: %d requests, %d peers", requests, b.x.Peers())
	}
	if want := []string{"r1 true", "r1 false", "r1 true", "r1 false"}; !slices.Equal(b.known, want) {
		t.Errorf("told %v, want %v", b.known, want)
	}
	at.Release()
}

// What is under way at a worker that is not known here counts once it is.
func TestUnknownWorker(t *testing.T) {
	a, b := newRouter(t, 1, "w1"), newRouter(t, 2, "w2")
	meet(t, begin, a, b)
	at := a.place(1600)
	hear(t, begin, a.x.Flush(begin), b)
	if requests, _, away := b.load(); requests != 0 || away != 0 || b.x.Stats().Ignored != 1 {
		t.Fatalf("%d requests, %d away, %+v", requests, away, b.x.Stats())
	}
	other := newRouter(t, 3, "w1") // its worker is one that b comes to know
	b.x.SetWorkers(begin, byKey(other.workers))
	if requests, _, away := other.load(); requests != 1 || away != 1 {
		t.Fatalf("%d requests, %d away", requests, away)
	}
	b.x.SetWorkers(begin, nil)
	if requests, _, away := other.load(); requests != 0 || away != 0 {
		t.Fatalf("left: %d requests, %d away", requests, away)
	}
	at.Release()
	hear(t, begin, a.x.Flush(begin), b)
}

func TestSickIsTold(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	a.workers[0].ProbeFailed(begin, "refused", true)
	hear(t, begin, a.x.Flush(begin), b)
	if b.workers[0].Status(begin).State != kvroute.Up {
		t.Error("dead for others, dead here")
	}
	if b.workers[0].Failed(begin, "reset"); b.workers[0].Status(begin).State != kvroute.Ejected {
		t.Error("a failure of a worker that others found dead does not eject it")
	}
}

func TestBadMessages(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	at := a.place(160)
	good := copies(a.x.Tick(begin))[0]
	later := copies(a.x.Tick(begin))[0]
	other := bytes.Clone(good)
	other[0] = version + 1
	for _, c := range []struct {
		name    string
		message []byte
		want    error
	}{
		{"empty", nil, ErrMalformed},
		{"head only", good[:5], ErrMalformed},
		{"cut", good[:len(good)-1], ErrMalformed},
		{"another version", other, ErrVersion},
		{"too long", make([]byte, MaxMessage+entrySize+1), ErrMalformed},
		{"unknown entry", append(bytes.Clone(later), 200), ErrMalformed},
		{"old", good, ErrStale},
		{"its own", b.x.Tick(begin)[0], nil},
	} {
		if err := b.x.Take(begin, c.message); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	at.Release()
	meet(t, begin.Add(2*time.Second), a, b)
	if requests, _, _ := b.load(); requests != 0 {
		t.Errorf("%d requests are left of bad messages", requests)
	}
}

// A snapshot of many legs takes a while to write: nobody who places waits for it.
func TestSnapshotIsWrittenUnlocked(t *testing.T) {
	a := newRouter(t, 1, "w")
	for range 3 {
		p := a.place(160)
		defer p.Release()
	}
	a.x.Flush(begin)
	a.x.wanted()
	s := &a.x.out
	s.flushing.Lock()
	defer s.flushing.Unlock()
	s.page = -1
	rest := s.takeRest(begin)
	s.mu.Lock() // as one who places; writing would wait for ever
	s.writeRest(a.x, rest)
	s.mu.Unlock()
	b := newRouter(t, 2, "w")
	if err := b.x.Take(begin, s.pages[0]); err != nil || b.x.Stats().Legs != 3 || b.workers[0].Away() != 3 {
		t.Errorf("%v, %d legs of the snapshot", err, b.x.Stats().Legs)
	}
}

// A worker that was changed has streams of before: what is told of its URL is the sum, in snapshots, too.
func TestChangedWorkerDrains(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	old := a.place(160)
	a.workers = []*kvroute.Worker{newWorker("w")}
	a.pool = kvroute.NewPool(kvroute.PoolOptions{Workers: a.workers, Policy: kvroute.Predict, News: a.x.Tell, Now: func() time.Time { return begin }})
	a.x.SetWorkers(begin, byKey(a.workers))
	one, two := a.place(160), a.place(160)
	now := begin.Add(5 * time.Second)
	away := func(want int) {
		t.Helper()
		hear(t, now, a.x.Flush(now), b)
		if n := b.workers[0].Away(); n != want {
			t.Errorf("%d away, want %d", n, want)
		}
	}
	away(3)
	a.x.wanted()
	away(3)
	one.Release()
	away(2)
	old.Release()
	away(1)
	if s := &a.x.out; len(s.workers) != 1 || len(s.slots) != 1 {
		t.Errorf("%d workers of %d keys are kept", len(s.workers), len(s.slots))
	}
	two.Release()
	away(0)
	a.x.SetWorkers(now, nil)
	a.x.Flush(now)
	if s := &a.x.out; len(s.workers) != 0 || len(s.slots) != 0 {
		t.Errorf("%d workers of %d keys are kept", len(s.workers), len(s.slots))
	}
}

// placedWith is a leg whose names are written by hand.
func placedWith(dst []byte, id uint64, names ...uint64) []byte {
	dst = binary.AppendUvarint(append(dst, entryPlaced), id)
	dst = binary.LittleEndian.AppendUint64(dst, Key("w"))
	dst = append(dst, 0, 0, 16, 0, 16, 0, 0) // rank+1, leg, prompt, hit, block size, exact, generated
	for _, n := range names {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// A few bytes that stand for many names have no more room made for them than a message may have.
func TestCopiesAreBounded(t *testing.T) {
	b := newRouter(t, 1, "w")
	m := appendHeader(nil, 7, 1, 0)
	m = placedWith(m, 1, maxBlocks, maxBlocks<<1)
	for i := range uint64(maxBlocks) {
		m = binary.LittleEndian.AppendUint64(m, i+1)
	}
	id := uint64(1)
	for ; len(m) < MaxMessage; id++ {
		m = placedWith(m, id+1, maxBlocks, maxBlocks<<1|1, maxBlocks)
	}
	if err := b.x.Take(begin, m); err != nil {
		t.Fatal(err)
	}
	h := &b.x.in
	if s := b.x.Stats(); s.Legs != int(id) {
		t.Errorf("%d legs, want %d", s.Legs, id)
	}
	if h.names != maxBlocks+maxExpand {
		t.Errorf("%d names, want %d", h.names, maxBlocks+maxExpand)
	}
	// Legs that are known make nothing of their names, nor use up what the message may have.
	again := appendHeader(nil, 7, 2, maxBlocks)
	for id := range uint64(20) {
		again = placedWith(again, id+1, maxBlocks, maxBlocks<<1|1, maxBlocks)
	}
	before := h.names
	if err := b.x.Take(begin, again); err != nil {
		t.Fatal(err)
	}
	if h.names != before || h.reader.expand != maxExpand {
		t.Errorf("%d names, %d left of the message's", h.names, h.reader.expand)
	}
	b.x.Forget(begin)
	if h.names != 0 || h.legs != 0 {
		t.Errorf("%d names of %d legs are left", h.names, h.legs)
	}
}

// However many others there are, all of them together have no more legs, and workers in use, here than may be.
func TestBoundsAreOfAllTogether(t *testing.T) {
	b := newRouter(t, 1)
	next := uint64(0)
	for peer := range uint64(4) {
		for seq := range uint64(4) {
			m := appendHeader(nil, 10+peer, seq+1, 0)
			for range maxLegs / 8 {
				next++
				m = placedWith(m, next, 0)
				if len(m) > MaxMessage-2*entrySize {
					break
				}
				m = append(appendKeyed(m, entrySlots, next), 1)
			}
			if err := b.x.Take(begin, m[:len(m):len(m)]); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := &b.x.in
	if next <= maxLegs {
		t.Fatalf("only %d legs were told of", next)
	}
	if s := b.x.Stats(); s.Legs > maxLegs || s.Legs < maxLegs*3/4 || h.slots > maxLegs || h.slots < maxLegs*3/4 {
		t.Errorf("%d legs, %d slots", s.Legs, h.slots)
	}
	b.x.Forget(begin)
	if h.legs != 0 || h.slots != 0 || len(h.away) != 0 {
		t.Errorf("%d legs, %d slots, %d workers are left", h.legs, h.slots, len(h.away))
	}
}

// A peer that tells of more than there may be, of all of them, leaves room for what others have under way.
func TestOnePeerLeavesRoom(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	next := uint64(0)
	for seq := range uint64(8) {
		m := appendHeader(nil, 10, seq+1, 0)
		for len(m) < MaxMessage-2*entrySize {
			next++
			m = append(appendKeyed(placedWith(m, next, 0), entrySlots, next), 1)
		}
		if err := b.x.Take(begin, m); err != nil {
			t.Fatal(err)
		}
	}
	h := &b.x.in
	if next <= maxLegs || h.legs > maxLegs/2+1 || h.slots > maxLegs/2+1 {
		t.Fatalf("%d legs of %d, %d slots", h.legs, next, h.slots)
	}
	at := a.place(1600)
	hear(t, begin, a.x.Flush(begin), b)
	if p := h.peers[1]; len(p.legs) != 1 || p.names != 100 || b.workers[0].Away() != 1 {
		t.Errorf("of another one: %d legs, %d names, %d requests", len(p.legs), p.names, b.workers[0].Away())
	}
	at.Release()
}

// Requests under way that were heard of before the engine said what it is count once it has: its ranks and its blocks.
func TestFactsComeLate(t *testing.T) {
	whole := kvroute.EngineFacts{BlockSize: 16, Blocks: 1000, MaxBatchedTokens: 8192, MaxSeqs: 256}
	ranked := whole
	ranked.Ranks = 2
	for _, facts := range []kvroute.EngineFacts{whole, ranked} {
		a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
		a.workers[0].SetEngine(facts)
		b.workers[0].SetEngine(kvroute.EngineFacts{})
		meet(t, begin, a, b)
		one, two := a.place(1600), a.place(1600)
		hear(t, begin, a.x.Flush(begin), b)
		b.x.Tick(begin)
		if _, predicted, _ := b.load(); predicted != 0 {
			t.Fatalf("%d blocks of a size that is not known", predicted)
		}
		b.workers[0].SetEngine(facts)
		b.x.Tick(begin)
		if requests, predicted, _ := b.load(); requests != 2 || predicted != 100 {
			t.Errorf("%d ranks: %d requests, %d blocks", facts.Ranks, requests, predicted)
		}
		one.Release()
		two.Release()
		hear(t, begin, a.x.Flush(begin), b)
		if requests, _, _ := b.load(); requests != 0 {
			t.Errorf("%d ranks: %d requests after their end", facts.Ranks, requests)
		}
	}
}

// Entries that a newer Kvasir has, and this one does not know, are passed over.
func TestOptionalEntries(t *testing.T) {
	b := newRouter(t, 2, "w")
	m := appendHeader(nil, 1, 1, 0)
	m = append(m, entryOptional+7, 3, 1, 2, 3)
	m = append(appendKeyed(m, entrySlots, Key("w")), 5)
	if err := b.x.Take(begin, m); err != nil || b.workers[0].Away() != 5 {
		t.Errorf("%v, %d away", err, b.workers[0].Away())
	}
	if err := b.x.Take(begin, append(appendHeader(nil, 1, 2, 0), entryOptional, 200, 1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("longer than the message: %v", err)
	}
}

// What follows its leave in a message is not heard: nobody would end it.
func TestNothingAfterLeaving(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	at := a.place(160)
	placed := copies(a.x.Flush(begin))[0]
	m := append(appendHeader(nil, 9, 1, 0), entryLeaving)
	if err := b.x.Take(begin, append(m, placed[len(appendHeader(nil, 1, 1, 0)):]...)); err != nil {
		t.Fatal(err)
	}
	if requests, _, away := b.load(); requests != 0 || away != 0 || b.x.Peers() != 0 {
		t.Errorf("%d requests, %d away", requests, away)
	}
	at.Release()
}

// More than may wait is dropped with a count, and the rest is right.
func TestTooMuchToTell(t *testing.T) {
	a, b := newRouter(t, 1, "w"), newRouter(t, 2, "w")
	meet(t, begin, a, b)
	placed := make([]kvroute.Placement, 0, maxPending+10)
	for range cap(placed) {
		placed = append(placed, a.place(16))
	}
	messages := copies(a.x.Flush(begin))
	for _, m := range messages {
		if len(m) > MaxMessage {
			t.Errorf("a message of %d bytes", len(m))
		}
	}
	hear(t, begin, messages, b)
	if s := a.x.Stats(); s.Dropped != 10 || b.x.Stats().Legs != maxPending {
		t.Errorf("%+v %+v", s, b.x.Stats())
	}
	for i := range placed {
		placed[i].Release()
	}
	hear(t, begin, copies(a.x.Flush(begin)), b)
	if requests, _, away := b.load(); requests != 0 || away != 0 {
		t.Errorf("%d requests, %d away", requests, away)
	}
}

// Any chains of names come as they were, if no message is lost, and never as another one if some are.
func TestNames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p, u, lossy := newPacker(), unpacker{}, unpacker{}
	chains := [][]kvindex.Name{nil}
	for i := range 3000 {
		from := chains[random.IntN(len(chains))]
		chain := slices.Clone(from[:random.IntN(len(from)+1)])
		for range random.IntN(60) {
			chain = append(chain, kvindex.Name(random.Uint64()|1))
		}
		if chains = append(chains, chain); len(chains) > 200 {
			chains = chains[1:]
		}
		if i%500 == 499 {
			p.restart()
		}
		at := p.at
		m := p.append(nil, chain)
		u.begin(at)
		r := reader{expand: maxExpand, rest: m}
		if got := u.append(nil, &r); !slices.Equal(got, chain) || r.bad || len(r.rest) > 0 {
			t.Fatalf("%d: %d names of %d", i, len(got), len(chain))
		}
		if random.IntN(3) == 0 {
			continue
		}
		lossy.begin(at)
		r = reader{expand: maxExpand, rest: m}
		if got := lossy.append(nil, &r); !slices.Equal(got, chain[:len(got)]) || r.bad || len(r.rest) > 0 {
			t.Fatalf("%d: other names after a loss", i)
		}
	}
	if p.at < window {
		t.Fatalf("the window was not left: %d names", p.at)
	}
}

// FuzzTake: no message of a stranger breaks anything, and when it is forgotten nothing of it is left.
func FuzzTake(f *testing.F) {
	a := newRouter(f, 1, "w1", "w2")
	a.works(2) // so that the snapshot has a pace
	a.x.wanted()
	at, then := a.place(160), a.place(1600)
	at.Tokens(begin, 1)
	a.x.Spend(3, 4)
	a.x.Tell(kvroute.News{Kind: kvroute.LineWaits, Model: "m", Since: begin.Add(-time.Second)})
	for _, m := range copies(a.x.Flush(begin.Add(time.Hour))) {
		f.Add(m, []byte{})
	}
	at.Release()
	a.x.Making(7)
	a.x.Making(8)
	a.x.Made(7, true)
	a.x.Tell(kvroute.News{Kind: kvroute.LineWaits, Model: "m", Since: begin.Add(-time.Second)})
	a.x.ask(2)
	a.workers[1].ProbeFailed(begin, "refused", true)
	for _, m := range copies(a.x.Flush(begin)) {
		f.Add(m, m)
	}
	a.x.Leave()
	for _, m := range copies(a.x.Flush(begin)) {
		f.Add(m, m)
	}
	then.Release()
	f.Fuzz(func(t *testing.T, one, two []byte) {
		b := newRouter(t, 2, "w1", "w2")
		for _, w := range b.workers {
			w.SetMaxRequests(1)
		}
		for _, m := range [][]byte{one, two, one} {
			err := b.x.Take(begin, m)
			if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrStale) {
				t.Fatal(err)
			}
		}
		for _, w := range b.workers {
			if pace, known := w.Pace(); known && !(pace > 0.001 && pace < 1000) {
				t.Fatalf("the pace is %v", pace)
			}
		}
		b.x.Flush(begin)
		b.x.Tick(begin.Add(time.Hour))
		for range 2 { // the second time shows whether a slot is left to nobody
			at, other := b.place(160), b.place(160)
			at.Release()
			other.Release()
		}
		if requests, _, away := b.load(); requests != 0 || away != 0 || b.x.Stats().Legs != 0 {
			t.Fatalf("%d requests, %d away", requests, away)
		}
		if h := &b.x.in; h.making+len(b.x.elsewhere.known)+len(h.waits)+h.names+h.slots > 0 {
			t.Fatalf("%d answers, %d waits, %d names, %d slots are left", h.making, len(h.waits), h.names, h.slots)
		}
	})
}
