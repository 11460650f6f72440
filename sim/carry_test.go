// The core's part of a hand-over: held blocks, blocks that wait for their KV, and their content.

package sim

import (
	"slices"
	"testing"
	"time"
)

// handed is an engine with a few blocks of 16 tokens, and a way to submit requests.
type handed struct {
	*Engine
	t   *testing.T
	now time.Duration
}

func newHanded(t *testing.T, blocks int) *handed {
	return &handed{Engine: New(Options{Blocks: blocks, MaxModelLen: 16 * blocks}), t: t}
}

func (h *handed) submit(r Request, key uint64) *Sequence {
	h.t.Helper()
	for i := range r.PromptTokens/16 + 2 {
		r.Hashes = append(r.Hashes, mix(key, uint64(i)))
	}
	r.MaxTokens = max(r.MaxTokens, 1)
	s, err := h.Submit(h.now, r)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// rest advances until the engine has nothing to do, and returns how long that took and how many
// blocks it stored.
func (h *handed) rest() (took time.Duration, stored int) {
	begin := h.now
	for at, busy := h.Next(); busy; at, busy = h.Next() {
		h.now = max(h.now, at)
		for p, ok := h.Advance(h.now); ok; p, ok = h.Advance(h.now) {
			stored += len(p.Stored)
		}
	}
	return h.now - begin, stored
}

func TestHeldBlocksStay(t *testing.T) {
	h := newHanded(t, 8)
	held := h.submit(Request{PromptTokens: 100, Hold: true, Contents: []uint64{11, 12, 13, 14, 15, 16, 17}}, 1)
	h.rest()
	if !held.Done || !slices.Equal(held.BlockIDs(), []int32{1, 2, 3, 4, 5, 6, 7}) {
		t.Fatalf("done %v with blocks %v", held.Done, held.BlockIDs())
	}
	if st := h.Stats(); st.ActiveBlocks != 7 || st.Held != 1 || st.Running != 0 {
		t.Fatalf("%+v", st)
	}
	waits := h.submit(Request{PromptTokens: 40}, 2) // three blocks, one is free
	h.rest()
	if waits.Done {
		t.Fatal("a sequence ran in blocks that are held")
	}
	for id, want := range []uint64{0, 11, 12, 13, 14, 15, 16, 17, 0, 0} {
		if got := h.Content(id); got != want {
			t.Errorf("block %d holds %d, want %d", id, got, want)
		}
	}
	h.Free(held)
	h.Free(held)
	if h.Content(7) != 17 {
		t.Error("a block is empty as soon as it is free")
	}
	h.rest()
	if !waits.Done {
		t.Fatal("freed blocks did not reach who waits")
	}
	// block 8 was never used, 7 became free, and then the oldest idle block was evicted: the last
	// of the prompt
	for id, want := range []uint64{0, 11, 12, 13, 14, 15, 0, 0} {
		if got := h.Content(id); got != want {
			t.Errorf("later, block %d holds %d, want %d", id, got, want)
		}
	}
	if st := h.Stats(); st.ActiveBlocks != 0 || st.Held != 0 {
		t.Errorf("%+v", st)
	}
}

func TestLoadWaitsForItsKV(t *testing.T) {
	h := newHanded(t, 64)
	h.submit(Request{PromptTokens: 40}, 1) // leaves two blocks in the cache
	h.rest()
	s := h.submit(Request{PromptTokens: 100, MaxTokens: 3, Load: true}, 1)
	other := h.submit(Request{PromptTokens: 10}, 2)
	h.rest()
	if !other.Done {
		t.Error("one that waits for its KV keeps others from running")
	}
	if st := h.Stats(); st.Loading != 1 || st.Waiting != 1 || st.ActiveBlocks != 7 {
		t.Errorf("%+v", st)
	}
	if got := h.Loads(nil); len(got) != 1 || got[0] != s || s.Cached != 32 || len(h.Loads(nil)) != 0 {
		t.Fatalf("%d loads, %d tokens held", len(got), s.Cached)
	}
	h.Loaded(s, s.Hashes, 2)
	took, stored := h.rest()
	want := passLength(decodeMillis(100, 64*16), 1) + passLength(decodeMillis(101, 64*16), 1)
	if took != want || !s.Done || s.Generated != 2 {
		t.Errorf("%d tokens in %v, want 2 in %v: no prefill", s.Generated, took, want)
	}
	if stored != 4 { // blocks 2 to 5; 0 and 1 were cached already
		t.Errorf("%d blocks stored, want 4", stored)
	}
	again := h.submit(Request{PromptTokens: 100}, 1)
	h.rest()
	if again.Cached != 96 {
		t.Errorf("the pulled blocks give %d cached tokens, want 96", again.Cached)
	}
}

func TestCancelWhileLoading(t *testing.T) {
	h := newHanded(t, 8)
	loading := h.submit(Request{PromptTokens: 100, Load: true}, 1)
	waits := h.submit(Request{PromptTokens: 100}, 2)
	h.rest()
	if waits.Done {
		t.Fatal("there were no blocks for it")
	}
	h.Cancel(loading)
	h.Loaded(loading, loading.Hashes, 1)
	h.rest()
	if st := h.Stats(); !waits.Done || st.ActiveBlocks != 0 || st.Loading != 0 || loading.Generated != 0 {
		t.Errorf("%+v, the next done %v", st, waits.Done)
	}
}

// Prefilled is for virtual time: the transfer is over before the sequence is submitted.
func TestPrefilledCostsNoPrefill(t *testing.T) {
	h := newHanded(t, 64)
	s := h.submit(Request{PromptTokens: 100, MaxTokens: 2, Prefilled: true}, 1)
	took, stored := h.rest()
	want := passLength(decodeMillis(100, 64*16), 1) + passLength(decodeMillis(101, 64*16), 1)
	if took != want || s.Generated != 2 || stored != 6 {
		t.Errorf("%d tokens in %v with %d blocks stored, want 2 in %v with 6", s.Generated, took, stored, want)
	}
}

// After a preemption a sequence computes its prompt itself, because the KV that it had received
// is gone.
func TestPutBackAfterLoad(t *testing.T) {
	h := newHanded(t, 8)
	first := h.submit(Request{PromptTokens: 60, MaxTokens: 40}, 1)
	second := h.submit(Request{PromptTokens: 60, MaxTokens: 40, Prefilled: true}, 2)
	h.rest()
	if second.Preempted == 0 || !first.Done || !second.Done || second.Generated != 40 || first.Generated != 40 {
		t.Errorf("put back %d times, %d and %d tokens", second.Preempted, first.Generated, second.Generated)
	}
}
