// Tests of workers that are drained.

package kvroute

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// TestDrained: whatever the policy, a drained worker gets nothing new, not as the last resort, not
// by its name and not out of the queue; what it has goes on, and undrained it is as before.
func TestDrained(t *testing.T) {
	for _, policy := range []Policy{Predict, KV, RoundRobin, Random, LeastLoaded, P2C} {
		t.Run(policy.String(), func(t *testing.T) {
			now := time.Now()
			workers := newWorkers(2, 0, "m")
			p := NewPool(PoolOptions{Workers: workers, Policy: policy})
			before, err := p.Place(Query{Now: now, Model: "m", Pin: Pin{Worker: workers[0].Name()}})
			if err != nil {
				t.Fatal(err)
			}
			if !workers[0].SetDraining(true) || workers[0].SetDraining(true) {
				t.Error("the first time alone is news")
			}
			for range 100 {
				at, err := p.Place(Query{Now: now, Model: "m"})
				if err != nil || at.Worker != workers[1] {
					t.Fatalf("placed at %v, %v", at.Worker, err)
				}
				at.Release()
			}
			for range 5 {
				workers[1].Failed(now, "reset") // it is the last resort now
			}
			if at, err := p.Place(Query{Now: now, Model: "m"}); err != nil || at.Worker != workers[1] || !at.LastResort {
				t.Errorf("the last resort is %v, %v", at.Worker, err)
			} else {
				at.Release()
			}
			for what, q := range map[string]Query{
				"named":         {Now: now, Model: "m", Pin: Pin{Worker: workers[0].Name()}},
				"nobody else":   {Now: now, Model: "m", Tried: workers[1:], Strict: true},
				"one by one":    {Now: now, Model: "m", Tried: workers[1:]},
				"named, strict": {Now: now, Model: "m", Pin: Pin{Worker: workers[0].Name()}, Strict: true},
			} {
				if at, err := p.Place(q); !errors.Is(err, ErrNoWorker) {
					t.Errorf("%s: placed at %v, %v", what, at.Worker, err)
				}
			}
			if st := workers[0].Status(now); st.State != Draining || st.State.TakesRequests() || workers[0].Active() != 1 {
				t.Errorf("it is %v with %d requests", st, workers[0].Active())
			}
			before.Release()
			workers[0].SetDraining(false)
			if at, err := p.Place(Query{Now: now, Model: "m"}); err != nil || at.Worker != workers[0] {
				t.Errorf("undrained: placed at %v, %v", at.Worker, err)
			}
		})
	}
}

// TestDrainedModel: a model all of whose workers are drained is served by nobody, and not unknown;
// prefill workers are left out, too; and who waits for a drained worker hears so at once.
func TestDrainedModel(t *testing.T) {
	now := time.Now()
	w, pre, dec := newWorkers(1, 1, "m")[0], NewWorker("pre", Prefill, 0), NewWorker("dec", Decode, 0)
	pre.SetModels([]Model{{Name: "d"}})
	dec.SetModels([]Model{{Name: "d"}})
	pre.ProbeOK(now)
	dec.ProbeOK(now)
	p := NewPool(PoolOptions{Workers: []*Worker{w, pre, dec}, MaxQueued: 4, Disaggregate: Always})
	pre.SetDraining(true)
	if at, err := p.Place(Query{Now: now, Model: "d", Tokens: 9000}); !errors.Is(err, ErrNoPrefill) {
		t.Errorf("without the prefill worker: %v, %v", at, err)
	}
	at, err := p.Place(Query{Now: now, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	waiting.Add(1)
	go func() {
		defer waiting.Done()
		if _, err := p.Wait(Query{Now: now, Model: "m"}, nil, time.Minute); !errors.Is(err, ErrNoWorker) {
			t.Errorf("who waited got %v", err)
		}
	}()
	for p.QueueLen("m") == 0 {
		time.Sleep(time.Millisecond)
	}
	w.SetDraining(true)
	waiting.Wait()
	at.Release()
	if names, sure := p.ServedNames(); !p.Serves("m") || !sure || len(names) != 2 {
		t.Errorf("served are %v, %v", names, sure)
	}
}

// TestDrainedAfterReload: the next pool of the chain leaves the same worker out.
func TestDrainedAfterReload(t *testing.T) {
	workers := newWorkers(2, 0, "m")
	first := NewPool(PoolOptions{Workers: workers})
	workers[0].SetDraining(true)
	next := NewPool(PoolOptions{Workers: workers, After: first})
	next.Start()
	for range 10 {
		if at, err := next.Place(Query{Now: time.Now(), Model: "m"}); err != nil || at.Worker != workers[1] {
			t.Fatalf("placed at %v, %v", at.Worker, err)
		}
	}
}
