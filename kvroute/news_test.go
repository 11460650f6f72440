// What routers tell each other: a pool that says it, and one that is told.

package kvroute

import (
	"slices"
	"sync"
	"testing"
	"time"

	"kvasir/kvroute/kvindex"
)

// gathered is News with copies of the names.
type gathered struct {
	mu  sync.Mutex
	all []News
}

func (g *gathered) take(n News) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n.Away.Names = slices.Clone(n.Away.Names)
	g.all = append(g.all, n)
	return true
}

func (g *gathered) of(kind NewsKind) (of []News) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.all {
		if n.Kind == kind {
			of = append(of, n)
		}
	}
	return of
}

// A pool that follows all that another one says has the same load, and expects the same blocks.
func TestFollowedIsAsPlaced(t *testing.T) {
	var g gathered
	one, prompts := warm(t, 2, 4096, PoolOptions{Policy: Predict, News: g.take})
	two, _ := warm(t, 2, 4096, PoolOptions{Policy: Predict})
	now := time.Now()
	twin := func(w *Worker) *Worker {
		return two.options.Workers[slices.Index(one.options.Workers, w)]
	}
	var placed []Placement
	for i := range 6 {
		prompt := Prompt{IDs: prompts[i]}
		at, err := one.Place(Query{Now: now, Model: "m", Prompt: &prompt})
		if err != nil {
			t.Fatal(err)
		}
		placed = append(placed, at)
	}
	followed := map[uint64]*Followed{}
	for _, n := range g.of(LegPlaced) {
		f := twin(n.Worker).Follow(now, &n.Away)
		if f == nil {
			t.Fatalf("not followed: %+v", n)
		}
		followed[n.ID] = f
	}
	if len(followed) != len(placed) {
		t.Fatalf("%d of %d placements are followed", len(followed), len(placed))
	}
	type seen struct{ requests, decoding, context, predicted int }
	loads := func(p *Pool) (loads []seen) {
		at, err := p.Place(Query{Now: now, Model: "m", Prompt: &Prompt{IDs: prompts[0]}})
		if err != nil {
			t.Fatal(err)
		}
		defer at.Release()
		for _, c := range at.Candidates {
			loads = append(loads, seen{c.Load.Requests, c.Load.Decoding, c.Load.Context, c.Overlap.Predicted})
		}
		return loads
	}
	a, b := loads(one), loads(two)
	if !slices.Equal(a, b) || a[0].requests != 4 || a[0].predicted != 256 {
		t.Fatalf("%+v\n%+v", a, b)
	}
	for i := range placed {
		placed[i].Tokens(now, 1)
		placed[i].Tokens(now, 100)
		placed[i].Tokens(now, 200)
	}
	for _, n := range g.of(LegTokens) {
		if f := followed[n.ID]; f != nil {
			f.Tokens(now, n.Away.Generated)
		}
	}
	a, b = loads(one), loads(two)
	for i := range a {
		if a[i].decoding != b[i].decoding || a[i].requests != b[i].requests || a[i].decoding == 0 {
			t.Fatalf("%+v\n%+v", a, b)
		}
	}
	if n := len(g.of(LegTokens)); n != 2*6 {
		t.Errorf("told %d times of tokens, want the first and the 256th of each", n)
	}
	for i := range placed {
		placed[i].Release()
	}
	for _, n := range g.of(LegEnded) {
		if f := followed[n.ID]; f != nil {
			f.End(now)
			f.End(now)
		}
	}
	for _, w := range two.options.Workers {
		if l := w.ranks()[0].track.mirror.Load(now); l.Requests != 0 || l.Outstanding != 0 || l.Shared != 0 {
			t.Errorf("%+v", l)
		}
	}
}

// What others have under way counts for limits, for policies that go by load, and wakes who waits.
func TestAway(t *testing.T) {
	workers := newWorkers(2, 2, "m")
	p := NewPool(PoolOptions{Workers: workers, Policy: LeastLoaded, MaxQueued: 4})
	workers[0].SetAway(1)
	q := Query{Now: time.Now(), Model: "m"}
	a, err := p.Place(q)
	if err != nil || a.Worker != workers[1] {
		t.Fatalf("%v %v", a.Worker, err)
	}
	workers[0].SetAway(2)
	workers[1].SetAway(1)
	if at, err := p.Place(q); err == nil {
		t.Fatalf("%s has %d requests of others, and 2 places", at.Worker.Name(), at.Worker.Away())
	}
	got := make(chan Placement, 1)
	p.Enter(q, func(at Placement, err error) {
		if err != nil {
			t.Error(err)
		}
		got <- at
	})
	workers[0].SetAway(1)
	if at := <-got; at.Worker != workers[0] {
		t.Errorf("%s", at.Worker.Name())
	}
}

// A worker that another router found dead is ejected by the next failure here, and cleared by a
// success.
func TestSuspect(t *testing.T) {
	w := newWorkers(1, 0, "m")[0]
	now := time.Now()
	w.ProbeOK(now)
	w.Suspect(now)
	if s := w.Status(now).State; s != Up {
		t.Fatalf("suspected: %v", s)
	}
	w.Succeeded(now)
	if w.Failed(now, "x"); w.Status(now).State != Up {
		t.Fatal("one failure after a success ejects")
	}
	w.Succeeded(now)
	w.Suspect(now)
	if w.Failed(now, "x"); w.Status(now).State != Ejected {
		t.Fatal("one failure does not eject a suspect")
	}
	strange := NewWorker("strange", Both, 0)
	if strange.Suspect(now); strange.Status(now).State != Unknown {
		t.Fatal("a worker that was never heard is suspected")
	}
	if f := strange.Follow(now, &Away{Rank: -1, Prompt: 10}); f != nil {
		t.Error("a worker without a pool was followed")
	}
}

// A leg at a rank, or in blocks, that are not known here.
func TestFollowStrange(t *testing.T) {
	p, _ := warm(t, 1, 256, PoolOptions{Policy: Predict})
	w := p.options.Workers[0]
	if f := w.Follow(time.Now(), &Away{Rank: 3, Prompt: 10}); f != nil {
		t.Error("a rank that there is not was followed")
	}
	f := w.Follow(time.Now(), &Away{Rank: -1, Prompt: 640, BlockSize: 64, Exact: true, Names: []kvindex.Name{1, 2, 3}})
	if f == nil || len(f.leg.names) > 0 {
		t.Errorf("blocks of another size are expected: %+v", f)
	}
	f.End(time.Now())
}

// Without anybody who listens nothing is told, and nothing allocated for it (TestAllocs); with
// somebody a leg that he does not take is not told of again.
func TestNewsRefused(t *testing.T) {
	var kinds []NewsKind
	p, prompts := warm(t, 1, 256, PoolOptions{Policy: Predict, News: func(n News) bool {
		kinds = append(kinds, n.Kind)
		return n.Kind != LegPlaced
	}})
	at, err := p.Place(Query{Now: time.Now(), Model: "m", Prompt: &Prompt{IDs: prompts[0]}})
	if err != nil {
		t.Fatal(err)
	}
	at.Tokens(time.Now(), 1)
	at.Release()
	if want := []NewsKind{SlotsUsed, LegPlaced, SlotsUsed}; !slices.Equal(kinds, want) {
		t.Errorf("told %v, want %v", kinds, want)
	}
}
