// The formula: what Dynamo's planner computes from means, beside what the replay says.

package planner

import (
	"math"
	"time"

	"kvasir/kvroute/replay"
	"kvasir/sim"
)

// A Formula is the answer of Dynamo's planner for throughput (SLA planner of 1.x), with the profile of the simulated
// engine in place of a measured one:
//
//	prefill = rate * prompt * min(1, TTFT measured / TTFT of the profile) / prompt tokens a second of one worker
//	decode  = rate * answer / tokens a second of one worker at the most sequences that keep the target
//
// where the target between tokens is divided by ITL measured / ITL of the profile. Workers that do both need the sum of
// the two: Dynamo's formula is for roles apart.
type Formula struct {
	Fleet   replay.Fleet `json:"-"`
	Prefill float64      `json:"prefill"` // workers, before rounding up
	Decode  float64      `json:"decode"`
	Prompt  float64      `json:"prompt_tokens"` // means of the window
	Answer  float64      `json:"answer_tokens"`
}

func (o *Options) formula(t *replay.Trace, rate float64, fleet replay.Fleet, m Measured) Formula {
	f := Formula{Fleet: o.clamp(replay.Fleet{})}
	if len(t.Requests) == 0 || rate == 0 {
		return f
	}
	for i := range t.Requests {
		f.Prompt += float64(t.Requests[i].PromptTokens)
		f.Answer += float64(t.Requests[i].AnswerTokens)
	}
	f.Prompt /= float64(len(t.Requests))
	f.Answer /= float64(len(t.Requests))

	alone := o.prefillTime(int(math.Ceil(f.Prompt))).Seconds()
	correction := 1.0
	if m.Requests > 0 {
		correction = min(1, m.TTFT.Seconds()/alone)
	}
	f.Prefill = rate * alone * correction

	context := f.Prompt + f.Answer/2
	target := o.Targets.ITL
	if workers := max(fleet.Workers, fleet.Decode); m.Requests > 0 && m.ITL > 0 && workers > 0 {
		// As many sequences at a time as came in the time that an answer takes, on the workers that there were.
		at := rate * f.Answer * m.ITL.Seconds() / float64(workers)
		expected := o.decodeTime(at * context)
		target = time.Duration(float64(target) / max(m.ITL.Seconds()/expected.Seconds(), 1e-3))
	}
	f.Decode = rate * f.Answer / o.decodeRate(context, target)

	first, decode := math.Ceil(f.Prefill+f.Decode), 0.0
	if o.Apart {
		first, decode = math.Ceil(f.Prefill), math.Ceil(f.Decode)
	}
	f.Fleet = o.clamp(o.fleet(int(min(first, replay.MaxWorkers)), int(min(decode, replay.MaxWorkers))))
	return f
}

// prefillTime is how long a prompt takes on an idle worker.
func (o *Options) prefillTime(tokens int) time.Duration {
	return o.paced(sim.PrefillTime(tokens, o.Engine.MaxBatchedTokens))
}

// decodeTime is how long a pass takes that decodes sequences of so many tokens together.
func (o *Options) decodeTime(tokens float64) time.Duration {
	pool := o.Engine.Blocks * o.Engine.BlockSize
	return o.paced(sim.DecodeTime(int(min(tokens, float64(pool))), pool))
}

func (o *Options) paced(d time.Duration) time.Duration {
	return time.Duration(float64(d) * o.Engine.Pace)
}

// decodeRate is how many tokens a second one worker makes at the most sequences of such a length that keep a target,
// and fit; of one sequence where not even that keeps it.
func (o *Options) decodeRate(context float64, target time.Duration) float64 {
	low, high := 1, max(min(o.Engine.MaxSeqs, int(float64(o.Engine.Blocks*o.Engine.BlockSize)/context)), 1)
	for low < high {
		if n := (low + high + 1) / 2; o.decodeTime(float64(n)*context) <= target {
			low = n
		} else {
			high = n - 1
		}
	}
	return float64(low) / o.decodeTime(float64(low)*context).Seconds()
}
