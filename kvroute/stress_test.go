// Stress: many goroutines at once, for -race and for what only true concurrency breaks.

package kvroute

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStress: no worker ever has more requests than its limit, everybody who may
// wait long enough gets a worker, and nothing is left over.
func TestStress(t *testing.T) {
	for p := range policies {
		t.Run(Policy(p).String(), func(t *testing.T) { stress(t, Policy(p)) })
	}
}

func stress(t *testing.T, policy Policy) {
	const clients = 24
	requests := 400
	if policies[policy].pick == nil {
		requests = 150 // each of them costs more
	}
	workers := newWorkers(6, 2, "m")
	for _, w := range workers[:3] {
		w.SetModels([]Model{{Name: "n"}, {Name: "m"}}) // three serve both
	}
	for i := range workers[3:] { // of them one has two prefill workers
		w := NewWorker(workers[3+i].name, []Role{Decode, Prefill, Prefill}[i], 2)
		w.SetModels([]Model{{Name: "m"}})
		workers[3+i] = w
	}
	for i, w := range workers {
		w.SetEngine(EngineFacts{BlockSize: 16, MaxBatchedTokens: 256 * (i % 3), Ranks: i % 2 * 2})
	}
	o := PoolOptions{Workers: workers, Policy: policy, MaxQueued: clients, CentralQueue: true}
	first := NewPool(o)
	var current atomic.Pointer[Pool]
	current.Store(first)
	inside := map[*Worker]*atomic.Int64{}
	for _, w := range workers {
		inside[w] = new(atomic.Int64)
	}

	request := func(model string) error {
		q := Query{Now: time.Now(), Model: model, Prompt: &Prompt{IDs: make([]uint32, rand.N(400))}, Quiet: rand.N(2) == 0}
		for i := range q.Prompt.IDs {
			q.Prompt.IDs[i] = uint32(rand.N(1 + i/100))
		}
		if rand.N(4) == 0 { // a retry
			q.Tried = []*Worker{workers[rand.N(3)]}
		}
		at, err := current.Load().Place(q)
		if errors.Is(err, ErrFull) {
			gone := make(chan struct{})
			if rand.N(8) == 0 { // leaves, or tries to
				go close(gone)
			}
			at, err = current.Load().Wait(q, gone, time.Minute)
		}
		if err != nil {
			if errors.Is(err, ErrGone) {
				return nil
			}
			return err
		}
		if n := inside[at.Worker].Add(1); n > 2 {
			t.Errorf("worker %s has %d requests", at.Worker.Name(), n)
		}
		if rand.N(2) == 0 {
			at.Worker.Succeeded(time.Now())
		}
		answering := make(chan struct{})
		go func() { // as where both legs are under way at once
			defer close(answering)
			if at.Prefill == nil {
				return
			}
			if n := inside[at.Prefill].Add(1); n > 2 {
				t.Errorf("prefill worker %s has %d requests", at.Prefill.Name(), n)
			}
			inside[at.Prefill].Add(-1)
			at.Prefilled(time.Now(), rand.N(2) == 0)
		}()
		for range rand.N(4) {
			at.Tokens(time.Now(), 1)
		}
		at.Cached(rand.N(100))
		at.Answered(time.Now(), rand.N(100))
		inside[at.Worker].Add(-1)
		<-answering
		at.Release()
		return nil
	}

	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			model := []string{"m", "n"}[i%2]
			for range requests {
				if err := request(model); err != nil && !errors.Is(err, ErrNoWorker) {
					t.Errorf("%s: %v", model, err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var stirring sync.WaitGroup
	stirring.Go(func() { // health, models and pools change all the while
		for {
			select {
			case <-stop:
				return
			default:
			}
			w, now := workers[rand.N(len(workers))], time.Now()
			switch rand.N(8) {
			case 0:
				w.ProbeFailed(now, "refused", true)
			case 1:
				for range ejectAfter {
					w.Failed(now, "cut")
				}
			case 2:
				w.Busy(now, 100*time.Millisecond)
			case 3:
				models, _ := w.Models()
				w.SetModels([]Model{{Name: "other"}})
				w.SetModels(models)
			case 4:
				o.After, o.Disaggregate = current.Load(), Disaggregate(rand.N(3))
				next := NewPool(o)
				current.Store(next)
				next.Start()
			case 5:
				w.Restarted()
			case 6:
				f := w.Engine()
				f.Events = !f.Events
				w.SetEngine(f)
				w.SetHardware(Hardware{Slow: float64(rand.N(4)), Aside: !w.Hardware().Aside})
			}
			w.Status(now)
			w.ProbeOK(now)
		}
	})
	running.Wait()
	close(stop)
	stirring.Wait()

	for _, w := range workers {
		if w.Active() != 0 {
			t.Errorf("worker %s has %d requests at the end", w.Name(), w.Active())
		}
	}
	for _, w := range workers {
		for _, r := range w.ranks() {
			if l := r.track.mirror.Load(time.Now()); l.Requests != 0 {
				t.Errorf("left in the mirror of %s: %+v", w.Name(), l)
			}
		}
	}
	if n := current.Load().line.waiting.Load(); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
}

// TestHandOff: with one slot and nobody else to wake those who wait, a wake-up
// that is lost is found by its timeout.
func TestHandOff(t *testing.T) {
	pool := NewPool(PoolOptions{Workers: newWorkers(1, 1, "m"), MaxQueued: 8})
	var inside atomic.Int64
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 20000 {
				at, err := pool.Place(Query{Now: time.Now(), Model: "m"})
				if err != nil {
					at, err = pool.Wait(Query{Model: "m"}, nil, 20*time.Second)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two requests on one slot")
				}
				inside.Add(-1)
				at.Release()
			}
		})
	}
	running.Wait()
}

// TestLimitHolds: of many who reach for the last slot at once one gets it.
func TestLimitHolds(t *testing.T) {
	w := newWorkers(1, 1, "m")[0]
	NewPool(PoolOptions{Workers: []*Worker{w}})
	var running sync.WaitGroup
	var most atomic.Int64
	start := make(chan struct{})
	for range 4 {
		running.Go(func() {
			<-start
			for range 1000000 {
				if w.acquire() {
					most.Store(max(most.Load(), w.active.Load()))
					w.release()
				}
			}
		})
	}
	close(start)
	running.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d requests on one slot", n)
	}
}

// TestGoneAsServed: a client that leaves in the moment in which its request gets a
// slot does not take the slot along.
func TestGoneAsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := newWorkers(1, 1, "m")
		pool := NewPool(PoolOptions{Workers: workers, MaxQueued: 1})
		outcomes := map[error]int{}
		for i := range 100 {
			at, err := pool.Place(Query{Now: time.Now(), Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			gone, ended := make(chan struct{}), make(chan error)
			go func() {
				at, err := pool.Wait(Query{Model: "m"}, gone, time.Minute)
				if err == nil {
					at.Release()
				}
				ended <- err
			}()
			synctest.Wait()
			if i%2 == 0 { // who wakes a waiter first is what it hears first
				at.Release()
				close(gone)
			} else {
				close(gone)
				at.Release()
			}
			outcomes[<-ended]++
			if n := workers[0].Active(); n != 0 {
				t.Fatalf("%d slots are taken by nobody", n)
			}
		}
		if outcomes[ErrGone] == 0 || outcomes[nil]+outcomes[ErrGone] != 100 {
			t.Errorf("outcomes: %v", outcomes)
		}
	})
}

// newWorkers returns n workers that are up and serve model.
func newWorkers(n, maxRequests int, model string) []*Worker {
	workers := make([]*Worker, n)
	for i := range workers {
		workers[i] = NewWorker(string(rune('a'+i%26)), Both, maxRequests)
		workers[i].SetModels([]Model{{Name: model}})
		workers[i].ProbeOK(time.Now())
	}
	return workers
}
