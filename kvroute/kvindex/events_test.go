// Events: what a real engine said and answered, and events that are refused.

package kvindex

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// What Find says before each request is what vLLM then reports as cached: but
// for the last token, which is always computed. Its stores and removes of one
// block come twice (steps 05 and 06, evicted in 08 and 09).
func TestOverlapIsWhatVLLMCached(t *testing.T) {
	type row struct {
		Step, Salt string
		Prompt     []uint32
		Cached     int

		Type      string
		Hashes    []uint64
		Parent    *uint64
		Tokens    []uint32
		BlockSize int `json:"block_size"`
	}
	x := New(Options{})
	w, err := x.Add(WorkerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, r := range readLines[row](t, "vllm_events.jsonl") {
		switch r.Type {
		case "AllBlocksCleared":
			w.Clear()
		case "BlockRemoved":
			if n := w.Remove(Device, r.Hashes); n != 0 {
				t.Errorf("%d removed blocks were not known", n)
			}
		case "BlockStored":
			e := Stored{Seed: SeedOf("", "", r.Salt), Hashes: r.Hashes, Tokens: r.Tokens, BlockSize: r.BlockSize}
			if r.Parent != nil {
				e.Chain, e.Parent = true, *r.Parent
			}
			if err := w.Store(e); err != nil {
				t.Fatal(err)
			}
		default:
			if strings.HasPrefix(r.Step, "12") || strings.HasPrefix(r.Step, "13") {
				continue // vLLM tells of a reset with the next request; two requests at once
			}
			got := 0
			for _, o := range x.Find(nil, AppendNames(nil, SeedOf("", "", r.Salt), r.Prompt, 32)) {
				got = min(int(o.Device), (len(r.Prompt)-1)/32) * 32
			}
			if got != r.Cached {
				t.Errorf("step %q: %d tokens held, the engine had %d cached", r.Step, got, r.Cached)
			}
			compared++
		}
	}
	if compared != 10 {
		t.Errorf("%d requests compared", compared)
	}
	if got := x.BlockSizes(); !slices.Equal(got, []int{32}) || w.BlockSize() != 32 {
		t.Errorf("block sizes %v, not the one that the events say", got)
	}
}

func TestRefusedEvents(t *testing.T) {
	for _, c := range []struct {
		name  string
		event Stored
		err   string
	}{
		{"as it should be", Stored{Hashes: []uint64{1, 2}, Tokens: make([]uint32, 8), BlockSize: 4}, ""},
		{"nothing", Stored{BlockSize: 4}, ""},
		{"other block size", Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 16), BlockSize: 16}, "the engine's blocks are of 16 tokens, not 4"},
		{"no block size", Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 16)}, "the engine's blocks are of 0 tokens, not 4"},
		{"too few tokens", Stored{Hashes: []uint64{1, 2}, Tokens: make([]uint32, 4), BlockSize: 4}, "a store event contradicts itself: 4 tokens are not 2 blocks of 4"},
		{"half a block", Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 6), BlockSize: 4}, "a store event contradicts itself: 6 tokens are not 1 blocks of 4"},
		{"no such tier", Stored{Tier: 3, BlockSize: 4}, "a store event contradicts itself: tier 3"},
		{"extra keys", Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 4), BlockSize: 4, Extra: [][]uint64{{1}, {2}}}, "a store event contradicts itself: extra keys for 2 blocks of 1"},
		{"too few names", Stored{Hashes: []uint64{1, 2}, Names: []Name{1}, BlockSize: 4}, "a store event contradicts itself: 1 names for 2 blocks of 4"},
		{"unknown parent", Stored{Chain: true, Parent: 9, Hashes: []uint64{1}, Tokens: make([]uint32, 4), BlockSize: 4}, ErrUnknownParent.Error()},
		{"same hash, other tokens", Stored{Hashes: []uint64{100}, Tokens: []uint32{4, 3, 2, 1}, BlockSize: 4}, ErrHashReused.Error()},
		{"beyond the bound", Stored{Hashes: []uint64{1, 2, 3, 4, 5}, Tokens: make([]uint32, 20), BlockSize: 4}, ErrFull.Error()},
	} {
		x := New(Options{MaxBlocks: 4})
		w, err := x.Add(WorkerOptions{BlockSize: 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Store(Stored{Hashes: []uint64{100}, Tokens: []uint32{1, 2, 3, 4}, BlockSize: 4}); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := w.Store(c.event); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("%s: error %q, not %q", c.name, got, c.err)
		}
		if o := x.Find(nil, AppendNames(nil, 0, []uint32{1, 2, 3, 4}, 4)); len(o) != 1 || o[0].Device != 1 {
			t.Errorf("%s: what was held before is not: %v", c.name, o)
		}
	}
}

// What is stored by its names is what is stored by its tokens.
func TestStoreByNames(t *testing.T) {
	tokens := blocksOf([]int{1, 2}, 40*benchBlockSize)
	names := AppendNames(nil, 7, tokens, benchBlockSize)
	hashes := make([]uint64, len(names))
	for i := range hashes {
		hashes[i] = uint64(i) + 1000
	}
	x := New(Options{})
	ws := addWorkers(t, x, 2, 0)
	for _, cut := range [][2]int{{0, 21}, {21, 40}} {
		from, to := cut[0], cut[1]
		e := Stored{Seed: 7, Hashes: hashes[from:to], Tokens: tokens[from*benchBlockSize : to*benchBlockSize], BlockSize: benchBlockSize}
		if from > 0 {
			e.Chain, e.Parent = true, hashes[from-1]
		}
		named := e
		named.Seed, named.Tokens, named.Names = 0, nil, names[from:to]
		for i, e := range []Stored{e, named} {
			if err := ws[i].Store(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	ws[0].Remove(Device, hashes[30:])
	ws[1].Remove(Device, hashes[30:])
	for _, o := range x.Find(nil, names) {
		if o.Device != 30 {
			t.Errorf("%+v, not 30 blocks", o)
		}
	}
	if got := len(x.Find(nil, names)); got != 2 {
		t.Errorf("%d workers", got)
	}
}

func TestForgottenWorker(t *testing.T) {
	x := New(Options{})
	w, _ := x.Add(WorkerOptions{BlockSize: 1, Keep: time.Hour})
	e := Stored{Hashes: []uint64{1}, Tokens: []uint32{1}, BlockSize: 1}
	if err := w.Store(e); err != nil {
		t.Fatal(err)
	}
	names := AppendNames(nil, 0, e.Tokens, 1)
	w.Place(names, time.Unix(0, 0))
	w.Forget()
	w.Forget()
	if err := w.Store(e); !errors.Is(err, ErrForgotten) {
		t.Errorf("store: %v", err)
	}
	if n := w.Remove(Device, e.Hashes); n != 1 {
		t.Errorf("%d unknown of 1 removed", n)
	}
	if n := w.Place(names, time.Unix(0, 0)); n != 0 {
		t.Errorf("%d blocks placed", n)
	}
	w.Done(names, time.Unix(0, 0))
	w.Clear()
	if o := x.Find(nil, names); len(o) != 0 || len(x.BlockSizes()) != 0 {
		t.Errorf("found %v, block sizes %v", o, x.BlockSizes())
	}
}

// Images are told apart by extra keys; two hashes of one worker for the same
// block (of two cache groups, say) hold it until both are removed.
func TestExtraKeysAndTwins(t *testing.T) {
	x := New(Options{})
	w, _ := x.Add(WorkerOptions{})
	store := func(hash uint64, extra ...uint64) {
		e := Stored{Hashes: []uint64{hash}, Tokens: []uint32{5, 5}, BlockSize: 2, Extra: [][]uint64{extra}}
		if err := w.Store(e); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want int32) {
		t.Helper()
		var got int32
		for _, o := range x.Find(nil, AppendNames(nil, 0, []uint32{5, 5}, 2)) {
			got = o.Device
		}
		if got != want {
			t.Errorf("%d blocks held, not %d", got, want)
		}
	}
	store(1, 77)
	store(2, 77, 78)
	has(0)
	store(3)
	store(4)
	has(1)
	w.Remove(Device, []uint64{4})
	has(1)
	w.Remove(Device, []uint64{3})
	has(0)
	store(3)
	store(4)
	w.Clear()
	has(0)
}

func TestTooManyWorkers(t *testing.T) {
	x := New(Options{})
	var last *Worker
	for range maxWorkers {
		w, err := x.Add(WorkerOptions{BlockSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		if w.ID()%1000 == 0 {
			if err := w.Store(Stored{Hashes: []uint64{1}, Tokens: []uint32{1}, BlockSize: 1}); err != nil {
				t.Fatal(err)
			}
		}
		last = w
	}
	if _, err := x.Add(WorkerOptions{}); !errors.Is(err, ErrTooManyWorkers) {
		t.Fatalf("one more: %v", err)
	}
	if err := last.Store(Stored{Hashes: []uint64{1}, Tokens: []uint32{1}, BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	names := AppendNames(nil, 0, []uint32{1}, 1)
	if n := len(x.Find(nil, names)); n != 34 {
		t.Errorf("%d workers found, not 34", n)
	}
	last.Forget()
	if w, err := x.Add(WorkerOptions{}); err != nil || w.ID() != last.ID() || len(x.Find(nil, names)) != 33 {
		t.Errorf("the place of a forgotten one: %v, %v", w, err)
	}
}

// Blocks that an engine copies to its host's memory, saying only which, are
// found there when they have left the device. Unknown ones are said to be so.
func TestCopiedBlocks(t *testing.T) {
	x := New(Options{})
	w, _ := x.Add(WorkerOptions{})
	tokens := []uint32{1, 2, 3, 4, 5, 6}
	if err := w.Store(Stored{Hashes: []uint64{1, 2, 3}, Tokens: tokens, BlockSize: 2}); err != nil {
		t.Fatal(err)
	}
	if n := w.Copy(Host, []uint64{1, 2, 9}); n != 1 {
		t.Errorf("%d of the copied blocks unknown, not 1", n)
	}
	if n := w.Copy(Tier(3), []uint64{1}); n != 1 {
		t.Errorf("a tier that is none took %d blocks", 1-n)
	}
	find := func() Overlap {
		for _, o := range x.Find(nil, AppendNames(nil, 0, tokens, 2)) {
			return o
		}
		return Overlap{}
	}
	if got := find(); got != (Overlap{Device: 3}) {
		t.Errorf("found %+v", got)
	}
	w.Remove(Device, []uint64{2, 3})
	if got := find(); got != (Overlap{Device: 1, Host: 1}) {
		t.Errorf("after the device dropped two: %+v", got)
	}
	w.Remove(Device, []uint64{1})
	if got := find(); got != (Overlap{Host: 2}) || w.Held() != 2 {
		t.Errorf("after it dropped all: %+v, %d held", got, w.Held())
	}
	w.Remove(Host, []uint64{2, 1})
	if got := find(); got != (Overlap{}) || w.Held() != 0 {
		t.Errorf("after the host dropped them: %+v, %d held", got, w.Held())
	}
}

// Prompts longer than a run, which a second worker leaves in the second one.
func TestLongPrompt(t *testing.T) {
	const length = 2*maxRun + 1000
	x := New(Options{})
	tokens := make([]uint32, length)
	for i := range tokens {
		tokens[i] = uint32(i)
	}
	names := AppendNames(nil, 0, tokens, 1)
	e := Stored{Hashes: make([]uint64, length), Names: names, BlockSize: 1}
	for i := range e.Hashes {
		e.Hashes[i] = uint64(i + 1)
	}
	var ws [2]*Worker
	for i := range ws {
		ws[i], _ = x.Add(WorkerOptions{BlockSize: 1, Capacity: 1 << 20})
		if err := ws[i].Store(e); err != nil {
			t.Fatal(err)
		}
	}
	find := func() (o [2]Overlap) {
		for _, found := range x.Find(nil, names) {
			o[found.Worker] = found
		}
		return o
	}
	ws[1].Remove(Device, e.Hashes[maxRun+10:])
	other := Stored{Chain: true, Parent: maxRun + 10, Hashes: []uint64{1 << 40}, Tokens: []uint32{1 << 30}, BlockSize: 1}
	if err := ws[1].Store(other); err != nil {
		t.Fatal(err)
	}
	if n := ws[0].Place(names, time.Unix(0, 0)); n != length {
		t.Errorf("%d blocks placed", n)
	}
	want := [2]Overlap{{Worker: 0, Device: length, Predicted: length}, {Worker: 1, Device: maxRun + 10}}
	if got := find(); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	ws[0].Remove(Device, e.Hashes[5:6])
	want[0].Device = 5
	if got := find(); got != want {
		t.Errorf("with a hole %+v, not %+v", got, want)
	}
	if err := ws[0].Store(Stored{Chain: true, Parent: 5, Hashes: e.Hashes[5:6], Names: names[5:6], BlockSize: 1}); err != nil {
		t.Fatal(err)
	}
	ws[0].Done(names, time.Unix(0, 0))
	want[0] = Overlap{Worker: 0, Device: length}
	if got := find(); got != want {
		t.Errorf("with the hole mended %+v, not %+v", got, want)
	}
}

// Names are hashes that somebody may make meet. Where one comes to stand for
// blocks of two prompts, what is there already is right, and the rest is refused.
func TestOneNameForTwoBlocks(t *testing.T) {
	now := time.Unix(0, 0)
	for _, c := range []struct {
		what string
		also []Name // stored beside 1, 2, 3, 4
	}{
		{"at the end of another prompt", []Name{5, 3}},
		{"and another one goes on from there", []Name{5, 3, 9}},
		{"where a run begins", []Name{1, 2, 7, 1}},
		{"where a run would have to be split", []Name{7, 2}},
	} {
		x := New(Options{})
		w, _ := x.Add(WorkerOptions{BlockSize: 1, Keep: time.Minute})
		store := func(names ...Name) error {
			e := Stored{Names: names, BlockSize: 1}
			for i := range names { // an engine's hashes do not meet
				e.Hashes = append(e.Hashes, uint64(names[0])<<32|uint64(i+1)<<16|uint64(names[i]))
			}
			return w.Store(e)
		}
		for _, names := range [][]Name{{1, 2, 3, 4}, c.also, {3, 8}, {2, 6}, {1, 2, 6}, {1, 2, 3, 5}, {1, 8}} {
			if err := store(names...); err != nil && !errors.Is(err, ErrShape) && !errors.Is(err, ErrHashReused) {
				t.Errorf("%s: %v", c.what, err)
			}
			w.Done(names[:w.Place(names, now)], now)
		}
		for _, o := range x.Find(nil, []Name{1, 2, 3, 4}) {
			if o.Device != 4 || o.Predicted < 1 {
				t.Errorf("%s: %+v", c.what, o)
			}
		}
		if got := x.Find(nil, c.also); len(got) != 1 || int(got[0].Device) > len(c.also) {
			t.Errorf("%s: %+v found of it", c.what, got)
		}
		w.Forget()
		if s := x.Stats(); s.Blocks+s.Predicted+x.held.runs+x.predicted.runs != 0 {
			t.Errorf("%s: %+v left", c.what, s)
		}
	}
}

// A block stored more often than is counted, by two hashes, is gone when it was
// removed as often, and nothing of it is left.
func TestMoreStoresThanAreCounted(t *testing.T) {
	x := New(Options{})
	w, _ := x.Add(WorkerOptions{BlockSize: 1})
	for hash, times := range map[uint64]int{1: 700, 2: 700, 3: 700} {
		for range times {
			if err := w.Store(Stored{Hashes: []uint64{hash}, Names: []Name{9}, BlockSize: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for hash := range uint64(4) {
		for range 700 {
			w.Remove(Device, []uint64{hash})
		}
	}
	if o := x.Find(nil, []Name{9}); len(o) != 0 || w.Held() != 0 || x.Stats().Blocks != 0 || len(w.held.aliases) != 0 {
		t.Errorf("found %v; %d held, %d aliases", o, w.Held(), len(w.held.aliases))
	}
}

// 0 is no name: where one is given nevertheless, nothing else is harmed.
func TestBlocksWithoutName(t *testing.T) {
	now := time.Unix(0, 0)
	x := New(Options{})
	w, _ := x.Add(WorkerOptions{BlockSize: 1, Keep: time.Minute})
	hash := uint64(0)
	for _, names := range [][]Name{{1, 2, 3}, {0}, {0, 4}, {5, 0, 6}, {5, 7}, {1, 0}, {0}, {8}} {
		e := Stored{Names: names, BlockSize: 1}
		for range names {
			hash++
			e.Hashes = append(e.Hashes, hash)
		}
		if err := w.Store(e); err != nil && !errors.Is(err, ErrShape) {
			t.Errorf("%v: %v", names, err)
		}
		w.Done(names[:w.Place(names, now)], now)
		checkTrees(t, x)
	}
	for want, names := range map[Overlap][]Name{{Device: 3, Predicted: 3}: {1, 2, 3}, {Device: 1, Predicted: 1}: {8}} {
		if got := x.Find(nil, names); len(got) != 1 || got[0] != want {
			t.Errorf("%v: %v, not %v", names, got, want)
		}
	}
	w.Forget()
	if live := x.held.table.live + x.predicted.table.live; live != 0 {
		t.Errorf("%d runs left", live)
	}
}
