// Prices, the choice and the queue.

package cost

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kvasir/kvroute/kvindex"
)

// The example of Dynamo's documentation: 10 blocks; overlaps 2, 5, 8 and blocks in use 10, 5, 9 cost 18, 10, 11.
func TestDynamosExample(t *testing.T) {
	k := DefaultKV()
	c := make([]Candidate, 3)
	for i, of := range []struct{ overlap, used int32 }{{2, 10}, {5, 5}, {8, 9}} {
		c[i].Load.Engine = Engine{BlockSize: 16}.withDefaults()
		c[i].Overlap.Device = of.overlap
		c[i].Load.Outstanding = int(of.used-10) * 16 // with the prompt's own ten
	}
	k.Price(start, Prompt{Tokens: 160}, c)
	for i, want := range []float64{18, 10, 11} {
		near(t, "the cost", c[i].Cost, want, 1e-9)
	}
	if Pick(c, 0, nil) != 1 {
		t.Error("not the cheapest is chosen")
	}
}

func TestKVOptions(t *testing.T) {
	load := Load{Engine: Engine{BlockSize: 16}.withDefaults(), Requests: 3, Prefilling: 160, Outstanding: 800, Shared: 160}
	for _, tt := range []struct {
		name string
		kv   KV
		c    Candidate
		p    Prompt
		want float64
	}{
		{"default", DefaultKV(), Candidate{}, Prompt{Tokens: 160}, 10 + 10 + 40 + 10},
		{"overlap", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Device: 4}}, Prompt{Tokens: 160}, 20 - 4 + 50},
		{"tiers", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Device: 4, Host: 2, Disk: 2}}, Prompt{Tokens: 160}, 20 - 4 - 1.5 - 0.5 + 50},
		{"predicted", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Device: 2, Predicted: 6}}, Prompt{Tokens: 160}, 20 - 6 + 50},
		{"active", DefaultKV(), Candidate{Active: 4}, Prompt{Tokens: 160}, 20 + 40 + 6},
		{"scale", KV{PrefillLoadScale: 4, DeviceCredit: 1}, Candidate{Overlap: kvindex.Overlap{Device: 4}}, Prompt{Tokens: 160}, 64 + 50},
		{"credit over all", KV{PrefillLoadScale: 1, DeviceCredit: 7}, Candidate{Overlap: kvindex.Overlap{Device: 9}}, Prompt{Tokens: 160}, 50},
		{"requests", KV{PrefillLoadScale: 1, RequestWeight: 9}, Candidate{}, Prompt{Tokens: 160}, 20 + 50 + 27},
		{"decode leg", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Device: 4}}, Prompt{Tokens: 160, Leg: DecodeLeg}, 50},
		{"prefill leg", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Device: 4}}, Prompt{Tokens: 160, Leg: PrefillLeg}, 16},
		{"blocks of text", DefaultKV(), Candidate{Overlap: kvindex.Overlap{Predicted: 2}, BlockTokens: 32}, Prompt{Tokens: 160}, 20 - 4 + 50},
	} {
		c := []Candidate{tt.c}
		c[0].Load = load
		tt.kv.Price(start, tt.p, c)
		if math.Abs(c[0].Cost-tt.want) > 1e-9 {
			t.Errorf("%s: cost %v, want %v: %v", tt.name, c[0].Cost, tt.want, c[0].Parts)
		}
	}
	decay := KV{PrefillLoadScale: 1, DeviceCredit: 1, Decay: 1}
	c := []Candidate{{Load: load, Overlap: kvindex.Overlap{Device: 4}}, {Load: load, Overlap: kvindex.Overlap{Device: 4}}}
	c[1].Load.Prefilling += 160 // one prompt more: half the credit
	decay.Price(start, Prompt{Tokens: 160}, c)
	near(t, "what a prompt more costs", c[1].Cost-c[0].Cost, 10+2, 1e-9)
}

// The formula of predict, by hand.
func TestPredictsFormula(t *testing.T) {
	w := DefaultPredict()
	e := known().withDefaults()
	busy := Load{
		Engine: e, Timing: Mocker, Requests: 40, Decoding: 30, Outstanding: 400000, Context: 300000, Streamed: 5000,
		Backlog: 5000, PassLeft: 50 * time.Millisecond, Held: 16384, EvictAge: 5 * time.Second, Flow: 40000,
	}
	c := []Candidate{{Load: busy, Overlap: kvindex.Overlap{Device: 31}}}
	w.Price(start, Prompt{Tokens: 10000}, c)
	n := 10000.0 - 31*64
	d := Mocker.decode(300000.0 / 1048576)
	ttft := 50 + Mocker.prefill(8162) + d + Mocker.prefill(n+5000-8162) + d
	token := Mocker.prefill(8192) / 8192
	full := 415000.0 / 1048576
	want := Parts{
		{"ttft", ttft}, {"work", Mocker.prefill(n) * (w.Work + 30/w.Disturb)}, {"copied", 0},
		{"load", w.Load * token * full * full * full},
		{"evict", w.Evict * token * 64 * math.Ceil(n/64) * math.Exp(-0.5)}, {"fill", w.Fill},
	}
	sum := 0.0
	for i, part := range c[0].Parts {
		near(t, part.Name, part.Value, want[i].Value, 1e-6)
		sum += part.Value
	}
	near(t, "the cost", c[0].Cost, sum, 1e-9)
	near(t, "the time to first token", millis(c[0].TTFT), ttft, 1e-3)
	if c[0].Hit != 31*64 {
		t.Errorf("hit %d", c[0].Hit)
	}
	busy.Flow, busy.Outstanding, busy.Streamed = 0, 0, 0
	c[0].Load = busy
	w.Price(start, Prompt{Tokens: 10000}, c)
	near(t, "new work where nobody waits", c[0].Parts[1].Value, Mocker.prefill(n)*30/w.Disturb, 1e-6)
}

// The last token of a prompt is always computed, and a prompt of one block or none has no hit.
func TestHit(t *testing.T) {
	for _, tt := range []struct{ tokens, overlap, want int }{
		{1, 1, 0}, {64, 1, 0}, {65, 1, 64}, {128, 2, 64}, {129, 2, 128}, {1000, 3, 192}, {10, 0, 0},
	} {
		c := Candidate{Load: Load{Engine: Engine{BlockSize: 64}}, Overlap: kvindex.Overlap{Device: int32(tt.overlap)}}
		if got := c.hit(tt.tokens, 1, 1); got != tt.want {
			t.Errorf("%d tokens, %d blocks held: hit %d, want %d", tt.tokens, tt.overlap, got, tt.want)
		}
	}
}

// Handing over pays for a long prompt where answers are being made; not for one that is held there, nor for one that
// is short and would wait elsewhere.
func TestHandedOverWhereItPays(t *testing.T) {
	w := DefaultPredict()
	idle, busy := NewMirror(known()), NewMirror(known())
	busy.Send(at(0), Sent{Prompt: 20000, Leg: PrefillLeg})
	decoding := NewMirror(known())
	for range 6 {
		decoding.Tokens(decoding.Send(at(0), Sent{Prompt: 4000}), at(1), 1)
	}
	price := func(p Prompt, m *Mirror, held int32) *Candidate {
		c := []Candidate{{Load: m.Load(at(2)), Overlap: kvindex.Overlap{Device: held}}}
		w.Price(at(2), p, c)
		return &c[0]
	}
	for _, tt := range []struct {
		name    string
		tokens  int
		held    int32 // blocks, at the decode worker
		prefill *Mirror
		waits   time.Duration // those who wait for prefill workers
		want    bool
	}{
		{"long", 8000, 0, idle, 0, true},
		{"long, held by the decode worker", 8000, 124, idle, 0, false},
		{"short, prefill worker idle", 60, 0, idle, 0, true},
		{"short, prefill worker busy", 60, 0, busy, 0, false},
		{"long, others wait for prefill workers", 8000, 0, idle, time.Minute, false},
	} {
		whole := price(Prompt{Tokens: tt.tokens}, decoding, tt.held)
		prefill := price(Prompt{Tokens: tt.tokens, Leg: PrefillLeg}, tt.prefill, 0)
		decode := price(Prompt{Tokens: tt.tokens, Leg: DecodeLeg}, decoding, tt.held)
		if gain, pays := w.Handed(Prompt{Tokens: tt.tokens}, whole, prefill, decode, 0, tt.waits); pays != tt.want {
			t.Errorf("%s: handing over pays: %v (%.1f ms)", tt.name, pays, gain)
		}
		if gain, pays := w.Handed(Prompt{Tokens: tt.tokens}, whole, prefill, decode, time.Hour, tt.waits); !pays {
			t.Errorf("%s, decode workers have no time: handing over does not pay (%.1f ms)", tt.name, gain)
		}
	}
}

func TestPick(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	costs := func(all ...float64) []Candidate {
		c := make([]Candidate, len(all))
		for i := range c {
			c[i].Cost = all[i]
		}
		return c
	}
	for _, tt := range []struct {
		name        string
		c           []Candidate
		temperature float64
		want        []float64 // chances
	}{
		{"cheapest", costs(3, 1, 2), 0, []float64{0, 1, 0}},
		{"ties", costs(1, 2, 1, 1), 0, []float64{1. / 3, 0, 1. / 3, 1. / 3}},
		{"not a number", costs(math.NaN(), 5, 6), 0, []float64{0, 1, 0}},
		{"all infinite", costs(math.Inf(1), math.Inf(1)), 0, []float64{0.5, 0.5}},
		{"warm", costs(0, 50, 100), 1, []float64{0.506, 0.307, 0.186}},
		{"scale does not matter", costs(0, 5e6, 1e7), 1, []float64{0.506, 0.307, 0.186}},
		{"cool", costs(0, 50, 100), 0.1, []float64{0.993, 0.0067, 0}},
		{"warm ties", costs(4, 4), 1, []float64{0.5, 0.5}},
		{"warm, not a number", costs(math.NaN(), 0, 1), 1, []float64{0.21, 0.58, 0.21}},
	} {
		got := make([]float64, len(tt.c))
		const draws = 20000
		for range draws {
			got[Pick(tt.c, tt.temperature, random.Uint64)] += 1. / draws
		}
		for i := range got {
			near(t, tt.name, got[i], tt.want[i], 0.015)
		}
	}
}

// The shortest goes first, but nobody waits forever, and one whose cheapest worker is full lets others pass.
func TestQueueOrder(t *testing.T) {
	var q Queue[string]
	ms := time.Millisecond
	q.Push(at(0), 100*ms, "long")
	q.Push(at(0), 10*ms, "short")
	lost := q.Push(at(0), 1*ms, "lost")
	q.Push(at(500), 10*ms, "later, short")
	q.Push(at(1000), 10*ms, "latest, shorter than the long one's age tells")
	q.Remove(lost)
	q.Remove(lost)
	var got []string
	all := func(w *Waiting[string]) (bool, time.Duration) { return true, 0 }
	length := map[string]time.Duration{"long": 100 * ms}
	none := func(w *Waiting[string]) (bool, time.Duration) { return false, max(length[w.Value], 10*ms) }
	if w := q.Next(none); w != nil || q.Len() != 4 {
		t.Fatalf("%v goes though no worker has room, %d are left", w, q.Len())
	}
	for w := q.Next(all); w != nil; w = q.Next(all) {
		got = append(got, w.Value)
	}
	want := []string{"short", "later, short", "long", "latest, shorter than the long one's age tells"}
	if !slices.Equal(got, want) || q.Len() != 0 {
		t.Errorf("order %q, want %q", got, want)
	}
}

// A queue of random pushes, removals and looks gives what a sorted list gives.
func TestQueueTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	var q Queue[int]
	var twin []*Waiting[int]
	for i := range 5000 {
		now := at(float64(i))
		switch {
		case random.IntN(5) < 3:
			twin = append(twin, q.Push(now, time.Duration(random.IntN(50))*time.Millisecond, i))
		case len(twin) > 0 && random.IntN(4) == 0:
			k := random.IntN(len(twin))
			q.Remove(twin[k])
			twin = slices.Delete(twin, k, k+1)
		default:
			slices.SortStableFunc(twin, func(a, b *Waiting[int]) int {
				switch {
				case a.key < b.key || a.key == b.key && a.order < b.order:
					return -1
				}
				return 1
			})
			got := q.Next(func(*Waiting[int]) (bool, time.Duration) { return true, 0 })
			if (got == nil) != (len(twin) == 0) || got != nil && got != twin[0] {
				t.Fatalf("step %d: %v", i, got)
			}
			if got != nil {
				twin = twin[1:]
			}
		}
		if q.Len() != len(twin) {
			t.Fatalf("step %d: %d wait, want %d", i, q.Len(), len(twin))
		}
	}
}

// steady is a pool of busy workers.
func steady() ([]*Mirror, []Candidate, []kvindex.Name) {
	mirrors := make([]*Mirror, 16)
	prompt := sharedNames(128)
	for i := range mirrors {
		mirrors[i] = NewMirror(Engine{BlockSize: 16})
		for k := range 40 {
			r := mirrors[i].Send(at(0), Sent{Prompt: 2048, Names: prompt})
			if k < 30 {
				mirrors[i].Tokens(r, at(1), 1)
			}
		}
	}
	return mirrors, make([]Candidate, len(mirrors)), prompt
}

// A placement and the life of its request allocate nothing.
func TestNoAllocation(t *testing.T) {
	mirrors, c, names := steady()
	predict, kv := DefaultPredict(), DefaultKV()
	now := 10.0
	random := rand.New(rand.NewPCG(1, 1))
	place := func() {
		now += 5
		for i, m := range mirrors {
			c[i] = Candidate{Load: m.Load(at(now)), Overlap: kvindex.Overlap{Device: int32(i)}, Active: m.Active(names)}
			c[i].Users = m.Users(names, c[i].Active)
		}
		kv.Price(at(now), Prompt{Tokens: 2048}, c)
		predict.Price(at(now), Prompt{Tokens: 2048}, c)
		m := mirrors[Pick(c, 0.1, random.Uint64)]
		r := m.Send(at(now), Sent{Prompt: 2048, Hit: 1024, Names: names})
		m.Tokens(r, at(now+1), 1)
		m.Tokens(r, at(now+2), 1)
		m.End(r, at(now+3))
	}
	place()
	if n := testing.AllocsPerRun(200, place); n != 0 {
		t.Errorf("%v allocations a placement", n)
	}
}

func BenchmarkPrice16(b *testing.B) {
	mirrors, c, names := steady()
	predict := DefaultPredict()
	random := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		for i, m := range mirrors {
			c[i] = Candidate{Load: m.Load(at(10)), Overlap: kvindex.Overlap{Device: int32(i)}, Active: m.Active(names)}
			c[i].Users = m.Users(names, c[i].Active)
		}
		predict.Price(at(10), Prompt{Tokens: 2048}, c)
		Pick(c, 0, random.Uint64)
	}
}

func BenchmarkToken(b *testing.B) {
	m := NewMirror(Engine{BlockSize: 16})
	var all []*Request
	for range 64 {
		all = append(all, m.Send(at(0), Sent{Prompt: 2048}))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.Tokens(all[i%64], at(float64(i/64)*20), 1)
		i++
	}
}
