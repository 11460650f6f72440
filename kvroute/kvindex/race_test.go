// Race: readers beside writers see what does not change as it is.

package kvindex

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Workers that nothing changes for share runs with workers whose blocks come and
// go, and in tables that are laid out anew all the time.
func TestReadersBesideWriters(t *testing.T) {
	const (
		stable, moving = 70, 70
		chains, length = 6, 30
		rounds         = 1500
	)
	x := New(Options{})
	var names [chains][]Name
	var tokens [chains][]uint32
	for c := range chains {
		for i := range length {
			token := uint32(i)
			if i >= 8 {
				token += uint32(c+1) * 1000 // the first eight blocks are those of all
			}
			tokens[c] = append(tokens[c], token)
		}
		names[c] = AppendNames(nil, 0, tokens[c], 1)
	}
	event := func(c, from, to int) Stored {
		e := Stored{Tokens: tokens[c][from:to], BlockSize: 1}
		for _, n := range names[c][from:to] {
			e.Hashes = append(e.Hashes, uint64(n))
		}
		if from > 0 {
			e.Chain, e.Parent = true, uint64(names[c][from-1])
		}
		return e
	}
	var want [chains]map[int32]Overlap
	for c := range chains {
		want[c] = map[int32]Overlap{}
	}
	for i := range stable {
		w, err := x.Add(WorkerOptions{BlockSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		own, n := i%chains, 1+i%length
		if err := w.Store(event(own, 0, n)); err != nil {
			t.Fatal(err)
		}
		placed := w.Place(names[(i+1)%chains][:i%length], time.Unix(0, 0))
		for c := range chains {
			o := Overlap{Worker: w.ID(), Device: int32(min(n, 8)), Predicted: int32(min(placed, 8))}
			if c == own {
				o.Device = int32(n)
			}
			if c == (i+1)%chains {
				o.Predicted = int32(placed)
			}
			want[c][w.ID()] = o
		}
	}

	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for half := range 2 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(half), 1))
			ws := make([]*Worker, moving/2)
			for i := range ws {
				ws[i], _ = x.Add(WorkerOptions{BlockSize: 1})
			}
			for round := range rounds {
				i := random.IntN(len(ws))
				w, c, n := ws[i], random.IntN(chains), 1+random.IntN(length)
				switch random.IntN(12) {
				case 0:
					w.Clear()
				case 1:
					w.Forget()
					ws[i], _ = x.Add(WorkerOptions{BlockSize: 1})
				case 2, 3, 4:
					e := event(c, 0, n)
					w.Remove(Device, e.Hashes[random.IntN(n):])
				case 5:
					w.Done(names[c][:w.Place(names[c][:n], time.Unix(0, 0))], time.Unix(1, 0))
				case 6: // blocks of its own, so that tables grow and slots change hands
					fresh := []uint32{uint32(round), uint32(half), uint32(i)}
					hashes := []uint64{random.Uint64(), random.Uint64(), random.Uint64()}
					if err := w.Store(Stored{Hashes: hashes, Tokens: fresh, BlockSize: 1}); err != nil {
						t.Error(err)
					}
					if round%2 == 0 {
						w.Remove(Device, hashes)
					}
				default:
					e := event(c, 0, n)
					e.Tier = Tier(random.IntN(tiers))
					if err := w.Store(e); err != nil {
						t.Error(err)
					}
				}
			}
			for _, w := range ws {
				w.Forget()
			}
		})
	}
	for r := range 2 {
		readers.Go(func() {
			var dst []Overlap
			for i := r; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				c := i % chains
				dst = x.Find(dst[:0], names[c])
				if !checkStable(t, dst, want[c], length) {
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	for c := range chains {
		if got := x.Find(nil, names[c]); len(got) != len(want[c]) || !checkStable(t, got, want[c], length) {
			t.Errorf("%d workers at the end, not %d", len(got), len(want[c]))
		}
	}
}

// checkStable says whether each worker of want is there as it should be, and
// all others once and within bounds.
func checkStable(t *testing.T, got []Overlap, want map[int32]Overlap, length int) bool {
	seen := map[int32]bool{}
	found := 0
	for _, o := range got {
		if seen[o.Worker] || o.Blocks() < 1 || o.Device+o.Host+o.Disk > int32(length) || o.Predicted > int32(length) {
			t.Errorf("not possible, or there twice: %+v", o)
			return false
		}
		seen[o.Worker] = true
		if w, ok := want[o.Worker]; ok {
			found++
			if o != w {
				t.Errorf("%+v, not %+v", o, w)
				return false
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of the %d workers that nothing changes for", found, len(want))
	}
	return found == len(want)
}

// A find that met a run before its end was cut off and others came there sees
// no worker hold what it never held.
func TestRunCutOffBesideFind(t *testing.T) {
	x := New(Options{})
	names := []Name{1, 2, 3, 4}
	hashes := []uint64{1, 2, 3, 4}
	a, _ := x.Add(WorkerOptions{BlockSize: 1})
	b, _ := x.Add(WorkerOptions{BlockSize: 1})
	if err := a.Store(Stored{Names: names, Hashes: hashes, BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Store(Stored{Names: names[:2], Hashes: hashes[:2], BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	a.Remove(Device, hashes[2:])
	met := x.held.at(names[0], 0) // a find comes so far
	if err := b.Store(Stored{Chain: true, Parent: 2, Names: []Name{5, 6}, Hashes: []uint64{5, 6}, BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	f := new(finder)
	f.begin(2, names, nil)
	f.meetFirst(met, int32(common(met.names[:met.len()], names)))
	for _, o := range f.dst {
		if o.Device != 2 {
			t.Errorf("%+v, who never held more than 2 of them, or does no more", o)
		}
	}
}
