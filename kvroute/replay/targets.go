// Targets: how many requests had their first token, and then the others, as soon as they should.

package replay

import (
	"slices"
	"time"
)

// Targets are what a request should have: its first token after TTFT at most, and from one token to the next ITL at
// most, on average over its answer.
type Targets struct {
	TTFT, ITL time.Duration
}

// Kept is how a replay did against targets.
type Kept struct {
	Requests int     `json:"requests"`
	Share    float64 `json:"share"` // of them, that kept both
	TTFT     float64 `json:"ttft_ms"`
	ITL      float64 `json:"itl_ms"` // of each request the mean; both at the quantile that was asked for

	KeptTTFT float64 `json:"share_ttft"` // of the requests, that kept this one
	KeptITL  float64 `json:"share_itl"`
}

// Kept says how the requests with numbers from and on did, those before to only; quantile is that of Kept.TTFT and ITL,
// interpolated. Requests that are not done count as none.
func (t *Trace) Kept(each []RequestResult, from, to int, targets Targets, quantile float64) Kept {
	ttft, itl := make([]time.Duration, 0, to-from), make([]time.Duration, 0, to-from)
	var both, first, others int
	for i := from; i < to; i++ {
		q := &each[i]
		if q.E2E == 0 {
			continue
		}
		between := q.itl(t.Requests[i].AnswerTokens)
		ttft, itl = append(ttft, q.TTFT), append(itl, between)
		a, b := q.TTFT <= targets.TTFT, between <= targets.ITL
		if a {
			first++
		}
		if b {
			others++
		}
		if a && b {
			both++
		}
	}
	n := len(ttft)
	k := Kept{Requests: n, Share: share(both, n), KeptTTFT: share(first, n), KeptITL: share(others, n)}
	k.TTFT, k.ITL = quantileOf(ttft, quantile), quantileOf(itl, quantile)
	return k
}

// itl is the mean time between two tokens of an answer of so many; 0 where it has one.
func (r *RequestResult) itl(tokens int) time.Duration {
	if tokens < 2 {
		return 0
	}
	return (r.E2E - r.TTFT) / time.Duration(tokens-1)
}

// quantileOf sorts times and reads one, in milliseconds; 0 where there is none.
func quantileOf(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	place := q * float64(len(times)-1)
	low := int(place)
	a, b := millis(times[low]), millis(times[min(low+1, len(times)-1)])
	return a + (b-a)*(place-float64(low))
}
