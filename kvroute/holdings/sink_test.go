// The sink by itself: what becomes of each kind of event.

package holdings

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"kvasir/kvroute/kvevents"
	"kvasir/kvroute/kvindex"
)

// A bench is a sink over an index, without anybody who publishes.
type bench struct {
	*sink
	*place
	anew int
}

func newBench(t testing.TB, size int) *bench {
	t.Helper()
	b := &bench{place: newPlace(size)}
	b.sink = newSink(New(b.place.options()).options, 0, func() { b.anew++ })
	if !b.begin() {
		t.Fatal("there is no place for blocks")
	}
	return b
}

// has is the overlap with a prompt.
func (b *bench) has(lora, salt string, tokens ...uint32) kvindex.Overlap {
	for _, o := range b.index.Find(nil, kvindex.AppendNames(nil, kvindex.SeedOf("", lora, salt), tokens, 2)) {
		return kvindex.Overlap{Device: o.Device, Host: o.Host, Disk: o.Disk}
	}
	return kvindex.Overlap{}
}

func (b *bench) counted(k Kind) int { return int(b.kinds[k].Load()) }

func (b *bench) wants(t *testing.T, k Kind, want int) {
	t.Helper()
	if got := b.counted(k); got != want {
		t.Errorf("%d %v, want %d", got, k, want)
	}
}

func event(handles []uint64, tokens ...uint32) *kvevents.Stored {
	return &kvevents.Stored{Handles: handles, Tokens: tokens, BlockSize: 2, LoRAID: kvevents.Unknown}
}

func TestTiers(t *testing.T) {
	b := newBench(t, 0)
	b.Stored(event([]uint64{1, 2, 3}, 1, 1, 2, 2, 3, 3))
	// Copied to the host, named only; one block is unknown.
	b.Stored(&kvevents.Stored{Tier: kvevents.Host, Handles: []uint64{1, 2, 9}})
	// And with its tokens to the disk.
	e := event([]uint64{3}, 3, 3)
	e.Tier, e.Parent, e.HasParent = kvevents.Disk, 2, true
	b.Stored(e)
	b.Stored(&kvevents.Stored{Tier: kvevents.Shared, Handles: []uint64{1, 2, 3}})
	b.Removed(&kvevents.Removed{Tier: kvevents.Shared, Handles: []uint64{1}})
	b.Removed(&kvevents.Removed{Tier: kvevents.Device, Handles: []uint64{3}})
	b.Removed(&kvevents.Removed{Tier: kvevents.Device, Handles: []uint64{2}})
	b.BatchEnd()
	if got := b.has("", "", 1, 1, 2, 2, 3, 3); got != (kvindex.Overlap{Device: 1, Host: 1, Disk: 1}) {
		t.Errorf("found %+v", got)
	}
	b.wants(t, Stored, 4)
	b.wants(t, Moved, 2)
	b.wants(t, MoveUnknown, 1)
	b.wants(t, Shared, 4)
	b.wants(t, Removed, 2)
}

// Removes of one block each become one call: those of another tier, and what follows, wait for them.
func TestRemovesTogether(t *testing.T) {
	b := newBench(t, 2)
	b.Stored(event([]uint64{1, 2}, 1, 1, 2, 2))
	b.Stored(&kvevents.Stored{Tier: kvevents.Host, Handles: []uint64{2}})
	b.Removed(&kvevents.Removed{Handles: []uint64{2}})
	b.Removed(&kvevents.Removed{Handles: []uint64{7}})
	if len(b.pending) != 2 || b.has("", "", 1, 1, 2, 2).Device != 2 {
		t.Errorf("%d wait", len(b.pending))
	}
	b.Removed(&kvevents.Removed{Tier: kvevents.Host, Handles: []uint64{2}})
	if got := b.has("", "", 1, 1, 2, 2); got != (kvindex.Overlap{Device: 1, Host: 1}) {
		t.Errorf("after one of another tier: %+v", got)
	}
	b.Stored(event([]uint64{3}, 3, 3))
	if got := b.has("", "", 1, 1, 2, 2); got != (kvindex.Overlap{Device: 1}) {
		t.Errorf("after a store: %+v", got)
	}
	b.Removed(&kvevents.Removed{Handles: []uint64{1}})
	b.Cleared(kvevents.Cleared{Rank: kvevents.Unknown, Reason: kvevents.ByEngine})
	b.Stored(event([]uint64{1}, 1, 1))
	b.BatchEnd()
	if got := b.has("", "", 1, 1); got != (kvindex.Overlap{Device: 1}) {
		t.Errorf("a remove from before a clear took effect after it: %+v", got)
	}
	b.wants(t, Removed, 2)
	b.wants(t, RemoveUnknown, 1)
}

// vLLM sends removes at the end of a message as well; they do not wait for the next one.
func TestRemovesAtTheEndOfAMessage(t *testing.T) {
	b := newBench(t, 2)
	b.Stored(event([]uint64{1, 2}, 1, 1, 2, 2))
	p := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1), 2)
	for h := range uint64(2) {
		p = msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(p, 2), "type"), "BlockRemoved")
		p = msgp.AppendUint64(msgp.AppendArrayHeader(msgp.AppendString(p, "block_hashes"), 1), 2-h)
	}
	var d kvevents.Decoder
	if _, err := d.Decode(msgp.AppendInt(p, 0), b.sink); err != nil {
		t.Fatal(err)
	}
	if held := b.sink.cache.Held(); held != 0 {
		t.Errorf("%d blocks are held", held)
	}
}

// Adapters, salts and images keep blocks of the same tokens apart; blocks that follow inherit the first two.
func TestKeptApart(t *testing.T) {
	b := newBench(t, 2)
	plain := event([]uint64{1}, 5, 5)
	lora := event([]uint64{2}, 5, 5)
	lora.LoRA = []byte("poet")
	next := event([]uint64{3}, 6, 6)
	next.Parent, next.HasParent, next.LoRA = 2, true, []byte("poet")
	salted := event([]uint64{4}, 5, 5)
	salted.Salt = []byte("s")
	numbered := event([]uint64{5}, 7, 7)
	numbered.LoRAID = 3
	image := event([]uint64{6, 7}, 8, 8, 9, 9)
	image.Extra = []uint64{0, 77}
	for _, e := range []*kvevents.Stored{lora, next, salted, numbered, image} {
		b.Stored(e)
	}
	for _, c := range []struct {
		lora, salt string
		tokens     []uint32
		want       int32
	}{
		{"", "", []uint32{5, 5}, 0}, {"poet", "", []uint32{5, 5, 6, 6}, 2}, {"", "s", []uint32{5, 5}, 1},
		{"poet", "s", []uint32{5, 5}, 0}, {"", "", []uint32{7, 7}, 0}, {"", "", []uint32{8, 8, 9, 9}, 1},
	} {
		if got := b.has(c.lora, c.salt, c.tokens...).Device; got != c.want {
			t.Errorf("adapter %q, salt %q, tokens %v: %d blocks, want %d", c.lora, c.salt, c.tokens, got, c.want)
		}
	}
	b.Stored(plain)
	if b.has("", "", 5, 5).Device != 1 {
		t.Error("the plain block is not found")
	}
	b.wants(t, NamelessLoRA, 1)
}

// A hash that comes to stand for another block makes the rest suspect; the event that showed it is taken.
func TestHashReused(t *testing.T) {
	b := newBench(t, 2)
	b.Stored(event([]uint64{1, 2}, 1, 1, 2, 2))
	b.Stored(event([]uint64{2}, 9, 9))
	if b.has("", "", 1, 1).Device != 0 || b.has("", "", 9, 9).Device != 1 {
		t.Error("what was known before is still believed, or the new block is not")
	}
	e := event([]uint64{2}, 8, 8)
	e.Parent, e.HasParent = 1, true // which is gone with the clear
	b.Stored(e)
	b.wants(t, Orphan, 1)
	b.wants(t, Reused, 1)
	if said := b.said(); len(said) != 1 || !strings.Contains(said[0], kvindex.ErrHashReused.Error()) || b.notes.cleared[HashReused] != 1 {
		t.Errorf("said %q, cleared %v", said, b.notes.cleared)
	}
}

func TestTroubleIsCounted(t *testing.T) {
	b := newBench(t, 2)
	b.place.index = kvindex.New(kvindex.Options{MaxBlocks: 2})
	b.place.forget(2)
	orphan := event([]uint64{1}, 1, 1)
	orphan.Parent, orphan.HasParent = 77, true
	b.Stored(orphan) // finds that its place is another one: all begins anew
	if b.anew != 1 || !b.spoilt {
		t.Fatal("a place that is gone is still used")
	}
	b.Stored(orphan)
	b.Removed(&kvevents.Removed{Handles: []uint64{1}})
	b.wants(t, Dropped, 2)
	if !b.begin() {
		t.Fatal("there is no place")
	}
	b.Stored(orphan)
	b.wants(t, Orphan, 1)
	for range 3 {
		b.Stored(event([]uint64{1, 2, 3}, 1, 1, 2, 2, 3, 3))
	}
	b.wants(t, Full, 3)
	b.Stored(event([]uint64{5}, 1, 1, 1))
	b.wants(t, Contradicting, 1)
	if b.notes.fullAt.IsZero() {
		t.Error("no time of being full")
	}
	if said := b.said(); !slices.Equal(said[:1], []string{kvindex.ErrFull.Error()}) || len(said) != 2 {
		t.Errorf("said %q", said)
	}
}

// Sizes that change from event to event are believed by nobody.
func TestBlockSizesThatDisagree(t *testing.T) {
	b := newBench(t, 8)
	for i := range 12 {
		e := event([]uint64{uint64(i)}, make([]uint32, 2+2*(i%3))...)
		e.BlockSize = len(e.Tokens)
		b.Stored(e)
	}
	if b.sink.cache.BlockSize() != 8 || b.anew != 0 || b.counted(WrongSize) != 12 {
		t.Errorf("blocks of %d tokens, %d times anew, %d of a wrong size", b.sink.cache.BlockSize(), b.anew, b.counted(WrongSize))
	}
	// One that is right ends the row.
	for range agreeing {
		e := event([]uint64{1}, 1, 2, 3, 4)
		e.BlockSize = 4
		b.Stored(e)
		right := event([]uint64{2}, make([]uint32, 8)...)
		right.BlockSize = 8
		b.Stored(right)
	}
	if b.anew != 0 || b.notes.engine != 0 {
		t.Errorf("%d times anew, the engine is said to have blocks of %d", b.anew, b.notes.engine)
	}
}

// A bug in what an event sets off ends neither the process nor the listening.
func TestBug(t *testing.T) {
	e := startEngine(t, small, "", "")
	p := newPlace(0)
	o := p.options()
	faults := make(chan any, 100)
	o.Bug = func(fault any) { faults <- fault }
	size := o.BlockSize
	thrown := false
	o.BlockSize = func(tokens int) {
		if !thrown {
			thrown = true
			panic(errors.New("a bug"))
		}
		size(tokens)
	}
	l := New(o)
	defer l.Close()
	if err := l.Follow([]Source{e.source()}); err != nil {
		t.Fatal(err)
	}
	list := prompts(5)
	e.load(t, list)
	p.agrees(t, e, list)
	if fault := <-faults; fault.(error).Error() != "a bug" {
		t.Error(fault)
	}
}
