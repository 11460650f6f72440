// Tests of the series.

package page

import (
	"sync"
	"testing"
	"time"

	"kvasir/proxy/record"
)

// ended is a request that ended well, as records are.
func ended() *record.Record {
	return &record.Record{
		ID: "4ba0b3a9-29a5-4a0e-9f0c-5d1b1a6c7c4e", Route: "/v1/chat/completions", Asked: "auto", Model: "m", Worker: "w", Path: "upstream",
		Began: time.Now(), FirstByte: 20 * time.Millisecond, Total: 1020 * time.Millisecond, Status: 200, Streamed: true,
		Prompt: 100, Completion: 101, CachedTokens: 64,
		Steps:     []record.Step{{Name: record.Read, End: time.Millisecond, Rank: -1}, {Name: record.Decode, Begin: time.Millisecond, End: 20 * time.Millisecond, Worker: "w", Rank: -1, Status: 200}},
		Placement: record.Placement{Policy: "predict", Why: "predict", Priced: true, Candidates: []record.Candidate{{Worker: "w", Rank: -1, Leg: "whole", Chosen: true, Cost: 1}}},
	}
}

// TestSeries: samples are a second's worth of what ended since the one before, the last 180 of them.
func TestSeries(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	var s series
	s.start(begin)
	outcomes := []func(*record.Record){
		func(*record.Record) {},
		func(r *record.Record) { r.Status = 502 },
		func(r *record.Record) { r.Path = "blocked" },
		func(r *record.Record) {
			r.Cache.Result, r.Path, r.Prompt, r.Completion, r.CachedTokens = "hit", "cache", -1, -1, -1
		},
		func(r *record.Record) { r.End = "client_gone" }, // is no error
	}
	for _, change := range outcomes {
		r := ended()
		change(r)
		s.note(r)
	}
	s.extend(begin.Add(step), 7, 3)
	got := s.all()
	if len(got) != 1 {
		t.Fatalf("samples are %+v", got)
	}
	q := got[0]
	if q.Time != begin.Add(step).Unix() || q.Requests != 1 || q.Errors != 0.2 || q.Blocked != 0.2 || q.CacheHits != 0.2 ||
		q.TokensIn != 80 || q.TokensOut != 80.8 || q.TokensCached != 51.2 || q.InFlight != 7 || q.Queue != 3 {
		t.Errorf("the sample is %+v", q)
	}
	if q.FirstByte == nil || q.FirstByte.P50 < 19 || q.FirstByte.P99 > 22 || q.Between == nil || q.Between.P50 < 9.4 || q.Between.P50 > 10.6 {
		t.Errorf("times are %+v and %+v", q.FirstByte, q.Between)
	}
	for i := range mostSamples + 20 {
		s.extend(begin.Add(time.Duration(i+2)*step), i, 0)
	}
	got = s.all()
	if len(got) != mostSamples || got[0].InFlight != 20 || got[mostSamples-1].InFlight != mostSamples+19 || got[0].FirstByte != nil || got[0].Requests != 0 {
		t.Errorf("%d samples, from %+v to %+v", len(got), got[0], got[len(got)-1])
	}
}

// TestTimesAreApart: what workers stream, what they answer at once and what the cache answers are measured each by
// itself, and what is no answer not at all.
func TestTimesAreApart(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	for name, tc := range map[string]struct {
		change func(*record.Record)
		want   [numTimes]float64 // p50 in milliseconds; 0: nothing was measured
	}{
		"a stream":       {func(*record.Record) {}, [numTimes]float64{20, 10, 0, 0}},
		"one token":      {func(r *record.Record) { r.Completion = 1 }, [numTimes]float64{20, 0, 0, 0}},
		"a whole answer": {func(r *record.Record) { r.Streamed = false }, [numTimes]float64{0, 0, 1020, 0}},
		"a hit":          {func(r *record.Record) { r.Cache.Result, r.Path = "hit", "cache" }, [numTimes]float64{0, 0, 0, 20}},
		"a follower":     {func(r *record.Record) { r.Cache.Result = "wait" }, [numTimes]float64{0, 0, 0, 20}},
		"a block":        {func(r *record.Record) { r.Path, r.End = "blocked", "blocked" }, [numTimes]float64{}},
		"an error":       {func(r *record.Record) { r.Status = 400 }, [numTimes]float64{}},
		"our error":      {func(r *record.Record) { r.Path, r.Status = "error", 502 }, [numTimes]float64{}},
		"no first byte":  {func(r *record.Record) { r.FirstByte, r.End = 0, "client_gone" }, [numTimes]float64{}},
		"left on its way": {func(r *record.Record) { r.End, r.Completion = "client_gone", -1 },
			[numTimes]float64{20, 0, 0, 0}},
	} {
		var s series
		s.start(begin)
		r := ended()
		tc.change(r)
		s.note(r)
		q := s.minute(begin.Add(time.Second))
		for i, got := range [numTimes]*Quantiles{q.FirstByte, q.Between, q.Whole, q.Hits} {
			if want := tc.want[i]; (got == nil) != (want == 0) || got != nil && (got.P50 < want*0.94 || got.P50 > want*1.06) {
				t.Errorf("%s: time %d is %+v, want %v", name, i, got, want)
			}
		}
	}
}

// TestLastMinute is over a minute, however long the series is, and over less at the beginning.
func TestLastMinute(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	var s series
	s.start(begin)
	s.note(ended())
	if m := s.minute(begin.Add(2 * time.Second)); m.Requests != 0.5 {
		t.Errorf("after two seconds: %+v", m)
	}
	for i := range 100 {
		s.extend(begin.Add(time.Duration(i+1)*step), 0, 0)
		if i >= 40 {
			s.note(ended())
		}
	}
	if m := s.minute(begin.Add(100 * step)); m.Requests != 0.217 { // 13 in the 60 s up to now
		t.Errorf("the last minute is %+v", m)
	}
}

// TestNotingAllocatesNothing: a request that ends costs no memory, once the ring has come round.
func TestNotingAllocatesNothing(t *testing.T) {
	p := New(testOptions())
	defer p.Close()
	r := ended()
	for range mostKept {
		p.Observe(r)
	}
	if n := testing.AllocsPerRun(1000, func() { p.Observe(r) }); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// TestNotingAtOnce loses no request, whoever reads meanwhile.
func TestNotingAtOnce(t *testing.T) {
	p := New(testOptions())
	defer p.Close()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				p.Observe(ended())
			}
		})
	}
	all.Go(func() {
		for range 50 {
			p.kept.count()
			p.series.extend(time.Now(), 0, 0)
			p.series.minute(time.Now())
		}
	})
	all.Wait()
	var sum reading
	p.series.sum(&sum, time.Now())
	if kept, dropped := p.kept.count(); sum.counts[allRequests] != 8000 || kept != mostKept || dropped != 7000 {
		t.Errorf("%d counted, %d kept, %d dropped", sum.counts[allRequests], kept, dropped)
	}
}

// BenchmarkObserve is what the page costs a request.
func BenchmarkObserve(b *testing.B) {
	p := New(testOptions())
	defer p.Close()
	r := ended()
	for range 9 {
		r.Steps = append(r.Steps, r.Steps[0])
	}
	for range 7 {
		r.Placement.Candidates = append(r.Placement.Candidates, r.Placement.Candidates[0])
	}
	b.ReportAllocs()
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			p.Observe(r)
		}
	})
	b.Run("all", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.Observe(r)
			}
		})
	})
	b.Run("counted alone, all", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.series.note(r)
			}
		})
	})
}

// BenchmarkSample is what the page costs every five seconds, whoever looks.
func BenchmarkSample(b *testing.B) {
	var s series
	s.start(time.Now())
	for range 1000 {
		s.note(ended())
	}
	for b.Loop() {
		s.extend(time.Now(), 0, 0)
	}
}
