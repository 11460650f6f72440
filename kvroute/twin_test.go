// Twin: a slow, obvious model of placement and waiting that the real one is compared with.

package kvroute

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvasir/kvroute/cost"
)

// twin repeats what a pool has to do with plain lists, from the workers' states
// at the moment. It knows nothing of policies and prices: any worker it allows is
// right. Of a central queue it knows no order either, but that nobody waits where
// there are slots and all engines are open.
type twin struct {
	t       *testing.T
	random  func() uint64
	workers []*Worker
	active  map[*Worker]int
	pool    *Pool
	inPool  []*Worker
	queued  int
	mode    Disaggregate
	central bool
	closed  bool // an engine was not open when the line was looked at last
	held    []Placement
	line    []*standing // in the order of arrival
}

// standing is a request that waits.
type standing struct {
	query Query
	until time.Time
	gone  chan struct{}
	left  bool // the client left
	ended atomic.Bool
	at    Placement
	err   error
}

func (s *standing) String() string {
	return fmt.Sprintf("%s strict=%v tried=%d", s.query.Model, s.query.Strict, len(s.query.Tried))
}

// serving returns who answers the model, and who computes prompts for it.
func (tw *twin) serving(model string) (workers, prefills []*Worker) {
	for _, w := range tw.inPool {
		models, _ := w.Models()
		switch {
		case !slices.ContainsFunc(models, func(m Model) bool { return m.Name == model }):
		case w.Role() == Prefill:
			prefills = append(prefills, w)
		default:
			workers = append(workers, w)
		}
	}
	return workers, prefills
}

// allowed returns the workers that the request may get, and the prefill workers
// that those of role decode may get beside it, or the error.
func (tw *twin) allowed(q Query) (workers, prefills []*Worker, err error) {
	workers, prefills = tw.serving(q.Model)
	if len(workers) == 0 {
		return nil, nil, ErrUnknownModel
	}
	decodes := slices.ContainsFunc(workers, func(w *Worker) bool { return w.Role() == Decode })
	if !decodes || q.Aggregate || tw.mode == Never {
		workers, err = tw.usable(workers, q.Tried, q.Strict)
		return workers, nil, err
	}
	prefills, err = tw.usable(prefills, q.TriedPrefill, true)
	if tw.mode == Auto && slices.ContainsFunc(prefills, func(w *Worker) bool { return w.Status(time.Now()).State == Busy }) {
		prefills = nil
	}
	if tw.mode == Always && err != nil {
		if !errors.Is(err, ErrFull) {
			err = ErrNoPrefill
		}
		workers = slices.DeleteFunc(workers, func(w *Worker) bool { return w.Role() == Decode })
		if len(workers) == 0 {
			return nil, nil, err
		}
	}
	workers, err = tw.usable(workers, q.Tried, q.Strict)
	if tw.mode == Auto && slices.ContainsFunc(workers, func(w *Worker) bool { return !w.Hardware().Aside && w.Status(time.Now()).State <= Up }) {
		prefills = slices.DeleteFunc(prefills, func(w *Worker) bool { return w.Hardware().Aside })
	}
	return workers, prefills, err
}

// usable returns those of the workers that may be chosen, or the error.
func (tw *twin) usable(workers, tried []*Worker, strict bool) ([]*Worker, error) {
	var well, spare, busy, dead []*Worker // spare: well and aside
	alive := false
	for _, w := range workers {
		state := w.Status(time.Now()).State
		alive = alive || state == Unknown || state == Up || state == Busy
		if slices.Contains(tried, w) {
			continue
		}
		switch state {
		case Unknown, Up:
			if w.Hardware().Aside {
				spare = append(spare, w)
			} else {
				well = append(well, w)
			}
		case Busy:
			busy = append(busy, w)
		default:
			dead = append(dead, w)
		}
	}
	free := func(workers []*Worker) ([]*Worker, error) {
		var open []*Worker
		for _, w := range workers {
			if w.MaxRequests() == 0 || tw.active[w] < w.MaxRequests() {
				open = append(open, w)
			}
		}
		if len(open) == 0 {
			return nil, ErrFull
		}
		if rest := slices.DeleteFunc(slices.Clone(open), func(w *Worker) bool { return w.Hardware().Aside }); len(rest) > 0 {
			return rest, nil
		}
		return open, nil
	}
	if workers, err := free(append(well, spare...)); err == nil {
		return workers, nil
	}
	switch {
	case len(well) > 0:
		return nil, ErrFull
	case len(busy) > 0:
		return free(busy)
	case len(spare) > 0:
		return nil, ErrFull
	case len(dead) > 0 && !alive && !strict:
		return free(dead)
	}
	return nil, ErrNoWorker
}

// check compares one answer with what is allowed, and takes its slots.
func (tw *twin) check(what string, q Query, at Placement, err error) {
	tw.t.Helper()
	open, prefills, want := tw.allowed(q)
	if errors.Is(err, ErrFull) && want == nil && tw.central && len(q.Tried) == 0 && tw.anyClosed() {
		return
	}
	if !errors.Is(err, want) {
		tw.t.Fatalf("%s: error %v, want %v", what, err, want)
	}
	if err != nil {
		return
	}
	if !slices.Contains(open, at.Worker) {
		tw.t.Fatalf("%s: got worker %s, which is not allowed", what, at.Worker.Name())
	}
	switch {
	case at.Prefill != nil && (at.Worker.Role() != Decode || !slices.Contains(prefills, at.Prefill)):
		tw.t.Fatalf("%s: got prefill worker %s for %s, which is not allowed", what, at.Prefill.Name(), at.Worker.Name())
	case at.Prefill == nil && at.Worker.Role() == Decode && tw.mode == Always && !q.Aggregate:
		tw.t.Fatalf("%s: got no prefill worker for %s", what, at.Worker.Name())
	}
	tw.take(&at, 1)
	tw.held = append(tw.held, at)
}

// take counts the slots of a placement.
func (tw *twin) take(at *Placement, n int) {
	tw.active[at.Worker] += n
	if at.Prefill != nil {
		tw.active[at.Prefill] += n
	}
}

// anyClosed says whether an engine is not open.
func (tw *twin) anyClosed() bool {
	for _, w := range tw.inPool {
		for _, r := range w.ranks() {
			if !r.track.open(r.track.mirror.Load(time.Now()), cost.Whole) {
				return true
			}
		}
	}
	return false
}

// settle walks the line from the front: whoever can be placed must have been.
func (tw *twin) settle() {
	tw.t.Helper()
	synctest.Wait()
	if tw.central { // they were served in another order: first those who were
		slices.SortStableFunc(tw.line, func(a, b *standing) int {
			return cmp.Compare(b2i(!a.ended.Load()), b2i(!b.ended.Load()))
		})
	}
	closed := tw.closed
	tw.closed = tw.central && tw.anyClosed()
	closed = closed || tw.closed
	var rest []*standing
	for _, s := range tw.line {
		_, _, want := tw.allowed(s.query)
		if closed && want == nil && len(s.query.Tried) == 0 && !s.ended.Load() {
			want = ErrFull
		}
		switch {
		case s.left || !time.Now().Before(s.until):
			wantEnd := ErrQueueTimeout
			if s.left {
				wantEnd = ErrGone
			}
			if !s.ended.Load() || !errors.Is(s.err, wantEnd) {
				tw.t.Fatalf("waiting %v: ended=%v with %v, want %v", s, s.ended.Load(), s.err, wantEnd)
			}
		case errors.Is(want, ErrFull):
			if s.ended.Load() {
				tw.t.Fatalf("waiting %v: ended with %v %v, though full", s, s.at.Worker, s.err)
			}
			rest = append(rest, s)
		case !s.ended.Load():
			tw.t.Fatalf("waiting %v: forgotten, want a worker or %v", s, want)
		default:
			tw.check("waiting "+s.String(), s.query, s.at, s.err)
		}
	}
	tw.line = rest
	for _, w := range tw.workers {
		if w.Active() != tw.active[w] {
			tw.t.Fatalf("worker %s: %d active, want %d", w.Name(), w.Active(), tw.active[w])
		}
	}
	for _, model := range []string{"m", "n", "none"} {
		if got := tw.pool.QueueLen(model); got != tw.waiting(model) {
			tw.t.Fatalf("%d wait for %s, want %d", got, model, tw.waiting(model))
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (tw *twin) waiting(model string) (n int) {
	for _, s := range tw.line {
		if s.query.Model == model {
			n++
		}
	}
	return n
}

func (tw *twin) query(a, b byte) Query {
	q := Query{Now: time.Now(), Model: []string{"m", "n", "m", "n", "m", "none"}[a%6], Strict: a&0x40 != 0}
	if a&0x80 != 0 {
		for i, w := range tw.workers {
			if b>>i&1 != 0 {
				q.Tried = append(q.Tried, w)
			}
		}
		q.TriedPrefill = q.Tried
		q.Aggregate = b&0x40 != 0
	}
	// One of a few prompts, the longer ones beginning like the shorter ones.
	prompt := &Prompt{IDs: make([]uint32, 1+int(b)%200)}
	for i := range prompt.IDs {
		prompt.IDs[i] = uint32(i/64) * uint32(a%3)
	}
	switch a >> 3 % 4 {
	case 0, 1:
		q.Prompt = prompt
	case 2:
		q.Prompt = &Prompt{Text: textOf(prompt.IDs)}
	}
	q.Quiet = b%2 == 0
	return q
}

func (tw *twin) place(q Query) {
	at, err := tw.pool.Place(q)
	if q.class() != picky && slices.ContainsFunc(tw.line, func(s *standing) bool {
		return s.query.Model == q.Model && s.query.class() == q.class()
	}) {
		if !errors.Is(err, ErrFull) {
			tw.t.Fatalf("a newcomer overtook: %v %v", at, err)
		}
		return
	}
	tw.check("place", q, at, err)
}

func (tw *twin) wait(q Query, limit time.Duration) {
	_, _, want := tw.allowed(q)
	full := tw.waiting(q.Model) >= tw.queued
	s := &standing{query: q, until: time.Now().Add(limit), gone: make(chan struct{})}
	pool := tw.pool
	go func() {
		s.at, s.err = pool.Wait(q, s.gone, limit)
		s.ended.Store(true)
	}()
	synctest.Wait()
	if want == nil && errors.Is(s.err, ErrQueueFull) && tw.central && (tw.anyClosed() || len(tw.line) > 0) {
		want = ErrFull
	}
	if errors.Is(want, ErrFull) && full {
		if !s.ended.Load() || !errors.Is(s.err, ErrQueueFull) {
			tw.t.Fatalf("wait: ended=%v with %v, want %v", s.ended.Load(), s.err, ErrQueueFull)
		}
		return
	}
	tw.line = append(tw.line, s)
}

func (tw *twin) replacePool(subset, settings byte) {
	tw.inPool = nil
	for i, w := range tw.workers {
		if subset>>i&1 != 0 {
			tw.inPool = append(tw.inPool, w)
		}
	}
	tw.queued = int(settings>>4) % 8
	o := PoolOptions{
		Workers: tw.inPool, Policy: Policy(settings >> 3 % 6), MaxQueued: tw.queued, After: tw.pool, Random: tw.random,
		Disaggregate: Disaggregate(subset >> 6 % 3), CentralQueue: settings&0x80 != 0,
	}
	tw.mode, tw.central = o.Disaggregate, o.CentralQueue && o.Policy == Predict && o.MaxQueued > 0
	first := tw.pool == nil
	if tw.pool = NewPool(o); !first {
		tw.pool.Start()
	}
}

// step does one operation.
func (tw *twin) step(op, a, b byte) {
	w, now := tw.workers[int(a)%len(tw.workers)], time.Now()
	switch op % 16 {
	case 0, 1, 2:
		tw.place(tw.query(a, b))
	case 3, 4, 5:
		tw.wait(tw.query(a, b), time.Duration(b%32)*time.Second+500*time.Millisecond)
	case 6, 7, 8:
		if n := len(tw.held); n > 0 {
			at := tw.held[int(a)%n]
			tw.held = slices.Delete(tw.held, int(a)%n, int(a)%n+1)
			tw.take(&at, -1)
			at.Release()
		}
	case 9:
		if n := len(tw.line); n > 0 {
			s := tw.line[int(a)%n]
			s.left = true
			close(s.gone)
		}
	case 10:
		for range b%6 + 1 {
			w.Failed(now, "cut")
		}
	case 11:
		if b%2 == 0 {
			w.Succeeded(now)
		} else {
			w.SetHardware(Hardware{Slow: float64(b >> 5), Aside: b&2 != 0})
		}
	case 12:
		w.Busy(now, time.Duration(b%8+1)*time.Second)
	case 13:
		if b%2 == 0 {
			w.ProbeOK(now)
		} else {
			w.ProbeFailed(now, "refused", b&2 == 0)
		}
	case 14:
		switch b % 8 {
		case 0:
			tw.replacePool(a, b)
		case 1:
			w.SetModels([]Model{{Name: "m"}})
		case 2:
			w.SetModels([]Model{{Name: "n"}, {Name: "m"}})
		case 3:
			w.SetMaxRequests(int(a>>4) % 4)
		case 4:
			w.Restarted()
		case 5:
			w.SetEngine(EngineFacts{
				BlockSize: []int{0, 16, 16, 32}[a%4], MaxBatchedTokens: []int{0, 32, 64, 64}[a/4%4], Ranks: int(a / 16 % 3),
				Events: a&0x80 != 0,
			})
		default:
			if n := len(tw.held); n > 0 {
				tw.told(&tw.held[int(a)%n], b)
			}
		}
	case 15:
		// What waits ends at half seconds, what heals at whole ones: never both at once.
		for range 2 * (b%16 + 1) {
			time.Sleep(500 * time.Millisecond)
			tw.settle()
		}
	}
	tw.settle()
}

// told lets a request hear of its workers.
func (tw *twin) told(at *Placement, b byte) {
	now := time.Now()
	if b&0x10 != 0 {
		at.Prefilled(now, b%2 == 0)
		if at.Prefill != nil {
			tw.active[at.Prefill]--
			at.Prefill = nil // this copy is the twin's own
		}
	}
	if b&0x20 != 0 {
		at.Cached(int(b))
	}
	at.Tokens(now, int(b)%3)
	at.DropCandidates()
}

func (tw *twin) run(story []byte) {
	for i := range 6 {
		role := []Role{Both, Decode, Both, Decode, Prefill, Prefill}[i]
		w := NewWorker(string(rune('a'+i)), role, i%3+1)
		w.SetModels([][]Model{{{Name: "m"}}, {{Name: "m"}, {Name: "n"}}, {{Name: "n"}}, {{Name: "n"}, {Name: "m"}}}[i%4])
		w.SetEngine(EngineFacts{BlockSize: 16, MaxBatchedTokens: 48 * (i % 4)})
		tw.workers = append(tw.workers, w)
	}
	settings := byte(0x50)
	if len(story) > 0 && story[0]&1 != 0 {
		settings = 0xe8 // predict, with a central queue of 6
	}
	tw.replacePool(0xff, settings)
	for len(story) >= 3 {
		tw.step(story[0], story[1], story[2])
		story = story[3:]
	}
	for _, s := range tw.line {
		s.left = true
		close(s.gone)
	}
	tw.settle()
	for _, at := range tw.held {
		tw.take(&at, -1)
		at.Release()
	}
	tw.settle()
	for _, w := range tw.workers {
		for _, r := range w.ranks() {
			if l := r.track.mirror.Load(time.Now()); l.Requests != 0 {
				tw.t.Fatalf("left in the mirror of %s: %+v", w.Name(), l)
			}
		}
	}
	x := tw.pool.line.index
	if x.Expire(time.Now().Add(keepAlone)); x.Stats().Predicted != 0 {
		tw.t.Fatalf("left in the index: %+v", x.Stats())
	}
	if l := tw.pool.line; l.waiting.Load() != 0 || len(l.queues) != 0 || !l.alarmAt.IsZero() {
		tw.t.Fatalf("left in line: %d, queues %v, alarm at %v", l.waiting.Load(), l.queues, l.alarmAt)
	}
}

func runTwin(t *testing.T, story []byte) {
	synctest.Test(t, func(t *testing.T) {
		tw := &twin{t: t, random: seeded(uint64(len(story))), active: map[*Worker]int{}}
		tw.run(story)
	})
}

func FuzzPlacement(f *testing.F) {
	f.Add([]byte{3, 0, 9, 3, 0, 9, 6, 0, 0})
	f.Fuzz(func(t *testing.T, story []byte) {
		if len(story) > 3*400 {
			t.Skip("long stories find nothing that short ones do not")
		}
		runTwin(t, story)
	})
}

// TestPlacementTwin runs the twin over long random stories, which fuzzing from
// a small corpus needs hours to come to.
func TestPlacementTwin(t *testing.T) {
	for seed := range uint64(60) {
		random := seeded(seed)
		story := make([]byte, 3*400)
		for i := range story {
			story[i] = byte(random())
		}
		runTwin(t, story)
	}
}
