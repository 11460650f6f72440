// Twin: a slow, obvious model of placement and waiting that the real one is compared with.
package kvroute

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// twin repeats what a pool has to do with plain lists, from the workers' states
// at the moment. It knows nothing of policies: any worker it allows is right.
type twin struct {
	t       *testing.T
	random  func() uint64
	workers []*Worker
	active  map[*Worker]int
	pool    *Pool
	inPool  []*Worker
	queued  int
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

// allowed returns the workers that the request may get, or the error.
func (tw *twin) allowed(q Query) ([]*Worker, error) {
	var serving, well, busy, dead []*Worker
	alive := false
	for _, w := range tw.inPool {
		models, _ := w.Models()
		if !slices.ContainsFunc(models, func(m Model) bool { return m.Name == q.Model }) {
			continue
		}
		serving = append(serving, w)
		state := w.Status(time.Now()).State
		alive = alive || state == Unknown || state == Up || state == Busy
		if slices.Contains(q.Tried, w) {
			continue
		}
		switch state {
		case Unknown, Up:
			well = append(well, w)
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
		return open, nil
	}
	switch {
	case len(serving) == 0:
		return nil, ErrUnknownModel
	case len(well) > 0:
		return free(well)
	case len(busy) > 0:
		return free(busy)
	case len(dead) > 0 && !alive && !q.Strict:
		return free(dead)
	}
	return nil, ErrNoWorker
}

// check compares one answer with what is allowed, and takes its slot.
func (tw *twin) check(what string, q Query, at Placement, err error) {
	tw.t.Helper()
	open, want := tw.allowed(q)
	if !errors.Is(err, want) {
		tw.t.Fatalf("%s: error %v, want %v", what, err, want)
	}
	if err != nil {
		return
	}
	if !slices.Contains(open, at.Worker) {
		tw.t.Fatalf("%s: got worker %s, which is not allowed", what, at.Worker.Name())
	}
	tw.active[at.Worker]++
	tw.held = append(tw.held, at)
}

// settle walks the line from the front: whoever can be placed must have been.
func (tw *twin) settle() {
	tw.t.Helper()
	synctest.Wait()
	var rest []*standing
	for _, s := range tw.line {
		_, want := tw.allowed(s.query)
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
	}
	return q
}

func (tw *twin) place(q Query) {
	at, err := tw.pool.Place(q)
	if len(q.Tried) == 0 && slices.ContainsFunc(tw.line, func(s *standing) bool {
		return s.query.Model == q.Model && len(s.query.Tried) == 0 && s.query.Strict == q.Strict
	}) {
		if !errors.Is(err, ErrFull) {
			tw.t.Fatalf("a newcomer overtook: %v %v", at, err)
		}
		return
	}
	tw.check("place", q, at, err)
}

func (tw *twin) wait(q Query, limit time.Duration) {
	_, want := tw.allowed(q)
	full := tw.waiting(q.Model) >= tw.queued
	s := &standing{query: q, until: time.Now().Add(limit), gone: make(chan struct{})}
	pool := tw.pool
	go func() {
		s.at, s.err = pool.Wait(q, s.gone, limit)
		s.ended.Store(true)
	}()
	synctest.Wait()
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
		Workers: tw.inPool, Policy: Policy(settings % 4), MaxQueued: tw.queued, After: tw.pool, Random: tw.random,
	}
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
			tw.active[at.Worker]--
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
		w.Succeeded(now)
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

func (tw *twin) run(story []byte) {
	for i := range 4 {
		w := NewWorker(string(rune('a'+i)), Both, i%3+1)
		w.SetModels([][]Model{{{Name: "m"}}, {{Name: "m"}, {Name: "n"}}, {{Name: "n"}}, {{Name: "n"}, {Name: "m"}}}[i])
		tw.workers = append(tw.workers, w)
	}
	tw.replacePool(0xff, 0x52)
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
		tw.active[at.Worker]--
		at.Release()
	}
	tw.settle()
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
