// Histograms: times in buckets that grow with them, for quantiles.

package page

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Eight buckets for each power of two of microseconds, up to 18 minutes: a quantile is off by 6 %
// at most.
const (
	perOctave = 8
	buckets   = perOctave * 28
)

// A histogram counts times. The zero value is ready.
type histogram [buckets]atomic.Uint32

func (h *histogram) note(d time.Duration) { h[bucketOf(d)].Add(1) }

// bucketOf is where a time is counted.
func bucketOf(d time.Duration) int {
	u := uint64(max(d.Microseconds(), 0))
	if u < perOctave {
		return int(u)
	}
	octave := bits.Len64(u) - 4 // 8..15 is octave 0
	return min(perOctave*(octave+1)+int(u>>octave)&(perOctave-1), buckets-1)
}

// bucketFrom is the least time of a bucket, in microseconds.
func bucketFrom(at int) float64 {
	if at < perOctave {
		return float64(at)
	}
	octave := at/perOctave - 1
	return float64(uint64(perOctave+at%perOctave) << octave)
}

// Quantiles are in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// quantilesOf are those of what was counted between two readings; nil: nothing was.
func quantilesOf(from, to *[buckets]uint32) *Quantiles {
	var counts [buckets]uint32
	all := uint32(0)
	for i := range counts {
		counts[i] = to[i] - from[i] // also where they have run over
		all += counts[i]
	}
	if all == 0 {
		return nil
	}
	at := func(q float64) float64 {
		rank := q * float64(all)
		below := 0.0
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if below += float64(n); below >= rank {
				low, high := bucketFrom(i), bucketFrom(i+1)
				return rounded((low + (high-low)*(1-(below-rank)/float64(n))) / 1000)
			}
		}
		return 0 // not reached: the last count makes it all of them
	}
	return &Quantiles{at(0.5), at(0.95), at(0.99)}
}
