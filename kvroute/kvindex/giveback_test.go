// Give back: what is held no more takes no memory.

package kvindex

import (
	"errors"
	"testing"
	"time"
)

// someNames makes names of a prompt that is told apart by a number.
func someNames(prompt, n int) []Name {
	names := make([]Name, n)
	for i := range names {
		names[i] = Name(spread(uint64(prompt)<<32|uint64(i)) | 1)
	}
	return names
}

// storeNames stores the blocks of a prompt from one on; an engine's hashes are their names.
func storeNames(t *testing.T, w *Worker, names []Name, from int) {
	e := Stored{Names: names[from:], Hashes: hashesOf(names[from:]), BlockSize: 1}
	if from > 0 {
		e.Chain, e.Parent = true, uint64(names[from-1])
	}
	if err := w.Store(e); err != nil {
		t.Fatal(err)
	}
}

func hashesOf(names []Name) (hashes []uint64) {
	for _, n := range names {
		hashes = append(hashes, uint64(n))
	}
	return hashes
}

// checkBytes compares what Stats says with what an index of such bounds may take.
func checkBytes(t *testing.T, x *Index) {
	t.Helper()
	held, predicted, may := x.held.bytes()+x.shares, x.predicted.bytes()+x.placed, x.most()+1<<13 // some blocks' step
	if s := x.Stats(); held > may || predicted > may || held+predicted != s.Bytes {
		t.Errorf("%d blocks take %d and %d predicted %d bytes, together %d, each may %d", s.Blocks, held, s.Predicted, predicted, s.Bytes, may)
	}
}

// Long prompts that all but one worker have dropped, and that one has the first
// block of.
func TestNamesOfDroppedBlocks(t *testing.T) {
	x := New(Options{MaxBlocks: 1 << 14})
	long, _ := x.Add(WorkerOptions{BlockSize: 1, Capacity: 1 << 14, Keep: time.Second})
	short, _ := x.Add(WorkerOptions{BlockSize: 1, Capacity: 1 << 14, Keep: time.Hour})
	for i := range 300 {
		names := someNames(i, 8000)
		storeNames(t, long, names, 0)
		storeNames(t, short, names[:1], 0)
		if i%2 == 0 {
			long.Clear()
		} else {
			long.Remove(Device, hashesOf(names))
		}
		now := time.Unix(int64(i), 0)
		long.Done(names[:long.Place(names, now)], now)
		short.Place(names[:1], now)
		x.Expire(now.Add(time.Second))
	}
	checkBytes(t, x)
	checkTrees(t, x)
}

// Runs that all workers shared and one still does.
func TestWordsOfWorkersThatLeft(t *testing.T) {
	x := New(Options{})
	var ws []*Worker
	for range 300 {
		w, _ := x.Add(WorkerOptions{BlockSize: 1, Keep: time.Second})
		ws = append(ws, w)
	}
	for i := range 500 {
		names := someNames(i, 1)
		now := time.Unix(int64(i), 0)
		for k, w := range ws {
			storeNames(t, w, names, 0)
			w.Place(names, now)
			if k != i%len(ws) {
				w.Done(names, now)
			}
		}
		for k, w := range ws {
			if k != i%len(ws) {
				w.Remove(Device, hashesOf(names))
			}
		}
		x.Expire(now.Add(time.Second))
	}
	checkTrees(t, x)
	for i := range 500 {
		want := Overlap{Worker: int32(i % len(ws)), Device: 1, Predicted: 1}
		if got := x.Find(nil, someNames(i, 1)); len(got) != 1 || got[0] != want {
			t.Fatalf("%v, not %v", got, want)
		}
	}
	for _, tr := range []*tree{&x.held, &x.predicted} {
		if n := tr.bytes(); n > 256*tr.runs {
			t.Errorf("%d runs of one block take %d bytes", tr.runs, n)
		}
	}
}

// Workers that held much, one after the other, and hold nothing now.
func TestEmptyWorkers(t *testing.T) {
	x := New(Options{MaxBlocks: 1 << 14})
	for i := range 100 {
		w, _ := x.Add(WorkerOptions{BlockSize: 1, Keep: time.Second})
		long, now := someNames(i, 5000), time.Unix(int64(i), 0)
		storeNames(t, w, long, 0)
		w.Remove(Device, hashesOf(long))
		for k := range 2000 {
			short := someNames(1000+2000*i+k, 1)
			storeNames(t, w, short, 0)
			w.Done(short[:w.Place(short, now)], now)
		}
		for k := range 2000 {
			w.Remove(Device, hashesOf(someNames(1000+2000*i+k, 1)))
		}
		x.Expire(now.Add(time.Second))
	}
	checkTrees(t, x)
	if s := x.Stats(); s.Bytes > 100*16<<10+x.held.bytes()+x.predicted.bytes() {
		t.Errorf("100 workers that hold nothing take %d bytes", s.Bytes)
	}
}

// Long events to an index that has room for one block more each time.
func TestEventsToAFullIndex(t *testing.T) {
	const most = 1 << 12
	x := New(Options{MaxBlocks: most})
	full, _ := x.Add(WorkerOptions{BlockSize: 1})
	w, _ := x.Add(WorkerOptions{BlockSize: 1})
	held := someNames(0, most-1)
	storeNames(t, full, held, 0)
	for i := range 1000 {
		names := someNames(i+1, 4000)
		if err := w.Store(Stored{Names: names, Hashes: hashesOf(names), BlockSize: 1}); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		full.Remove(Device, hashesOf(held[len(held)-1-i:len(held)-i]))
	}
	checkTrees(t, x)
	checkBytes(t, x)
}

// Prompts whose ends are dropped, as engines do, fill an index.
func TestPromptsWithoutTheirEnds(t *testing.T) {
	for _, c := range []struct{ stored, left int }{{64, 13}, {64, 29}, {40, 17}, {30, 4}, {24, 3}, {16, 6}, {1000, 250}} {
		x := New(Options{MaxBlocks: 1 << 14})
		w, _ := x.Add(WorkerOptions{BlockSize: 1})
		for i := 0; ; i++ {
			names := someNames(i, c.stored)
			if err := w.Store(Stored{Names: names, Hashes: hashesOf(names), BlockSize: 1}); errors.Is(err, ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			w.Remove(Device, hashesOf(names[c.left:]))
		}
		t.Logf("%v: %d blocks", c, x.Stats().Blocks)
		checkBytes(t, x)
	}
}
