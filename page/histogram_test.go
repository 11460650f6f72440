// Tests of histograms.

package page

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestBuckets: each time is counted in the bucket that it lies in, and no bucket is wider than an
// eighth of its times.
func TestBuckets(t *testing.T) {
	for at := range buckets - 1 {
		low, high := bucketFrom(at), bucketFrom(at+1)
		if high <= low || at >= perOctave && high-low > low/perOctave {
			t.Fatalf("bucket %d is from %v to %v", at, low, high)
		}
		for _, u := range []float64{low, math.Ceil(high) - 1} {
			if got := bucketOf(time.Duration(u) * time.Microsecond); got != at {
				t.Fatalf("%v us is in bucket %d, want %d", u, got, at)
			}
		}
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Nanosecond} {
		if bucketOf(d) != 0 {
			t.Errorf("%v is in bucket %d", d, bucketOf(d))
		}
	}
	for _, d := range []time.Duration{30 * time.Minute, math.MaxInt64} {
		if bucketOf(d) != buckets-1 {
			t.Errorf("%v is in bucket %d", d, bucketOf(d))
		}
	}
}

// TestQuantiles compares with the times themselves: at most 7 % beside them.
func TestQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 10, 5000} {
		var h histogram
		var times []float64
		for range n {
			d := time.Duration(math.Exp(r.NormFloat64()+10) * float64(time.Microsecond))
			h.note(d)
			times = append(times, float64(d)/float64(time.Millisecond))
		}
		slices.Sort(times)
		var from, to [buckets]uint32
		for i := range from {
			from[i] = math.MaxUint32 - 3 // counters run over
			to[i] = from[i] + h[i].Load()
		}
		got := quantilesOf(&from, &to)
		for q, at := range map[float64]float64{0.5: got.P50, 0.95: got.P95, 0.99: got.P99} {
			want := times[max(int(math.Ceil(q*float64(n)))-1, 0)]
			if math.Abs(at-want) > 0.13*want {
				t.Errorf("of %d the quantile %v is %v, want %v", n, q, at, want)
			}
		}
	}
	if q := quantilesOf(new([buckets]uint32), new([buckets]uint32)); q != nil {
		t.Errorf("of nothing they are %v", q)
	}
}
