// How long one pass of the engine takes: the polynomials of Dynamo's mocker.

package sim

import (
	"math"
	"time"
)

// prefillMillis is the time of one pass's prompt tokens in milliseconds, P(t) of aisimulate-core 0.13.0's default
// timing. t is count times a mean, both means rounded down, as there: count requests compute prompt tokens in the
// pass; ends and starts are the sums over them of the prompt position after and before it.
func prefillMillis(count, ends, starts int) float64 {
	if count == 0 {
		return 0
	}
	t := float64(count * (ends/count - starts/count))
	if t == 0 {
		return 0
	}
	return 4.209989e-07*t*t + 1.518344e-02*t + 1.650142e+01
}

// decodeMillis is the time of one pass's decode in milliseconds, D(a) of the same source: it depends on how full of
// decoding sequences the pool is (shared blocks counted once a sequence) and not on how many there are.
func decodeMillis(tokens, poolTokens int) float64 {
	a := math.Min(float64(tokens)/float64(poolTokens), 1)
	return math.Max(-25.74*a*a+54.01*a+5.74, 1)
}

// passLength turns the milliseconds of a pass into time at a speedup; at most 146 years, where time would overflow.
func passLength(millis, speedup float64) time.Duration {
	return time.Duration(min(math.Round(millis/speedup*1e6), 1<<62))
}
