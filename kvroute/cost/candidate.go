// One way to place a request, and which of them is picked.

package cost

import (
	"math"
	"time"

	"kvasir/kvroute/kvindex"
)

// Leg is the part of a request that a worker is priced for.
type Leg uint8

// The legs.
const (
	Whole      Leg = iota // prompt and answer
	PrefillLeg            // the prompt; another worker answers
	DecodeLeg             // the answer; another worker computes the prompt and hands its blocks over
)

var legNames = [...]string{Whole: "whole", PrefillLeg: "prefill", DecodeLeg: "decode"}

// String returns whole, prefill or decode.
func (l Leg) String() string { return legNames[l] }

// Prompt is what prices need to know of a request.
type Prompt struct {
	Tokens int
	Leg    Leg
}

// Candidate is one worker that could take a request. The first fields go in, the others come out of Price.
type Candidate struct {
	Load    Load            // of the worker, as of now
	Overlap kvindex.Overlap // what it holds of the prompt

	// Aside: it is priced to be shown, and not to be taken: the others have their prices as if it were not there.
	Aside bool

	// BlockTokens is how many tokens a block of Overlap stands for; 0: Load.Engine.BlockSize. It differs where
	// prompts are cut by text.
	BlockTokens int

	// Active is how many leading blocks of the prompt the worker's unfinished requests use: Mirror.Active. They take
	// no more memory.
	Active int

	// Users is how many requests that is: Mirror.Users(names, Active). Policy predict copies what many use.
	Users int

	Hit   int           // prompt tokens that the worker need not compute
	Cost  float64       // milliseconds (predict) or blocks (kv); the lowest wins
	TTFT  time.Duration // predicted time to the first token; kv: 0
	Parts Parts         // what Cost is made of

	compute float64 // milliseconds that its own prompt takes, of predict
}

// Part is a named part of a cost.
type Part struct {
	Name  string
	Value float64
}

// Parts are the parts of a cost; those without a name are not used.
type Parts [6]Part

// Pick returns the index of the candidate to take: the cheapest, among equals any with the same chance. With a
// temperature above 0 it draws each with a weight of exp(-(cost - lowest) / (highest - lowest) / temperature). The
// temperature is noise that costs (see docs/routing.md). random returns 64 random bits. c must have one that is not
// Aside; a cost that is not a number counts as the highest.
func Pick(c []Candidate, temperature float64, random func() uint64) int {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range c {
		if !math.IsNaN(c[i].Cost) && !c[i].Aside {
			low, high = min(low, c[i].Cost), max(high, c[i].Cost)
		}
	}
	if !(temperature > 0) || !(high > low) || math.IsInf(high-low, 0) {
		return lowest(c, low, random)
	}
	scale := -1 / ((high - low) * temperature)
	weight := func(c *Candidate) float64 {
		cost := c.Cost
		switch {
		case c.Aside:
			return 0
		case math.IsNaN(cost):
			cost = high
		}
		return math.Exp((cost - low) * scale)
	}
	sum := 0.0
	for i := range c {
		sum += weight(&c[i])
	}
	at := sum * float64(random()>>11) / (1 << 53)
	for i := range c {
		if at -= weight(&c[i]); at < 0 {
			return i
		}
	}
	return lowest(c, low, random)
}

// lowest draws one of the candidates of that cost in one walk: the n-th of them takes the place with chance 1/n.
func lowest(c []Candidate, low float64, random func() uint64) int {
	at, equal := -1, uint64(0)
	for i := range c {
		switch {
		case c[i].Aside:
		case c[i].Cost > low || math.IsNaN(c[i].Cost):
			if at < 0 {
				at = i // should no cost be a number
			}
		default:
			if equal++; equal == 1 || random()%equal == 0 {
				at = i
			}
		}
	}
	return at
}
