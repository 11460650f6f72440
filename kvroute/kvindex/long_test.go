// Long: prompts of many blocks that part in many places, compared with the twin.

package kvindex

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A longWorld is a world of long prompts: each is the beginning of one of a few
// trunks, and then goes its own way.
type longWorld struct {
	*world
	random    *rand.Rand
	maxBlocks int
}

// prompt makes a prompt, one of not many.
func (wo *longWorld) prompt() []byte {
	path := make([]byte, 40+wo.random.IntN(160))
	trunk := byte(wo.random.IntN(2))
	for i := range path {
		path[i] = trunk
	}
	if wo.random.IntN(4) == 0 {
		return path
	}
	part := wo.random.IntN(len(path)) // anywhere, or at one of the usual places
	if wo.random.IntN(2) == 0 {
		part = part / 25 * 25
	}
	for i := part; i < len(path); i++ {
		path[i] = trunk + 2*byte(1+wo.random.IntN(3))
	}
	if wo.random.IntN(3) == 0 { // in a way that parts again
		for i := part + wo.random.IntN(len(path)-part); i < len(path); i++ {
			path[i] = 9
		}
	}
	return path
}

// cut returns where a piece of a prompt begins and ends.
func (wo *longWorld) cut(n int) (from, to int) {
	switch wo.random.IntN(4) {
	case 0:
		from = wo.random.IntN(n)
		return from, from + 1
	case 1:
		from = wo.random.IntN(n)
		return from, from + 1 + wo.random.IntN(n-from)
	case 2:
		return wo.random.IntN(n), n
	}
	return 0, n
}

func (wo *longWorld) total() (blocks int) {
	for _, w := range wo.twin {
		blocks += len(w.blocks)
	}
	return blocks
}

// store stores a piece of a prompt; one that is full stores as far as the index says.
func (wo *longWorld) store(t testing.TB, i int, tier Tier, path []byte, from, to int) {
	w, twin := wo.workers[i], wo.twin[wo.workers[i].ID()]
	tokens, hashes, names := wo.blocks(i, path)
	alias := uint64(0)
	if wo.aliases > 1 && wo.random.IntN(3) == 0 {
		alias = uint64(wo.random.IntN(wo.aliases)) << 40
	}
	e := Stored{Tier: tier, Seed: 5, Hashes: hashes[from:to], Tokens: tokens[from*twinBlockSize : to*twinBlockSize], BlockSize: twinBlockSize}
	if wo.random.IntN(2) == 0 {
		e.Names, e.Tokens, e.Seed = names[from:to], nil, 0
	}
	parent := uint64(0)
	if from > 0 {
		parent = hashes[from-1]
		e.Chain, e.Parent = true, parent
		if wo.aliases > 1 && (twin.blocks[parent] == nil || !twin.blocks[parent].held()) {
			return // whether it is known is not compared
		}
	}
	e.Hashes = slices.Clone(e.Hashes)
	for k := range e.Hashes {
		e.Hashes[k] += alias
	}
	got := w.Store(e)
	if !errors.Is(got, ErrFull) {
		if want := twin.store(tier, parent, e.Hashes, names[from:to]); got != want {
			t.Fatalf("store: %v, not %v", got, want)
		}
		return
	}
	for k, h := range e.Hashes {
		if twin.blocks[h] == nil && wo.total() == wo.x.Stats().Blocks {
			return
		}
		if err := twin.store(tier, parent, e.Hashes[k:k+1], names[from+k:from+k+1]); err != nil {
			t.Fatal(err)
		}
		parent = h
	}
	t.Fatal("the index says that it is full, and has all of it")
}

// place is what the twin's place is, with the bound of all workers.
func (wo *longWorld) place(twin *twinWorker, names []Name) int {
	own, room := twin.capacity, wo.maxBlocks
	for _, w := range wo.twin {
		if w != twin {
			room -= len(w.open) + len(w.idle)
		}
	}
	twin.capacity = min(own, room)
	defer func() { twin.capacity = own }()
	return twin.place(names, wo.now)
}

func (wo *longWorld) step(t testing.TB) {
	i, tier := wo.random.IntN(len(wo.workers)), Tier(max(0, wo.random.IntN(6)-3))
	w, twin := wo.workers[i], wo.twin[wo.workers[i].ID()]
	path := wo.prompt()
	_, hashes, names := wo.blocks(i, path)
	from, to := wo.cut(len(path))
	if wo.aliases > 1 && wo.random.IntN(3) == 0 {
		alias := uint64(wo.random.IntN(wo.aliases)) << 40
		for k := range hashes {
			hashes[k] += alias
		}
	}
	switch op := wo.random.IntN(64); {
	case op < 24:
		wo.store(t, i, tier, path, from, to)
	case op < 36:
		gone := slices.Clone(hashes[from:to])
		if wo.random.IntN(2) == 0 {
			slices.Reverse(gone)
		}
		if got, want := w.Remove(tier, gone), twin.remove(tier, gone); got != want {
			t.Fatalf("remove: %d unknown, not %d", got, want)
		}
	case op < 42:
		if wo.aliases > 1 {
			return // copies of what is known, but not held, may differ
		}
		unknown := 0
		for _, h := range hashes[from:to] {
			if b := twin.blocks[h]; b != nil {
				b.count[tier]++
			} else {
				unknown++
			}
		}
		if got := w.Copy(tier, hashes[from:to]); got != unknown {
			t.Fatalf("copy: %d unknown, not %d", got, unknown)
		}
	case op == 42:
		w.Clear()
		clear(twin.blocks)
	case op == 43:
		w.Forget()
		delete(wo.twin, w.ID())
		wo.open = slices.DeleteFunc(wo.open, func(r request) bool { return r.w == i })
		wo.add(t, i)
	case op < 54:
		names = names[:to]
		want := wo.place(twin, names)
		if noted := w.Place(names, wo.now); noted != want {
			t.Fatalf("place: %d of %d noted, not %d", noted, len(names), want)
		}
		wo.open = append(wo.open, request{i, names[:want]})
	default:
		wo.now = wo.now.Add(time.Duration(wo.random.IntN(4)) * 400 * time.Millisecond)
		for range 1 + wo.random.IntN(2) {
			if len(wo.open) > 0 {
				k := wo.random.IntN(len(wo.open))
				r := wo.open[k]
				wo.open = slices.Delete(wo.open, k, k+1)
				wo.workers[r.w].Done(r.names, wo.now)
				wo.twin[wo.workers[r.w].ID()].finish(r.names, wo.now)
			}
		}
		wo.x.Expire(wo.now)
		for _, w := range wo.twin {
			w.expire(wo.now)
		}
	}
}

func TestLongPromptsEqualTwin(t *testing.T) {
	for _, c := range []struct{ workers, aliases, capacity, maxBlocks, steps int }{
		{1, 1, 150, 1 << 20, 300}, {3, 1, 400, 1 << 20, 400}, {5, 1, 1000, 500, 400}, {3, 3, 150, 1 << 20, 300}, {12, 1, 300, 3000, 500},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			wo := &longWorld{random: newRandom(t), maxBlocks: c.maxBlocks}
			wo.world = &world{x: New(Options{MaxBlocks: c.maxBlocks}), twin: twinIndex{}, now: time.Unix(1000, 0), aliases: c.aliases}
			for i := range c.workers {
				wo.options = append(wo.options, WorkerOptions{Keep: time.Duration(i%4) * time.Second, Capacity: c.capacity + 37*i})
				wo.workers = append(wo.workers, nil)
				wo.add(t, i)
			}
			for i := range c.steps {
				wo.step(t)
				if i%8 == 0 {
					wo.check(t, wo.prompt())
				}
				checkTrees(t, wo.x)
			}
			wo.checkEmpty(t)
		})
	}
}

// checkTrees looks for what the types say is always so.
func checkTrees(t testing.TB, x *Index) {
	for _, w := range x.workers {
		if w == nil {
			continue
		}
		h := &w.held
		blocks, room := 0, 0
		h.shares.each(func(number uint32, s *share) {
			if s.run == nil {
				return
			}
			v := s.run.view.Load()
			if s.run.holders[s.place] != (holder{w.id, number}) || v.words[s.place].Load() != word(w.id, s.ends) || s.depth != v.depth {
				t.Fatalf("worker %d, share %d: what its run says is another one", w.id, number)
			}
			if n := len(s.blocks); n == 0 || n > v.len() || s.after == 0 && !s.blocks[n-1].counts.held() || s.after != 0 && n != v.len() {
				t.Fatalf("worker %d, share %d: %d blocks of %d", w.id, number, n, v.len())
			}
			if s.before == 0 != (s.run.before == nil) || s.before != 0 && h.shares.at(s.before).run != s.run.before {
				t.Fatalf("worker %d, share %d: the one before is not in the run before", w.id, number)
			}
			start := uint8(0)
			if s.before != 0 {
				start = h.shares.at(s.before).level()
			}
			other := *s
			other.restart(start)
			if other.start != s.start || other.ends != s.ends {
				t.Fatalf("worker %d, share %d: ends %d %v, not %d %v", w.id, number, s.start, s.ends, other.start, other.ends)
			}
			for c, prev := s.after, uint32(0); c != 0; c, prev = h.shares.at(c).next, c {
				if after := h.shares.at(c); after.before != number || after.prev != prev {
					t.Fatalf("worker %d, share %d: not linked with %d", w.id, number, c)
				}
			}
			for i := range s.blocks {
				if e, _ := h.find(s.blocks[i].hash()); e != entryOf(number, s.depth+int32(i), s.blocks[i].hash()) {
					t.Fatalf("worker %d, share %d: block %d is not found", w.id, number, i)
				}
			}
			blocks, room = blocks+len(s.blocks), room+s.room()
		})
		if blocks != h.blocks || room != h.room {
			t.Fatalf("worker %d: %d blocks, room for %d, not %d, %d", w.id, blocks, room, h.blocks, h.room)
		}
		for i := range h.aliases {
			if e, _ := h.locate(i); e == 0 {
				t.Fatalf("worker %d: a hash stands for no block", w.id)
			}
		}
	}
	for _, tr := range []*tree{&x.held, &x.predicted} {
		runs, names, words := 0, 0, 0
		after := map[*run]int32{}
		for i := range tr.table.shards {
			s := &tr.table.shards[i]
			p := s.slots.Load()
			if p == nil {
				continue
			}
			used, live := 0, 0
			for k := range *p {
				if (*p)[k].name != 0 {
					used++
				}
				r := (*p)[k].run.Load()
				if r == nil {
					continue
				}
				live++
				v := r.view.Load()
				runs, names = runs+1, names+len(v.names)
				if len(v.words) > 1 {
					words += len(v.words)
				}
				if r.before != nil {
					after[r.before]++
				}
				shares := int32(0)
				for _, h := range r.holders {
					if h.share != 0 {
						shares++
					}
				}
				if shares != r.shares || shares == 0 || int(v.depth) != r.before.end() || (*p)[k].name != uint64(v.names[0]) || tr.table.find(v.names[0]) != r {
					t.Fatalf("run %d: %d shares, not %d; at %d", v.names[0], r.shares, shares, v.depth)
				}
			}
			if used != s.used || live != s.live || 4*used > 3*len(*p) {
				t.Fatalf("a shard of %d slots: %d used and %d live, not %d and %d", len(*p), used, live, s.used, s.live)
			}
		}
		if runs != tr.runs || names != tr.names || words != tr.words || runs != tr.table.live {
			t.Fatalf("%d runs, %d names, %d words, not %d, %d, %d", runs, names, words, tr.runs, tr.names, tr.words)
		}
		for i := range tr.table.shards {
			if p := tr.table.shards[i].slots.Load(); p != nil {
				for k := range *p {
					if r := (*p)[k].run.Load(); r != nil && r.after != after[r] {
						t.Fatalf("run followed by %d, not %d", r.after, after[r])
					}
				}
			}
		}
	}
}
