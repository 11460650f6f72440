// Tests of single facts about pools and workers, their cost included.

package kvroute

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, name := range []string{"both", "prefill", "decode"} {
		if r, err := ParseRole(name); err != nil || r.String() != name {
			t.Errorf("role %s: %v, %v", name, r, err)
		}
	}
	if r, err := ParseRole(""); err != nil || r != Both {
		t.Errorf("no role: %v, %v", r, err)
	}
	if _, err := ParseRole("boht"); err == nil || err.Error() != `cannot read role "boht": want both, prefill or decode` {
		t.Errorf("role boht: %v", err)
	}
	for _, name := range []string{"round_robin", "random", "least_loaded", "p2c", "kv", "predict"} {
		if p, err := ParsePolicy(name); err != nil || p.String() != name {
			t.Errorf("policy %s: %v, %v", name, p, err)
		}
	}
	for name, want := range map[string]Policy{"round-robin": RoundRobin, "least-loaded": LeastLoaded, "power-of-two": P2C, "power_of_two": P2C} {
		if p, err := ParsePolicy(name); err != nil || p != want {
			t.Errorf("%q is %v, %v", name, p, err)
		}
	}
	if _, err := ParsePolicy(""); err == nil {
		t.Error("no name is a policy")
	}
	_, err := ParsePolicy("vk")
	if err == nil || err.Error() != `cannot read policy "vk": want predict, kv, round_robin, random, least_loaded, p2c` {
		t.Errorf("policy vk: %v", err)
	}
}

// TestUnsureIsTyped: the proxy answers 503 and names who has not answered.
func TestUnsureIsTyped(t *testing.T) {
	p := NewPool(PoolOptions{Workers: []*Worker{NewWorker("a", Both, 0), NewWorker("b", Decode, 0)}})
	_, err := p.Place(Query{Now: time.Now(), Model: "m"})
	var unsure *UnsureError
	if !errors.Is(err, ErrModelUnsure) || !errors.As(err, &unsure) || strings.Join(unsure.Workers, " ") != "a b" {
		t.Errorf("got %v", err)
	}
	if p.Serves("m") {
		t.Error("a model nobody named is served")
	}
}

func TestBugsPanic(t *testing.T) {
	tests := []struct {
		name string
		do   func(*Worker)
		want string
	}{
		{"released twice", func(w *Worker) {
			at, err := NewPool(PoolOptions{Workers: []*Worker{w}}).Place(Query{Now: time.Now(), Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			at.Release()
			at.Release()
		}, `BUG: a placement on worker "a" was released twice`},
		{"two chains", func(w *Worker) {
			NewPool(PoolOptions{Workers: []*Worker{w}})
			NewPool(PoolOptions{Workers: []*Worker{w}})
		}, `BUG: worker "a" belongs to another chain of pools`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != tt.want {
					t.Errorf("panic %v, want %s", got, tt.want)
				}
			}()
			tt.do(newWorkers(1, 0, "m")[0])
		})
	}
}

// TestDroppedPool: a configuration that fails after its pool was made changes
// nothing for those who wait.
func TestDroppedPool(t *testing.T) {
	workers := newWorkers(2, 1, "m")
	p := NewPool(PoolOptions{Workers: workers[:1], MaxQueued: 1})
	q := Query{Now: time.Now(), Model: "m"}
	at, err := p.Place(q)
	if err != nil {
		t.Fatal(err)
	}
	NewPool(PoolOptions{Workers: workers[1:], After: p})
	if _, err := p.Wait(q, nil, 0); !errors.Is(err, ErrQueueTimeout) {
		t.Errorf("got %v, want %v: the worker is in a pool that was never started", err, ErrQueueTimeout)
	}
	at.Release()
}

// TestEvenShares: over many requests every policy gives each worker its share,
// also when one of them is down and when some were tried.
func TestEvenShares(t *testing.T) {
	for p := range policies {
		t.Run(Policy(p).String(), func(t *testing.T) {
			workers := newWorkers(5, 0, "m")
			workers[1].ProbeFailed(time.Now(), "refused", true)
			pool := NewPool(PoolOptions{Workers: workers, Policy: Policy(p), Random: seeded(7)})
			q := Query{Now: time.Now(), Model: "m", Tried: workers[3:4]}
			got := map[string]int{}
			for range 3000 {
				at, err := pool.Place(q)
				if err != nil {
					t.Fatal(err)
				}
				got[at.Worker.Name()]++ // none released: least_loaded and p2c see the load
			}
			for _, name := range []string{"a", "c", "e"} {
				if got[name] < 900 || got[name] > 1100 {
					t.Errorf("shares are %v, want about 1000 for each of a, c, e", got)
				}
			}
		})
	}
}

// TestPlaceAllocs: the way of a healthy pool takes nothing from the heap.
func TestPlaceAllocs(t *testing.T) {
	for p := range policies {
		workers := newWorkers(8, 4, "m")
		pool := NewPool(PoolOptions{Workers: workers, Policy: Policy(p)})
		now := time.Now()
		if n := testing.AllocsPerRun(1000, func() {
			at, err := pool.Place(Query{Now: now, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			at.Worker.Succeeded(now)
			at.Release()
		}); n != 0 && !(raceEnabled && Policy(p).Priced()) { // then sync.Pool loses some on purpose
			t.Errorf("%v: %v allocations", Policy(p), n)
		}
	}
}

// TestFullAllocs: to be refused costs nothing either.
func TestFullAllocs(t *testing.T) {
	pool := NewPool(PoolOptions{Workers: newWorkers(1, 1, "m")})
	q := Query{Now: time.Now(), Model: "m"}
	at, err := pool.Place(q)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Release()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := pool.Place(q); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPlace(b *testing.B) {
	for p := range policies {
		for _, n := range []int{1, 8, 1000} {
			pool := benchmarkPool(n, Policy(p))
			b.Run(fmt.Sprintf("%v/%d", Policy(p), n), func(b *testing.B) {
				q := Query{Now: time.Now(), Model: "m"}
				b.ReportAllocs()
				for b.Loop() {
					at, err := pool.Place(q)
					if err != nil {
						b.Fatal(err)
					}
					at.Release()
				}
			})
		}
	}
}

func BenchmarkPlaceParallel(b *testing.B) {
	for p := range policies {
		for _, n := range []int{1, 8, 1000} {
			pool := benchmarkPool(n, Policy(p))
			b.Run(fmt.Sprintf("%v/%d", Policy(p), n), func(b *testing.B) {
				q := Query{Now: time.Now(), Model: "m"}
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						at, err := pool.Place(q)
						if err != nil {
							b.Error(err)
							return
						}
						at.Release()
					}
				})
			})
		}
	}
}

// benchmarkPool returns n workers with some load each, so that least_loaded has
// to look at all of them.
func benchmarkPool(n int, policy Policy) *Pool {
	workers := newWorkers(n, 1000, "m")
	for i, w := range workers {
		w.active.Store(int64(1 + i*7%5))
	}
	return NewPool(PoolOptions{Workers: workers, Policy: policy})
}

// BenchmarkHandOver: a release while 1000 wait, of whom the first gets the slot.
func BenchmarkHandOver(b *testing.B) {
	for _, n := range []int{1, 8, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			pool := NewPool(PoolOptions{Workers: newWorkers(n, 1, "m"), Policy: LeastLoaded, MaxQueued: 2000})
			q := Query{Now: time.Now(), Model: "m"}
			var at Placement
			for range n {
				at, _ = pool.Place(q)
			}
			var waiting []*waiter
			for range 1000 {
				w, _, _ := pool.line.enter(q, nil)
				waiting = append(waiting, w)
			}
			b.ReportAllocs()
			for b.Loop() {
				at.Release()
				at, waiting = waiting[0].at, waiting[1:]
				w, _, _ := pool.line.enter(q, nil)
				waiting = append(waiting, w)
			}
		})
	}
}
