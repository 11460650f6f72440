// The length of one pass of the engine: the polynomials of Dynamo's mocker.

package sim

import (
	"math"
	"time"
)

// prefillMillis returns the time, in milliseconds, that one pass needs for its prompt tokens:
// P(t) of aisimulate-core 0.13.0's default timing. count is the number of requests that compute
// prompt tokens in the pass; starts and ends are the sums of their prompt positions before and
// after it. As in that source, t is count times the difference of the two mean positions, each
// rounded down, which is about ends - starts, the tokens of the pass.
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

// decodeMillis returns the time, in milliseconds, that one pass needs for decoding: D(a) of the
// same source. It depends on the share a of the pool that decoding sequences fill (a shared block
// counts once for each sequence), not on the number of sequences.
func decodeMillis(tokens, poolTokens int) float64 {
	a := math.Min(float64(tokens)/float64(poolTokens), 1)
	return math.Max(-25.74*a*a+54.01*a+5.74, 1)
}

// PrefillTime returns how long an engine at normal speed takes for a prompt of so many tokens while it has nothing
// else to do, in passes of at most perPass tokens.
func PrefillTime(tokens, perPass int) time.Duration {
	sum := 0.0
	for ; tokens > 0; tokens -= perPass {
		sum += prefillMillis(1, min(tokens, perPass), 0)
	}
	return passLength(sum, 1)
}

// DecodeTime returns how long a pass takes at normal speed that decodes sequences of so many tokens together, in a pool
// of poolTokens.
func DecodeTime(tokens, poolTokens int) time.Duration {
	return passLength(decodeMillis(tokens, poolTokens), 1)
}

// passLength divides the length of a pass by speedup and converts it to a time.Duration, at most
// 146 years so that it cannot overflow.
func passLength(millis, speedup float64) time.Duration {
	return time.Duration(min(math.Round(millis/speedup*1e6), 1<<62))
}
