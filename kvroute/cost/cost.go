// What a placement costs: the package doc and the facts of an engine.

// Package cost prices the workers that could take a request, from what each one was sent and what it has answered.
//
//	m := cost.NewMirror(cost.Engine{BlockSize: 16, Blocks: 16384, Budget: 8192, MaxSeqs: 256}) // one for each engine
//	...
//	c := []cost.Candidate{{Load: m.Load(now), Overlap: overlap}, ...}
//	predict.Price(now, cost.Prompt{Tokens: 4000}, c)
//	i := cost.Pick(c, 0, random.Uint64)
//	r := mirrors[i].Send(now, cost.Sent{Prompt: 4000, Hit: c[i].Hit})
//	mirrors[i].Tokens(r, now, 1) // for each event of the answer
//	mirrors[i].End(r, now)
//
// It takes no lock, starts no goroutine and reads no clock. A Mirror belongs to whoever locks it; Load copies what
// prices need, so that pricing itself holds no mirror.
package cost

import "time"

// Engine is what is known of one engine (of one data-parallel rank where it has several). A field that is 0 is not
// known and stands for the value in brackets.
type Engine struct {
	BlockSize int // tokens in a KV block (16)
	Blocks    int // KV blocks in its pool (as many as hold 1,048,576 tokens)
	Budget    int // tokens that one pass may compute, vLLM's max_num_batched_tokens (8,192)
	MaxSeqs   int // requests that run at a time (256)

	// Wire is how long a request is on its way until the engine's scheduler sees it. A pass that starts meanwhile
	// does not have it.
	Wire time.Duration

	// Timing is how long its passes take; zero: learned from its answers.
	Timing Timing
}

func (e Engine) withDefaults() Engine {
	if e.BlockSize <= 0 {
		e.BlockSize = 16
	}
	if e.Blocks <= 0 {
		e.Blocks = 1 << 20 / e.BlockSize
	}
	if e.Budget <= 0 {
		e.Budget = 8192
	}
	if e.MaxSeqs <= 0 {
		e.MaxSeqs = 256
	}
	return e
}

// tokens is how many tokens the pool holds.
func (e Engine) tokens() int { return e.Blocks * e.BlockSize }
