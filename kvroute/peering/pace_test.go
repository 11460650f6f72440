// The pace of engines: a newcomer begins with what others have learned, and goes by its own as soon as it has.

package peering

import (
	"math"
	"testing"
	"time"

	"kvasir/kvroute"
	"kvasir/kvroute/cost"
)

// works has a router's worker compute prompts alone, at a pace, until it is known.
func (r *router) works(times float64) {
	r.t.Helper()
	now := begin
	for i := range 60 {
		tokens := 512 * (1 + i%8)
		at, err := r.pool.Place(kvroute.Query{Now: now, Model: "m", Prompt: prompt(1+i*10000, tokens)})
		if err != nil {
			r.t.Fatal(err)
		}
		t := cost.Mocker
		now = now.Add(time.Duration(times * float64(time.Millisecond) * (t.Prefill[0] + float64(tokens)*(t.Prefill[1]+float64(tokens)*t.Prefill[2]))))
		at.Tokens(now, 1)
		at.Release()
		now = now.Add(time.Second)
	}
}

func (r *router) learned() (pace float64) {
	for _, w := range r.workers {
		w.Learned(func(_ int, t cost.Timing) { pace = t.Pace() })
	}
	return pace
}

func TestNewcomerBeginsWithThePaceOfOthers(t *testing.T) {
	a := newRouter(t, 1, "w")
	a.works(3)
	if a.learned() == 0 {
		t.Fatal("nothing was learned")
	}
	b := newRouter(t, 2, "w")
	ranked := b.workers[0].Engine()
	b.workers[0].SetEngine(kvroute.EngineFacts{Ranks: 2}) // what it is is heard later
	if _, known := b.workers[0].Pace(); known {
		t.Fatal("known from nothing")
	}
	meet(t, begin, a, b)
	if _, known := b.workers[0].Pace(); known {
		t.Error("known of a rank that is not there")
	}
	b.workers[0].SetEngine(ranked)
	b.x.Tick(begin)
	if pace, known := b.workers[0].Pace(); !known || math.Abs(pace-a.learned()) > 1e-9 {
		t.Errorf("it begins with %v, %t, want %v", pace, known, a.learned())
	}
	if b.learned() != 0 {
		t.Error("what was heard is told as if it were learned")
	}
	b.works(1)
	if pace, _ := b.workers[0].Pace(); pace != b.learned() || math.Abs(pace-a.learned()) < 0.3 {
		t.Errorf("it goes by %v, learned %v, heard %v", pace, b.learned(), a.learned())
	}
}

// What no engine can be is not believed, nor more than there is room for.
func TestPacesOfStrangers(t *testing.T) {
	b := newRouter(t, 2, "w")
	for _, t1 := range []cost.Timing{
		{}, {Prefill: [3]float64{math.NaN()}, Decode: [3]float64{5}}, {Prefill: [3]float64{1e12}, Decode: [3]float64{1e12}}, {Prefill: [3]float64{1e-9}, Decode: [3]float64{5}},
		{Prefill: [3]float64{math.Inf(1)}, Decode: [3]float64{5}}, {Prefill: cost.Mocker.Prefill, Decode: [3]float64{0, math.Inf(1)}},
		// As long as an engine's where the pace is taken, and of any length elsewhere.
		{Prefill: cost.Mocker.Prefill, Decode: [3]float64{15, 1e300, -4e300}}, {Prefill: cost.Mocker.Prefill, Decode: [3]float64{1e15, -8e15, 16e15}},
		through([3]float64{2048, 50}, [3]float64{8192, 140}, [3]float64{4096, 1e30}), through([3]float64{2048, 50}, [3]float64{8192, 140}, [3]float64{4096, -1e30}),
	} {
		b.workers[0].Believe(-1, t1)
		if pace, known := b.workers[0].Pace(); known {
			t.Errorf("%+v is believed: %v", t1, pace)
		}
	}
	h := &b.x.in
	for key := range uint64(2 * maxPaces) {
		h.heardPace(pacer{key, -1}, cost.Mocker)
	}
	h.believe()                      // a heartbeat
	for rank := range 2 * maxPaces { // a worker that is known, and ranks that it does not have
		h.heardPace(pacer{Key("w"), rank}, cost.Mocker)
	}
	if len(h.paces) != maxPaces {
		t.Errorf("%d are kept", len(h.paces))
	}
	h.believe()
	if h.heardPace(pacer{Key("w"), -1}, cost.Mocker); len(h.paces) != 1 {
		t.Errorf("%d are kept", len(h.paces))
	}
	if pace, known := b.workers[0].Pace(); !known || math.Abs(pace-1) > 1e-9 {
		t.Errorf("the pace is %v, %t", pace, known)
	}
}

// through is a timing whose prefill goes through three points.
func through(a, b, c [3]float64) (t cost.Timing) {
	t.Decode = cost.Mocker.Decode
	for _, p := range [...][3][3]float64{{a, b, c}, {b, c, a}, {c, a, b}} {
		x, y, z := p[0][0], p[1][0], p[2][0]
		k := p[0][1] / ((x - y) * (x - z))
		t.Prefill[0] += k * y * z
		t.Prefill[1] -= k * (y + z)
		t.Prefill[2] += k
	}
	return t
}
