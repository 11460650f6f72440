// Slots that are left to other routers: for a moment, and not again at once where nobody takes them.

package kvroute

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLeftSlots(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var alarm time.Time
	told := map[string]time.Time{}
	w := NewWorker("w", Both, 1)
	w.SetModels([]Model{{Name: "m"}, {Name: "n"}})
	p := NewPool(PoolOptions{
		Workers: []*Worker{w}, Policy: LeastLoaded, MaxQueued: 10, Now: func() time.Time { return now }, Alarm: func(at time.Time) { alarm = at },
		News: func(n News) bool {
			if n.Kind == LineWaits {
				told[n.Model] = n.Since
			}
			return true
		},
	})
	var placed []Placement
	enter := func() {
		p.Enter(Query{Model: "m"}, func(at Placement, err error) {
			if err != nil {
				t.Fatal(err)
			}
			placed = append(placed, at)
		})
	}
	free := func() {
		at := placed[0]
		placed = placed[1:]
		at.Release()
	}
	begin := now
	enter()
	now = now.Add(time.Second)
	enter()
	enter()
	if !told["m"].Equal(now) || len(placed) != 1 {
		t.Fatalf("told %v, %d placed", told, len(placed))
	}
	w.SetOthersWait(now.Add(time.Millisecond)) // since later than ours
	if free(); len(placed) != 1 {
		t.Fatal("our own request has waited longer")
	}
	w.SetOthersWait(begin)
	if free(); len(placed) != 0 || w.Active() != 0 {
		t.Fatal("another router's request has waited longer")
	}
	if _, err := p.Place(Query{Model: "n"}); err == nil {
		t.Fatal("one who comes along takes the slot")
	}
	w.SetAway(1) // it took the slot
	w.SetOthersWait(time.Time{})
	if w.SetAway(0); len(placed) != 1 || len(p.line.left) != 0 {
		t.Fatal("nobody else waits")
	}
	enter()
	w.SetOthersWait(begin)
	free()
	if len(placed) != 0 || !alarm.Equal(now.Add(leaveFor)) {
		t.Fatalf("it is left until %v", alarm)
	}
	now = alarm
	if p.Ring(); len(placed) != 1 {
		t.Fatal("nobody took it")
	}
	enter()
	if free(); len(placed) != 1 {
		t.Fatal("left again, at once")
	}
	enter()
	now = now.Add(distrustFor)
	if free(); len(placed) != 0 {
		t.Fatal("not left again, ever")
	}
	w.SetOthersWait(now.Add(time.Hour)) // who waited longest has gone
	if len(placed) != 1 || w.left.Load() != 0 || len(p.line.left) != 0 {
		t.Fatal("it is not taken back")
	}
	w.SetOthersWait(time.Time{})
	free()
	if !told["m"].IsZero() || w.Active() != 0 || w.left.Load() != 0 {
		t.Fatalf("told %v; %d active, %d left", told, w.Active(), w.left.Load())
	}
}

// Whatever others say meanwhile, and whichever configuration comes, nobody who waits is forgotten, and no slot stays
// left to others.
func TestLeftSlotsInACrowd(t *testing.T) {
	t.Parallel()
	workers := []*Worker{NewWorker("v", Both, 2), NewWorker("w", Both, 1)}
	for _, w := range workers {
		w.SetModels([]Model{{Name: "m"}, {Name: "n"}})
	}
	options := PoolOptions{Workers: workers, Policy: LeastLoaded, MaxQueued: 100, News: func(News) bool { return true }}
	var pool atomic.Pointer[Pool]
	pool.Store(NewPool(options))
	var clients, others sync.WaitGroup
	over := make(chan struct{})
	for i := range 8 {
		clients.Go(func() {
			for j := range 200 {
				gone := make(chan struct{})
				if j%7 == 0 {
					close(gone)
				}
				at, err := pool.Load().Wait(Query{Model: []string{"m", "n"}[(i+j)%2]}, gone, time.Minute)
				if err == nil {
					runtime.Gosched()
					at.Release()
				} else if j%7 != 0 {
					t.Error(err)
				}
			}
		})
	}
	others.Go(func() { // what another router says comes from one goroutine
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			w := workers[i%2]
			since := time.Time{}
			if i%3 > 0 {
				since = time.Now().Add(-time.Duration(i%5) * time.Millisecond)
			}
			w.SetOthersWait(since)
			w.SetAway(i % 4 % 3)
			if i%50 == 0 {
				o := options
				o.After = pool.Load()
				p := NewPool(o)
				pool.Store(p)
				p.Start()
				w.SetMaxRequests(1 + i/50%3)
			}
			runtime.Gosched()
		}
	})
	clients.Wait()
	close(over)
	others.Wait()
	for _, w := range workers {
		w.SetMaxRequests(1)
		w.SetAway(0)
		w.SetOthersWait(time.Time{})
	}
	for _, w := range workers {
		for deadline := time.Now().Add(10 * time.Second); w.left.Load() != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d slots are left to others", w.left.Load())
			}
		}
		at, err := pool.Load().Place(Query{Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		defer at.Release()
	}
	l := pool.Load().line
	if l.waiting.Load() != 0 || len(l.queues) != 0 {
		t.Errorf("%d wait", l.waiting.Load())
	}
}
