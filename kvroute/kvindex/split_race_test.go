// Split race: readers beside writers that split, extend, cut off and leave the
// runs that they read.

package kvindex

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Each round has one prompt that nobody has split yet. Workers that nothing
// changes for hold beginnings of it, in all tiers, and are predicted others;
// those beside them part from it at every block, come back, leave all at once
// and are forgotten, and others get their IDs. Who moves never holds more than
// the first three quarters of the prompt.
func TestReadersBesideSplits(t *testing.T) {
	const stable, moving, length, steps, rounds = 7, 24, 120, 300, 8
	const most = length * 3 / 4
	random := newRandom(t)
	for range rounds {
		x := New(Options{})
		tokens := make([]uint32, length)
		for i := range tokens {
			tokens[i] = random.Uint32()
		}
		names := AppendNames(nil, 0, tokens, 1)
		hashes := make([]uint64, length)
		for i := range hashes {
			hashes[i] = uint64(i) + 1
		}
		event := func(tier Tier, to int) Stored {
			return Stored{Tier: tier, Hashes: hashes[:to], Names: names[:to], BlockSize: 1}
		}
		want := map[int32]Overlap{}
		for i := range stable {
			w, err := x.Add(WorkerOptions{BlockSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			n := 1 + random.IntN(length)
			if i == 0 {
				n = length
			}
			host, disk := random.IntN(n+1), random.IntN(n+1)
			disk = max(host, disk)
			for tier, to := range []int{n, disk, host} { // slowest first
				if to > 0 {
					if err := w.Store(event(tiers-1-Tier(tier), to)); err != nil {
						t.Fatal(err)
					}
				}
			}
			placed := w.Place(names[:random.IntN(length+1)], time.Unix(0, 0))
			want[w.ID()] = Overlap{w.ID(), int32(host), int32(disk - host), int32(n - disk), int32(placed)}
		}
		var writers, readers sync.WaitGroup
		stop := make(chan struct{})
		for range 2 {
			random := rand.New(rand.NewPCG(random.Uint64(), 1))
			writers.Go(func() { part(t, x, random, event, names[:most], moving/2, steps) })
		}
		for range 2 {
			random := rand.New(rand.NewPCG(random.Uint64(), 1))
			readers.Go(func() {
				var dst []Overlap
				for {
					select {
					case <-stop:
						return
					default:
					}
					n := length
					if random.IntN(2) == 0 {
						n = 1 + random.IntN(length)
					}
					dst = x.Find(dst[:0], names[:n])
					if !checkBeside(t, dst, want, n, most) {
						return
					}
					runtime.Gosched() // where there is one processor, writers wait for readers' turns to end
				}
			})
		}
		writers.Wait()
		close(stop)
		readers.Wait()
		checkTrees(t, x)
		if got := x.Find(nil, names); len(got) != stable || !checkBeside(t, got, want, length, 0) {
			t.Errorf("%d workers at the end, not %d", len(got), stable)
		}
		if t.Failed() {
			return
		}
	}
}

// part has workers come and go in the prompt's runs, and part from it.
func part(t *testing.T, x *Index, random *rand.Rand, event func(Tier, int) Stored, names []Name, workers, steps int) {
	ws := make([]*Worker, workers)
	for i := range ws {
		ws[i], _ = x.Add(WorkerOptions{BlockSize: 1})
	}
	own := uint64(1) << 32
	for range steps {
		i, n := random.IntN(len(ws)), 1+random.IntN(len(names))
		w := ws[i]
		e := event(Tier(random.IntN(tiers)), n)
		switch random.IntN(16) {
		case 0:
			w.Clear()
		case 1:
			w.Forget()
			ws[i], _ = x.Add(WorkerOptions{BlockSize: 1})
		case 2, 3, 4:
			from := random.IntN(n)
			w.Remove(e.Tier, e.Hashes[from:])
		case 5:
			w.Copy(e.Tier, e.Hashes)
		case 6, 7, 8: // a prompt that parts from this one
			tail := make([]Name, 1+random.IntN(40))
			for k := range tail {
				tail[k] = Name(random.Uint64() | 1)
			}
			other := append(append([]Name(nil), names[:n]...), tail...)
			w.Done(other[:w.Place(other, time.Unix(0, 0))], time.Unix(int64(random.IntN(2)), 0))
		case 9, 10, 11:
			if err := w.Store(e); err != nil {
				t.Error(err)
			}
			tail := Stored{Tier: e.Tier, Chain: true, Parent: e.Hashes[n-1], BlockSize: 1}
			for range 1 + random.IntN(40) {
				own++
				tail.Hashes, tail.Names = append(tail.Hashes, own), append(tail.Names, Name(random.Uint64()|1))
			}
			if err := w.Store(tail); err != nil {
				t.Error(err)
			}
			if random.IntN(2) == 0 {
				w.Remove(tail.Tier, tail.Hashes)
			}
		default:
			if err := w.Store(e); err != nil {
				t.Error(err)
			}
		}
		if random.IntN(8) == 0 {
			runtime.Gosched()
		}
	}
	for _, w := range ws {
		w.Forget()
	}
}

// checkBeside says whether each worker of want is there as it should be for the
// first n blocks, and all others hold no more than most.
func checkBeside(t *testing.T, got []Overlap, want map[int32]Overlap, n, most int) bool {
	seen := map[int32]bool{}
	found, cut := 0, int32(n)
	for _, o := range got {
		if seen[o.Worker] || o.Blocks() < 1 {
			t.Errorf("not possible, or there twice: %+v", o)
			return false
		}
		seen[o.Worker] = true
		w, ok := want[o.Worker]
		if !ok {
			if o.Blocks() > int32(most) {
				t.Errorf("%+v, who never held more than %d", o, most)
				return false
			}
			continue
		}
		found++
		device, host, disk := min(w.Device, cut), min(w.Device+w.Host, cut), min(w.Device+w.Host+w.Disk, cut)
		if w = (Overlap{w.Worker, device, host - device, disk - host, min(w.Predicted, cut)}); o != w {
			t.Errorf("%+v, not %+v, of %d blocks", o, w, n)
			return false
		}
	}
	if found != len(want) {
		t.Errorf("%d of the %d workers that nothing changes for", found, len(want))
	}
	return found == len(want)
}

// Readers follow runs that are split over and over, at any block and faster
// than events could: between any two of split's steps each worker has what it has.
func TestReadersBesideSplitsAlone(t *testing.T) {
	const length = 64
	rounds := 3000
	if raceEnabled {
		rounds = 300
	}
	random := newRandom(t)
	names := make([]Name, length)
	for i := range names {
		names[i] = Name(random.Uint64() | 1)
	}
	all := func(n int) [tiers]uint16 { return [tiers]uint16{uint16(n), uint16(n), uint16(n)} }
	cut := func(h holder, _ *run, _ int32, k int) (front, back piece) {
		n := int(h.share) // here a share's number is how many blocks it has
		if n <= k {
			return piece{h.share, word(h.worker, all(n))}, piece{}
		}
		return piece{uint32(k), word(h.worker, all(k))}, piece{uint32(n - k), word(h.worker, all(n-k))}
	}
	holders := []int{length, 1, 20, 50, length, 7}
	start := func() (*tree, *run) {
		tr := &tree{keeper: keeper{cut: cut}}
		r := tr.create(nil, names, 0)
		for id, n := range holders {
			r.show(tr.join(r, holder{int32(id), uint32(n)}), word(int32(id), all(n)))
		}
		return tr, r
	}
	var now atomic.Pointer[tree]
	first, last := start()
	now.Store(first)
	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 2 {
		readers.Go(func() {
			f := new(finder)
			for !stop.Load() {
				f.begin(len(holders), names, f.dst[:0])
				f.walk(now.Load(), false)
				if len(f.dst) != len(holders) {
					t.Errorf("%d of %d workers", len(f.dst), len(holders))
					return
				}
				for _, o := range f.dst {
					if o.Device != int32(holders[o.Worker]) {
						t.Errorf("worker %d has %d blocks, not %d", o.Worker, o.Device, holders[o.Worker])
						return
					}
				}
			}
		})
	}
	tr, r := first, last
	for range rounds {
		for {
			n := r.view.Load().len()
			if n == 1 {
				break
			}
			head := tr.split(r, 1+random.IntN(n-1))
			if random.IntN(2) == 0 && head.view.Load().len() > 1 {
				tr.split(head, 1+random.IntN(head.view.Load().len()-1))
			}
		}
		tr, r = start()
		now.Store(tr)
	}
	stop.Store(true)
	readers.Wait()
}
