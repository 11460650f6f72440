// How long an engine's pass takes, as two polynomials.

package cost

import (
	"math"
	"time"
)

// Timing is the length of a pass, in milliseconds: a part for the prompt tokens computed in it, and a part for the
// sequences that generate a token in it, which grows with the tokens that they attend to.
type Timing struct {
	Prefill [3]float64 // times 1, tokens, tokens squared; nothing without prompt tokens
	Decode  [3]float64 // times 1, share, share squared; nothing without decoding sequences
}

// Mocker is the timing of Dynamo's mocker (aisimulate-core 0.13.0) and of the simulated engine: an 8B model on an H100.
var Mocker = Timing{
	Prefill: [3]float64{1.650142e+01, 1.518344e-02, 4.209989e-07},
	Decode:  [3]float64{5.74, 54.01, -25.74},
}

// prefill is the part of a pass in milliseconds that computes so many prompt tokens.
func (t *Timing) prefill(tokens float64) float64 {
	if tokens <= 0 {
		return 0
	}
	return max(t.Prefill[0]+tokens*(t.Prefill[1]+tokens*t.Prefill[2]), 0.001)
}

// chunked is the time in milliseconds of so many prompt tokens in as many passes as they need. The polynomial is not
// asked about more than a pass can have: it was measured, or learned, below that only.
func (t *Timing) chunked(tokens, budget float64) float64 {
	full := math.Floor(tokens / budget)
	return full*t.prefill(budget) + t.prefill(tokens-full*budget)
}

// decode is the part in milliseconds that generates tokens, where the decoding sequences fill that share of the pool.
func (t *Timing) decode(share float64) float64 {
	share = min(share, 1)
	return max(t.Decode[0]+share*(t.Decode[1]+share*t.Decode[2]), 0.001)
}

// token is what one prompt token costs in milliseconds where many are computed.
func (t *Timing) token(budget float64) float64 { return t.prefill(budget) / budget }

// times is the timing of an engine whose passes take so many times longer.
func (t *Timing) times(slow float64) Timing {
	s := *t
	for i := range s.Prefill {
		s.Prefill[i] *= slow
		s.Decode[i] *= slow
	}
	return s
}

// Pace is how many times longer passes take than those of Mocker: the geometric mean of one that computes 2,048 tokens
// of prompts and one that decodes with a quarter of the pool.
func (t *Timing) Pace() float64 {
	return math.Sqrt(t.prefill(2048) / Mocker.prefill(2048) * t.decode(0.25) / Mocker.decode(0.25))
}

func (t *Timing) known() bool { return *t != Timing{} }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func duration(millis float64) time.Duration { return time.Duration(millis * float64(time.Millisecond)) }
