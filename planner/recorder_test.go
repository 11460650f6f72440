// The recorder: what it gives back, that it is bounded, and that it allocates nothing for a request.

package planner

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"kvasir/kvroute/kvindex"
	"kvasir/kvroute/replay"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestRecorder(t *testing.T) {
	o := Options{Window: 2 * minute, Interval: minute}.WithDefaults()
	r := NewRecorder(1<<20, Back*o.Window, begin)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * 1e9)) }
	a := r.Came(at(10), []kvindex.Name{1, 2})
	b := r.Came(at(20), []kvindex.Name{1, 3, 4})
	c := r.Came(at(70), nil)
	d := r.Came(at(80), []kvindex.Name{9})
	r.Came(at(85), nil)      // never ends
	e := r.Came(at(86), nil) // longer than the pool
	r.Done(b, Done{PromptTokens: 700, AnswerTokens: 11, TTFT: time.Second, E2E: 2 * time.Second, Streamed: true})
	r.Done(a, Done{PromptTokens: 513, AnswerTokens: 1, TTFT: 5 * time.Second, E2E: 5 * time.Second})
	r.Done(c, Done{PromptTokens: 100, AnswerTokens: 21, TTFT: 100 * time.Millisecond, E2E: 300 * time.Millisecond, Streamed: true})
	r.Done(d, Done{PromptTokens: 0, E2E: time.Second}) // no worker counted
	r.Done(e, Done{PromptTokens: 2 << 20, E2E: time.Second})
	r.Done(0, Done{PromptTokens: 1, E2E: time.Second})
	r.Done(99, Done{PromptTokens: 1, E2E: time.Second})
	l := r.Load(at(91), &o)
	if want := []int{1, 1, 0, 0, 1, 3}; !slices.Equal(l.Arrivals, want) || l.Now != 90*time.Second || l.Since != 0 {
		t.Errorf("arrivals %v from %v to %v, want %v", l.Arrivals, l.Since, l.Now, want)
	}
	want := []replay.Request{
		{Arrival: 10 * time.Second, PromptTokens: 513, AnswerTokens: 1, Content: []uint32{0, 1, 2}, Line: 1},
		{Arrival: 20 * time.Second, PromptTokens: 700, AnswerTokens: 11, Content: []uint32{0, 3, 4}, Line: 2},
		{Arrival: 70 * time.Second, PromptTokens: 100, AnswerTokens: 21, Content: []uint32{5}, Line: 3},
	}
	if !slices.EqualFunc(l.Done.Requests, want, func(a, b replay.Request) bool {
		return a.Arrival == b.Arrival && a.PromptTokens == b.PromptTokens && a.AnswerTokens == b.AnswerTokens && slices.Equal(a.Content, b.Content) && a.Line == b.Line
	}) || l.Done.Pieces != 6 || l.Done.PieceTokens != PieceTokens {
		t.Errorf("%+v", l.Done)
	}
	if m := l.Measured; m.Requests != 1 || m.TTFT != 100*time.Millisecond || m.ITL != 10*time.Millisecond || m.Share != 1 {
		t.Errorf("measured %+v", m)
	}
	if l := r.Load(at(10_000), &o); len(l.Done.Requests) != 0 || slices.Max(l.Arrivals) != 0 || len(l.Arrivals) != 8 {
		t.Errorf("much later: %+v", l)
	}
	if _, err := replay.Run(r.Load(at(91), &o).Done, replay.Options{Workers: 1}); err != nil {
		t.Error(err)
	}
}

// However much comes, it takes no more than it may, and gives back what came last, exactly.
func TestRecorderIsBounded(t *testing.T) {
	o := Options{Window: 2 * minute}.WithDefaults()
	random := rand.New(rand.NewPCG(9, 9)) //nolint:gosec // the same seed, the same test
	for _, bytes := range []int{1, 10_000, 300_000} {
		r := NewRecorder(bytes, Back*o.Window, begin)
		size := len(r.records)*int(unsafe.Sizeof(record{})) + len(r.names)*8
		type kept struct{ prompt, named int }
		var all []kept
		now := begin
		for range 20_000 {
			now = now.Add(time.Duration(random.IntN(40)) * time.Millisecond)
			names := make([]kvindex.Name, random.IntN(40))
			for i := range names {
				names[i] = kvindex.Name(random.Uint64())
			}
			k := kept{1 + len(names)*PieceTokens, len(names)}
			if all = append(all, k); len(names) > len(r.names)/8 {
				all[len(all)-1].named = 0
			}
			r.Done(r.Came(now, names), Done{PromptTokens: k.prompt, AnswerTokens: 1, E2E: time.Millisecond})
		}
		if got := len(r.records)*int(unsafe.Sizeof(record{})) + len(r.names)*8; got != size || size > max(bytes, 1600) || len(r.arrivals) > 40 {
			t.Errorf("of %d bytes %d are taken, then %d", bytes, size, got)
		}
		l := r.Load(now.Add(2*Bucket), &o)
		n := len(l.Done.Requests)
		if n == 0 || n > len(r.records) {
			t.Fatalf("%d bytes: %d requests", bytes, n)
		}
		for i, q := range l.Done.Requests {
			k := all[q.Line-1]
			if q.PromptTokens != k.prompt || len(q.Content) != k.named+1 && k.named > 0 {
				t.Fatalf("%d bytes, request %d of %d: %+v, want %+v", bytes, i, n, q, k)
			}
		}
		if last := l.Done.Requests[n-1]; last.Line != len(all) {
			t.Errorf("the last one is %d of %d", last.Line, len(all))
		}
	}
}

// Of many requests only those are read that a plan can play, and all that it plays.
func TestLoadIsOfTheLast(t *testing.T) {
	for _, most := range []int{100, 5000} {
		o := Options{Window: 10 * minute, MostPlayed: most}.WithDefaults()
		r := NewRecorder(8<<20, Back*o.Window, begin)
		names := make([]kvindex.Name, 20)
		const all, settled = 20_000, 16_000
		for i := range all {
			names[19] = kvindex.Name(i)
			took := time.Second
			if i%5 == 0 {
				took = 40 * time.Second // so that what came in the last 40 s, a request each 10 ms, is not settled
			}
			r.Done(r.Came(begin.Add(time.Duration(i)*10*time.Millisecond), names), Done{PromptTokens: 20 * PieceTokens, AnswerTokens: 1, E2E: took})
		}
		l := r.Load(begin.Add(all*10*time.Millisecond), &o)
		d := l.Done.Requests
		if want := max(most, fewRequests); len(d) != want || l.Done.Pieces != 1+want || cap(d) > want {
			t.Fatalf("%d to be played: %d requests with %d pieces", most, len(d), l.Done.Pieces)
		}
		// Now ends with a whole bucket: 195 s, which is after 160.
		if d[0].Line != settled-len(d)+1 || d[len(d)-1].Line != settled || l.Settled != 160*time.Second {
			t.Errorf("%d to be played: requests %d to %d, settled at %v", most, d[0].Line, d[len(d)-1].Line, l.Settled)
		}
		if s := l.sample(o.Window, most); len(s.trace.Requests) != most {
			t.Errorf("%d are played of %d", len(s.trace.Requests), most)
		}
	}
}

func TestRecorderAllocatesNothing(t *testing.T) {
	r := NewRecorder(1<<20, Back*10*minute, begin)
	names := make([]kvindex.Name, 40)
	now := begin
	if n := testing.AllocsPerRun(2000, func() {
		now = now.Add(time.Second)
		r.Done(r.Came(now, names), Done{PromptTokens: 10_000, AnswerTokens: 100, E2E: time.Second})
	}); n != 0 {
		t.Errorf("%v allocations for a request", n)
	}
}

func TestRecorderOfMany(t *testing.T) {
	r := NewRecorder(20_000, Back*10*minute, begin)
	o := Options{}.WithDefaults()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 2000 {
				now := begin.Add(time.Duration(i*10+n) * time.Millisecond)
				r.Done(r.Came(now, []kvindex.Name{1, kvindex.Name(i)}), Done{PromptTokens: 600, AnswerTokens: 2, E2E: time.Second})
				if i%500 == 0 {
					r.Load(now, &o)
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for _, a := range r.Load(begin.Add(30*time.Second), &o).Arrivals {
		sum += a
	}
	if sum != 8000 {
		t.Errorf("%d arrivals of 8000", sum)
	}
}
