// Placement: a slot on a worker, or on two, from when it is taken to when it is given back.

package kvroute

import (
	"time"

	"kvasir/kvroute/cost"
)

// An Overlap says how many leading blocks of a prompt a worker holds.
type Overlap struct {
	// Device, Host and Disk are runs one after the other, in the tiers' order.
	Device, Host, Disk int

	// Predicted leading blocks were sent there with requests that are unfinished
	// or not long finished. They begin where Device does.
	Predicted int

	Of        int // full blocks of the prompt
	BlockSize int // tokens of a block; 0: not known, nothing is known to be held
}

// Blocks returns how many leading blocks are held or predicted, in any tier.
func (o Overlap) Blocks() int { return max(o.Device+o.Host+o.Disk, o.Predicted) }

// Tokens returns how many leading tokens are held or predicted, in any tier.
func (o Overlap) Tokens() int { return o.Blocks() * o.BlockSize }

// A Candidate is a worker, or one data-parallel rank of it, as it was priced
// for a request.
type Candidate struct {
	Worker  *Worker
	Rank    int // -1: the worker has but one
	Leg     cost.Leg
	Chosen  bool
	Overlap Overlap
	Cost    float64       // the lowest wins; milliseconds (predict) or blocks (kv)
	TTFT    time.Duration // predicted; 0 where the policy does not predict it
	Parts   cost.Parts    // what Cost is made of
	Slow    float64       // by which Cost is higher: Hardware.Slow, put right by the passes since; 1: nothing is slow
	Aside   bool          // Hardware.Aside: not chosen where another candidate of the leg is not
	Load    Load
}

// Load is what was under way at a candidate before the request came.
type Load struct {
	Requests int // sent and not ended
	Decoding int // of these, past their first token
	Backlog  int // prompt tokens to compute that the pass under way does not finish
	Context  int // tokens of prompts and answers that take memory
}

// A Placement is a slot on a worker, and where a prefill worker computes the
// prompt on that one as well. Its methods may be called at the same time,
// but Release comes last. Copies are the same placement.
type Placement struct {
	Worker *Worker
	Rank   int // data-parallel rank that the request names; -1: none

	Prefill     *Worker // computes the prompt first; nil: Worker does
	PrefillRank int     // as Rank

	Overlap        Overlap // of Worker
	PrefillOverlap Overlap // of Prefill

	// Candidates are all that were priced, until Release or DropCandidates; nil
	// with policies that have no prices. Not to be changed.
	Candidates []Candidate

	// Why the worker was chosen: the policy's name, "pinned", or "busy" or
	// "last_resort" where there was nothing left for the policy to choose from.
	Why string

	// LastResort: all workers of the model are down or ejected; this is the one
	// that is most likely back.
	LastResort bool

	held *held  // nil: nothing but the slot
	turn uint32 // of held
}
