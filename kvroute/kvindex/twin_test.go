// Twin: a slow, obvious index that the real one is compared with.

package kvindex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A twinIndex keeps maps and looks at every block of every worker.
type twinIndex map[int32]*twinWorker

type twinWorker struct {
	blocks   map[uint64]*twinBlock // by hash
	open     map[Name]int
	idle     []Name // no request needs them, used longest ago first
	done     map[Name]time.Time
	keep     time.Duration
	capacity int
}

type twinBlock struct {
	name   Name
	parent uint64 // 0: none
	count  [tiers]int
}

func (b *twinBlock) held() bool { return b.count != [tiers]int{} }

func newTwinWorker(o WorkerOptions) *twinWorker {
	return &twinWorker{
		blocks: map[uint64]*twinBlock{}, open: map[Name]int{}, done: map[Name]time.Time{},
		keep: o.Keep, capacity: o.Capacity,
	}
}

func (w *twinWorker) store(t Tier, parent uint64, hashes []uint64, names []Name) error {
	if parent != 0 && w.blocks[parent] == nil {
		return ErrUnknownParent
	}
	for i, h := range hashes {
		if w.blocks[h] == nil {
			w.blocks[h] = &twinBlock{name: names[i], parent: parent}
		}
		w.blocks[h].count[t]++
		parent = h
	}
	return nil
}

func (w *twinWorker) remove(t Tier, hashes []uint64) (unknown int) {
	for _, h := range hashes {
		b := w.blocks[h]
		if b == nil || b.count[t] == 0 {
			unknown++
			continue
		}
		b.count[t]--
	}
	w.prune()
	return unknown
}

// prune drops blocks that are not held and that no known block follows.
func (w *twinWorker) prune() {
	for again := true; again; {
		again = false
		followed := map[uint64]bool{}
		for _, b := range w.blocks {
			followed[b.parent] = true
		}
		for h, b := range w.blocks {
			if !b.held() && !followed[h] {
				delete(w.blocks, h)
				again = true
			}
		}
	}
}

func (w *twinWorker) place(names []Name, now time.Time) int {
	w.expire(now)
	for i, n := range names {
		if w.open[n] == 0 {
			if at := slices.Index(w.idle, n); at >= 0 {
				w.idle = slices.Delete(w.idle, at, at+1)
			} else {
				if len(w.open)+len(w.idle) >= w.capacity && len(w.idle) > 0 {
					w.idle = w.idle[1:]
				}
				if len(w.open)+len(w.idle) >= w.capacity {
					return i
				}
			}
		}
		w.open[n]++
	}
	return len(names)
}

func (w *twinWorker) finish(names []Name, now time.Time) {
	for _, n := range slices.Backward(names) {
		if w.open[n] == 0 {
			continue
		}
		if w.open[n]--; w.open[n] == 0 {
			delete(w.open, n)
			w.idle = append(w.idle, n)
			w.done[n] = now
		}
	}
	w.expire(now)
}

func (w *twinWorker) expire(now time.Time) {
	w.idle = slices.DeleteFunc(w.idle, func(n Name) bool { return now.Sub(w.done[n]) >= w.keep })
}

func (w *twinWorker) overlap(id int32, names []Name) Overlap {
	var best [tiers]map[Name]bool // held in this tier or a faster one
	for t := range best {
		best[t] = map[Name]bool{}
		for _, b := range w.blocks {
			for _, n := range b.count[:t+1] {
				best[t][b.name] = best[t][b.name] || n > 0
			}
		}
	}
	run := func(in func(Name) bool) int32 {
		for i, n := range names {
			if !in(n) {
				return int32(i)
			}
		}
		return int32(len(names))
	}
	var ends [tiers]int32
	for t := range ends {
		ends[t] = run(func(n Name) bool { return best[t][n] })
	}
	return Overlap{
		Worker: id, Device: ends[0], Host: ends[1] - ends[0], Disk: ends[2] - ends[1],
		Predicted: run(func(n Name) bool { return w.open[n] > 0 || slices.Contains(w.idle, n) }),
	}
}

func (x twinIndex) find(names []Name) []Overlap {
	var dst []Overlap
	for id, w := range x {
		if o := w.overlap(id, names); o.Blocks() > 0 {
			dst = append(dst, o)
		}
	}
	return sorted(dst)
}

func sorted(o []Overlap) []Overlap {
	slices.SortFunc(o, func(a, b Overlap) int { return int(a.Worker - b.Worker) })
	return o
}

// A world is both indexes, and prompts made of few different tokens.
type world struct {
	x       *Index
	twin    twinIndex
	workers []*Worker
	options []WorkerOptions
	open    []request
	now     time.Time

	// aliases is how many hashes a block may have. With more than one, which blocks
	// are known besides those that are held is not compared.
	aliases int
}

type request struct {
	w     int
	names []Name
}

const twinBlockSize = 3

func newWorld(t testing.TB, workers int) *world {
	wo := &world{x: New(Options{}), twin: twinIndex{}, now: time.Unix(1000, 0), aliases: 1}
	for i := range workers {
		wo.options = append(wo.options, WorkerOptions{Keep: time.Duration(i%4) * time.Second, Capacity: 3 + i*5%17})
		wo.workers = append(wo.workers, nil)
		wo.add(t, i)
	}
	return wo
}

func (wo *world) add(t testing.TB, i int) {
	w, err := wo.x.Add(wo.options[i])
	if err != nil {
		t.Fatal(err)
	}
	wo.workers[i] = w
	wo.twin[w.ID()] = newTwinWorker(wo.options[i])
}

// blocks makes the tokens, hashes and names of a chain of blocks, each chosen
// by a number; an engine's hash is another one for each worker.
func (wo *world) blocks(worker int, path []byte) (tokens []uint32, hashes []uint64, names []Name) {
	for _, p := range path {
		tokens = append(tokens, uint32(p), 7, uint32(p)*3)
	}
	names = AppendNames(nil, 5, tokens, twinBlockSize)
	for _, n := range names {
		hashes = append(hashes, uint64(n)*2654435761+uint64(worker))
	}
	return tokens, hashes, names
}

// act does to both what the bytes say, and returns how many it used; 0: too few.
func (wo *world) act(t testing.TB, in []byte) int {
	if len(in) < 4 {
		return 0
	}
	op, i, tier := in[0]%16, (int(in[0]>>4)<<8|int(in[1]))%len(wo.workers), Tier(in[2]%tiers)
	n := min(1+int(in[3]%5), len(in)-4)
	path := make([]byte, n)
	for k := range path {
		path[k] = in[4+k] % 3 // few: chains meet often
	}
	if n == 0 {
		return 0
	}
	w, twin := wo.workers[i], wo.twin[wo.workers[i].ID()]
	tokens, hashes, names := wo.blocks(i, path)
	for k := range hashes {
		hashes[k] += uint64(int(in[4+k])/3%wo.aliases) << 40
	}
	from := 0
	if in[3] >= 128 && wo.aliases == 1 {
		from = int(in[2]/3) % n
	}
	switch {
	case op < 6: // the end of the chain is stored
		e := Stored{Tier: tier, Seed: 5, Hashes: hashes[from:], Tokens: tokens[from*twinBlockSize:], BlockSize: twinBlockSize}
		parent := uint64(0)
		if from > 0 {
			e.Chain, e.Parent, parent = true, hashes[from-1], hashes[from-1]
		}
		if got, want := w.Store(e), twin.store(tier, parent, hashes[from:], names[from:]); got != want {
			t.Fatalf("store: %v, not %v", got, want)
		}
	case op < 10: // one block of the chain, or all from it on
		gone := hashes[int(in[2]/3)%n:]
		if in[3] >= 64 {
			gone = gone[:1]
		}
		if got, want := w.Remove(tier, gone), twin.remove(tier, gone); got != want {
			t.Fatalf("remove: %d unknown, not %d", got, want)
		}
	case op == 10:
		w.Clear()
		clear(twin.blocks)
	case op == 11:
		w.Forget()
		delete(wo.twin, w.ID())
		wo.open = slices.DeleteFunc(wo.open, func(r request) bool { return r.w == i })
		wo.add(t, i)
	case op < 14:
		noted := w.Place(names, wo.now)
		if want := twin.place(names, wo.now); noted != want {
			t.Fatalf("place: %d noted, not %d", noted, want)
		}
		wo.open = append(wo.open, request{i, names[:noted]})
	default:
		wo.now = wo.now.Add(time.Duration(in[2]%4) * 400 * time.Millisecond)
		if len(wo.open) > 0 {
			k := int(in[3]) % len(wo.open)
			r := wo.open[k]
			wo.open = slices.Delete(wo.open, k, k+1)
			wo.workers[r.w].Done(r.names, wo.now)
			wo.twin[wo.workers[r.w].ID()].finish(r.names, wo.now)
		}
		wo.x.Expire(wo.now)
		for _, w := range wo.twin {
			w.expire(wo.now)
		}
	}
	return 4 + n
}

// check compares what both say of the prompt, and what is counted.
func (wo *world) check(t testing.TB, path []byte) {
	_, _, names := wo.blocks(0, path)
	got, want := sorted(wo.x.Find(nil, names)), wo.twin.find(names)
	if !slices.Equal(got, want) {
		t.Fatalf("find %v:\n got %v\nwant %v", path, got, want)
	}
	if wo.aliases > 1 {
		return
	}
	var s Stats
	for _, w := range wo.twin {
		s.Workers++
		s.Blocks += len(w.blocks)
		s.Predicted += len(w.open) + len(w.idle)
	}
	if got := wo.x.Stats(); got.Workers != s.Workers || got.Blocks != s.Blocks || got.Predicted != s.Predicted {
		t.Fatalf("stats: %+v, not %+v", got, s)
	}
}

// checkEmpty forgets all and looks for what is left.
func (wo *world) checkEmpty(t testing.TB) {
	for _, w := range wo.workers {
		w.Forget()
	}
	if s := wo.x.Stats(); s.Workers+s.Blocks+s.Predicted != 0 {
		t.Fatalf("all forgotten, but %+v", s)
	}
	for _, tr := range []*tree{&wo.x.held, &wo.x.predicted} {
		if tr.table.live != 0 || tr.table.any.Load() || tr.runs != 0 || tr.names != 0 || tr.words != 0 {
			t.Fatalf("all forgotten, but %d runs with %d names and %d words are in a tree", tr.runs, tr.names, tr.words)
		}
	}
	if wo.x.shares+wo.x.placed != 0 {
		t.Fatalf("all forgotten, but shares of %d and placements of %d bytes are counted", wo.x.shares, wo.x.placed)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(uint8(2), []byte("\x00\x00\x00\x05aaaaaa\x06\x00\x83\x01aaa"))
	f.Fuzz(func(t *testing.T, workers uint8, in []byte) {
		in = in[:min(len(in), 2000)]
		wo := newWorld(t, 1+int(workers)%90)
		for steps := 0; ; steps++ {
			n := wo.act(t, in)
			if n == 0 {
				break
			}
			path := make([]byte, 0, 12)
			for _, b := range in[4:n] {
				path = append(path, b%3)
			}
			in = in[n:]
			if workers < 8 || steps%16 == 0 {
				wo.check(t, path)
			}
		}
		wo.checkEmpty(t)
	})
}

func TestIndexEqualsTwin(t *testing.T) {
	for _, c := range []struct{ workers, aliases, steps, every int }{
		{1, 1, 5000, 4}, {3, 1, 5000, 4}, {20, 1, 5000, 50}, {300, 1, 6000, 500}, {1, 2, 5000, 2}, {3, 3, 5000, 4},
	} {
		t.Run(fmt.Sprintf("%d workers, %d hashes a block", c.workers, c.aliases), func(t *testing.T) {
			random := newRandom(t)
			wo := newWorld(t, c.workers)
			wo.aliases = c.aliases
			in := make([]byte, 16)
			for i := range c.steps {
				for k := range in {
					in[k] = byte(random.Uint32())
				}
				wo.act(t, in)
				if i%c.every == 0 {
					wo.check(t, []byte{in[4] % 3, in[5] % 3, in[6] % 3, in[7] % 3, in[8] % 3, in[9] % 3})
				}
			}
			wo.checkEmpty(t)
		})
	}
}

// newRandom is random, and says what to start from to get the same again.
func newRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("random seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}
