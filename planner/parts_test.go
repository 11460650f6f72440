// The parts by themselves: forecast, formula, search with its slow twin, control.

package planner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kvasir/kvroute/replay"
)

func TestForecast(t *testing.T) {
	o := Options{Window: 10 * time.Minute, Start: minute, Interval: minute}.WithDefaults()
	series := func(n int, f func(i int) int) []int {
		s := make([]int, n)
		for i := range s {
			s[i] = f(i)
		}
		return s
	}
	for _, c := range []struct {
		name                string
		arrivals            []int
		since               time.Duration
		rate, window, trend float64
	}{
		{"constant", series(40, func(int) int { return 30 }), 0, 2, 2, 2},
		{"none", series(40, func(int) int { return 0 }), 0, 0, 0, 0},
		{"nothing known", nil, 10 * minute, 0, 0, 0},
		// 15 more each 15 s, a request a second more; two minutes after the last bucket it is 8 buckets further.
		{"rising", series(40, func(i int) int { return 15 * (i + 1) }), 0, 48, 34, 48},
		{"falling", series(40, func(i int) int { return 15 * (40 - i) }), 0, 7, 7, 0},
		{"begins", series(40, func(i int) int { return 600 * (i / 38) }), 0, 0, 0, 0},
		// A burst at the end of each tenth rises no more than chance would: no trend.
		{"bursts", series(40, func(i int) int { return 300 * (i % 10 / 9) }), 0, 40.0 / 13, 40.0 / 13, 2},
		{"just begun", series(3, func(int) int { return 30 }), 10*minute - 3*Bucket, 2, 2, 2},
		{"known for a minute", series(40, func(i int) int { return 30 * (i / 36) }), 9 * minute, 2, 2, 2},
	} {
		f := o.forecast(&Load{Now: 10 * minute, Since: c.since, Arrivals: c.arrivals})
		if c.name == "begins" { // no more than twice what came in the last part, or over the window
			if f.Rate > mostGrowth*f.Window+1e-9 || f.Rate < f.Window || f.Window == 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
			continue
		}
		if math.Abs(f.Rate-c.rate) > 1e-9 || math.Abs(f.Window-c.window) > 1e-9 || math.Abs(f.Trend-c.trend) > 1e-9 {
			t.Errorf("%s: %+v, want %v %v %v", c.name, f, c.rate, c.window, c.trend)
		}
	}
	at := []time.Duration{0, Bucket - 1, Bucket, 3*Bucket - 1, 3 * Bucket}
	if got := fmt.Sprint(buckets(at, 0, 3*Bucket), buckets(at, Bucket/2, 3*Bucket), buckets(at, 0, 0), buckets(at, minute, 0)); got != "[2 1 1] [1 1] [] []" {
		t.Error(got)
	}
}

// By hand: a prompt of 1,000 tokens takes 32.1 ms, and 64 of 1,010 tokens at a time decode in 8.96 ms where the pool has 1,048,576.
func TestFormula(t *testing.T) {
	o := Options{}.WithDefaults()
	trace := arrive(10*time.Second, 1000, 20, 0, constant(10))
	f := o.formula(trace, 100, replay.Fleet{}, Measured{})
	if want := 100 * (4.209989e-07*1e6 + 15.18344 + 16.50142) / 1000; math.Abs(f.Prefill-want) > 1e-6 {
		t.Errorf("prefill %v, want %v", f.Prefill, want)
	}
	a := 256 * 1010 / 1048576.0 // the most sequences at a time keep 50 ms
	if want := 100 * 20 * (-25.74*a*a + 54.01*a + 5.74) / 1000 / 256; math.Abs(f.Decode-want) > 1e-6 {
		t.Errorf("decode %v, want %v", f.Decode, want)
	}
	if want := int(math.Ceil(f.Prefill + f.Decode)); f.Fleet.Workers != want {
		t.Errorf("%v workers, want %d", f.Fleet, want)
	}
	o.Apart = true
	if g := o.formula(trace, 100, replay.Fleet{}, Measured{}); g.Fleet != (replay.Fleet{Prefill: 4, Decode: 1}) {
		t.Errorf("%+v", g)
	}
	// Prompts that were computed faster than they take need less; tokens that came slower need more.
	fast := o.formula(trace, 100, replay.Fleet{Prefill: 4, Decode: 1}, Measured{Requests: 9, TTFT: 16 * time.Millisecond, ITL: 6 * time.Millisecond})
	slow := o.formula(trace, 100, replay.Fleet{Prefill: 4, Decode: 1}, Measured{Requests: 9, TTFT: time.Second, ITL: 60 * time.Millisecond})
	if math.Abs(fast.Prefill/f.Prefill-0.5) > 0.01 || slow.Prefill != f.Prefill || slow.Decode <= f.Decode || fast.Decode > f.Decode+1e-9 {
		t.Errorf("%+v fast, %+v slow", fast, slow)
	}
	if none := o.formula(&replay.Trace{}, 100, replay.Fleet{}, Measured{}); none.Fleet != (replay.Fleet{Prefill: 1, Decode: 1}) {
		t.Errorf("%+v", none)
	}
}

// The search finds what trying all finds, and plays few.
func TestSearchAlone(t *testing.T) {
	for most := 1; most <= 40; most += 13 {
		for from := 1; from <= most+1; from++ { // the first that holds; most+1: none
			for guess := 0; guess <= most+1; guess++ {
				tried := map[int]bool{}
				got := least(bounds{1, most}, guess, func(n int) bool {
					if n < 1 || n > most || tried[n] {
						t.Fatalf("%d is tried, between 1 and %d", n, most)
					}
					tried[n] = true
					return n >= from
				})
				if got != min(from, most) || len(tried) > 12 || guess == from && len(tried) > 2 {
					t.Fatalf("%d of %d from %d: %d, after %d", from, most, guess, got, len(tried))
				}
			}
		}
	}
}

// twin tries all, and finds the fewest together.
func twin(b bounds, holds func(place) bool) int {
	best := 2*b.most + 1
	for p := b.least; p <= b.most; p++ {
		for d := b.least; d <= b.most; d++ {
			if holds(place{p, d}) {
				best = min(best, p+d)
			}
		}
	}
	return best
}

func TestSearchApart(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same seed, the same test
	worst, played := 0, 0
	for range 3000 {
		b := bounds{1, 2 + random.IntN(30)}
		// So many are needed of each role, and a lack of one can be made up by some more of the other.
		p, d, swap := 1+random.IntN(b.most+1), 1+random.IntN(b.most+1), random.IntN(3)
		kept := func(at place) replay.Kept {
			k := replay.Kept{
				KeptTTFT: min(1, float64(at.first)/float64(p)), KeptITL: min(1, float64(at.decode)/float64(d)),
			}
			lack := max(p-at.first, 0) + max(d-at.decode, 0)
			spare := max(at.first-p, 0) + max(at.decode-d, 0)
			if k.Share = 0; lack == 0 || swap > 0 && lack == 1 && spare >= 2*swap {
				k.Share = 1
			}
			return k
		}
		try := &trials{goal: 0.95, play: func(at place) (replay.Kept, error) {
			played++
			if min(at.first, at.decode) < b.least || max(at.first, at.decode) > b.most {
				t.Fatalf("%v is out of %v", at, b)
			}
			return kept(at), nil
		}}
		got, err := try.apart(b, place{random.IntN(b.most + 2), random.IntN(b.most + 2)})
		if err != nil {
			t.Fatal(err)
		}
		best := twin(b, func(at place) bool { return kept(at).Share >= 0.95 })
		if best > 2*b.most { // none holds
			if got != (place{b.most, b.most}) {
				t.Errorf("none holds, and %v is found", got)
			}
			continue
		}
		if kept(got).Share < 0.95 {
			t.Errorf("%v is found, and does not hold", got)
		}
		worst = max(worst, got.first+got.decode-best)
	}
	if worst > 1 || played > 3000*30 {
		t.Errorf("%d more than the fewest, %d played for one", worst, played/3000)
	}
}

func TestControl(t *testing.T) {
	both := func(n int) replay.Fleet { return replay.Fleet{Workers: n} }
	apart := func(p, d int) replay.Fleet { return replay.Fleet{Prefill: p, Decode: d} }
	type step struct {
		minute int
		fleet  replay.Fleet
		needed replay.Fleet
		under  bool
		want   string
	}
	for name, steps := range map[string][]step{
		"up at once": {{0, both(2), both(2), false, "2 keep"}, {1, both(2), both(7), false, "7 up"}, {2, both(7), both(7), true, "7 changing"}},
		"never while a change is under way": {
			{0, both(2), both(4), false, "4 up"}, {1, both(4), both(9), true, "4 changing"}, {2, both(4), both(1), true, "4 changing"}, {3, both(4), both(9), false, "9 up"},
		},
		"down slowly, to the most that was needed": {
			{0, both(8), both(8), false, "8 keep"}, {1, both(8), both(3), false, "8 waits"}, {2, both(8), both(5), false, "8 waits"},
			{3, both(8), both(2), false, "8 waits"}, {4, both(8), both(2), false, "8 waits"}, {5, both(8), both(2), false, "8 waits"}, {6, both(8), both(2), false, "5 down"},
			{7, both(5), both(2), false, "5 waits"}, {8, both(5), both(2), false, "2 down"},
		},
		"noise": {
			{0, both(5), both(5), false, "5 keep"}, {1, both(5), both(4), false, "5 waits"}, {2, both(5), both(5), false, "5 keep"}, {3, both(5), both(4), false, "5 waits"},
			{4, both(5), both(4), false, "5 waits"}, {5, both(5), both(5), false, "5 keep"}, {6, both(5), both(4), false, "5 waits"}, {9, both(5), both(4), false, "5 waits"},
			{11, both(5), both(4), false, "4 down"},
		},
		"not before it is known": {{0, both(5), both(1), false, "5 waits"}, {4, both(5), both(1), false, "5 waits"}, {5, both(5), both(1), false, "1 down"}},
		"each role by itself": {
			{0, apart(2, 6), apart(2, 3), false, "2+6 waits"}, {3, apart(2, 6), apart(4, 3), false, "4+6 up"}, {4, apart(4, 6), apart(4, 3), true, "4+6 changing"},
			{5, apart(4, 6), apart(4, 3), false, "4+3 down"}, {6, apart(4, 3), apart(5, 2), false, "5+3 up"}, {8, apart(5, 3), apart(2, 2), false, "5+3 waits"},
		},
	} {
		c := control{downAfter: 5 * minute}
		for _, s := range steps {
			want, why := c.decide(time.Duration(s.minute)*minute, s.fleet, s.needed, s.under)
			if got := want.String() + " " + why.Verdict.String(); got != s.want {
				t.Errorf("%s, minute %d: %s, want %s", name, s.minute, got, s.want)
			}
			if len(c.needs) > 8 {
				t.Errorf("%s: %d are remembered", name, len(c.needs))
			}
		}
	}
	if len(Verdicts()) != int(Useless)+1 {
		t.Error(Verdicts())
	}
	r := Reason{Verdict: Waits, Needed: both(3), Since: 2 * minute, After: 5 * minute, Stopped: true}
	if got := r.String(); got != "3 are enough, for 2m0s of 5m0s so far; the plan took too long and was cut short" {
		t.Error(got)
	}
	for v := range verdicts {
		if s := (Reason{Verdict: Verdict(v)}).String(); s == "" || strings.Contains(s, "cut short") {
			t.Errorf("%v: %q", Verdict(v), s)
		}
	}
}
