// Bench: the traces' mix of finds, stores and removes, finds among a thousand
// workers, and what a block costs in memory.

//go:build unix

package kvindex

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const benchBlockSize = 16

// blocksOf makes the tokens of a prompt from blocks of 512 tokens, up to limit
// tokens; the same block is always the same tokens.
func blocksOf(ids []int, limit int) []uint32 {
	tokens := make([]uint32, 0, min(512*len(ids), limit))
	for _, id := range ids {
		for k := range 512 {
			if len(tokens) == limit {
				return tokens
			}
			tokens = append(tokens, uint32(id*512+k)*2654435761%150000)
		}
	}
	return tokens
}

// A lru is the cache of a simulated engine: what it stores and removes.
type lru struct {
	used     map[Name]int64
	order    []useOf // oldest first, with entries that are out of date
	clock    int64
	capacity int
}

type useOf struct {
	name Name
	at   int64
}

// serve uses the blocks of a prompt, and returns from where on they are new,
// and what had to go for them.
func (l *lru) serve(names []Name) (fresh int, removed []uint64) {
	for fresh < len(names) && l.used[names[fresh]] != 0 {
		fresh++
	}
	for _, n := range slices.Backward(names) { // the end is the first to go
		l.clock++
		l.used[n] = l.clock
		l.order = append(l.order, useOf{n, l.clock})
	}
	for len(l.used) > l.capacity {
		o := l.order[0]
		l.order = l.order[1:]
		if l.used[o.name] == o.at {
			delete(l.used, o.name)
			removed = append(removed, uint64(o.name))
		}
	}
	return fresh, removed
}

// An op is what one request of the trace does to the index.
type op struct {
	names   []Name
	worker  int
	removed []uint64
	store   Stored
}

// traceOps has the requests of a trace served by the worker that holds most of
// each, or one time in eight by any other.
func traceOps(tb testing.TB, trace string, workers, capacity, tokensAtMost int) []op {
	random := rand.New(rand.NewPCG(1, 2))
	caches := make([]*lru, workers)
	for i := range caches {
		caches[i] = &lru{used: map[Name]int64{}, capacity: capacity}
	}
	var ops []op
	for _, ids := range readLines[[]int](tb, "trace_"+trace+".jsonl") {
		tokens := blocksOf(ids, tokensAtMost)
		o := op{names: AppendNames(nil, 0, tokens, benchBlockSize), worker: random.IntN(workers)}
		if random.IntN(8) != 0 {
			best := 0
			for i, c := range caches {
				n := 0
				for n < len(o.names) && c.used[o.names[n]] != 0 {
					n++
				}
				if n > best && n > 64 {
					best, o.worker = n, i
				}
			}
		}
		fresh, removed := caches[o.worker].serve(o.names)
		o.removed = removed
		o.store = Stored{Tokens: tokens[fresh*benchBlockSize : len(o.names)*benchBlockSize], BlockSize: benchBlockSize}
		for _, n := range o.names[fresh:] {
			o.store.Hashes = append(o.store.Hashes, uint64(n))
		}
		if fresh > 0 {
			o.store.Chain, o.store.Parent = true, uint64(o.names[fresh-1])
		}
		ops = append(ops, o)
	}
	return ops
}

// cpuTime is what the process has used of all cores, collection included:
// others work on this machine as well.
func cpuTime(tb testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func addWorkers(tb testing.TB, x *Index, n, capacity int) []*Worker {
	ws := make([]*Worker, n)
	for i := range ws {
		w, err := x.Add(WorkerOptions{BlockSize: benchBlockSize, Keep: time.Hour, Capacity: capacity})
		if err != nil {
			tb.Fatal(err)
		}
		ws[i] = w
	}
	return ws
}

// BenchmarkTrace runs the traces on 16 workers of 16,384 blocks. A block
// operation is one block looked for, stored or removed; a store names its block
// from the tokens. What is reported is the fastest run's rate by CPU time,
// after a first third of the trace, or from the start ("cold").
func BenchmarkTrace(b *testing.B) {
	for _, trace := range []string{"conversation", "synthetic"} {
		ops := traceOps(b, trace, 16, 16384, 1<<20)
		for _, what := range []string{"all", "events", "cold"} {
			warm := len(ops) / 3
			if what == "cold" {
				warm = 0
			}
			b.Run(trace+"/"+what, func(b *testing.B) {
				var blocks int
				var dst []Overlap
				var fastest float64
				for b.Loop() {
					b.StopTimer()
					x := New(Options{})
					ws := addWorkers(b, x, 16, 16384)
					var began time.Duration
					for i := range ops {
						o := &ops[i]
						if i == warm {
							runtime.GC()
							b.StartTimer()
							blocks, began = 0, cpuTime(b)
						}
						if what != "events" {
							dst = x.Find(dst[:0], o.names)
							blocks += len(o.names)
						}
						ws[o.worker].Remove(Device, o.removed)
						if err := ws[o.worker].Store(o.store); err != nil {
							b.Fatal(err)
						}
						blocks += len(o.removed) + len(o.store.Hashes)
					}
					fastest = max(fastest, float64(blocks)/(cpuTime(b)-began).Seconds()/1e6)
				}
				b.ReportMetric(fastest, "Mblocks/s")
			})
		}
	}
}

// BenchmarkFind looks for prompts of 2,000 blocks among 1,000 workers that have
// served the trace, each session in an own copy of it but for the first 512
// tokens, which all share. Prompts are the trace's next requests, filled up
// with new blocks: so the overlaps are those of the trace. p99 counts every
// find, as the machine let it run; p99-of-prompts takes the middle one of each
// prompt's.
func BenchmarkFind(b *testing.B) {
	const workers, blocks = 1000, 2000
	for _, trace := range []string{"conversation", "synthetic"} {
		b.Run(trace, func(b *testing.B) {
			x := New(Options{MaxBlocks: 1 << 26})
			prompts := fill(b, x, trace, workers, blocks)
			var dst []Overlap
			took := make([][]time.Duration, len(prompts))
			var all, typical []time.Duration
			found, n := 0, 0
			for b.Loop() {
				i := n % len(prompts)
				start := time.Now()
				dst = x.Find(dst[:0], prompts[i])
				took[i] = append(took[i], time.Since(start))
				found += len(dst)
				n++
			}
			for _, t := range took {
				if slices.Sort(t); len(t) > 0 {
					all, typical = append(all, t...), append(typical, t[len(t)/2])
				}
			}
			us := func(of []time.Duration, share float64) float64 {
				slices.Sort(of)
				return float64(of[int(share*float64(len(of)))].Nanoseconds()) / 1000
			}
			b.ReportMetric(us(all, 0.5), "p50-us")
			b.ReportMetric(us(all, 0.99), "p99-us")
			b.ReportMetric(us(typical, 0.99), "p99-of-prompts-us")
			b.ReportMetric(float64(found)/float64(n), "workers/find")
			b.ReportMetric(float64(x.Stats().Blocks), "blocks")
		})
	}
}

// fill has the workers serve copies of the first two thirds of the trace, and
// returns prompts that continue them as its last third does.
func fill(tb testing.TB, x *Index, trace string, workers, blocks int) (prompts [][]Name) {
	ws := addWorkers(tb, x, workers, 0)
	rows := readLines[[]int](tb, "trace_"+trace+".jsonl")
	const copies = 8 // some thousand blocks a worker
	cut := len(rows) * 2 / 3
	fresh := 1 << 30
	for c := range copies {
		random := rand.New(rand.NewPCG(uint64(c), 1))
		home := map[int]int{} // worker by the last block of a session's prompts so far
		own := func(ids []int) []int {
			ids = slices.Clone(ids)
			for i, id := range ids {
				if id != 0 {
					ids[i] = id*copies + c
				}
			}
			return ids
		}
		for r, ids := range rows {
			if r >= cut {
				if r%copies == c {
					ids = own(ids)
					for len(ids) < blocks*benchBlockSize/512+1 {
						fresh++
						ids = append(ids, fresh)
					}
					prompts = append(prompts, AppendNames(nil, 0, blocksOf(ids, blocks*benchBlockSize), benchBlockSize))
				}
				continue
			}
			at, ok := -1, false
			for _, id := range slices.Backward(ids) {
				if id == 0 {
					break
				}
				if at, ok = home[id]; ok {
					break
				}
			}
			if !ok || random.IntN(8) == 0 {
				at = random.IntN(workers)
			}
			for _, id := range ids {
				home[id] = at
			}
			tokens := blocksOf(own(ids), 1<<20)
			e := Stored{Tokens: tokens, BlockSize: benchBlockSize}
			for _, n := range AppendNames(nil, 0, tokens, benchBlockSize) {
				e.Hashes = append(e.Hashes, uint64(n))
			}
			if err := ws[at].Store(e); err != nil {
				tb.Fatal(err)
			}
		}
	}
	// All share the first 512 tokens.
	tokens := blocksOf([]int{0}, 512)
	var hashes []uint64
	for _, n := range AppendNames(nil, 0, tokens, benchBlockSize) {
		hashes = append(hashes, uint64(n))
	}
	for _, w := range ws {
		if err := w.Store(Stored{Hashes: hashes, Tokens: tokens, BlockSize: benchBlockSize}); err != nil {
			tb.Fatal(err)
		}
	}
	rand.New(rand.NewPCG(9, 9)).Shuffle(len(prompts), func(i, j int) { prompts[i], prompts[j] = prompts[j], prompts[i] })
	return prompts
}

// BenchmarkPlace is Place and Done of a prompt of 8 KB, 128 blocks.
func BenchmarkPlace(b *testing.B) {
	x := New(Options{})
	ws := addWorkers(b, x, 16, 0)
	names := AppendNames(nil, 0, blocksOf([]int{1, 2, 3, 4}, 2048), benchBlockSize)
	now := time.Unix(0, 0)
	for i := 0; b.Loop(); i++ {
		w := ws[i%16]
		w.Done(names[:w.Place(names, now)], now)
	}
}

// BenchmarkPredictions places the requests of the traces on 16 workers of 16,384
// blocks, and ends each 64 requests later. A block operation is one block placed
// or ended. What is reported is the fastest run's rate by CPU time.
func BenchmarkPredictions(b *testing.B) {
	for _, trace := range []string{"conversation", "synthetic"} {
		ops := traceOps(b, trace, 16, 16384, 1<<20)
		b.Run(trace, func(b *testing.B) {
			var fastest float64
			for b.Loop() {
				x := New(Options{})
				ws := addWorkers(b, x, 16, 16384)
				began, blocks := cpuTime(b), 0
				noted := make([]int, len(ops))
				for i := range len(ops) + 64 {
					now := time.Unix(int64(i), 0)
					if i < len(ops) {
						o := &ops[i]
						noted[i] = ws[o.worker].Place(o.names, now)
						blocks += noted[i]
					}
					if k := i - 64; k >= 0 {
						ws[ops[k].worker].Done(ops[k].names[:noted[k]], now)
						blocks += noted[k]
					}
				}
				fastest = max(fastest, float64(blocks)/(cpuTime(b)-began).Seconds()/1e6)
			}
			b.ReportMetric(fastest, "Mblocks/s")
		})
	}
}

// BenchmarkPart is an event of one block that parts from a prompt of 8,192 which
// many workers hold, each time at another block.
func BenchmarkPart(b *testing.B) {
	const length = 8192
	names := someNames(1, length)
	for _, workers := range []int{1, 16, 100} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			var w *Worker
			k := 0
			for b.Loop() {
				if k--; k <= 0 {
					b.StopTimer()
					x := New(Options{})
					for _, w = range addWorkers(b, x, workers, 0) {
						if err := w.Store(Stored{Names: names, Hashes: hashesOf(names), BlockSize: benchBlockSize}); err != nil {
							b.Fatal(err)
						}
					}
					k = length - 1
					b.StartTimer()
				}
				e := Stored{Chain: true, Parent: uint64(names[k-1]), Names: []Name{Name(k)}, Hashes: []uint64{uint64(k)}, BlockSize: benchBlockSize}
				if err := w.Store(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFindParted looks for a prompt of 2,000 blocks that all workers hold,
// and from which one of them has parted at every block.
func BenchmarkFindParted(b *testing.B) {
	names := someNames(1, 2000)
	for _, workers := range []int{1, 16, 100} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			x := New(Options{})
			var w *Worker
			for _, w = range addWorkers(b, x, workers, 0) {
				if err := w.Store(Stored{Names: names, Hashes: hashesOf(names), BlockSize: benchBlockSize}); err != nil {
					b.Fatal(err)
				}
			}
			for k, name := range names[:len(names)-1] {
				e := Stored{Chain: true, Parent: uint64(name), Names: []Name{Name(k + 1)}, Hashes: []uint64{uint64(k + 1)}, BlockSize: benchBlockSize}
				if err := w.Store(e); err != nil {
					b.Fatal(err)
				}
			}
			var dst []Overlap
			for b.Loop() {
				dst = x.Find(dst[:0], names)
			}
			if len(dst) != workers || dst[0].Device != 2000 {
				b.Fatalf("%d workers, %+v", len(dst), dst[0])
			}
		})
	}
}

// A block costs at most BytesPerBlock, whoever else holds it, and what Stats
// says is what the heap has grown by.
func TestMemoryOfBlocks(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const workers = 64
	for _, c := range []struct{ holders, each, capacity int }{
		{1, 6000, 0}, {1, 7000, 0}, {1, 5000, 5000}, {5, 5000, 0}, {16, 5000, 0},
	} {
		holders, each, capacity := c.holders, c.each, c.capacity
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			x := New(Options{})
			ws := addWorkers(t, x, workers, capacity)
			before := heap()
			for i, w := range ws {
				random := rand.New(rand.NewPCG(uint64(i/holders), 1))
				e := Stored{BlockSize: benchBlockSize, Tokens: make([]uint32, each*benchBlockSize), Hashes: make([]uint64, each)}
				for k := range e.Hashes {
					e.Hashes[k] = random.Uint64()
					e.Tokens[k*benchBlockSize] = random.Uint32()
				}
				if err := w.Store(e); err != nil {
					t.Fatal(err)
				}
			}
			s := x.Stats()
			grown := heap() - before
			if s.Blocks != workers*each {
				t.Fatalf("%d blocks held", s.Blocks)
			}
			perBlock, counted := float64(grown)/float64(s.Blocks), float64(s.Bytes)/float64(s.Blocks)
			t.Logf("%.1f bytes a block and worker on the heap, %.1f counted", perBlock, counted)
			if perBlock > BytesPerBlock || counted > BytesPerBlock || max(perBlock, counted)/min(perBlock, counted) > 1.15 {
				t.Errorf("%.1f bytes a block and worker on the heap, %.1f counted", perBlock, counted)
			}
			runtime.KeepAlive(x)
		})
	}
}

// Whatever the prompts are like, an index that is full takes no more memory
// than it may: one long chain, chains of one block, short ones that leave a
// common beginning, ones that many workers share.
func TestMemoryIsBounded(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const most = 1 << 16
	for _, c := range []struct{ common, length, event, workers int }{
		{0, most + 1, most, 1}, {0, 1, 1, 1}, {0, 3, 3, 1}, {0, 5, 1, 1}, {0, 37, 1, 1}, {0, 300, 1, 1},
		{16, 1, 17, 1}, {16, 12, 5, 1}, {16, 1, 17, 8}, {0, 40, 40, 2}, {2, 2, 2, 40},
	} {
		for _, place := range []bool{false, true} {
			t.Run(fmt.Sprint(c, place), func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 1))
				x := New(Options{MaxBlocks: most})
				ws := make([]*Worker, c.workers)
				for i := range ws {
					ws[i], _ = x.Add(WorkerOptions{BlockSize: 1, Capacity: most})
				}
				before := heap()
				for full := false; !full; {
					e := Stored{BlockSize: 1}
					for i := range c.common + c.length {
						token := uint32(i)
						if i >= c.common {
							token = random.Uint32() | 1<<31
						}
						e.Tokens = append(e.Tokens, token)
					}
					names := AppendNames(nil, 0, e.Tokens, 1)
					for _, n := range names {
						e.Hashes = append(e.Hashes, uint64(n))
					}
					for _, w := range ws {
						if place {
							for to := c.event; to < len(names); to += c.event {
								w.Place(names[:to], time.Unix(0, 0))
							}
							full = w.Place(names, time.Unix(0, 0)) < len(names)
						} else if err := storeInPieces(w, e, c.event); err != nil {
							if full = true; !errors.Is(err, ErrFull) {
								t.Fatal(err)
							}
						}
						if full {
							break
						}
					}
				}
				s := x.Stats()
				grown, blocks := heap()-before, s.Blocks+s.Predicted
				t.Logf("%d blocks, %.1f bytes each on the heap, %d runs; %d %% of what it may", blocks, float64(grown)/float64(blocks), x.held.runs+x.predicted.runs, 100*grown/x.most())
				if 10*grown > 11*x.most() { // memory is given in steps
					t.Errorf("%d bytes on the heap, %d counted, of %d", grown, s.Bytes, x.most())
				}
				checkBytes(t, x)
				runtime.KeepAlive(x)
			})
		}
	}
}

// storeInPieces stores as many blocks with each event.
func storeInPieces(w *Worker, all Stored, blocks int) error {
	for from := 0; from < len(all.Hashes); from += blocks {
		to := min(from+blocks, len(all.Hashes))
		e := Stored{Hashes: all.Hashes[from:to], Tokens: all.Tokens[from:to], BlockSize: 1}
		if from > 0 {
			e.Chain, e.Parent = true, all.Hashes[from-1]
		}
		if err := w.Store(e); err != nil {
			return err
		}
	}
	return nil
}

func heap() int {
	var m runtime.MemStats
	for range 3 { // what tests before left in pools takes two
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestFindAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector drops what is pooled")
	}
	x := New(Options{})
	names := AppendNames(nil, 0, blocksOf([]int{1, 2}, 1024), benchBlockSize)
	for i, w := range addWorkers(t, x, 100, 0) {
		w.Place(names[:1+i%len(names)], time.Unix(0, 0))
	}
	dst := x.Find(nil, names)
	if len(dst) != 100 {
		t.Fatalf("%d workers found", len(dst))
	}
	if n := testing.AllocsPerRun(100, func() { dst = x.Find(dst[:0], names) }); n >= 1 {
		t.Errorf("%v allocations", n)
	}
	slices.SortFunc(dst, func(a, b Overlap) int { return cmp.Compare(a.Worker, b.Worker) })
	if dst[40].Predicted != 41 {
		t.Errorf("%+v", dst[40])
	}
}

// Requests that continue what was placed before, others that leave it in its
// middle, and time that lets all of it go: what is allocated is a few things
// for each run, however long, and nothing stays.
func TestPlaceAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	allocations := func(times int) float64 {
		x := New(Options{})
		w := addWorkers(t, x, 1, 1<<15)[0]
		var ids, others []int
		for i := range times {
			ids, others = append(ids, i+1), append(others, -i-1)
		}
		names := AppendNames(nil, 0, blocksOf(ids, 1<<20), benchBlockSize)
		other := slices.Clone(names[:len(names)/3])
		other = append(other, AppendNames(nil, 1, blocksOf(others, 1<<20), benchBlockSize)...)
		now := time.Unix(0, 0)
		round := func() {
			for _, prompt := range [][]Name{names[:len(names)/7], names, other} {
				if noted := w.Place(prompt, now); noted != len(prompt) {
					t.Fatalf("%d of %d blocks noted", noted, len(prompt))
				}
				w.Done(prompt, now)
			}
			now = now.Add(2 * time.Hour)
			x.Expire(now)
		}
		round()
		s := x.Stats()
		n := testing.AllocsPerRun(100, round)
		if s.Predicted != 0 || x.Stats() != s {
			t.Fatalf("%+v, and later %+v", s, x.Stats())
		}
		return n
	}
	if few, many := allocations(4), allocations(400); few > 16 || many > few {
		t.Errorf("%v allocations for 200 blocks, %v for 20,000", few, many)
	}
}
